//! `pegboard audit`: verifies the audit log and shows its records.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use pegboard::{Timestamp, audit::AuditCheck};
use serde_json::{Value, json};

use super::{
    command::{Run, With, commands},
    context::Context,
};
use crate::{
    cli::duration,
    exit::Exit,
    output::{IN_SECONDS, Report, Table, moment, one_line, path_text},
    settings::{Complaint, Settings},
};

/// The most records that `show` prints.
const MAX_SHOWN: usize = 100_000;
/// The hint if one of the two files of a log is gone.
const REMOVED: &str = "both files belong together: find out what removed it, compare a head that was kept elsewhere, then move the rest away to \
                       begin a new log";
/// Longer than any record.
const MAX_LINE: u64 = 64 << 10;

commands! {
    /// Verify the audit log, or show its records
    #[command(
        after_help = "Examples:\n  pegboard audit verify\n  pegboard audit show --last 10"
    )]
    pub(crate) enum AuditCommand {
        Verify(With<Verify>),
        Show(With<Show>),
    }
}

/// Find records that were removed, moved or changed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard audit verify\n  pegboard audit verify calls.jsonl -o json")]
pub(crate) struct Verify {
    /// The log; that of the config by default
    file: Option<PathBuf>,
    /// The head that an earlier run printed; it must still be there
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
}

impl Run for Verify {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"ok": false, "files": [], "records": 0, "broken": null});
        let is_named = self.file.is_some();
        let log = match log(&context, self.file) {
            Ok(log) => log,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        if self.head.as_deref().is_some_and(|head| !is_hash(head)) {
            let complaint = complaint(
                "a hash has 64 hexadecimal digits",
                "`pegboard audit verify` prints it as `head`",
            );
            return context.refuse(&complaint, &nothing).await;
        }
        let (path, head) = (log.clone(), self.head.map(|head| head.to_ascii_lowercase()));
        let verifying = read_log(move || pegboard::audit::verify(&path, head.as_deref()));
        let check = match context.work_or_end(verifying, &nothing).await {
            Ok(Ok(check)) => check,
            Ok(Err(error)) if !is_named && is_gone(&log, &error) => {
                let broken = Broken {
                    file: log,
                    line: 0,
                    kind: "log_missing",
                    message: "the log is gone, and its state file is there".to_owned(),
                };
                let report = match context.output.is_json() {
                    true => {
                        let mut document = nothing;
                        document["broken"] = broken.document();
                        Report::json(Exit::ToolError, &document)
                    }
                    false => Report::new(Exit::ToolError).error(&broken.text(), Some(REMOVED)),
                };
                return context.print(report).await;
            }
            Ok(Err(error)) => {
                return context
                    .refuse(&read_complaint(&log, &error.to_string()), &nothing)
                    .await;
            }
            Err(exit) => return exit,
        };
        let broken = Broken::find(&check, &log, is_named);
        let report = match context.output.is_json() {
            true => Report::json(exit(broken.as_ref()), &document(&check, broken.as_ref())),
            false => report(&check, broken.as_ref()),
        };
        context.print(report).await
    }
}

/// What is wrong with a log.
struct Broken {
    file: PathBuf,
    /// Zero for the file as a whole.
    line: u64,
    kind: &'static str,
    message: String,
}

impl Broken {
    /// The first break. The log of the config must have its state file; a copy that the user names need not.
    fn find(check: &AuditCheck, log: &Path, is_named: bool) -> Option<Self> {
        let missing = || Self {
            file: state_file(log),
            line: 0,
            kind: "state_missing",
            message: "the state file is gone, so records may be missing at the end of the log".to_owned(),
        };
        match &check.broken {
            Some(broken) => Some(Self {
                file: broken.file.clone(),
                line: broken.line,
                kind: broken.kind.as_str(),
                message: broken.kind.to_string(),
            }),
            None => (!is_named && !check.has_state && check.records > 0).then(missing),
        }
    }

    fn document(&self) -> Value {
        json!({"file": path_text(&self.file), "line": self.line, "kind": self.kind, "message": self.message})
    }

