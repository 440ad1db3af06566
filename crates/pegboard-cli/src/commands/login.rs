//! `pegboard login` and `pegboard logout`.
//!
//! The command signs in itself and writes the tokens to the user's store. It tells the user's daemon, and whatever else runs finds them there.

pub(super) mod browser;
mod callback;
mod flow;
mod list;
mod logout;
#[cfg(unix)]
mod peer_user;
mod values;

pub(super) use logout::Logout;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use clap::Args;
use pegboard::{
    Config, Hint as _, Kind, Pegboard, Principal, SignInError, SignInErrorKind, SignedIn, StoredSignIn,
    config::{Auth, OAuthConfig},
    login_command,
};
use serde_json::{Value, json};

use super::{
    command::Run,
    consent,
    context::{Context, Ending, cut_short, empty, with_complaint},
};
use crate::{
    daemon,
    exit::Exit,
    output::{self, Output, Report, one_line},
    settings::{self, Complaint, Settings},
};
use flow::Flow;
use values::{principal, scopes};

/// The error codes of OAuth that may be about the requested scopes.
const INVALID_SCOPE: &str = "invalid_scope";
const INVALID_CLIENT_METADATA: &str = "invalid_client_metadata";

/// Sign in to a server
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard login linear\n  pegboard login --list")]
#[command(override_usage = "pegboard login [OPTIONS] SERVER\n       pegboard login --list")]
pub(crate) struct Login {
    /// The server to sign in to
    #[arg(required_unless_present = "list")]
    server: Option<String>,
    /// Only print the address, and take a pasted redirect
    #[arg(long)]
    no_browser: bool,
    /// Scope to ask for; repeat it, or use spaces
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scopes)]
    scopes: Vec<String>,
    /// Sign in for the views of this principal
    #[arg(long, value_name = "NAME", value_parser = principal)]
    principal: Option<String>,
    /// Register at the authorization server anew
    #[arg(long)]
    new_client: bool,
    /// Only list who has signed in to which server
    #[arg(long, conflicts_with_all = ["no_browser", "scopes", "new_client"])]
    list: bool,
}

impl Login {
    /// The server to sign in to.
    fn server(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }
}

impl Run for Login {
    /// Signs in to a server.
    async fn run(self, mut context: Context<'_>) -> Exit {
        if self.list {
            return list::list(context, self).await;
        }
        let failed = document(&self, "failed", None);
        let mut settings = Settings::load_for(&context.global, self.server());
        let is_needed = |server: &str| server == self.server();
        if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
            return exit;
        }
        let (board, oauth) = match find(&settings, self.server()) {
            Ok(found) => found,
            Err(complaint) => {
                let report = report_complaint(&context.output, &failed, &complaint);
                return context.print(report).await;
            }
        };
        if let Some(warning) = unknown_principal(&settings, &self) {
            context.output.note(output::warning(&warning).trim_end());
        }
        let is_begun = AtomicBool::new(false);
        let output = context.output.clone();
        let (global, deadline) = (context.global.clone(), context.deadline);
        let work = async {
            let flow = Flow {
                board: &board,
                oauth: &oauth,
                options: &self,
                output: &output,
                is_begun: &is_begun,
            };
            let is_needed = flow.sign_in().await?;
            if !is_needed {
                return Ok(None);
            }
            daemon::tell_of_sign_in(&global, &settings, deadline).await;
            // The sign-in is done. Its details are not worth a failure.
            let stored = board.sign_ins().await.unwrap_or_default();
            let own = find_stored(&stored, self.server(), self.principal.as_deref());
            Ok(Some(Done {
                sharers: own.map(|own| sharers(&stored, own)).unwrap_or_default(),
                signed_in: own.map(|own| own.signed_in.clone()),
            }))
        };
        let ended = context.work(work).await;
        let is_unanswered = is_begun.load(Ordering::Relaxed);
        let hint = || is_unanswered.then(|| hint_after_silence(&self, &oauth));
        if is_unanswered && !matches!(ended, Ending::Done(_)) {
            // The last line is a question.
            output.say("\n");
        }
        let report = match ended {
            Ending::Done(Ok(signed_in)) => report_sign_in(&output, &self, signed_in),
            Ending::Done(Err(complaint)) => report_complaint(&output, &failed, &complaint),
            Ending::TimeUp => report_complaint(&output, &failed, &cut_short(Exit::Timeout, hint())),
            Ending::Interrupted => report_complaint(&output, &failed, &cut_short(Exit::Interrupted, hint())),
        };
        context.close(&board, report).await
    }
}

