//! `pegboard login` and `pegboard logout`.
//!
//! The command signs in itself and writes the tokens to the user's store. A running daemon finds them there.

mod browser;
mod callback;

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use pegboard::{
    Hint as _, Pegboard, SignIn, SignInError, SignInErrorKind, SignInOptions, SignedOut,
    config::{Auth, Config, RedirectConfig},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::context::{Context, Ending, empty, interrupted, time_up};
use crate::{
    cli::{Login, Logout},
    exit::Exit,
    output::{Output, Report, one_line},
    settings::{self, Complaint, Settings},
    terminal::{Keyboard, Lines as _},
};
use callback::{Callback, Page};

/// How long a person may take to sign in.
const SIGN_IN: Duration = Duration::from_secs(300);

/// Signs in to a server.
pub(super) async fn login(mut context: Context<'_>, options: Login) -> Exit {
    let document = json!({"server": options.server, "signed_in": false});
    let (board, redirect) = match find(&context, &options.server) {
        Ok(found) => found,
        Err(complaint) => return context.refuse(&complaint, &document).await,
    };
    let output = context.output.clone();
    let report = match context.work(sign_in(&board, &redirect, &options, &output)).await {
        Ending::Done(Ok(())) if output.is_json() => {
            Report::json(Exit::Done, &json!({"server": options.server, "signed_in": true}))
        }
        Ending::Done(Ok(())) => {
            let mut report = Report::new(Exit::Done);
            report.data = format!("signed in to {}\n", one_line(&options.server));
            report
        }
        Ending::Done(Err(complaint)) => {
            empty(&output, complaint.exit, &document).error(&complaint.message, complaint.hint.as_deref())
        }
        Ending::TimeUp => time_up(&output, &document),
        Ending::Interrupted => interrupted(&output, &document),
    };
    context.close(&board, report).await
}

/// Signs out of a server, or of all.
pub(super) async fn logout(mut context: Context<'_>, options: Logout) -> Exit {
    let nothing = json!({"servers": {}});
    let settings = Settings::load(&context.global);
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    let names: Vec<String> = match &options.server {
        Some(name) if !config.servers.keys().any(|known| known.as_str() == name) => {
            return context.refuse(&settings.missing(name), &nothing).await;
        }
        Some(name) => vec![name.clone()],
        None => config.servers.keys().map(ToString::to_string).collect(),
    };
    let board = settings::board(config).open();
    let output = context.output.clone();
    let work = async {
        let mut ended = Vec::new();
        for name in names {
            let result = board.sign_out(&name).await;
            // Most servers of a config take no sign-in.
            let is_other = matches!(&result, Err(error) if error.kind() == SignInErrorKind::NotPossible);
            if !(options.all && is_other) {
                ended.push((name, result));
            }
        }
        ended
    };
    let report = match context.work(work).await {
        Ending::Done(ended) => signed_out(&output, &ended, options.all),
        Ending::TimeUp => time_up(&output, &nothing),
        Ending::Interrupted => interrupted(&output, &nothing),
    };
    context.close(&board, report).await
}

fn signed_out(output: &Output, ended: &[(String, Result<SignedOut, SignInError>)], is_all: bool) -> Report {
    let word = |result: &Result<SignedOut, SignInError>| match result {
        Ok(SignedOut::Revoked) => "revoked",
        Ok(SignedOut::WasNot) => "not_signed_in",
        Ok(_) => "forgotten",
        Err(_) => "failed",
    };
    let servers: serde_json::Map<String, Value> = ended
        .iter()
        .map(|(name, result)| (name.clone(), Value::from(word(result))))
        .collect();
    let failed = ended.iter().find_map(|(_, result)| result.as_ref().err());
    let exit = failed.map_or(Exit::Done, exit_of);
    let mut report = empty(output, exit, &json!({ "servers": servers }));
    for (name, result) in ended {
        let name = one_line(name);
        let line = match result {
            Ok(SignedOut::Revoked) => format!("signed out of {name}; its tokens are revoked\n"),
            Ok(SignedOut::WasNot) if is_all => continue,
            Ok(SignedOut::WasNot) => format!("nobody was signed in to {name}\n"),
            Ok(_) => format!("signed out of {name}; its tokens are forgotten here, but could not be revoked\n"),
            Err(error) => {
                report = report.error(&error.to_string(), error.hint().as_deref());
                continue;
            }
        };
        if !output.is_json() {
            report.data.push_str(&line);
        }
    }
    report
}

/// A board with only this server, which is not started, and the redirect settings of the server.
fn find(context: &Context<'_>, name: &str) -> Result<(Pegboard, RedirectConfig), Complaint> {
    let settings = Settings::load(&context.global);
    let mut config = settings.usable()?;
    config.servers.retain(|known, _| known.as_str() == name);
    if config.servers.is_empty() {
        return Err(settings.missing(name));
    }
    let redirect = redirect_of(&config);
    Ok((settings::board(config).open(), redirect))
}

fn redirect_of(config: &Config) -> RedirectConfig {
    let mut endpoints = config.servers.values().filter_map(|server| server.transport.endpoint());
    match endpoints.next().map(|endpoint| &endpoint.auth) {
        Some(Auth::OAuth(settings)) => settings.redirect.clone(),
        _ => RedirectConfig::default(),
    }
}

async fn sign_in(
    board: &Pegboard,
    redirect: &RedirectConfig,
    options: &Login,
    output: &Output,
) -> Result<(), Complaint> {
    let mut callback = Callback::listen(redirect).await?;
    let sign_in = SignInOptions::default()
        .redirect_uri(callback.uri())
        .scopes(options.scopes.clone());
    output.waiting("looking for the authorization server");
    let signing_in = board
        .sign_in(&options.server, sign_in)
        .await
        .map_err(|error| complaint(&error))?;
    let url = browser::checked(signing_in.url())?;
    output.say(&format!(
        "To sign in to {}, open\n\n  {url}\n\n",
        one_line(&options.server)
    ));
    let is_opened = !options.no_browser && browser::can_open() && browser::open(url);
    let reads_stdin = options.no_browser || io::stdin().is_terminal();
    if !is_opened && reads_stdin {
        output.say(
            "After the sign-in the browser is sent to an address that begins with http. If it cannot be reached, paste it here:\n",
        );
    }
    output.waiting("waiting for the sign-in in the browser");
    let aside = reads_stdin.then(|| output.step_aside());
    let answered = tokio::time::timeout(SIGN_IN, answer(&signing_in, &mut callback, reads_stdin, output)).await;
    drop(aside);
    let Ok((redirected, page)) = answered else {
        return Err(Complaint {
            message: format!("nobody signed in within {} s", SIGN_IN.as_secs()),
            hint: Some(format!("try again with `pegboard login {}`", options.server)),
            exit: Exit::Timeout,
        });
    };
    let finished = signing_in.finish(&redirected).await;
    if let Some(page) = page {
        page.show(finished.is_ok()).await;
    }
    finished.map_err(|error| complaint(&error))
}

/// Waits for the redirect of this sign-in: from the browser, or pasted by the person. Others are ignored.
async fn answer(
    signing_in: &SignIn,
    callback: &mut Callback,
    reads_stdin: bool,
    output: &Output,
) -> (String, Option<Page>) {
    let stopped = CancellationToken::new();
    let _stop = stopped.clone().drop_guard();
    let mut pasted = lines(stopped, reads_stdin);
    loop {
        tokio::select! {
            visit = callback.next() => {
                if signing_in.is_answered_by(&visit.redirected) {
                    return (visit.redirected, Some(visit.page));
                }
                visit.page.show(false).await;
            }
            Some(line) = pasted.recv() => {
                if signing_in.is_answered_by(&line) {
                    return (line, None);
                }
                if !line.is_empty() {
                    output.say("This is not the address that the browser was sent to. Paste it as a whole:\n");
                }
            }
        }
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

fn complaint(error: &SignInError) -> Complaint {
    Complaint {
        message: error.to_string(),
        hint: error.hint(),
        exit: exit_of(error),
    }
}

fn exit_of(error: &SignInError) -> Exit {
    match error.kind() {
        SignInErrorKind::UnknownServer | SignInErrorKind::NotPossible => Exit::Usage,
        SignInErrorKind::Denied | SignInErrorKind::WrongRedirect => Exit::SignIn,
        _ => Exit::Unavailable,
    }
}
