//! What the table shows of a board, be it one of this process or the daemon's.

use pegboard::State;
use serde::Deserialize;
use serde_json::Value;

use crate::{daemon::Unfinished, output::one_line};

/// The part of a board's status that people see.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusRows {
    pub(super) servers: Vec<ShownServer>,
    pub(super) warnings: Vec<ShownWarning>,
    /// The calls that a daemon did not finish.
    pub(super) unfinished: Vec<Unfinished>,
}

impl StatusRows {
    /// Reads a status. One that is not understood has no rows: a daemon of the same version sends none.
    pub(super) fn parse(status: Value) -> Self {
        serde_json::from_value(status).unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownServer {
    pub(super) name: String,
    /// The view that alone uses it.
    #[serde(default)]
    pub(super) view: Option<String>,
    /// The principal whose views alone use it.
    #[serde(default)]
    pub(super) principal: Option<String>,
    pub(super) state: State,
    pub(super) transport: String,
    pub(super) era: Option<String>,
    pub(super) protocol_version: Option<String>,
    pub(super) tools: usize,
    pub(super) pid: Option<u32>,
    pub(super) restarts: u32,
    pub(super) required: bool,
    pub(super) last_error: Option<ShownError>,
    #[serde(default)]
    pub(super) sandbox: Option<ShownSandbox>,
}

impl ShownServer {
    /// Its name, and whose it is if it is not everybody's.
    pub(super) fn whose(&self) -> String {
        let owners: Vec<&str> = [&self.principal, &self.view]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match owners.as_slice() {
            [] => self.name.clone(),
            owners => format!("{} ({})", self.name, one_line(&owners.join(", "))),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownSandbox {
    pub(super) requested: String,
    pub(super) in_force: Option<String>,
    pub(super) missing: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownWarning {
    pub(super) category: String,
    pub(super) server: Option<String>,
    pub(super) message: String,
    pub(super) details: String,
}
