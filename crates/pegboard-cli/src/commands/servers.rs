//! `pegboard add`, `add-json`, `remove`, `enable`, `disable`, `rename`, `get` and `list`: the servers of the config files.

mod add;
mod advice;
mod bundle;
mod change;
mod entry;
mod options;
mod screen;
mod show;
mod views;

pub(super) use advice::with_advice;
pub(super) use change::{Disable, Enable, Remove, Rename, absent_server_complaint};
pub(super) use entry::for_this_run;
pub(super) use options::{Add, AddJson};
pub(super) use screen::target as shown_target;
pub(super) use show::{Get, List};

use serde_json::{Value, json};

use super::context::Context;
use crate::{
    exit::Exit,
    settings::{Complaint, Settings},
};

/// Whether a daemon serves the config as it is before a change. It reads a changed file by itself.
async fn has_daemon(context: &Context<'_>) -> bool {
    let settings = Settings::load(&context.global);
    context.running_servers(&settings).await.daemon.is_some()
}

/// The error of a command in its document, as other commands have it.
fn error(complaint: &Complaint) -> Value {
    let kind = match complaint.exit {
        Exit::Usage => pegboard::Kind::InvalidArguments,
        _ => complaint.kind(),
    };
    json!({"kind": kind, "message": complaint.message, "hint": complaint.hint})
}

/// The document of a command about one server that failed.
fn refusal_document(name: &str, complaint: &Complaint) -> Value {
    json!({"name": name, "error": error(complaint)})
}