/// The config, if it can be used and has the server that is named.
fn usable_config(settings: &Settings, server: Option<&str>) -> Result<Config, Complaint> {
    let config = match settings.hosts() {
        // No server is started, so none has to be approved.
        Some(_) => settings.config()?,
        None => settings.usable_config()?,
    };
    match server {
        Some(name) if !config.servers.keys().any(|known| known.as_str() == name) => Err(settings.missing_remote(name)),
        _ => Ok(config),
    }
}

/// What a person may do after a sign-in that the browser never answered. An authorization server that has forgotten this program shows that in the
/// browser only.
fn hint_after_silence(options: &Login, oauth: &OAuthConfig) -> String {
    let command = command_of(options);
    let unknown = match (&oauth.client_id, options.new_client) {
        (Some(_), _) => "check `oauth.client_id` of the server",
        (None, true) => return format!("try again with `{command}`"),
        (None, false) => "add `--new-client`",
    };
    format!("try again with `{command}`; if the browser showed that the client is not known, {unknown}")
}

/// Warns of a principal that no client of the gateway has, as the config says.
fn unknown_principal(settings: &Settings, options: &Login) -> Option<String> {
    let (principal, serve) = (options.principal.as_ref()?, &settings.loaded.config.serve);
    let is_token = serve.tokens.contains_key(principal) || serve.unusable_tokens.contains(principal);
    let is_known = serve.oauth.is_some() || is_token;
    (!is_known).then(|| {
        format!(
            "no client of `pegboard serve` is called `{}`: `serve.tokens` has no such name, and `serve.oauth` is not set",
            one_line(principal)
        )
    })
}

/// The command that makes this sign-in.
fn command_of(options: &Login) -> String {
    login_command(&one_line(options.server()), options.principal.as_deref())
}

/// A sign-in that was made.
#[derive(Debug, Default)]
struct Done {
    signed_in: Option<SignedIn>,
    /// The other servers that use it.
    sharers: Vec<String>,
}

/// The report of a sign-in; of none if the server needs none.
fn report_sign_in(output: &Output, options: &Login, made: Option<Done>) -> Report {
    let state = if made.is_some() { "signed_in" } else { "not_needed" };
    let is_needed = made.is_some();
    let Done { signed_in, sharers } = made.unwrap_or_default();
    if output.is_json() {
        let mut document = document(options, state, signed_in.as_ref());
        document["same_sign_in"] = sharers.into();
        return Report::json(Exit::Done, &document);
    }
    let mut report = Report::new(Exit::Done);
    report.data = match is_needed {
        true => format!(
            "signed in to {}\n",
            whose(options.server(), options.principal.as_deref())
        ),
        false => format!(
            "{} needs no sign-in: it answers without a token\n",
            one_line(options.server())
        ),
    };
    if !sharers.is_empty() {
        let text = "uses this sign-in too: it has the same URL and settings";
        report.data += &format!("{} {text}\n", one_line(&sharers.join(", ")));
    }
    match signed_in.map(|signed_in| signed_in.not_granted.join(" ")) {
        Some(scopes) if !scopes.is_empty() => report.warning(&format!(
            "the authorization server did not grant these scopes: {}",
            one_line(&scopes)
        )),
        _ => report,
    }
}

/// A server, and the principal that signs in to it.
fn whose(server: &str, principal: Option<&str>) -> String {
    match principal {
        None => one_line(server),
        Some(principal) => format!("{} as {}", one_line(server), one_line(principal)),
    }
}

