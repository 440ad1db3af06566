//! [`Flow`]: one sign-in, with the browser or without.

use std::{
    io::{self, IsTerminal as _},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use pegboard::{Pegboard, SignIn, SignInErrorKind, SignInOptions, config::OAuthConfig};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Login, browser,
    callback::{BrowserWindow, Callback, Visit},
    command_of, complaint_of, hint_after_silence, whose,
};
use crate::{
    exit::Exit,
    output::Output,
    settings::Complaint,
    terminal::{Keyboard, Lines as _},
};

/// How long a person may take to sign in.
const SIGN_IN: Duration = Duration::from_secs(300);

/// A sign-in to one server.
pub(super) struct Flow<'a> {
    pub(super) board: &'a Pegboard,
    pub(super) oauth: &'a OAuthConfig,
    pub(super) options: &'a Login,
    pub(super) output: &'a Output,
    /// Set once the person has the address, and reset when the browser has answered.
    pub(super) is_begun: &'a AtomicBool,
}

/// The redirect of the sign-in, and the browser's window if it came from one.
type Answer = (String, Option<BrowserWindow>);

impl Flow<'_> {
    /// Signs in. Returns `false` if the server needs no sign-in.
    pub(super) async fn sign_in(&self) -> Result<bool, Complaint> {
        let (options, output) = (self.options, self.output);
        let mut callback = Callback::listen(&self.oauth.redirect).await?;
        let mut sign_in = SignInOptions::default()
            .redirect_uri(callback.uri())
            .scopes(options.scopes.clone());
        if let Some(principal) = &options.principal {
            sign_in = sign_in.principal(principal.as_str());
        }
        if options.new_client {
            sign_in = sign_in.new_client();
        }
        output.show_waiting("looking for the authorization server");
        let signing_in = match self.board.sign_in(options.server(), sign_in).await {
            Ok(signing_in) => signing_in,
            Err(error) if error.kind() == SignInErrorKind::NotNeeded => return Ok(false),
            Err(error) => return Err(complaint_of(&error, options)),
        };
        let url = browser::check_browser_url(signing_in.url())?;
        let opens = !options.no_browser && browser::can_open();
        let server = whose(options.server(), options.principal.as_deref());
        let reads_stdin = options.no_browser || io::stdin().is_terminal();
        // The spinner would be drawn over what is typed.
        let aside = reads_stdin.then(|| output.step_aside_until_ended());
        output.show_waiting("waiting for the sign-in in the browser");
        match opens {
            true => output.say(&format!(
                "The browser opens to sign in to {server}. If it does not, open this address in one:\n\n  {url}\n\n"
            )),
            false => {
                output.say(&format!(
                    "To sign in to {server}, open this address in a browser:\n\n  {url}\n\n"
                ));
                self.ask(&callback, reads_stdin);
            }
        }
        let start = match opens {
            true => Some(callback.start_page(url).map_err(|error| no_random(&error))?),
            false => None,
        };
        let answer = self.answer(&signing_in, &mut callback, start.as_deref(), reads_stdin);
        self.is_begun.store(true, Ordering::Relaxed);
        let answered = tokio::time::timeout(SIGN_IN, answer).await;
        let Ok(answered) = answered else {
            return Err(Complaint {
                message: format!("nobody signed in within {} s", SIGN_IN.as_secs()),
                hint: Some(hint_after_silence(options, self.oauth)),
                exit: Exit::Timeout,
            });
        };
        self.is_begun.store(false, Ordering::Relaxed);
        let (redirected, page) = answered?;
        let asking = "asking the authorization server for tokens";
        match aside {
            Some(aside) => aside.end(asking),
            None => output.show_waiting(asking),
        }
        let finished = signing_in.finish(&redirected).await;
        if let Some(page) = page {
            page.show(finished.is_ok()).await;
        }
        finished.map(|()| true).map_err(|error| complaint_of(&error, options))
    }

    /// Asks for the address that the browser ends at.
    fn ask(&self, callback: &Callback, reads_stdin: bool) {
        self.output.say(&match reads_stdin {
            true => format!(
                "Browser on another machine? Its last page does not load: copy that page's address\n({}…) and paste it here: ",
                callback.uri()
            ),
            false => format!(
                "Browser on another machine? Run `{} --no-browser` and paste the address of its last page.\n",
                command_of(self.options)
            ),
        });
    }

    /// Waits for the redirect of this sign-in: from the browser, or pasted by the person. Others are ignored.
    async fn answer(
        &self,
        signing_in: &SignIn,
        callback: &mut Callback,
        start: Option<&str>,
        reads_stdin: bool,
    ) -> Result<Answer, Complaint> {
        let stopped = CancellationToken::new();
        let _stop = stopped.clone().drop_guard();
        let mut pasted = lines(stopped, reads_stdin);
        let mut opening = Box::pin(async {
            match start {
                Some(start) => browser::open(start).await,
                None => std::future::pending().await,
            }
        });
        let (mut is_opening, mut is_warned, mut is_at_end) = (true, false, false);
        loop {
            tokio::select! {
                visit = callback.next() => match visit {
                    Visit::Redirected { redirected, page } if signing_in.is_answered_by(&redirected) => {
                        return Ok((redirected, Some(page)));
                    }
                    Visit::Redirected { page, .. } => page.reject().await,
                    Visit::OtherUser if is_warned => {}
                    Visit::OtherUser => {
                        is_warned = true;
                        self.output.say(
                            "Another user of this machine has opened the first page of the sign-in, and was refused. If that was your browser, open \
                             the address above in it.\n",
                        );
                    }
                    Visit::OpenedTwice => return Err(opened_twice_complaint(self.options)),
                },
                line = pasted.recv(), if !is_at_end => {
                    let Some(line) = line else {
                        is_at_end = true;
                        if reads_stdin {
                            self.output.say(
                                "\nThe input has ended, so no address can be pasted. Only a browser on this machine can finish the sign-in.\n",
                            );
                        }
                        continue;
                    };
                    if signing_in.is_answered_by(&line) {
                        return Ok((line, None));
                    }
                    if !line.is_empty() {
                        self.output.say(&wrong_line(signing_in, callback, &line));
                    }
                }
                opened = &mut opening, if is_opening => {
                    is_opening = false;
                    if let Err(why) = opened {
                        self.output.say(&format!("The browser cannot be opened ({why}). Open the address above in one.\n"));
                        self.ask(callback, reads_stdin);
                    }
                }
            }
        }
    }
}

