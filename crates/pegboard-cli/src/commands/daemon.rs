//! `pegboard daemon`: shows, ends and restarts the daemons of this user, and prints what they wrote.

mod follow;
mod screen;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::{
    agreement,
    command::{Run, With, commands},
    context::{Context, Ending},
};
use crate::{
    daemon::{self, FoundDaemon},
    exit::Exit,
    output::{Output, Report, path_text},
    settings::{Complaint, Settings},
};

commands! {
    /// Show, end or restart the daemon in which the servers run
    #[command(
        after_help = "Examples:\n  pegboard daemon status\n  pegboard daemon stop --all"
    )]
    pub(crate) enum DaemonCommand {
        Status(With<Status>),
        Stop(With<Stop>),
        Restart(With<Restart>),
        Logs(With<Logs>),
    }
}

/// Show the daemons of this user
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard daemon status\n  pegboard daemon status -o json")]
pub(crate) struct Status {}

impl Run for Status {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"daemons": []});
        let settings = Settings::load(&context.global);
        let global = context.global.clone();
        let looking = daemon::all_daemons(&global, &settings);
        let found = match context.work_or_end(looking, &nothing).await {
            Ok(Ok(found)) => found,
            Ok(Err(why)) => return context.refuse(&unusable(why), &nothing).await,
            Err(exit) => return exit,
        };
        // A config that is named asks for its own daemon.
        let is_shown = |daemon: &&FoundDaemon| daemon.is_ours || context.global.configs.is_empty();
        let shown: Vec<&FoundDaemon> = found.iter().filter(is_shown).collect();
        let report = match context.output.is_json() {
            true => {
                let daemons: Vec<Value> = shown.into_iter().map(screen::document).collect();
                Report::json(Exit::Done, &json!({"daemons": daemons}))
            }
            false if shown.is_empty() => Report::new(Exit::Done).hint(
                "no daemon runs; `pegboard tools`, `call` and the hosts of `pegboard install` start one when they need it",
            ),
            false => {
                let mut report = Report::new(Exit::Done);
                report.data = screen::text(&shown);
                report
            }
        };
        context.print(report).await
    }
}

/// End the daemon of this config; calls in flight have 5 s to finish
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard daemon stop\n  pegboard daemon stop --all")]
pub(crate) struct Stop {
    /// End those of other configs too, except `pegboard serve`
    #[arg(long)]
    all: bool,
    /// End a `pegboard serve` without a question
    #[arg(short, long)]
    yes: bool,
}

impl Run for Stop {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"stopped": [], "failed": []});
        let settings = Settings::load(&context.global);
        if !self.yes {
            let (global, output) = (context.global.clone(), context.output.clone());
            let asked = async {
                let ours = daemon::our_daemon(&global, &settings).await?;
                let gateway = ours.filter(|ours| ours.report.is_some() && !screen::is_background(ours));
                match gateway {
                    Some(gateway) => may_end(&output, gateway.pid).await,
                    None => Ok(()),
                }
            };
            match context.work_or_end(asked, &nothing).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    let complaint = Complaint {
                        message: why,
                        hint: Some("`--yes` ends it; or end it where it was started".to_owned()),
                        exit: Exit::Refused,
                    };
                    return context.refuse(&complaint, &nothing).await;
                }
                Err(exit) => return exit,
            }
        }
        let (global, limit) = (context.global.clone(), context.deadline);
        let stopping = async {
            let mut found = daemon::all_daemons(&global, &settings).await?;
            let others = found.iter().filter(|daemon| !daemon.is_ours).count();
            found.retain(|daemon| daemon.is_ours || (self.all && screen::is_background(daemon)));
            let ended = found.iter().map(|daemon| daemon.stop(limit.remaining()));
            let ended = futures_util::future::join_all(ended).await;
            Ok((found, ended, others))
        };
        let (found, ended, others) = match context.work_or_end(stopping, &nothing).await {
            Ok(Ok(done)) => done,
            Ok(Err(why)) => return context.refuse(&unusable(why), &nothing).await,
            Err(exit) => return exit,
        };
        let all = || found.iter().zip(&ended);
        let exit = match ended.iter().all(Result::is_ok) {
            true => Exit::Done,
            false if context.is_late() => Exit::Timeout,
            false => Exit::Unavailable,
        };
        if context.output.is_json() {
            let stopped: Vec<Value> = all()
                .filter(|(_, end)| end.is_ok())
                .map(|(daemon, _)| screen::document(daemon))
                .collect();
            let failed = all().filter_map(|(daemon, end)| Some((daemon, end.as_ref().err()?)));
            let failed: Vec<Value> = failed
                .map(|(daemon, error)| json!({"pid": daemon.pid, "socket": path_text(&daemon.socket), "error": error}))
                .collect();
            let report = Report::json(exit, &json!({"stopped": stopped, "failed": failed}));
            return context.print(report).await;
        }
        let mut report = Report::new(exit);
        for (daemon, end) in all() {
            report = match end {
                Ok(()) => {
                    report.data.push_str(&screen::ended(daemon));
                    report
                }
                Err(error) => report.error(error, Some("`kill -9` ends it at once; its servers end with it")),
            };
        }
        if found.is_empty() {
            report = report.hint(&match others {
                0 => "no daemon runs".to_owned(),
                _ => format!("no daemon runs for this config; `--all` ends {others} of other configs"),
            });
        }
        context.print(report).await
    }
}

