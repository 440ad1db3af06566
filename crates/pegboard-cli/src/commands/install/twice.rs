//! Servers that a host gets twice: from its own file, and from Pegboard.

use std::fmt::Write as _;

use pegboard_hosts::{
    hosts::Host,
    import::{Action, Plan, Row},
    install::{Change, find_movable},
};
use serde_json::{Value, json};

use crate::{cli::Global, output::clean};

/// A host that starts servers of the config itself, beside Pegboard.
#[derive(Debug)]
pub(in crate::commands) struct Twice {
    host: &'static Host,
    servers: Vec<String>,
    /// What moves them.
    fix: String,
}

impl Twice {
    /// The hosts among those that were changed. `with_new` counts what the plan adds to the config too.
    pub(in crate::commands) fn find(
        changes: &[Change],
        plan: &Plan,
        with_new: bool,
        global: &Global,
        is_project: bool,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        // One that would not work here is not there twice.
        let movable = find_movable(plan);
        for change in changes {
            let is_twice = |row: &&Row| {
                row.from == change.file
                    && (with_new || matches!(row.action, Action::Same(_)))
                    && !change.moved.contains(&row.original)
            };
            let rows = movable.iter().copied().filter(is_twice);
            let servers: Vec<String> = rows.map(|row| row.original.clone()).collect();
            match all.iter_mut().find(|one| one.host.id == change.host.id) {
                Some(known) => known.servers.extend(servers),
                None if servers.is_empty() => {}
                None => all.push(Self {
                    host: change.host,
                    servers,
                    fix: fix(global, change.host, is_project),
                }),
            }
        }
        all
    }

    /// For people, one line for each host. `fix` moves the servers of all hosts.
    pub(in crate::commands) fn text(all: &[Self], is_dry: bool, fix: Option<&str>) -> String {
        let mut text = String::new();
        let together = fix.filter(|_| all.len() > 1);
        for one in all {
            let names: Vec<String> = one.servers.iter().map(|name| format!("`{name}`")).collect();
            let still = if is_dry { "would still start" } else { "still starts" };
            let _ = writeln!(
                text,
                "{} {still} {} itself, so the tools are there twice",
                one.host.title,
                clean(&names.join(", ")),
            );
            if together.is_none() {
                let _ = writeln!(text, "  to move them: {}", one.fix);
            }
        }
        if let Some(fix) = together {
            let _ = writeln!(text, "  to move all of them: {fix}");
        }
        text
    }

    /// For programs.
    pub(in crate::commands) fn documents(all: &[Self]) -> Vec<Value> {
        all.iter()
            .map(|one| json!({"host": one.host.id, "servers": one.servers, "fix": one.fix}))
            .collect()
    }
}

fn fix(global: &Global, host: &Host, is_project: bool) -> String {
    let configs = global
        .configs
        .iter()
        .map(|config| format!("-c {} ", config.display()))
        .collect::<String>();
    let project = if is_project { " --project" } else { "" };
    format!("pegboard {configs}install {}{project} --take-over", host.id)
}
