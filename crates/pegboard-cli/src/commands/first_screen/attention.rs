//! What needs a person's attention: servers that are down or need a sign-in, and problems of the config.

use std::collections::BTreeSet;

use pegboard::{State, config::Transport};
use serde_json::{Value, json};

use crate::{
    commands::{
        doctor::is_missing,
        status::rows::{ShownServer, StatusRows},
    },
    output::one_line,
    settings::{Settings, in_short, is_pending},
};

/// One thing that needs attention.
pub(super) struct Attention {
    /// The server, or the file.
    pub(super) what_for: String,
    pub(super) what: String,
    /// The command that helps, and what it does.
    pub(super) next: String,
    pub(super) next_does: &'static str,
}

impl Attention {
    fn of_server(name: &str, what: String) -> Self {
        Self {
            what_for: name.to_owned(),
            what,
            next: format!("pegboard doctor {name}"),
            next_does: "see what to do about it",
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({"of": self.what_for, "what": self.what, "next": self.next})
    }
}

/// What the daemon knows of its servers, and what is wrong with the config.
pub(super) fn of_daemon(settings: &Settings, rows: &StatusRows) -> Vec<Attention> {
    let mut found = of_config(settings);
    found.extend(rows.servers.iter().filter_map(of_row));
    found
}

fn of_row(row: &ShownServer) -> Option<Attention> {
    let why = || {
        row.last_error
            .as_ref()
            .map(|error| one_line(&error.message))
            .unwrap_or_default()
    };
    match row.state {
        State::NeedsAuth => Some(Attention {
            what_for: row.name.clone(),
            what: "needs a sign-in".to_owned(),
            next: format!("pegboard login {}", row.name),
            next_does: "sign in with the browser",
        }),
        State::Down => Some(Attention::of_server(&row.name, format!("is down: {}", why()))),
        State::CrashLooping => Some(Attention::of_server(&row.name, format!("keeps crashing: {}", why()))),
        // Those with a problem in the config are told already.
        _ => None,
    }
}

/// The servers of hosts that wait for approval, where there is no config.
pub(super) fn of_hosts(settings: &Settings) -> Option<Attention> {
    let pending = settings.hosts()?.pending();
    let names: Vec<String> = pending.map(|pending| one_line(&pending.server.name)).collect();
    let verb = match names.len() {
        0 => return None,
        1 => "waits",
        _ => "wait",
    };
    Some(Attention {
        what_for: names.join(", "),
        what: format!("{verb} for your approval to start"),
        next: "pegboard init".to_owned(),
        next_does: "put them into a config, and Pegboard into these programs",
    })
}

/// The servers whose program is not there, as far as that is known without a start.
pub(super) fn of_programs(settings: &Settings) -> Vec<Attention> {
    let servers = settings.loaded.config.servers.iter();
    let missing = servers
        .filter(|(_, server)| server.enabled)
        .filter_map(|(name, server)| {
            let Transport::Stdio(command) = &server.transport else {
                return None;
            };
            let what = format!("its program `{}` was not found", one_line(&command.program));
            is_missing(command).then(|| Attention::of_server(name.as_str(), what))
        });
    missing.collect()
}

/// What is wrong with the config.
pub(super) fn of_config(settings: &Settings) -> Vec<Attention> {
    let loaded = &settings.loaded;
    let mut found = Vec::new();
    for file in &loaded.unreadable {
        let first = loaded.errors().find(|problem| problem.file == *file);
        let line = first
            .and_then(|problem| problem.line)
            .map_or_else(String::new, |line| format!("line {line}: "));
        found.push(Attention {
            what_for: in_short(file),
            what: format!(
                "{line}{}",
                first.map(|problem| one_line(&problem.message)).unwrap_or_default()
            ),
            next: "pegboard doctor".to_owned(),
            next_does: "see what to correct",
        });
    }
    let mut unapproved = BTreeSet::new();
    for (name, server) in &loaded.config.misconfigured {
        if is_pending(server) {
            unapproved.extend(
                server
                    .pending_trust
                    .iter()
                    .map(|file| in_short(&file.display().to_string())),
            );
            continue;
        }
        let mut errors = loaded
            .errors()
            .filter(|problem| problem.server() == Some(name.as_str()));
        let what = errors
            .next()
            .map_or_else(|| one_line(&server.why), |problem| one_line(&problem.message));
        found.push(Attention::of_server(name.as_str(), what));
    }
    found.extend(unapproved.into_iter().map(|file| Attention {
        what_for: file,
        what: "is not approved, so its servers are not used".to_owned(),
        next: "pegboard trust show".to_owned(),
        next_does: "see what the file would start",
    }));
    found
}
