//! `pegboard logout`.

use std::time::Duration;

use clap::Args;
use pegboard::{Config, Hint as _, Pegboard, Principal, SignInError, SignInErrorKind, SignedOut, StoredSignIn};
use serde_json::{Value, json};
use url::Url;

use super::{code_of, exit_of, find_stored, report_complaint, sharers, usable_config, values::principal, whose};
use crate::{
    commands::{
        command::Run,
        context::{Context, Ending, cut_short, empty},
    },
    daemon,
    exit::Exit,
    output::{Output, one_line},
    settings::{self, Settings},
};

/// The time of a command that is left to report what was done.
const REPORTING: Duration = Duration::from_millis(500);

/// The end of one sign-in.
struct SignOut {
    /// The name of the server, or its URL if the config does not name it any more.
    server: String,
    principal: Option<String>,
    /// The other servers that had the same sign-in.
    sharers: Vec<String>,
    result: Result<SignedOut, SignInError>,
}

/// All sign-ins that were ended, and the principals that are signed in to the server.
struct Outcome {
    ended: Vec<SignOut>,
    others: Vec<String>,
}

/// Sign out of a server
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard logout linear\n  pegboard logout --all")]
#[command(override_usage = "pegboard logout [OPTIONS] SERVER\n       pegboard logout --all")]
pub(crate) struct Logout {
    /// The server to sign out of
    #[arg(required_unless_present = "all")]
    server: Option<String>,
    /// End every sign-in, those of principals too
    #[arg(long, conflicts_with = "server")]
    all: bool,
    /// Sign out this principal instead of the views without one
    #[arg(long, value_name = "NAME", value_parser = principal)]
    principal: Option<String>,
}

impl Run for Logout {
    /// Signs out of a server, or of all.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"servers": [], "error": null, "hint": null, "code": null});
        let settings = Settings::load_or_hosts(&context.global);
        let config = usable_config(&settings, self.server.as_deref());
        let config = match config {
            Ok(config) => config,
            Err(complaint) => {
                let report = report_complaint(&context.output, &nothing, &complaint);
                return context.print(report).await;
            }
        };
        let names: Vec<String> = config.servers.keys().map(ToString::to_string).collect();
        let url = self.server.as_deref().and_then(|name| url_of(&config, name));
        let board = settings::board(config).open();
        let output = context.output.clone();
        let (global, deadline) = (context.global.clone(), context.deadline);
        let work = async {
            let outcome = match &self.server {
                Some(server) => one(&board, server, url.as_ref(), self.principal.as_deref()).await,
                None => {
                    let limit = deadline.remaining().saturating_sub(REPORTING);
                    all(&board, &names, self.principal.as_deref(), limit).await
                }
            };
            let has_ended = |ended: &SignOut| !matches!(ended.result, Ok(SignedOut::WasNot));
            if outcome.ended.iter().any(has_ended) {
                daemon::tell_of_sign_in(&global, &settings, deadline).await;
            }
            outcome
        };
        let report = match context.work(Box::pin(work)).await {
            Ending::Done(outcome) => report_outcome(&output, &self, &outcome),
            Ending::TimeUp => report_complaint(&output, &nothing, &cut_short(Exit::Timeout, None)),
            Ending::Interrupted => report_complaint(&output, &nothing, &cut_short(Exit::Interrupted, None)),
        };
        context.close(&board, report).await
    }
}

/// The URL of a remote server.
fn url_of(config: &Config, name: &str) -> Option<Url> {
    let endpoint = config.servers.get(name)?.transport.endpoint()?;
    Some(endpoint.url.expose().clone())
}

/// Whether a sign-in was made for this URL. Sign-ins are stored without what may be secret in it.
fn is_for(stored: &StoredSignIn, url: &Url) -> bool {
    let parts = |url: &Url| {
        let scheme = match url.scheme() {
            "ws" => "http",
            "wss" => "https",
            scheme => scheme,
        };
        let (host, port) = (url.host_str().map(str::to_owned), url.port_or_known_default());
        (scheme.to_owned(), host, port, url.path().to_owned())
    };
    Url::parse(&stored.url).is_ok_and(|stored| parts(&stored) == parts(url))
}

/// Ends the sign-in of a server, and those that were made for its URL before its settings were changed.
async fn one(board: &Pegboard, server: &str, url: Option<&Url>, principal: Option<&str>) -> Outcome {
    // A store that cannot be listed is no reason not to remove a file of it.
    let stored = board.sign_ins().await.unwrap_or_default();
    let own = find_stored(&stored, server, principal);
    let of_server = stored
        .iter()
        .filter(|stored| stored.server.as_ref().is_some_and(|name| name.as_str() == server));
    let others = of_server.filter_map(|stored| stored.principal.as_ref().map(ToString::to_string));
    let others = others.collect();
    let is_former = |stored: &&StoredSignIn| {
        let is_of_url = stored.server.is_none() && url.is_some_and(|url| is_for(stored, url));
        is_of_url && stored.principal.as_ref().map(Principal::as_str) == principal
    };
    let ending = |result: Result<SignedOut, SignInError>, sharers: Vec<String>| SignOut {
        server: server.to_owned(),
        principal: principal.map(str::to_owned),
        sharers,
        result,
    };
    let mut ended = Vec::new();
    for former in stored.iter().filter(is_former) {
        ended.push(ending(board.sign_out_stored(former).await, Vec::new()));
    }
    let result = match principal {
        Some(principal) => board.sign_out_as(server, principal).await,
        None => board.sign_out(server).await,
    };
    let is_nothing = match &result {
        Ok(ended) => *ended == SignedOut::WasNot,
        Err(error) => error.kind() == SignInErrorKind::NotPossible,
    };
    if ended.is_empty() || !is_nothing {
        let sharers = own.map(|own| sharers(&stored, own)).unwrap_or_default();
        ended.push(ending(result, sharers));
    }
    Outcome { ended, others }
}

