//! `pegboard login` and `pegboard logout`.
//!
//! The command signs in itself and writes the tokens to the user's store. It tells the user's daemon, and whatever else runs finds them there.

mod browser;
mod callback;
mod flow;

use std::sync::atomic::{AtomicBool, Ordering};

use pegboard::{
    Hint as _, Kind, Pegboard, Principal, SignInError, SignInErrorKind, SignedIn, SignedOut,
    config::{Auth, Config, RedirectConfig},
};
use serde_json::{Value, json};

use super::context::{Context, Ending, cut_short, empty, with_complaint};
use crate::{
    cli::{Login, Logout},
    daemon,
    exit::Exit,
    output::{Output, Report, one_line},
    settings::{self, Complaint, Settings},
};
use flow::Flow;

/// Signs in to a server.
pub(super) async fn login(mut context: Context<'_>, options: Login) -> Exit {
    let failed = document(&options, "failed", None);
    let settings = Settings::load(&context.global);
    let (board, redirect) = match find(&settings, &options.server) {
        Ok(found) => found,
        Err(complaint) => {
            let report = complained(&context.output, &failed, &complaint);
            return context.print(report).await;
        }
    };
    let is_begun = AtomicBool::new(false);
    let output = context.output.clone();
    let (global, deadline) = (context.global.clone(), context.deadline);
    let work = async {
        let flow = Flow {
            board: &board,
            redirect: &redirect,
            options: &options,
            output: &output,
            is_begun: &is_begun,
        };
        let is_needed = flow.sign_in().await?;
        let mut signed_in = None;
        if is_needed {
            daemon::tell_of_sign_in(&global, &settings, deadline).await;
            let principal = options.principal.as_deref().map(Principal::from);
            // The sign-in is done. Its details are not worth a failure.
            signed_in = board
                .signed_in(&options.server, principal.as_ref())
                .await
                .ok()
                .flatten();
        }
        Ok((is_needed, signed_in))
    };
    let ended = context.work(work).await;
    let is_unanswered = is_begun.load(Ordering::Relaxed);
    let hint = || is_unanswered.then(|| unanswered(&options));
    if is_unanswered && !matches!(ended, Ending::Done(_)) {
        // The last line is a question.
        output.say("\n");
    }
    let report = match ended {
        Ending::Done(Ok((is_needed, signed_in))) => done(&output, &options, is_needed, signed_in.as_ref()),
        Ending::Done(Err(complaint)) => complained(&output, &failed, &complaint),
        Ending::TimeUp => complained(&output, &failed, &cut_short(Exit::Timeout, hint())),
        Ending::Interrupted => complained(&output, &failed, &cut_short(Exit::Interrupted, hint())),
    };
    context.close(&board, report).await
}

/// What a person may do after a sign-in that the browser never answered. An authorization server that has forgotten this program shows that in the
/// browser only.
fn unanswered(options: &Login) -> String {
    let command = command_of(options);
    match options.new_client {
        true => format!("try again with `{command}`"),
        false => format!(
            "try again with `{command}`; if the browser showed that the client is not known, add `--new-client`"
        ),
    }
}

/// The command that makes this sign-in.
fn command_of(options: &Login) -> String {
    let mut command = format!("pegboard login {}", one_line(&options.server));
    if let Some(principal) = &options.principal {
        command += &format!(" --principal {}", quoted(principal));
    }
    command
}

/// A name as a word of a shell's line.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", one_line(name).replace('\'', "'\\''")),
    }
}

fn done(output: &Output, options: &Login, is_needed: bool, signed_in: Option<&SignedIn>) -> Report {
    let state = if is_needed { "signed_in" } else { "not_needed" };
    if output.is_json() {
        return Report::json(Exit::Done, &document(options, state, signed_in));
    }
    let mut report = Report::new(Exit::Done);
    let server = one_line(&options.server);
    report.data = match (is_needed, &options.principal) {
        (true, None) => format!("signed in to {server}\n"),
        (true, Some(principal)) => format!("signed in to {server} as {}\n", one_line(principal)),
        (false, _) => format!("{server} needs no sign-in: it answers without a token\n"),
    };
    match signed_in.map(|signed_in| signed_in.not_granted.join(" ")) {
        Some(scopes) if !scopes.is_empty() => report.warning(&format!(
            "the authorization server did not grant these scopes: {}",
            one_line(&scopes)
        )),
        _ => report,
    }
}

