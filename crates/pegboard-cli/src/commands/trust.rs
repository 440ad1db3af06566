//! `pegboard trust`: the approval of project files.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;
use pegboard::{
    Env, Hint as _,
    config::{ProjectFile, Source, TrustRecord, TrustStore},
};
use serde_json::{Value, json};

use super::{
    agreement,
    command::{Run, With, commands},
    context::{Context, Ending, empty, interruption_report, time_up},
};
use crate::{
    exit::Exit,
    output::{Output, Report, clean, one_line, path_text},
    settings::{self, Complaint},
};

commands! {
    /// Approve the config file of a project
    #[command(
        after_help = "Examples:\n  pegboard trust show\n  pegboard trust accept"
    )]
    pub(crate) enum TrustCommand {
        Show(With<Show>),
        Accept(With<Accept>),
        Forget(With<Forget>),
    }
}

/// Show what the project file would start, and what has changed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard trust show -o json")]
pub(crate) struct Show {
    /// The project file, or a folder of the project
    path: Option<PathBuf>,
}

impl Run for Show {
    /// Shows what a project file would start, and what has changed since it was approved.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let (file, store) = match find(self.path) {
            Ok(found) => found,
            Err(complaint) => return context.refuse(&complaint, &json!({"file": null})).await,
        };
        let review = Review::new(&file, &store);
        let mut report = match context.output.is_json() {
            true => Report::json(Exit::Done, &review.document()),
            false => Report::new(Exit::Done),
        };
        if !context.output.is_json() {
            report.data = review.text();
        }
        if let Some(problem) = store.problem() {
            report = report.warning(&problem);
        }
        context.print(report).await
    }
}

/// Approve the project file as it is now
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard trust accept")]
pub(crate) struct Accept {
    /// The project file, or a folder of the project
    path: Option<PathBuf>,
    /// Approve it without a question
    #[arg(short, long)]
    yes: bool,
}

impl Run for Accept {
    /// Approves a project file, after a person at the terminal or `--yes` has agreed to what it shows.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let (file, mut store) = match find(self.path) {
            Ok(found) => found,
            Err(complaint) => return context.refuse(&complaint, &json!({"file": null})).await,
        };
        let review = Review::new(&file, &store);
        let pending = review.document();
        if !context.output.is_json() || !self.yes {
            context.output.say(&review.text());
        }
        if !self.yes {
            let output = context.output.clone();
            match context.work(ask(&output)).await {
                Ending::Done(Ok(())) => {}
                Ending::Done(Err(complaint)) => return context.refuse(&complaint, &pending).await,
                Ending::TimeUp => return context.print(time_up(&output, &pending)).await,
                Ending::Interrupted => return context.print(interruption_report(&output, &pending)).await,
            }
        }
        // What is stored is the digest of the content that was shown, so a change in the meantime is not approved.
        if let Err(error) = store.accept(&file) {
            return context.refuse(&trust_complaint(&error), &pending).await;
        }
        let report = match context.output.is_json() {
            true => Report::json(Exit::Done, &Review::new(&file, &store).document()),
            false => say(Report::new(Exit::Done), file.path(), "is approved"),
        };
        context.print(report).await
    }
}

/// Withdraw the approval
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard trust forget")]
pub(crate) struct Forget {
    /// The project file, or a folder of the project
    path: Option<PathBuf>,
    /// The approvals of servers of hosts, instead of a project file
    #[arg(long, conflicts_with = "path")]
    hosts: bool,
}

impl Run for Forget {
    /// Removes the approval of a project file.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let env = Env::process();
        let mut store = TrustStore::user(&env);
        if self.hosts {
            return forget_servers(context, &mut store).await;
        }
        // The file itself may be gone, or be one that cannot be read.
        let path = match project_path(self.path, &env, &store) {
            Ok(path) => path,
            Err(complaint) => return context.refuse(&complaint, &json!({"file": null})).await,
        };
        let was_there = match store.forget(&path) {
            Ok(was_there) => was_there,
            Err(error) => {
                return context
                    .refuse(&trust_complaint(&error), &json!({"file": path_text(&path)}))
                    .await;
            }
        };
        if !was_there && ProjectFile::read(&path, &env).is_err() {
            let complaint = Complaint {
                message: format!("{} is no project file, and no approval of it is stored", path.display()),
                hint: Some(
                    "name the project file or its folder; `pegboard trust show` shows the one that applies here"
                        .to_owned(),
                ),
                exit: Exit::Usage,
            };
            return context
                .refuse(&complaint, &json!({"file": path_text(&path), "forgotten": false}))
                .await;
        }
        let document = json!({"file": path_text(&path), "forgotten": was_there});
        let report = empty(&context.output, Exit::Done, &document);
        let report = match (context.output.is_json(), was_there) {
            (true, _) => report,
            (false, true) => say(report, &path, "is no longer approved"),
            (false, false) => say(report, &path, "was not approved"),
        };
        context.print(report).await
    }
}

/// Takes back that a person has agreed to start servers of hosts.
async fn forget_servers(mut context: Context<'_>, store: &mut TrustStore) -> Exit {
    let forgotten = match settings::forget_hosts(store) {
        Ok(forgotten) => forgotten,
        Err(error) => {
            return context
                .refuse(&trust_complaint(&error), &json!({"hosts": true, "forgotten": 0}))
                .await;
        }
    };
    let mut report = empty(
        &context.output,
        Exit::Done,
        &json!({"hosts": true, "forgotten": forgotten}),
    );
    if !context.output.is_json() {
        report.data = match forgotten {
            0 => "no server of a host was approved\n".to_owned(),
            1 => "1 server of hosts is no longer approved\n".to_owned(),
            count => format!("{count} servers of hosts are no longer approved\n"),
        };
    }
    context.print(report).await
}

