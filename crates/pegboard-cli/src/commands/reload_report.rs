//! What a reload says in its line of the log: which servers, tokens and views have changed, and what is not in effect.

use std::collections::BTreeMap;

use pegboard::{
    board::{Applied, GatewaySettings},
    config::Withheld,
};
use pegboard_daemon::ReloadNote;

/// The most names of one kind that the line has.
const NAMED: usize = 10;

/// What is said while the config says that no call may run without an audit log, and this process has no such log.
pub(super) const UNAUDITED: &str = "the config says `audit.required = true`, and this process was started without that: calls run although they may not be recorded; restart it";

/// The line about a reload. Clients see the tokens only where there is a gateway.
pub(super) fn line(
    applied: &Applied,
    (before, now): (&GatewaySettings, &GatewaySettings),
    has_gateway: bool,
    withheld: &Withheld,
) -> String {
    let mut parts = vec![servers(applied)];
    if has_gateway {
        parts.extend(names("tokens", &before.serve.tokens, &now.serve.tokens));
        if before.serve.oauth != now.serve.oauth {
            parts.push("`serve.oauth` changed".to_owned());
        }
        if now.serve.requires_token() && !before.serve.requires_token() {
            parts.push("every request needs a token from now on".to_owned());
        }
    }
    parts.extend(names("views", &before.views, &now.views));
    if !withheld.settings.is_empty() {
        parts.push(format!(
            "not in effect before a restart: {}",
            quoted(&withheld.settings)
        ));
    }
    format!("config reloaded; {}", parts.join("; "))
}

/// What of a config is not in effect, for the status, the warnings and the API.
pub(super) fn notes(withheld: &Withheld) -> Vec<ReloadNote> {
    let restart = (!withheld.settings.is_empty()).then(|| ReloadNote::new("restart", at_next_start(withheld)));
    let audit = withheld
        .misses_required_audit
        .then(|| ReloadNote::new("audit", UNAUDITED).degrading());
    restart.into_iter().chain(audit).collect()
}

/// The settings of a config that a running program cannot change.
pub(super) fn at_next_start(withheld: &Withheld) -> String {
    format!(
        "settings that take effect at the next start have changed: {}; restart the program to apply them",
        quoted(&withheld.settings)
    )
}

fn quoted(settings: &[&str]) -> String {
    let quoted: Vec<String> = settings.iter().map(|setting| format!("`{setting}`")).collect();
    quoted.join(", ")
}

/// Which names are new, gone, or have other settings.
fn names<T: PartialEq>(what: &str, before: &BTreeMap<String, T>, now: &BTreeMap<String, T>) -> Option<String> {
    let new = now.keys().filter(|name| !before.contains_key(*name));
    let removed = before.keys().filter(|name| !now.contains_key(*name));
    let changed = now
        .iter()
        .filter(|(name, settings)| before.get(*name).is_some_and(|old| old != *settings));
    let kinds = [
        ("new", list(new)),
        ("removed", list(removed)),
        ("changed", list(changed.map(|(name, _)| name))),
    ];
    let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let kinds: Vec<String> = kinds.map(|(kind, names)| format!("{kind} {names}")).collect();
    (!kinds.is_empty()).then(|| format!("{what}: {}", kinds.join(", ")))
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(" ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How many servers a reload has changed, and how many failed.
fn servers(applied: &Applied) -> String {
    let failed = applied.errors.len().saturating_sub(applied.kept.len());
    let counts = [
        (applied.added.len(), "added"),
        (applied.removed.len(), "removed"),
        (applied.replaced.len(), "replaced"),
        (applied.retuned.len(), "changed"),
        (applied.kept.len(), "kept under their old settings"),
        (failed, "failed"),
        (applied.refused.len(), "refused"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    match counts.as_slice() {
        [] => "no server changed".to_owned(),
        counts => format!("servers: {}", counts.join(", ")),
    }
}
