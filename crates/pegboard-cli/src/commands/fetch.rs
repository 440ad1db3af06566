//! What `prompts get` and `resources read` share: one item of one server, for people or as a document.

use std::path::PathBuf;

use pegboard::{Failure, Kind, Toolset, deadline::Deadline};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    call::elicitation::Terminal,
    consent,
    context::{Context, Ending, TIMEOUT, cancelled, late},
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    output::{Output, Report, check_out},
    settings::{Complaint, Settings},
};

/// What is fetched.
pub(super) struct Item {
    /// Shown on the spinner.
    pub(super) what: String,
    /// Its name, or its address.
    pub(super) name: String,
    /// The document's key for the item.
    pub(super) key: &'static str,
    /// The document as long as the item's server is not known.
    pub(super) document: Value,
    /// The file that gets the item in place of stdout.
    pub(super) out: Option<PathBuf>,
}

/// Fetches an item. `request` returns it together with the document that names its server.
pub(super) async fn run<T: Serialize>(
    mut context: Context<'_>,
    item: Item,
    request: impl AsyncFn(Toolset, Deadline) -> Result<(Value, T), Failure>,
    show: impl FnOnce(&T, &mut Report),
) -> Exit {
    let mut settings = Settings::load_for(&context.global, &item.name);
    let asked = item.name.clone();
    let is_needed = consent::needed(&settings, |server| is_of(&asked, server));
    if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
        return exit;
    }
    let Item {
        what,
        name,
        key,
        document,
        out,
    } = item;
    let config = settings.config().and_then(|config| {
        let is_usable = config.servers.keys().any(|server| is_of(&name, server.as_str()));
        match settings.find_misconfigured(|server| is_of(&name, server)) {
            Some(server) if !is_usable => Err(settings.missing_server_complaint(server.as_str())),
            _ => settings.usable_config(),
        }
    });
    let config = match config {
        Ok(config) => config,
        Err(complaint) => {
            let report = report_complaint(&context.output, document, key, &complaint);
            return context.print(report).await;
        }
    };
    if let Err(problem) = check_out(out.as_deref()) {
        let complaint = Complaint {
            message: problem,
            hint: None,
            exit: Exit::Usage,
        };
        let report = report_complaint(&context.output, document, key, &complaint);
        return context.print(report).await;
    }
    let mut named = config.servers.keys().filter(|server| is_of(&name, server.as_str()));
    if let Some(server) = named.next() {
        settings.tell_only_of([server.as_str()]);
    }
    settings.announce(&context.output);
    let starting = StartingServers::new(&config);
    let mut servers = context.servers(&settings).await;
    let (board, fetched) = loop {
        let user = Terminal::new(&context.output, false);
        let board = servers.board(config.clone()).host(user).open();
        let fetching = request(board.toolset(), context.deadline);
        let fetched = context.work_showing_starts(&starting, &what, &board, fetching).await;
        let is_missing = matches!(&fetched, Ending::Done(Err(failure)) if is_without_server(failure.kind));
        if !is_missing || !context.has_lost(&settings, &mut servers).await {
            break (board, fetched);
        }
    };
    let report = match fetched {
        Ending::Interrupted => report_failure(&context.output, document, key, cancelled()),
        Ending::TimeUp => report_failure(&context.output, document, key, late().hint(TIMEOUT)),
        Ending::Done(Ok((document, fetched))) => report(&context.output, document, key, &Ok(fetched), show),
        Ending::Done(Err(mut failure)) => {
            if let (Kind::InvalidArguments | Kind::ToolError, Some(hint)) = (failure.kind, settings.demo_hint(&name)) {
                failure.hint = Some(hint.to_owned());
            }
            report_failure(&context.output, document, key, failure)
        }
    };
    let report = context.write_out(report, out.as_deref()).await;
    context.close(&board, report).await
}

/// Whether a name is that of an item of this server, as in `server.prompt`.
pub(super) fn is_of(name: &str, server: &str) -> bool {
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether an item was not fetched because its server was not there. Reading changes nothing, so a request that was lost can be repeated.
fn is_without_server(kind: Kind) -> bool {
    use Kind::{RestartFailed, RestartInProgress, Transport, Unavailable};
    matches!(kind, Unavailable | RestartInProgress | RestartFailed | Transport)
}

/// The report of an item, or of the failure to fetch it.
fn report<T: Serialize>(
    output: &Output,
    mut document: Value,
    key: &str,
    fetched: &Result<T, Failure>,
    show: impl FnOnce(&T, &mut Report),
) -> Report {
    let exit = match fetched {
        Ok(_) => Exit::Done,
        Err(failure) => Exit::from_kind(failure.kind),
    };
    if output.is_json() {
        document[key] = json!(fetched.as_ref().ok());
        document["error"] = match fetched {
            Ok(_) => Value::Null,
            Err(failure) => error_document(failure),
        };
        return Report::json(exit, &document);
    }
    let mut report = Report::new(exit);
    match fetched {
        Ok(fetched) => show(fetched, &mut report),
        Err(failure) => report = report.error(&failure.message, failure.hint.as_deref()),
    }
    report
}

/// The member `error` of the document.
fn error_document(failure: &Failure) -> Value {
    let mut error = json!({"kind": failure.kind, "message": failure.message, "hint": failure.hint});
    if let Some(diagnosis) = &failure.diagnosis {
        error["code"] = json!(diagnosis.code);
        error["diagnosis"] = json!(diagnosis);
    }
    error
}

fn report_failure(output: &Output, document: Value, key: &str, failure: Failure) -> Report {
    report(output, document, key, &Err::<(), _>(failure), |(), _| {})
}

/// The report of a config or an option that cannot be used.
fn report_complaint(output: &Output, document: Value, key: &str, complaint: &Complaint) -> Report {
    let failure = Failure::new(complaint.kind(), complaint.message.as_str());
    let failure = match &complaint.hint {
        Some(hint) => failure.hint(hint.as_str()),
        None => failure,
    };
    let mut report = report_failure(output, document, key, failure);
    report.exit = complaint.exit;
    report
}
