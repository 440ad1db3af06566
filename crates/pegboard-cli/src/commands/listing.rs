//! What the commands that list and read have in common: who was not there, and a failure as people and programs see it.

use pegboard::{Failure, Kind, State, Unavailable};
use serde::Serialize;
use serde_json::{Value, json};

use super::TIMEOUT;
use crate::{
    exit::Exit,
    output::{Output, Report},
    settings::Complaint,
};

/// It is enough that one server could be listed. Those whose config cannot be used are not among the `enabled`.
pub(super) fn exit(unavailable: &[Unavailable], enabled: usize, is_late: bool) -> Exit {
    let unreached = unavailable.iter().filter(|server| !is_misconfigured(server));
    if unreached.count() < enabled || enabled == 0 {
        Exit::Done
    } else if is_late {
        Exit::Timeout
    } else if unavailable.iter().all(|server| server.state == State::NeedsAuth) {
        Exit::SignIn
    } else {
        Exit::Unavailable
    }
}

/// Adds the servers that were not there. What is wrong with the config is told already.
pub(super) fn name_absent(mut report: Report, unavailable: &[Unavailable], is_late: bool) -> Report {
    for server in unavailable.iter().filter(|server| !is_misconfigured(server)) {
        let message = format!(
            "server `{}` {}: {}",
            server.server,
            in_words(server.state),
            server.error
        );
        // The server goes when the command ends, so that to ask again would not help.
        let hint = match is_late && server.state == State::Connecting {
            true => Some(TIMEOUT),
            false => server.hint.as_deref(),
        };
        report = report.error(&message, hint);
    }
    report
}

/// The failure of a command that needs a server which is not there.
pub(super) fn absent(server: &Unavailable, is_late: bool) -> Failure {
    let message = format!(
        "server `{}` {}: {}",
        server.server,
        in_words(server.state),
        server.error
    );
    let (kind, hint) = match server.state {
        State::NeedsAuth => (Kind::NeedsAuth, server.hint.as_deref()),
        _ if is_late => (Kind::Timeout, Some(TIMEOUT)),
        _ => (Kind::Unavailable, server.hint.as_deref()),
    };
    let failure = Failure::new(kind, message);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A state as the end of a sentence about a server.
pub(super) fn in_words(state: State) -> String {
    match state {
        State::NeedsAuth => "needs a sign-in".to_owned(),
        state => format!("is {}", state.as_str()),
    }
}

fn is_misconfigured(server: &Unavailable) -> bool {
    server.state == State::Misconfigured
}

/// What was read, or why it was not.
pub(super) fn read<T: Serialize>(
    output: &Output,
    document: Value,
    key: &str,
    read: &Result<T, Failure>,
    text: impl FnOnce(&T) -> String,
) -> Report {
    if output.is_json() {
        let (mut document, exit) = (document, exit_of(read));
        document[key] = json!(read.as_ref().ok());
        document["error"] = match read {
            Ok(_) => Value::Null,
            Err(failure) => json!({"kind": failure.kind, "message": failure.message, "hint": failure.hint}),
        };
        return Report::json(exit, &document);
    }
    match read {
        Ok(read) => {
            let mut report = Report::new(Exit::Done);
            report.data = text(read);
            report
        }
        Err(failure) => Report::new(Exit::of(failure.kind)).error(&failure.message, failure.hint.as_deref()),
    }
}

/// Why nothing was read, as [`read`] has it.
pub(super) fn unread(output: &Output, document: Value, key: &str, failure: Failure) -> Report {
    read(output, document, key, &Err::<(), _>(failure), |()| String::new())
}

/// The same for a config that cannot be used.
pub(super) fn unconfigured(output: &Output, document: Value, key: &str, complaint: &Complaint) -> Report {
    let failure = Failure::new(Kind::Unavailable, complaint.message.as_str());
    let failure = match &complaint.hint {
        Some(hint) => failure.hint(hint.as_str()),
        None => failure,
    };
    let mut report = unread(output, document, key, failure);
    report.exit = Exit::Usage;
    report
}

fn exit_of<T>(read: &Result<T, Failure>) -> Exit {
    match read {
        Ok(_) => Exit::Done,
        Err(failure) => Exit::of(failure.kind),
    }
}