/// Asks the user whether a gateway may be ended that was not started by a command or a host. The error says why it is not.
async fn may_end(output: &Output, pid: u32) -> Result<(), String> {
    let what = format!("process {pid} is a `pegboard serve` that was not started in the background");
    if output.is_json() || !agreement::can_ask() {
        return Err(what);
    }
    output.say(&format!("{what}.\n"));
    match agreement::agrees(output, "End it?").await {
        true => Ok(()),
        false => Err("not confirmed, so it goes on".to_owned()),
    }
}

/// Start the daemon of this config anew
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard daemon restart")]
pub(crate) struct Restart {}

impl Run for Restart {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"pid": null, "replaced": null});
        let settings = Settings::load(&context.global);
        if let Err(complaint) = check(&settings) {
            return context.refuse(&complaint, &nothing).await;
        }
        let (global, output, limit) = (context.global.clone(), context.output.clone(), context.deadline);
        let restarting = async {
            let old = daemon::our_daemon(&global, &settings).await?;
            if let Some(old) = old
                .as_ref()
                .filter(|old| old.report.is_some() && !screen::is_background(old))
            {
                return Err(format!(
                    "process {} is a `pegboard serve` that was not started in the background: restart it where it was started",
                    old.pid
                ));
            }
            let new = daemon::restart(&global, &settings, old.as_ref(), &output, limit).await?;
            Ok((new, old.map(|old| old.pid)))
        };
        let (new, old) = match context.work_or_end(restarting, &nothing).await {
            Ok(Ok(done)) => done,
            Ok(Err(why)) => {
                let complaint = Complaint {
                    message: format!("the daemon is not restarted: {why}"),
                    hint: None,
                    exit: Exit::Unavailable,
                };
                return context.refuse(&complaint, &nothing).await;
            }
            Err(exit) => return exit,
        };
        let report = match context.output.is_json() {
            true => Report::json(Exit::Done, &json!({"pid": new, "replaced": old})),
            false => {
                let mut report = Report::new(Exit::Done);
                report.data = match old {
                    Some(old) => format!("process {new} has taken the place of process {old}\n"),
                    None => format!("started process {new}; no daemon was running\n"),
                };
                report
            }
        };
        context.print(report).await
    }
}

/// A daemon needs a config whose servers it can have.
fn check(settings: &Settings) -> Result<(), Complaint> {
    settings.usable_config()?;
    match settings.demo_note() {
        Some(_) => Err(Complaint {
            message: "there is no config for a daemon".to_owned(),
            hint: Some("`pegboard init` writes one".to_owned()),
            exit: Exit::Usage,
        }),
        None => Ok(()),
    }
}

/// Show what the daemon of this config wrote
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard daemon logs -n 20\n  pegboard daemon logs -f")]
pub(crate) struct Logs {
    /// Go on until Ctrl-C, or as long as `--timeout` says
    #[arg(short, long)]
    follow: bool,
    /// Show only the last lines of what is there
    #[arg(short = 'n', long, value_name = "COUNT")]
    last: Option<usize>,
}

impl Run for Logs {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load(&context.global);
        let (global, nothing) = (context.global.clone(), document(None, &[]));
        let found = match context
            .work_or_end(daemon::our_daemon(&global, &settings), &nothing)
            .await
        {
            Ok(found) => found.unwrap_or_default(),
            Err(exit) => return exit,
        };
        if let Some(found) = found.filter(|found| found.report.is_some() && !screen::is_background(found)) {
            let complaint = Complaint {
                message: format!("process {} is a `pegboard serve`, which has no log file", found.pid),
                hint: Some("it writes to the terminal or the service that started it".to_owned()),
                exit: Exit::Unavailable,
            };
            return context.refuse(&complaint, &nothing).await;
        }
        let log = daemon::our_log(&context.global, &settings).unwrap_or_default();
        let mut file = follow::LogTail::open(&log);
        let mut lines = file.read_new();
        if let Some(last) = self.last {
            lines.drain(..lines.len().saturating_sub(last));
        }
        if !self.follow {
            let report = match context.output.is_json() {
                true => Report::json(Exit::Done, &document(Some(&log), &lines)),
                false if lines.is_empty() => {
                    Report::new(Exit::Done).hint(&format!("the daemon has written nothing to {}", log.display()))
                }
                false => lines_report(&context, &lines),
            };
            return context.print(report).await;
        }
        let mut next = lines;
        loop {
            if !next.is_empty() {
                let report = lines_report(&context, &next);
                let printed = context.print(report).await;
                if printed != Exit::Done {
                    return printed;
                }
            }
            next = match context.work(file.wait_for_new()).await {
                Ending::Done(lines) => lines,
                Ending::TimeUp => return context.print(Report::new(Exit::Timeout)).await,
                Ending::Interrupted => return context.print(Report::new(Exit::Interrupted)).await,
            };
        }
    }
}

/// Lines as they are, or in JSON one document for each.
fn lines_report(context: &Context<'_>, lines: &[String]) -> Report {
    let mut report = Report::new(Exit::Done);
    let line = |line: &String| match context.output.is_json() {
        true => json!({"text": line}).to_string() + "\n",
        false => crate::output::clean(line).into_owned() + "\n",
    };
    report.data = lines.iter().map(line).collect();
    report
}

fn document(log: Option<&PathBuf>, lines: &[String]) -> Value {
    json!({"log": log.map(path_text), "lines": lines})
}

fn unusable(why: String) -> Complaint {
    Complaint {
        message: why,
        hint: None,
        exit: Exit::Unavailable,
    }
}
