//! [`ToolContext`]: the call that a native tool answers.

use pegboard_protocol::{meta, method::notification};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use pegboard_base::caller::{Caller, Principal};

/// The entry of a request's `_meta` that says who calls a native tool. Only the board writes it.
pub const CALLER_META: &str = "dev.pegboard/caller";

/// The call that a native tool answers: who makes it, and where to report progress.
///
/// If the caller cancels the call, the tool's future is dropped at its next `await`.
#[derive(Debug, Clone)]
pub struct ToolContext {
    call: String,
    view: String,
    principal: Option<Principal>,
    meta: Map<String, Value>,
    progress: Option<ProgressReports>,
}

/// Where the progress of one call is reported.
#[derive(Debug, Clone)]
struct ProgressReports {
    token: Value,
    reports: mpsc::Sender<Value>,
}

impl ToolContext {
    /// Creates a context without a board, to test a tool's function. Its progress reports are dropped.
    pub fn new(caller: &Caller<'_>) -> Self {
        Self {
            call: caller.call.to_owned(),
            view: caller.view.to_owned(),
            principal: caller.principal.cloned(),
            meta: caller.meta.clone(),
            progress: None,
        }
    }

    /// Reads the context from the `_meta` of a request.
    pub(super) fn from_meta(meta: Value, reports: &mpsc::Sender<Value>) -> Self {
        let Value::Object(mut meta) = meta else {
            return Self::new(&Caller::new("", "", &Map::new()));
        };
        let caller = meta.remove(CALLER_META).unwrap_or_default();
        let text = |key: &str| caller[key].as_str().unwrap_or_default().to_owned();
        let token = meta.remove(meta::PROGRESS_TOKEN);
        Self {
            call: text("call"),
            view: text("view"),
            principal: caller["principal"].as_str().map(Principal::from),
            meta,
            progress: token.map(|token| ProgressReports {
                token,
                reports: reports.clone(),
            }),
        }
    }

    /// Who makes the call: its id, the view and its principal, and the entries that the caller added to `_meta`.
    pub fn caller(&self) -> Caller<'_> {
        let caller = Caller::new(&self.call, &self.view, &self.meta);
        match &self.principal {
            Some(principal) => caller.principal(principal),
            None => caller,
        }
    }

    /// Reports progress to the caller: how much is done, of how much if that is known, and a message about the current step. Each report
    /// must be higher than the one before. It also restarts the idle timeout of the call. Reports are dropped if the caller does not want
    /// them or does not keep up.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        let Some(progress) = self.progress.as_ref().filter(|_| done.is_finite()) else {
            return;
        };
        let mut params = json!({"progressToken": progress.token, "progress": done, "message": message.into()});
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params["total"] = total.into();
        }
        let report = json!({"jsonrpc": "2.0", "method": notification::PROGRESS, "params": params});
        let _ = progress.reports.try_send(report);
    }
}