/// Adds a sentence about a file.
fn say(mut report: Report, file: &Path, what: &str) -> Report {
    report.data = format!("{} {what}\n", clean(&file.display().to_string()));
    report
}

/// Reads the project file and the store of approvals.
fn find(path: Option<PathBuf>) -> Result<(ProjectFile, TrustStore), Complaint> {
    let env = Env::process();
    let store = TrustStore::user(&env);
    let path = project_path(path, &env, &store)?;
    let file = ProjectFile::read(&path, &env).map_err(|problem| Complaint {
        message: "the project file cannot be approved".to_owned(),
        hint: Some(problem.to_string()),
        exit: Exit::Usage,
    })?;
    Ok((file, store))
}

/// The project file that `path` names, or that applies in the folder.
fn project_path(path: Option<PathBuf>, env: &Env<'_>, store: &TrustStore) -> Result<PathBuf, Complaint> {
    let folder = match path {
        Some(path) if !path.is_dir() => return Ok(path),
        Some(folder) => folder,
        None => settings::here(),
    };
    let sources = Source::discover(&folder, env, store);
    let found = sources.iter().find_map(Source::project_path).map(Path::to_owned);
    found.ok_or_else(|| Complaint {
        message: format!("there is no project file for {}", folder.display()),
        hint: Some("a project file is a `pegboard.toml` or `.mcp.json` in this folder or one above".to_owned()),
        exit: Exit::Usage,
    })
}

fn trust_complaint(error: &pegboard::config::TrustError) -> Complaint {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Complaint {
        message: format!("{error}{}", cause.unwrap_or_default()),
        hint: error.hint(),
        exit: Exit::Unavailable,
    }
}

/// Asks the person at the terminal.
async fn ask(output: &Output) -> Result<(), Complaint> {
    let refused = |message: &str, hint: Option<&str>| Complaint {
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
        exit: Exit::Refused,
    };
    if !agreement::can_ask() {
        let hint = "read what `pegboard trust show` prints, then `pegboard trust accept --yes` approves it";
        return Err(refused(
            "a person must agree, and there is no terminal to ask at",
            Some(hint),
        ));
    }
    match agreement::agrees(output, "Approve this?").await {
        true => Ok(()),
        false => Err(refused("not confirmed, so nothing is approved", None)),
    }
}

/// A project file beside its approval.
struct Review<'a> {
    file: &'a ProjectFile,
    record: Option<&'a TrustRecord>,
    changes: Vec<String>,
}

impl<'a> Review<'a> {
    fn new(file: &'a ProjectFile, store: &'a TrustStore) -> Self {
        let record = store.record(file.path());
        Self {
            file,
            record,
            changes: record.map(|record| record.changes(file)).unwrap_or_default(),
        }
    }

    fn state(&self) -> &'static str {
        match self.record {
            None => "pending",
            Some(_) if self.changes.is_empty() => "approved",
            Some(_) => "changed",
        }
    }

    fn document(&self) -> Value {
        json!({
            "file": path_text(self.file.path()),
            "sha256": self.file.digest(),
            "state": self.state(),
            "approved_at": self.record.map(|record| record.approved_at),
            "servers": self.file.servers(),
            "settings": self.file.settings(),
            "env_files": self.file.env_files(),
            "changes": self.changes,
        })
    }

    /// The review for people. Texts of the file are sanitized, so that they cannot forge lines of ours.
    fn text(&self) -> String {
        let state = match self.state() {
            "approved" => "is approved",
            "changed" => "has changed since it was approved",
            _ => "is not approved",
        };
        let mut text = format!("{} {state}\n", clean(&self.file.path().display().to_string()));
        for (name, settings) in self.file.servers() {
            let _ = writeln!(text, "server {}", one_line(name));
            text.push_str(&lines(settings));
        }
        for (path, variables) in self.file.env_files() {
            let _ = writeln!(text, "environment file {}", one_line(path));
            text.push_str(&lines(variables));
        }
        if !self.file.settings().is_empty() {
            text.push_str("settings of the file\n");
            text.push_str(&self.settings());
        }
        if !self.changes.is_empty() {
            text.push_str("changed\n");
            for change in &self.changes {
                let _ = writeln!(text, "  {}", one_line(change));
            }
        }
        text
    }

    fn settings(&self) -> String {
        self.file
            .settings()
            .iter()
            .map(|(name, value)| line(name, value))
            .collect()
    }
}

/// The settings of a server: what is started or contacted first, then the others. A file that cannot be used has a reason instead.
fn lines(settings: &Value) -> String {
    const FIRST: [&str; 7] = ["command", "args", "cwd", "env", "env_file", "url", "headers"];
    let Some(settings) = settings.as_object() else {
        return format!("  {}\n", one_line(settings.as_str().unwrap_or_default()));
    };
    let first = FIRST.iter().filter_map(|name| Some((*name, settings.get(*name)?)));
    let rest = settings.iter().map(|(name, value)| (name.as_str(), value));
    let rest = rest.filter(|(name, _)| !FIRST.contains(name));
    first.chain(rest).map(|(name, value)| line(name, value)).collect()
}

/// One setting as JSON, so that every argument is seen to be one argument.
fn line(name: &str, value: &Value) -> String {
    format!("  {} = {}\n", one_line(name), clean(&value.to_string()))
}
