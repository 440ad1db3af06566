//! `pegboard import`: copies the servers of other programs' config files into ours. Nothing is started.

pub(super) mod inputs;
pub(super) mod screen;

use std::sync::Arc;

use clap::Args;
use pegboard_base::secret::names_secret;
use pegboard_hosts::{
    hosts::Folders,
    import::{ImportOptions, Plan, save},
};
use serde_json::{Value, json};

use super::{
    agreement,
    command::Run,
    context::{Context, Ending, interruption_report, time_up},
};
use crate::{
    cli::{Global, hide_unless_for_files},
    exit::Exit,
    output::Report,
    settings::{self, Complaint},
};

/// Copy the servers of other programs into the config
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard import --dry-run\n  pegboard import claude cursor\n  pegboard import --yes mcp.json"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Import {
    /// Hosts such as claude or cursor, or config files; without any, all
    /// hosts that are found
    #[arg(id = "hosts", value_name = "HOST|FILE")]
    pub(super) from: Vec<String>,
    /// Also what a host uses only in other projects
    #[arg(long)]
    pub(super) all: bool,
    /// Read the hosts' files of this project, and write to its config
    #[arg(long)]
    pub(super) project: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(super) force: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
}

impl Run for Import {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Shows what is found, asks, and writes it.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let (is_dry, is_project) = (self.dry_run, self.project);
        let is_agreed = self.yes;
        let global = context.global.clone();
        let mut plan = match run_blocking(&mut context, move || prepare(&global, &self)).await {
            Ok(Ok(plan)) => plan,
            Ok(Err(complaint)) => return context.refuse(&complaint, &empty()).await,
            Err(exit) => return exit,
        };
        let is_shown = !is_dry && !is_agreed && plan.has_work();
        if is_shown && let Err(exit) = agree(&mut context, &mut plan, is_project).await {
            return exit;
        }
        plan.settle_inputs();
        let plan = Arc::new(plan);
        let is_written = !is_dry && plan.has_work();
        if is_written {
            let plan_of_edit = Arc::clone(&plan);
            let done = match run_blocking(&mut context, move || plan_of_edit.edit()).await {
                Ok(edited) => edited.and_then(save),
                Err(exit) => return exit,
            };
            if let Err(error) = done {
                return context.refuse(&error.into(), &screen::document(&plan, false)).await;
            }
        }
        let mut report = match context.output.is_json() {
            true => Report::json(Exit::Done, &screen::document(&plan, is_written)),
            false => Report::new(Exit::Done),
        };
        if !context.output.is_json() {
            if !is_shown {
                report.data = screen::text(&plan);
            }
            report.data.push_str(&screen::render_ending(&plan, is_written));
        }
        for warning in screen::warnings(&plan, is_written) {
            report = report.warning(&warning);
        }
        context.print(report).await
    }
}

/// Runs what reads and computes without waiting, which a signal and the deadline end: its result is dropped then.
async fn run_blocking<T: Send + 'static>(
    context: &mut Context<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exit> {
    let output = context.output.clone();
    match context.work(tokio::task::spawn_blocking(work)).await {
        Ending::Done(Ok(done)) if !context.is_late() => Ok(done),
        Ending::Done(Ok(_)) | Ending::TimeUp => Err(context.print(time_up(&output, &empty())).await),
        // A thread that ends without a result has panicked, and said so.
        Ending::Done(Err(_)) => Err(Exit::Unavailable),
        Ending::Interrupted => Err(context.print(interruption_report(&output, &empty())).await),
    }
}

/// What the options ask for.
pub(super) fn prepare(global: &Global, options: &Import) -> Result<Plan, Complaint> {
    let options = ImportOptions {
        from: &options.from,
        is_project: options.project,
        all: options.all,
        force: options.force,
    };
    let mut plan = Plan::make(&global.configs, &options, &folders()?)?;
    if !options.is_project {
        take_stored_secrets(&mut plan);
    }
    Ok(plan)
}

/// Has the servers take from the user's secrets what their hosts take from variables that are not set here.
fn take_stored_secrets(plan: &mut Plan) {
    let unset = plan.unset_variables();
    let mut secrets = unset.keys().filter(|variable| names_secret(variable)).peekable();
    let Some(store) = secrets.peek().and_then(|_| settings::secret_store()) else {
        return;
    };
    for variable in secrets.filter(|variable| store.has(variable)) {
        plan.take_from_secret(variable);
    }
}

pub(super) fn folders() -> Result<Folders, Complaint> {
    Folders::for_process(settings::here()).ok_or_else(|| Complaint {
        message: "there is no home folder to look in".to_owned(),
        hint: Some("set HOME".to_owned()),
        exit: Exit::Usage,
    })
}

/// Shows the plan at the terminal and asks.
async fn agree(context: &mut Context<'_>, plan: &mut Plan, is_project: bool) -> Result<(), Exit> {
    let output = context.output.clone();
    output.say(&screen::text(plan));
    if !agreement::can_ask() {
        let complaint = Complaint {
            message: "a person must agree, and there is no terminal to ask at".to_owned(),
            hint: Some("`pegboard import --yes` imports what is listed, `--dry-run` only lists it".to_owned()),
            exit: Exit::Refused,
        };
        return Err(context.refuse(&complaint, &screen::document(plan, false)).await);
    }
    let question = format!("Write {} to {}?", screen::count(plan), plan.file.display());
    let asked = async {
        if !agreement::agrees(&output, &question).await {
            return false;
        }
        inputs::ask(plan, &output).await;
        if !is_project {
            inputs::ask_for_secrets(plan, &output).await;
        }
        true
    };
    match context.work(asked).await {
        Ending::Done(true) => Ok(()),
        Ending::Done(false) => {
            let complaint = Complaint {
                message: "not confirmed, so nothing is written".to_owned(),
                hint: None,
                exit: Exit::Refused,
            };
            Err(context.refuse(&complaint, &empty()).await)
        }
        Ending::TimeUp => Err(context.print(time_up(&output, &empty())).await),
        Ending::Interrupted => Err(context.print(interruption_report(&output, &empty())).await),
    }
}

fn empty() -> Value {
    json!({"file": null, "written": false, "servers": []})
}
