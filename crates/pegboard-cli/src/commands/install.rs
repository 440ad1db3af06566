//! `pegboard install` and `uninstall`: enters Pegboard in the config files of hosts, and takes it out again.

mod left_over;
mod options;
mod reachable;
pub(super) mod screen;
mod take_over;
mod twice;

use clap::Args;
use pegboard::url::Url;
use pegboard_hosts::{
    hosts::{self, Connection, Folders, HOSTS, Host},
    install::{self, Change, Existing, Installation, Removal},
};
use serde_json::{Value, json};

use super::{
    command::Run,
    context::Context,
    import::{self, Import},
    serving,
};
use crate::{
    cli::{Global, hide_unless_for_files},
    exit::Exit,
    output::{Report, clean},
    settings::{Complaint, Settings},
};
use left_over::LeftOver;
pub(super) use options::Install;
use take_over::{Stop, TakenOver, take_over};
pub(super) use twice::Twice;

/// The warning that a host gets nothing of use yet.
pub(super) const ONLY_DEMO: &str = "there is no config yet, so hosts get only the demo server; `pegboard init` imports the servers that they have, `pegboard add` adds one";

impl Run for Install {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        match arg.get_id().as_str() {
            // It is the default.
            "daemon" => arg,
            "no_daemon" => arg.help("Let each host start the servers itself"),
            _ => hide_unless_for_files(arg),
        }
    }

    /// Enters Pegboard in hosts.
    async fn run(self, mut context: Context<'_>) -> Exit {
        match prepare(&mut context, &self).await {
            Ok((changes, taken)) => {
                let done = Done {
                    changes,
                    skipped: Vec::new(),
                };
                let twice = match taken {
                    Some(_) => Vec::new(),
                    None => twice(&context, &done.changes, &self),
                };
                let mut report = report(&context, &done, taken.as_ref(), &twice, &[], self.dry_run);
                if self.url.is_none() && Settings::load(&context.global).demo_note().is_some() {
                    report = report.warning(ONLY_DEMO);
                }
                if let Some(url) = &self.url
                    && let Some(warning) = reachable::warn(url).await
                {
                    report = report.warning(&warning);
                }
                context.print(report).await
            }
            Err(Stop::Complaint(complaint)) => context.refuse(&complaint, &json!({"hosts": []})).await,
            Err(Stop::Printed(exit)) => exit,
        }
    }
}

/// What was done, and the hosts whose files could not be edited.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) changes: Vec<Change>,
    pub(super) skipped: Vec<(&'static Host, Complaint)>,
}

impl Done {
    /// The hosts that were left out, for programs.
    pub(super) fn skipped_documents(&self) -> Vec<Value> {
        let skipped = self.skipped.iter();
        skipped
            .map(|(host, complaint)| json!({"host": host.id, "error": complaint.message, "hint": complaint.hint}))
            .collect()
    }

