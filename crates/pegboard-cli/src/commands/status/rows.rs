//! What the table shows of a board, be it one of this process or the daemon's.

use pegboard::{Config, ServerName, State};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    commands::needed_variables::{self, LastWords},
    daemon::Unfinished,
    output::one_line,
    settings::Settings,
};

/// The part of a board's status that people see.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::commands) struct StatusRows {
    pub(in crate::commands) servers: Vec<ShownServer>,
    pub(in crate::commands) warnings: Vec<ShownWarning>,
    /// The calls that a daemon did not finish.
    pub(in crate::commands) unfinished: Vec<Unfinished>,
}

impl StatusRows {
    /// Reads a status. One that is not understood has no rows: a daemon of the same version sends none.
    pub(in crate::commands) fn parse(status: Value) -> Self {
        serde_json::from_value(status).unwrap_or_default()
    }

    /// Replaces the hints of servers whose process ended for lack of a variable by the command that passes it on. `last_words` are those of a
    /// server.
    pub(super) fn advise(&mut self, config: &Config, last_words: impl Fn(&ServerName) -> Option<LastWords>) {
        for server in &mut self.servers {
            let Some(error) = server.last_error.as_mut().filter(|_| server.state != State::Ready) else {
                continue;
            };
            let Ok(name) = ServerName::parse(&server.name) else {
                continue;
            };
            let advice = last_words(&name).and_then(|words| needed_variables::advice(config, &name, &words));
            error.hint = advice.or(error.hint.take());
        }
    }

    /// Notes which hosts the servers are of.
    pub(super) fn mark(&mut self, settings: &Settings) {
        for server in &mut self.servers {
            server.shown_name = Some(settings.marked_name(&server.name));
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::commands) struct ShownServer {
    pub(in crate::commands) name: String,
    /// Its name with the hosts that it is of.
    #[serde(skip)]
    shown_name: Option<String>,
    /// The view that alone uses it.
    #[serde(default)]
    pub(in crate::commands) view: Option<String>,
    /// The principal whose views alone use it.
    #[serde(default)]
    pub(in crate::commands) principal: Option<String>,
    pub(in crate::commands) state: State,
    pub(in crate::commands) transport: String,
    pub(in crate::commands) era: Option<String>,
    pub(in crate::commands) protocol_version: Option<String>,
    pub(in crate::commands) tools: usize,
    /// The tools that the config hides, and those that wait until a person accepts them.
    #[serde(default)]
    pub(in crate::commands) hidden: usize,
    #[serde(default)]
    pub(in crate::commands) held: usize,
    pub(in crate::commands) pid: Option<u32>,
    pub(in crate::commands) restarts: u32,
    pub(in crate::commands) required: bool,
    pub(in crate::commands) last_error: Option<ShownError>,
    #[serde(default)]
    pub(in crate::commands) sandbox: Option<ShownSandbox>,
}

impl ShownServer {
    /// How many tools it offers, and of how many.
    pub(in crate::commands) fn counted_tools(&self) -> String {
        match self.hidden + self.held {
            0 => self.tools.to_string(),
            more => format!("{} of {}", self.tools, self.tools + more),
        }
    }

    /// Its name, and whose it is if it is not everybody's.
    pub(in crate::commands) fn whose(&self) -> String {
        let owners: Vec<&str> = [&self.principal, &self.view]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match owners.as_slice() {
            [] => self.shown_name.clone().unwrap_or_else(|| self.name.clone()),
            owners => format!("{} ({})", self.name, one_line(&owners.join(", "))),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::commands) struct ShownError {
    pub(in crate::commands) message: String,
    pub(in crate::commands) hint: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::commands) struct ShownSandbox {
    pub(in crate::commands) requested: String,
    pub(in crate::commands) in_force: Option<String>,
    pub(in crate::commands) missing: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::commands) struct ShownWarning {
    pub(in crate::commands) category: String,
    pub(in crate::commands) server: Option<String>,
    pub(in crate::commands) message: String,
    pub(in crate::commands) details: String,
}