/// Ends every stored sign-in, or those of a principal, and removes files that cannot be read.
async fn all(board: &Pegboard, servers: &[String], principal: Option<&str>, limit: Duration) -> Outcome {
    let stored = board.sign_ins().await.unwrap_or_default();
    let names = stored.iter().filter_map(|stored| stored.principal.as_ref());
    let mut others: Vec<String> = names
        .map(ToString::to_string)
        .filter(|name| principal.is_some_and(|principal| name != principal))
        .collect();
    let whose = principal.map(Principal::from);
    let mut ended = Vec::new();
    for done in board.sign_out_all(whose.as_ref(), limit).await {
        ended.push(match &done.stored {
            Some(sign_in) => SignOut {
                server: sign_in
                    .server
                    .as_ref()
                    .map_or_else(|| sign_in.url.clone(), ToString::to_string),
                principal: sign_in.principal.as_ref().map(ToString::to_string),
                sharers: sharers(&stored, sign_in),
                result: done.result,
            },
            None => SignOut {
                server: done.file.unwrap_or_default(),
                principal: None,
                sharers: Vec::new(),
                result: done.result,
            },
        });
    }
    for server in servers {
        if find_stored(&stored, server, principal).is_some() {
            continue;
        }
        let result = match principal {
            Some(principal) => board.sign_out_as(server, principal).await,
            None => board.sign_out(server).await,
        };
        // Most servers of a config take no sign-in.
        let is_other = matches!(&result, Err(error) if error.kind() == SignInErrorKind::NotPossible);
        if !is_other {
            ended.push(SignOut {
                server: server.clone(),
                principal: principal.map(str::to_owned),
                sharers: Vec::new(),
                result,
            });
        }
    }
    others.sort();
    others.dedup();
    Outcome { ended, others }
}

fn report_outcome(output: &Output, options: &Logout, outcome: &Outcome) -> crate::output::Report {
    let Outcome { ended, others } = outcome;
    let servers: Vec<Value> = ended.iter().map(row).collect();
    let failed = ended.iter().find_map(|ended| ended.result.as_ref().err());
    let exit = failed.map_or(Exit::Done, exit_of);
    let document = json!({
        "servers": servers,
        "error": failed.map(ToString::to_string),
        "hint": failed.and_then(|error| error.hint()),
        "code": failed.map(|_| code_of(exit)),
    });
    let mut report = empty(output, exit, &document);
    let mut data = String::new();
    for ended in ended {
        let name = whose(&ended.server, ended.principal.as_deref());
        let shared = match ended.sharers.is_empty() {
            true => String::new(),
            false => format!(
                " and of {}, which had the same sign-in",
                one_line(&ended.sharers.join(", "))
            ),
        };
        match &ended.result {
            Ok(SignedOut::Revoked) => data += &format!("signed out of {name}{shared}; its tokens are revoked\n"),
            Ok(SignedOut::OnlyForgotten { reason, .. }) => {
                data += &format!("signed out of {name}{shared}; its tokens are removed here\n");
                let text = format!(
                    "the tokens of `{name}` are not revoked: {}; they stay valid until they expire",
                    one_line(reason)
                );
                report = report.warning(&text);
            }
            Ok(_) if options.all => {}
            Ok(_) => data += &format!("nobody was signed in to {name}\n"),
            Err(error) => report = report.error(&error.to_string(), error.hint().as_deref()),
        }
    }
    let is_nobody = failed.is_none() && ended.iter().all(|ended| matches!(ended.result, Ok(SignedOut::WasNot)));
    if options.all && is_nobody {
        data = match &options.principal {
            None => "nobody was signed in to any server\n".to_owned(),
            Some(principal) => format!("nobody was signed in to any server as {}\n", one_line(principal)),
        };
    }
    if !output.is_json() {
        report.data = data;
    }
    match is_nobody && !others.is_empty() {
        true => report.hint(&format!(
            "these principals are signed in: {}; name one with `--principal`",
            one_line(&others.join(", "))
        )),
        false => report,
    }
}

fn row(ended: &SignOut) -> Value {
    let (state, is_revoked, why) = match &ended.result {
        Ok(SignedOut::Revoked) => ("signed_out", true, None),
        Ok(SignedOut::OnlyForgotten { reason, .. }) => ("signed_out", false, Some(reason.clone())),
        Ok(_) => ("not_signed_in", false, None),
        Err(error) => ("failed", false, Some(error.to_string())),
    };
    json!({
        "server": ended.server,
        "principal": ended.principal,
        "same_sign_in": ended.sharers,
        "state": state,
        "revoked": is_revoked,
        "reason": why,
    })
}