    /// What a person must know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let changes = self.changes.iter().flat_map(|change| change.warnings.clone());
        let skipped = self.skipped.iter().map(|(host, complaint)| {
            let hint = complaint.hint.as_ref().map(|hint| format!("; {hint}"));
            format!(
                "{} is left as it is: {}{}",
                host.title,
                complaint.message,
                hint.unwrap_or_default()
            )
        });
        let mut warnings = Vec::new();
        for warning in changes.chain(skipped) {
            // Each host has a warning that is about the program.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }
}

async fn prepare(context: &mut Context<'_>, options: &Install) -> Result<(Vec<Change>, Option<TakenOver>), Stop> {
    let folders = import::folders()?;
    let hosts = hosts_of(&options.hosts)?;
    check(context, options)?;
    let entry = installation(&context.global, options)?;
    // Everything is tried first, so that nothing is half done when the last host cannot be written.
    for host in &hosts {
        install::install(host, &entry, options.project, &folders, None, true)?;
    }
    let taken = match options.take_over {
        true => take_over(context, options, &entry, &folders).await?,
        false => None,
    };
    let mut changes = Vec::new();
    for host in &hosts {
        changes.extend(install::install(
            host,
            &entry,
            options.project,
            &folders,
            taken.as_ref().map(|taken| &taken.plan),
            options.dry_run,
        )?);
    }
    Ok((changes, taken))
}

/// What is entered in the hosts.
pub(super) fn installation(global: &Global, options: &Install) -> Result<Installation, Complaint> {
    let connection = match &options.url {
        Some(url) => Connection::Url(url.clone()),
        None => {
            let mut args = vec!["mcp".to_owned()];
            for config in &global.configs {
                let path = std::path::absolute(config).unwrap_or_else(|_| config.clone());
                args.extend(["-c".to_owned(), path.display().to_string()]);
            }
            args.extend(options.view.iter().flat_map(|view| ["--view".to_owned(), view.clone()]));
            args.extend(uses_daemon(global).then(|| "--daemon".to_owned()));
            Connection::Process {
                program: install::find_program()?.display().to_string(),
                args,
            }
        }
    };
    Ok(Installation {
        name: options.name.clone(),
        connection,
        force: options.force,
        existing: match options.url.is_none() && options.view.is_none() && !options.daemon && global.configs.is_empty()
        {
            true => Existing::Updated,
            false => Existing::Replaced,
        },
    })
}

/// Whether hosts share a daemon. Where systems have none, each host starts the servers itself.
fn uses_daemon(global: &Global) -> bool {
    cfg!(unix) && !global.no_daemon
}

/// Refuses what the host could not connect to.
fn check(context: &Context<'_>, options: &Install) -> Result<(), Complaint> {
    if let Some(url) = &options.url {
        if let Some(view) = &options.view {
            let base = url.trim_end_matches('/');
            let base = base.strip_suffix("/mcp").unwrap_or(base);
            return Err(Complaint {
                message: "`--view` is for a host that starts `pegboard mcp`; a running `pegboard serve` has each view at a URL of its own"
                    .to_owned(),
                hint: Some(format!("`--url {}/mcp/view/{}`", clean(base), clean(view))),
                exit: Exit::Usage,
            });
        }
        let parsed = Url::parse(url).ok();
        let is_usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !parsed.as_ref().is_some_and(is_usable) {
            return Err(Complaint {
                message: format!(
                    "`--url {}` is not the address of a server: it has no `http://` or `https://` and a host",
                    clean(url)
                ),
                hint: Some(
                    "write the address of a running `pegboard serve`, such as http://127.0.0.1:7337/mcp".to_owned(),
                ),
                exit: Exit::Usage,
            });
        }
    }
    match &options.view {
        Some(view) => serving::check_view(&Settings::load(&context.global).loaded.config, view),
        None => Ok(()),
    }
}

/// Take Pegboard out of a host again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard uninstall claude\n  pegboard uninstall --all --restore")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Uninstall {
    /// The host, such as claude, claude-desktop, cursor, vscode or codex
    #[arg(value_name = "HOST", required_unless_present = "all")]
    hosts: Vec<String>,
    /// All hosts that use Pegboard
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    /// Take it out of the host's file of this project
    #[arg(long)]
    project: bool,
    /// The name of the entry
    #[arg(long, default_value = "pegboard")]
    name: String,
    /// Put back the servers that `install --take-over` moved
    #[arg(long)]
    restore: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Uninstall {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Takes Pegboard out of hosts. A host whose file cannot be edited does not keep the others from it.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let taken_out = import::folders().and_then(|folders| Ok((take_out(&self, &folders)?, folders)));
        match taken_out {
            Ok((done, folders)) => {
                let left = match self.dry_run {
                    true => Vec::new(),
                    false => left_over::find(&context, &done.changes, &folders).await,
                };
                let mut report = report(&context, &done, None, &[], &left, self.dry_run);
                if done.changes.is_empty() {
                    report.exit = Exit::ToolError;
                }
                context.print(report).await
            }
            Err(complaint) => context.refuse(&complaint, &json!({"hosts": []})).await,
        }
    }
}