fn document(options: &Login, state: &str, signed_in: Option<&SignedIn>) -> Value {
    json!({
        "server": options.server(),
        "principal": options.principal,
        "state": state,
        "signed_in": state == "signed_in",
        "issuer": signed_in.map(|signed_in| &signed_in.issuer),
        "scopes": signed_in.map_or(&[][..], |signed_in| &signed_in.scopes),
        "not_granted": signed_in.map_or(&[][..], |signed_in| &signed_in.not_granted),
        "expires_at": signed_in.map(|signed_in| signed_in.expires_at.to_string()),
        "renewable": signed_in.is_some_and(|signed_in| signed_in.is_renewable),
        "same_sign_in": [],
        "error": null,
        "hint": null,
        "code": null,
    })
}

/// The report of a failure, which is in the document too.
fn report_complaint(output: &Output, document: &Value, complaint: &Complaint) -> Report {
    let mut document = document.clone();
    document["error"] = complaint.message.as_str().into();
    document["hint"] = complaint.hint.as_deref().into();
    document["code"] = code_of(complaint.exit).into();
    with_complaint(empty(output, complaint.exit, &document), complaint)
}

/// The word for an exit code, as in the kinds of replies.
fn code_of(exit: Exit) -> &'static str {
    match exit {
        Exit::SignIn => Kind::NeedsAuth.as_str(),
        Exit::Timeout => Kind::Timeout.as_str(),
        Exit::Interrupted => Kind::Cancelled.as_str(),
        Exit::Usage => "usage",
        _ => Kind::Unavailable.as_str(),
    }
}

/// A board whose servers are not started, and the sign-in settings of this server.
fn find(settings: &Settings, name: &str) -> Result<(Pegboard, Arc<OAuthConfig>), Complaint> {
    let config = settings.usable_config()?;
    let mut servers = config.servers.iter();
    let Some((_, server)) = servers.find(|(known, _)| known.as_str() == name) else {
        return Err(settings.missing_remote(name));
    };
    let oauth = match server.transport.endpoint().map(|endpoint| &endpoint.auth) {
        Some(Auth::OAuth(settings)) => settings.clone(),
        _ => Arc::default(),
    };
    Ok((settings::board(config).open(), oauth))
}

/// The stored sign-in of a server and principal.
fn find_stored<'a>(stored: &'a [StoredSignIn], server: &str, principal: Option<&str>) -> Option<&'a StoredSignIn> {
    stored.iter().find(|stored| {
        let is_server = stored.server.as_ref().is_some_and(|known| known.as_str() == server);
        is_server && stored.principal.as_ref().map(Principal::as_str) == principal
    })
}

/// The other servers that have the same sign-in.
fn sharers(stored: &[StoredSignIn], own: &StoredSignIn) -> Vec<String> {
    let same = stored
        .iter()
        .filter(|other| other.is_same_as(own) && other.server != own.server);
    same.filter_map(|other| other.server.as_ref().map(ToString::to_string))
        .collect()
}

/// Like [`complaint`], for a sign-in with these options.
fn complaint_of(error: &SignInError, options: &Login) -> Complaint {
    let mut complaint = complaint(error);
    if options.scopes.is_empty() {
        return complaint;
    }
    let scopes = one_line(&options.scopes.join(" "));
    let advice =
        format!("leave out `--scope`, or name scopes that the authorization server has; it was asked for: {scopes}");
    complaint.hint = match (error.oauth_code(), complaint.hint) {
        (Some(INVALID_SCOPE), _) => Some(advice),
        // The scopes are one part of what it refuses.
        (Some(INVALID_CLIENT_METADATA), Some(hint)) => Some(format!("{advice}; or {hint}")),
        (_, hint) => hint,
    };
    complaint
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
        SignInErrorKind::Denied | SignInErrorKind::WrongRedirect | SignInErrorKind::Refused => Exit::SignIn,
        _ => Exit::Unavailable,
    }
}
