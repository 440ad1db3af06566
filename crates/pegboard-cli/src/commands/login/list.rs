//! `pegboard login --list`: who has signed in to which server.

use pegboard::StoredSignIn;
use serde_json::{Value, json};

use super::{Login, complaint, report_complaint, usable_config};
use crate::{
    commands::context::{Context, Ending, cut_short},
    exit::Exit,
    output::{self, Output, Report, Table, one_line},
    settings::{self, Settings},
};

/// Lists the stored sign-ins: all, or those of a server or a principal.
pub(super) async fn list(mut context: Context<'_>, options: Login) -> Exit {
    let nothing = document(&[]);
    let settings = Settings::load_or_hosts(&context.global);
    let config = usable_config(&settings, options.server.as_deref());
    let config = match config {
        Ok(config) => config,
        Err(complaint) => {
            let report = report_complaint(&context.output, &nothing, &complaint);
            return context.print(report).await;
        }
    };
    let board = settings::board(config).open();
    let output = context.output.clone();
    let report = match context.work(board.sign_ins()).await {
        Ending::Done(Ok(mut stored)) => {
            stored.retain(|stored| is_wanted(&options, stored));
            report_stored(&output, &options, &stored)
        }
        Ending::Done(Err(error)) => report_complaint(&output, &nothing, &complaint(&error)),
        Ending::TimeUp => report_complaint(&output, &nothing, &cut_short(Exit::Timeout, None)),
        Ending::Interrupted => report_complaint(&output, &nothing, &cut_short(Exit::Interrupted, None)),
    };
    context.close(&board, report).await
}

fn is_wanted(options: &Login, stored: &StoredSignIn) -> bool {
    let is = |wanted: Option<&str>, is: Option<&str>| wanted.is_none_or(|wanted| is == Some(wanted));
    is(
        options.server.as_deref(),
        stored.server.as_ref().map(|name| name.as_str()),
    ) && is(
        options.principal.as_deref(),
        stored.principal.as_ref().map(|principal| principal.as_str()),
    )
}

fn report_stored(output: &Output, options: &Login, stored: &[StoredSignIn]) -> Report {
    if output.is_json() {
        return Report::json(Exit::Done, &document(stored));
    }
    let mut report = Report::new(Exit::Done);
    if stored.is_empty() {
        report.data = match &options.server {
            Some(server) => format!("nobody is signed in to {}\n", one_line(server)),
            None => "nobody is signed in to any server\n".to_owned(),
        };
        return report;
    }
    let mut table = Table::default();
    let head = [
        "SERVER",
        "PRINCIPAL",
        "TOKEN EXPIRES",
        "RENEWED",
        "ENCRYPTED",
        "ISSUER",
        "SCOPES",
    ];
    table.row(head.map(str::to_owned));
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    for stored in stored {
        let signed_in = &stored.signed_in;
        table.row([
            match &stored.server {
                Some(name) => name.to_string(),
                None => format!("({}, not in the config)", one_line(&stored.url)),
            },
            stored
                .principal
                .as_ref()
                .map_or_else(|| "-".to_owned(), |name| one_line(name.as_str())),
            signed_in.expires_at.to_string(),
            match signed_in.needs_sign_in {
                true => "sign-in needed".to_owned(),
                false => yes(signed_in.is_renewable),
            },
            yes(stored.is_encrypted),
            one_line(&signed_in.issuer),
            match signed_in.scopes.is_empty() {
                true => "-".to_owned(),
                false => signed_in.scopes.join(" "),
            },
        ]);
    }
    report.data = table.render(output::width());
    report
}

fn document(stored: &[StoredSignIn]) -> Value {
    let row = |stored: &StoredSignIn| {
        json!({
            "server": stored.server,
            "url": stored.url,
            "principal": stored.principal,
            "issuer": stored.signed_in.issuer,
            "scopes": stored.signed_in.scopes,
            "not_granted": stored.signed_in.not_granted,
            "since": stored.signed_in.since.map(|since| since.to_string()),
            "expires_at": stored.signed_in.expires_at.to_string(),
            "renewable": stored.signed_in.is_renewable && !stored.signed_in.needs_sign_in,
            "needs_sign_in": stored.signed_in.needs_sign_in,
            "encrypted": stored.is_encrypted,
        })
    };
    let rows: Vec<Value> = stored.iter().map(row).collect();
    json!({"sign_ins": rows, "error": null, "hint": null, "code": null})
}