fn take_out(options: &Uninstall, folders: &Folders) -> Result<Done, Complaint> {
    let hosts = match options.all {
        true => hosts::find_present(folders),
        false => hosts_of(&options.hosts)?,
    };
    let is_single = hosts.len() == 1 && !options.all;
    let removal = Removal {
        name: options.name.clone(),
        is_project: options.project,
        restores: options.restore,
        is_dry: options.dry_run,
    };
    let mut done = Done::default();
    for host in hosts {
        match install::uninstall(host, &removal, folders) {
            Ok((changes, failed)) => {
                done.changes.extend(changes);
                done.skipped
                    .extend(failed.into_iter().map(|error| (host, error.into())));
            }
            Err(error) => done.skipped.push((host, error.into())),
        }
    }
    if options.all {
        done.changes.retain(|change| change.effect != install::Effect::Absent);
        if done.changes.is_empty() && done.skipped.is_empty() {
            return Err(Complaint {
                message: "no host uses Pegboard".to_owned(),
                hint: None,
                exit: Exit::ToolError,
            });
        }
    }
    match done.skipped.pop_if(|_| is_single && done.changes.is_empty()) {
        Some((_, complaint)) => Err(complaint),
        None => Ok(done),
    }
}

fn hosts_of(names: &[String]) -> Result<Vec<&'static Host>, Complaint> {
    let find = |name: &String| {
        hosts::find(name).filter(|host| host.is_editable()).ok_or_else(|| {
            let known: Vec<&str> = HOSTS
                .iter()
                .filter(|host| host.is_editable())
                .map(|host| host.id)
                .collect();
            Complaint {
                message: match hosts::find(name) {
                    Some(host) => format!("{} is only imported from", host.title),
                    None => format!("`{name}` is not a known host"),
                },
                hint: Some(format!("the hosts are {}", known.join(", "))),
                exit: Exit::Usage,
            }
        })
    };
    names.iter().map(find).collect()
}

/// The servers of the config that the hosts start themselves too.
fn twice(context: &Context<'_>, changes: &[Change], options: &Install) -> Vec<Twice> {
    // A host that cannot be imported from has nothing twice.
    let plans = options.hosts.iter().filter_map(|host| {
        let from = Import {
            from: vec![host.clone()],
            all: false,
            project: options.project,
            force: false,
            dry_run: true,
            yes: false,
        };
        import::prepare(&context.global, &from).ok()
    });
    plans
        .flat_map(|plan| Twice::find(changes, &plan, false, &context.global, options.project))
        .collect()
}

fn report(
    context: &Context<'_>,
    done: &Done,
    taken: Option<&TakenOver>,
    twice: &[Twice],
    left: &[LeftOver],
    is_dry: bool,
) -> Report {
    let mut report = match context.output.is_json() {
        true => {
            let hosts: Vec<Value> = done.changes.iter().map(screen::document).collect();
            let mut document = json!({"hosts": hosts, "skipped": done.skipped_documents(), "dry_run": is_dry});
            if !twice.is_empty() {
                document["twice"] = Twice::documents(twice).into();
            }
            if !left.is_empty() {
                document["left_over"] = left.iter().map(LeftOver::document).collect();
            }
            if let Some(taken) = taken {
                document["taken_over"] = import::screen::document(&taken.plan, !is_dry);
            }
            Report::json(Exit::Done, &document)
        }
        false => Report::new(Exit::Done),
    };
    if !context.output.is_json() {
        if let Some(taken) = taken.filter(|taken| !taken.is_shown && !taken.plan.rows.is_empty()) {
            report.data = import::screen::text(&taken.plan);
        }
        report.data.push_str(&screen::text(&done.changes, is_dry));
        report.data.push_str(&Twice::text(twice, is_dry, None));
        report.data.push_str(&left_over::text(left));
    }
    let of_import = taken.map(|taken| import::screen::warnings(&taken.plan, !is_dry));
    for warning in of_import.into_iter().flatten().chain(done.warnings()) {
        report = report.warning(&warning);
    }
    report
}