/// What is said about a line that is not the redirect.
fn wrong_line(signing_in: &SignIn, callback: &Callback, line: &str) -> String {
    let line = line.trim();
    let query = line.split_once('?').map_or(line, |(_, query)| query);
    let has = |name: &str| url::form_urlencoded::parse(query.as_bytes()).any(|(found, _)| found == name);
    let what = if line == signing_in.url().as_str() {
        "This is the address to open in a browser."
    } else if has("state") && (has("code") || has("error")) {
        "This address belongs to another sign-in. Open the address above again."
    } else {
        "This is not the address that the browser ends at."
    };
    format!("{what} Paste the whole one that begins with {}: ", callback.uri())
}

fn opened_twice_complaint(options: &Login) -> Complaint {
    Complaint {
        message: "the first page of the sign-in was opened by two browsers, so one of them belongs to somebody else; the sign-in was ended"
            .to_owned(),
        hint: Some(format!(
            "try again with `{} --no-browser`, and open the address yourself",
            command_of(options)
        )),
        exit: Exit::SignIn,
    }
}

fn no_random(error: &getrandom::Error) -> Complaint {
    Complaint {
        message: format!("the system has no random numbers: {error}"),
        hint: None,
        exit: Exit::Unavailable,
    }
}

/// The lines of stdin, until the token is cancelled.
fn lines(stopped: CancellationToken, reads_stdin: bool) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(4);
    if reads_stdin {
        tokio::task::spawn_blocking(move || {
            let mut keyboard = Keyboard::until(stopped);
            while let Ok(Some(read)) = keyboard.next() {
                // Lines that come at once are read at once.
                for line in read.lines() {
                    if sender.blocking_send(line.trim().to_owned()).is_err() {
                        return;
                    }
                }
            }
        });
    }
    receiver
}
