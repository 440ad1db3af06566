//! `pegboard audit`: verifies the audit log and shows its records.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
};

use pegboard::AuditCheck;
use serde_json::{Value, json};

use super::context::{Context, Ending, interrupted, time_up};
use crate::{
    cli::{AuditShow, AuditVerify},
    exit::Exit,
    output::{Report, Table, one_line},
    settings::{Complaint, Settings},
};

/// The most records that `show` prints.
const MAX_SHOWN: usize = 100_000;
/// Longer than any record.
const MAX_LINE: u64 = 64 << 10;

pub(super) async fn verify(mut context: Context<'_>, verify: AuditVerify) -> Exit {
    let nothing = json!({"ok": false, "files": [], "records": 0, "broken": null});
    let log = match log(&context, verify.file) {
        Ok(log) => log,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    if verify.head.as_deref().is_some_and(|head| !is_hash(head)) {
        let complaint = complaint(
            "a hash has 64 hexadecimal digits",
            "`pegboard audit verify` prints it as `head`",
        );
        return context.refuse(&complaint, &nothing).await;
    }
    let (path, head) = (log.clone(), verify.head.map(|head| head.to_ascii_lowercase()));
    let verifying = tokio::task::spawn_blocking(move || pegboard::verify_audit(&path, head.as_deref()));
    let check = match context.work(verifying).await {
        Ending::Done(Ok(Ok(check))) => check,
        Ending::Done(Ok(Err(error))) => return context.refuse(&unreadable(&log, &error.to_string()), &nothing).await,
        Ending::Done(Err(error)) => return context.refuse(&unreadable(&log, &error.to_string()), &nothing).await,
        Ending::TimeUp => {
            let report = time_up(&context.output, &nothing);
            return context.print(report).await;
        }
        Ending::Interrupted => {
            let report = interrupted(&context.output, &nothing);
            return context.print(report).await;
        }
    };
    let exit = match check.broken {
        None => Exit::Done,
        Some(_) => Exit::ToolError,
    };
    let report = match context.output.is_json() {
        true => Report::json(exit, &document(&check)),
        false => told(exit, &check),
    };
    context.print(report).await
}

/// The result for programs.
fn document(check: &AuditCheck) -> Value {
    let broken = check.broken.as_ref().map(|broken| {
        json!({
            "file": broken.file,
            "line": broken.line,
            "kind": broken.kind.as_str(),
            "message": broken.kind.to_string(),
        })
    });
    json!({
        "ok": check.broken.is_none(),
        "files": check.files,
        "records": check.records,
        "first": check.first,
        "last": check.last,
        "head": check.head,
        "torn": check.torn,
        "lost": check.lost,
        "is_last_torn": check.is_last_torn,
        "has_state": check.has_state,
        "broken": broken,
    })
}

/// The result for people.
fn told(exit: Exit, check: &AuditCheck) -> Report {
    let mut report = Report::new(exit);
    let files = match check.files.len() {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    report.data = format!(
        "{} records in {files}, numbers {} to {}\nhead {}\n",
        check.records, check.first, check.last, check.head
    );
    for (is_so, note) in [
        (
            check.first > 1,
            "older records were removed with their files".to_owned(),
        ),
        (check.torn > 0, format!("{} records were cut by a crash", check.torn)),
        (
            check.lost > 0,
            format!("{} records could not be written at the time", check.lost),
        ),
        (
            check.is_last_torn,
            "the last record is not complete: it is being written, or its writer was killed".to_owned(),
        ),
        (
            !check.has_state,
            "there is no state file beside the log, so records that were removed from its end are not found".to_owned(),
        ),
    ] {
        if is_so && check.broken.is_none() {
            let _ = writeln!(report.data, "note: {note}");
        }
    }
    match &check.broken {
        None => report,
        Some(broken) => {
            let place = match broken.line {
                0 => broken.file.display().to_string(),
                line => format!("{}:{line}", broken.file.display()),
            };
            report.error(&format!("the chain is broken: {place}: {}", broken.kind), None)
        }
    }
}

pub(super) async fn show(mut context: Context<'_>, show: AuditShow) -> Exit {
    let nothing = json!({"records": []});
    let log = match log(&context, show.file) {
        Ok(log) => log,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    let servers: Vec<String> = context
        .global
        .servers
        .iter()
        .filter(|name| !name.contains('='))
        .cloned()
        .collect();
    let path = log.clone();
    let reading = tokio::task::spawn_blocking(move || records(&path, &servers, show.last.unwrap_or(50)));
    let records = match context.work(reading).await {
        Ending::Done(Ok(Ok(records))) => records,
        Ending::Done(Ok(Err(error))) => return context.refuse(&unreadable(&log, &error.to_string()), &nothing).await,
        Ending::Done(Err(error)) => return context.refuse(&unreadable(&log, &error.to_string()), &nothing).await,
        Ending::TimeUp => {
            let report = time_up(&context.output, &nothing);
            return context.print(report).await;
        }
        Ending::Interrupted => {
            let report = interrupted(&context.output, &nothing);
            return context.print(report).await;
        }
    };
    let report = if context.output.is_json() {
        Report::json(Exit::Done, &json!({"records": records}))
    } else {
        let mut report = Report::new(Exit::Done);
        report.data = table(&records);
        report
    };
    context.print(report).await
}

/// The last records of the current file, of these servers or of all.
fn records(log: &Path, servers: &[String], last: usize) -> io::Result<Vec<Value>> {
    let mut shown = VecDeque::new();
    let mut file = BufReader::new(File::open(log)?);
    loop {
        let mut line = Vec::new();
        Read::by_ref(&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(shown.into());
        }
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        let is_named = |server: &str| servers.iter().any(|wanted| wanted == server);
        let is_wanted = servers.is_empty() || record["server"].as_str().is_some_and(is_named);
        if is_wanted && record["event"] != "header" {
            shown.push_back(record);
        }
        if shown.len() > last.min(MAX_SHOWN) {
            shown.pop_front();
        }
    }
}

fn table(records: &[Value]) -> String {
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default());
    let mut table = Table::default();
    table.row(["TIME", "VIEW", "TOOL", "EVENT", "RESULT"].map(str::to_owned));
    for record in records {
        let tool = match (record["server"].as_str(), record["tool"].as_str()) {
            (Some(server), Some(tool)) => format!("{server}.{tool}"),
            (Some(server), None) => format!("{server} (unknown tool)"),
            _ if record["name_hash"].is_string() => "(unknown tool)".to_owned(),
            _ => String::new(),
        };
        let result = match record["event"].as_str() {
            Some("decision") => format!("{} {}", text(&record["decision"]), text(&record["rule"])),
            Some("call") => text(&record["end"]["kind"]),
            Some("lost") => format!("{} records", record["records"]),
            _ => String::new(),
        };
        table.row([
            text(&record["at"]),
            text(&record["view"]),
            one_line(&tool),
            text(&record["event"]),
            result.trim_end().to_owned(),
        ]);
    }
    table.render(None)
}

/// The log that is named, or that of the config.
fn log(context: &Context<'_>, named: Option<PathBuf>) -> Result<PathBuf, Complaint> {
    if let Some(file) = named {
        return Ok(file);
    }
    let settings = Settings::load(&context.global);
    let audit = settings.shown()?.audit;
    audit.map(|audit| audit.file).ok_or_else(|| {
        complaint(
            "the config has no audit log",
            "name a file, or set `audit = \"FILE\"` at the top of the config",
        )
    })
}

fn unreadable(log: &Path, error: &str) -> Complaint {
    complaint(
        &format!("{} cannot be read: {error}", log.display()),
        "name the file of an audit log",
    )
}

fn complaint(message: &str, hint: &str) -> Complaint {
    Complaint {
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        exit: Exit::Usage,
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