fn document(options: &Login, state: &str, signed_in: Option<&SignedIn>) -> Value {
    json!({
        "server": options.server,
        "principal": options.principal,
        "state": state,
        "signed_in": state == "signed_in",
        "issuer": signed_in.map(|signed_in| &signed_in.issuer),
        "scopes": signed_in.map_or(&[][..], |signed_in| &signed_in.scopes),
        "not_granted": signed_in.map_or(&[][..], |signed_in| &signed_in.not_granted),
        "expires_at": signed_in.map(|signed_in| signed_in.expires_at.to_string()),
        "renewable": signed_in.is_some_and(|signed_in| signed_in.is_renewable),
        "error": null,
        "hint": null,
        "code": null,
    })
}

/// The report of a failure, which is in the document too.
fn complained(output: &Output, document: &Value, complaint: &Complaint) -> Report {
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

/// The end of the sign-in to one server.
type Ended = (String, Result<SignedOut, SignInError>);

/// Signs out of a server, or of all.
pub(super) async fn logout(mut context: Context<'_>, options: Logout) -> Exit {
    let nothing = json!({"servers": [], "error": null, "hint": null, "code": null});
    let settings = Settings::load(&context.global);
    let config = settings.usable().and_then(|config| match &options.server {
        Some(name) if !config.servers.keys().any(|known| known.as_str() == name) => Err(settings.missing(name)),
        _ => Ok(config),
    });
    let config = match config {
        Ok(config) => config,
        Err(complaint) => {
            let report = complained(&context.output, &nothing, &complaint);
            return context.print(report).await;
        }
    };
    let names: Vec<String> = match &options.server {
        Some(name) => vec![name.clone()],
        None => config.servers.keys().map(ToString::to_string).collect(),
    };
    let board = settings::board(config).open();
    let output = context.output.clone();
    let (global, deadline) = (context.global.clone(), context.deadline);
    let work = async {
        let mut ended = Vec::new();
        for name in names {
            let result = match &options.principal {
                Some(principal) => board.sign_out_as(&name, principal.as_str()).await,
                None => board.sign_out(&name).await,
            };
            // Most servers of a config take no sign-in.
            let is_other = matches!(&result, Err(error) if error.kind() == SignInErrorKind::NotPossible);
            if !(options.all && is_other) {
                ended.push((name, result));
            }
        }
        if ended.iter().any(|(_, result)| !matches!(result, Ok(SignedOut::WasNot))) {
            daemon::tell_of_sign_in(&global, &settings, deadline).await;
        }
        ended
    };
    let report = match context.work(work).await {
        Ending::Done(ended) => signed_out(&output, &options, &ended),
        Ending::TimeUp => complained(&output, &nothing, &cut_short(Exit::Timeout, None)),
        Ending::Interrupted => complained(&output, &nothing, &cut_short(Exit::Interrupted, None)),
    };
    context.close(&board, report).await
}

fn signed_out(output: &Output, options: &Logout, ended: &[Ended]) -> Report {
    let row = |(name, result): &Ended| {
        let (state, is_revoked, why) = match result {
            Ok(SignedOut::Revoked) => ("signed_out", true, None),
            Ok(SignedOut::OnlyForgotten { reason, .. }) => ("signed_out", false, Some(reason.clone())),
            Ok(_) => ("not_signed_in", false, None),
            Err(error) => ("failed", false, Some(error.to_string())),
        };
        json!({
            "server": name,
            "principal": options.principal,
            "state": state,
            "revoked": is_revoked,
            "reason": why,
        })
    };
    let servers: Vec<Value> = ended.iter().map(row).collect();
    let failed = ended.iter().find_map(|(_, result)| result.as_ref().err());
    let exit = failed.map_or(Exit::Done, exit_of);
    let mut report = empty(output, exit, &json!({ "servers": servers }));
    let mut data = String::new();
    for (name, result) in ended {
        let name = one_line(name);
        match result {
            Ok(SignedOut::Revoked) => data += &format!("signed out of {name}; its tokens are revoked\n"),
            Ok(SignedOut::OnlyForgotten { reason, .. }) => {
                data += &format!("signed out of {name}; its tokens are removed here\n");
                let reason = one_line(reason);
                let text =
                    format!("the tokens of `{name}` are not revoked: {reason}; they stay valid until they expire");
                report = report.warning(&text);
            }
            Ok(_) if options.all => {}
            Ok(_) => data += &format!("nobody was signed in to {name}\n"),
            Err(error) => report = report.error(&error.to_string(), error.hint().as_deref()),
        }
    }
    if options.all && data.is_empty() && failed.is_none() {
        "nobody was signed in to any server\n".clone_into(&mut data);
    }
    if !output.is_json() {
        report.data = data;
    }
    report
}

/// A board with only this server, which is not started, and the redirect settings of the server.
fn find(settings: &Settings, name: &str) -> Result<(Pegboard, RedirectConfig), Complaint> {
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