    fn text(&self) -> String {
        let file = self.file.display();
        match self.line {
            0 => format!("the chain is broken: {file}: {}", self.message),
            line => format!("the chain is broken: {file}:{line}: {}", self.message),
        }
    }
}

fn exit(broken: Option<&Broken>) -> Exit {
    match broken {
        None => Exit::Done,
        Some(_) => Exit::ToolError,
    }
}

fn state_file(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".state");
    path.into()
}

/// Whether the log is gone and its state file is not.
fn is_gone(log: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !log.exists() && state_file(log).exists()
}

/// The result for programs.
fn document(check: &AuditCheck, broken: Option<&Broken>) -> Value {
    json!({
        "ok": broken.is_none(),
        "files": check.files.iter().map(path_text).collect::<Vec<_>>(),
        "records": check.records,
        "first": check.first,
        "last": check.last,
        "head": check.head,
        "torn": check.torn,
        "lost": check.lost,
        "is_last_torn": check.is_last_torn,
        "has_state": check.has_state,
        "broken": broken.map(Broken::document),
    })
}

/// The result for people.
fn report(check: &AuditCheck, broken: Option<&Broken>) -> Report {
    let mut report = Report::new(exit(broken));
    let files = match check.files.len() {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    if let Some(broken) = broken {
        let hint = match (broken.kind, check.records) {
            ("state_missing" | "bad_state", _) => REMOVED.to_owned(),
            ("unreadable", 0) => {
                "if the file is something else, name the audit log, or another file in `audit` of the config".to_owned()
            }
            (_, records) => format!("the {records} records before it are intact; head {}", check.head),
        };
        return report.error(&broken.text(), Some(&hint));
    }
    report.data = format!(
        "intact: {} records in {files}, numbers {} to {}\nhead {}\n",
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
        if is_so {
            let _ = writeln!(report.data, "note: {note}");
        }
    }
    report
}

/// Show the last records; `--server NAME` picks a server's
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard audit show --server github --last 10\n  pegboard audit show --tool delete_file --who alice --since 1d"
)]
pub(crate) struct Show {
    /// The log; that of the config by default
    file: Option<PathBuf>,
    /// How many records, 50 by default
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Only those of this tool: TOOL, or SERVER.TOOL
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only those of this principal or view
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only those of this time until now, such as 30m or 1d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    /// Only those of this request or trace, by its id
    #[arg(long, value_name = "ID")]
    request: Option<String>,
}

/// Which records are shown.
#[derive(Debug, Default)]
struct Wanted {
    servers: Vec<String>,
    tool: Option<String>,
    who: Option<String>,
    since: Option<Timestamp>,
    request: Option<String>,
}

