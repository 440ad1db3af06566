//! Daemons for people and for programs.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::{
    daemon::FoundDaemon,
    output::{Table, moment, one_line, path_text},
};

/// Whether a command or a host has started it. One that does not answer has a log if so.
pub(super) fn is_background(daemon: &FoundDaemon) -> bool {
    match &daemon.report {
        Some(report) => report.hello.background,
        None => daemon.log.is_some(),
    }
}

/// A daemon for programs. What one that does not answer cannot say is null.
pub(super) fn document(daemon: &FoundDaemon) -> Value {
    let report = daemon.report.as_ref();
    let hello = report.map(|report| &report.hello);
    json!({
        "pid": daemon.pid,
        "version": hello.map(|hello| &hello.version),
        "background": is_background(daemon),
        "since": hello.map(|hello| hello.since),
        "config": hello.map(|hello| &hello.files),
        "this_config": daemon.is_ours,
        "servers": report.map(|report| report.servers),
        "clients": report.map(|report| report.clients),
        "folder": hello.map(|hello| path_text(&hello.folder)),
        "socket": path_text(&daemon.socket),
        "log": daemon.log.as_deref().map(path_text),
        "idle_ms": hello.and_then(|hello| hello.idle_ms),
        "answers": report.is_some(),
    })
}

/// Daemons for people, a paragraph for each.
pub(super) fn text(daemons: &[&FoundDaemon]) -> String {
    let texts: Vec<String> = daemons.iter().map(|daemon| one(daemon)).collect();
    texts.join("\n")
}

fn one(daemon: &FoundDaemon) -> String {
    let mut text = format!("process {}", daemon.pid);
    let mut table = Table::with_indent(2);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), one_line(&value)]);
    match &daemon.report {
        Some(report) => {
            let hello = &report.hello;
            let kind = match hello.background {
                true => "in the background",
                false => "`pegboard serve`",
            };
            let since = hello.since.map(|since| moment(since, " since %Y-%m-%d %H:%M:%S UTC"));
            let _ = write!(text, ", {kind}{}", since.unwrap_or_default());
            if daemon.is_ours {
                text.push_str(", for this config");
            }
            row("version", hello.version.clone());
            row("config", hello.files.join(", "));
            row(
                "servers",
                format!("{} of {} ready", report.servers.ready, report.servers.total),
            );
            row("clients", report.clients.to_string());
            if let Some(idle) = hello.idle_ms {
                row(
                    "ends",
                    format!("after {} without a client", duration(Duration::from_millis(idle))),
                );
            }
            row("folder", hello.folder.display().to_string());
        }
        None => text.push_str(", which does not answer: it starts, stops or hangs"),
    }
    row("socket", daemon.socket.display().to_string());
    if let Some(log) = &daemon.log {
        row("log", log.display().to_string());
    }
    format!("{text}\n{}", table.render(None))
}

/// What is said about a daemon that was ended.
pub(super) fn ended(daemon: &FoundDaemon) -> String {
    let clients = daemon.report.as_ref().map_or(0, |report| report.clients);
    let mut text = format!("process {} has ended", daemon.pid);
    if clients > 0 && is_background(daemon) {
        let _ = write!(
            text,
            "; it had {clients} {}, and hosts with `pegboard mcp --daemon` start it again",
            if clients == 1 { "client" } else { "clients" }
        );
    }
    text + "\n"
}

fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    let units: [(u128, &str); 2] = [(60_000, "min"), (1000, "s")];
    let whole = units.into_iter().find(|(unit, _)| millis.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ms"));
    format!("{} {name}", millis / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_largest_unit_that_fits() {
        for (millis, text) in [(600_000, "10 min"), (90_000, "90 s"), (1500, "1500 ms")] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }
}