impl Wanted {
    fn has(&self, record: &Value) -> bool {
        let is = |field: &str, wanted: &str| record[field].as_str() == Some(wanted);
        let is_of_server = || self.servers.iter().any(|server| is("server", server));
        let is_tool = |wanted: &String| {
            let (Some(server), Some(tool)) = (record["server"].as_str(), record["tool"].as_str()) else {
                return false;
            };
            tool == wanted || wanted.strip_prefix(server).and_then(|rest| rest.strip_prefix('.')) == Some(tool)
        };
        let is_late = |since: &Timestamp| {
            let at = record["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            at.is_some_and(|at| at >= *since)
        };
        // The name of a view that is open ends with a number of its own.
        let is_view = |who: &String| {
            let view = record["view"].as_str().and_then(|view| view.rsplit_once('#'));
            view.is_some_and(|(view, _)| view == who || view.strip_prefix("mcp/view/") == Some(who))
        };
        record["event"] != "header"
            && (self.servers.is_empty() || is_of_server())
            && self.tool.as_ref().is_none_or(is_tool)
            && self
                .who
                .as_ref()
                .is_none_or(|who| is("principal", who) || is("view", who) || is_view(who))
            && self.since.as_ref().is_none_or(is_late)
            && self
                .request
                .as_ref()
                .is_none_or(|id| is("request_id", id) || is("trace_id", id))
    }
}

impl Run for Show {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"records": []});
        let log = match log(&context, self.file) {
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
        let wanted = Wanted {
            servers,
            tool: self.tool,
            who: self.who,
            since: self.since.map(|since| Timestamp::now() - since),
            request: self.request,
        };
        let path = log.clone();
        let reading = read_log(move || records(&path, &wanted, self.last.unwrap_or(50)));
        let records = match context.work_or_end(reading, &nothing).await {
            Ok(Ok(records)) => records,
            Ok(Err(error)) => {
                return context
                    .refuse(&read_complaint(&log, &error.to_string()), &nothing)
                    .await;
            }
            Err(exit) => return exit,
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
}

/// The last records that are wanted, of the current file and of those before it.
fn records(log: &Path, wanted: &Wanted, last: usize) -> io::Result<Vec<Value>> {
    let mut shown = VecDeque::new();
    let last = last.min(MAX_SHOWN);
    // Backwards, so that old files are read only if the newer ones have too few.
    for file in pegboard::audit::files(log)?.iter().rev() {
        let records = match records_of(file, wanted, last - shown.len()) {
            // It was removed as one of too many meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && file != log => continue,
            records => records?,
        };
        records.into_iter().rev().for_each(|record| shown.push_front(record));
        if shown.len() >= last {
            break;
        }
    }
    Ok(shown.into())
}

/// The last records of one file that are wanted.
fn records_of(file: &Path, wanted: &Wanted, last: usize) -> io::Result<VecDeque<Value>> {
    let mut shown = VecDeque::new();
    let mut file = BufReader::new(File::open(file)?);
    loop {
        let mut line = Vec::new();
        Read::by_ref(&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(shown);
        }
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        if wanted.has(&record) {
            shown.push_back(record);
        }
        if shown.len() > last {
            shown.pop_front();
        }
    }
}

fn table(records: &[Value]) -> String {
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default());
    let mut table = Table::default();
    table.row(["TIME", "WHO", "VIEW", "TOOL", "EVENT", "RESULT"].map(str::to_owned));
    for record in records {
        let tool = match (record["server"].as_str(), record["tool"].as_str()) {
            (Some(server), Some(tool)) => format!("{server}.{tool}"),
            (Some(server), None) if record["event"] == "change" => server.to_owned(),
            (Some(server), None) => format!("{server} (unknown tool)"),
            _ if record["name_hash"].is_string() => "(unknown tool)".to_owned(),
            _ => String::new(),
        };
        let result = match record["event"].as_str() {
            Some("decision") => format!("{} {}", text(&record["decision"]), text(&record["rule"])),
            Some("call") => text(&record["end"]["kind"]),
            Some("change") => format!("{} {}", text(&record["action"]), text(&record["outcome"])),
            Some("lost") => format!("{} records", record["records"]),
            _ => String::new(),
        };
        table.row([
            match text(&record["at"]).parse::<Timestamp>() {
                Ok(at) => moment(at, IN_SECONDS),
                Err(_) => text(&record["at"]),
            },
            // Without tokens, what tells clients apart is the way by which they came.
            match text(&record["principal"]) {
                who if who.is_empty() => text(&record["view"]),
                who => who,
            },
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
    let audit = settings.config()?.audit.ok_or_else(|| {
        complaint(
            "the config has no audit log",
            "name a file, or set `audit = \"FILE\"` at the top of the config",
        )
    })?;
    audit.file().map(Path::to_owned).ok_or_else(|| {
        complaint(
            &format!("the audit log goes to {}, where it cannot be read", audit.place()),
            "name a file into which its lines were collected",
        )
    })
}

/// Reads a log on a blocking thread.
async fn read_log<T: Send + 'static>(read: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let reading = tokio::task::spawn_blocking(read).await;
    reading.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
}

fn read_complaint(log: &Path, error: &str) -> Complaint {
    complaint(
        &format!("{} cannot be read: {error}", log.display()),
        "name the file of an audit log; the one of the config is there after the first call",
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
