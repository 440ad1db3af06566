//! `pegboard import`: copies the servers of other programs' config files into ours. Nothing is started.

pub(super) mod inputs;
pub(super) mod plan;
pub(super) mod screen;
pub(super) mod sources;
pub(super) mod write;

use serde_json::{Value, json};

use super::{
    agreement,
    context::{Context, Ending, interrupted, time_up},
};
use crate::{
    cli::Import,
    exit::Exit,
    hosts::Folders,
    output::Report,
    settings::{self, Complaint},
};
use plan::Plan;

/// Shows what is found, asks, and writes it.
pub(super) async fn run(mut context: Context<'_>, options: Import) -> Exit {
    let mut plan = match prepare(&context, &options) {
        Ok(plan) => plan,
        Err(complaint) => return context.refuse(&complaint, &empty()).await,
    };
    let is_shown = !options.dry_run && !options.yes && plan.has_work();
    if is_shown && let Err(exit) = agree(&mut context, &mut plan).await {
        return exit;
    }
    plan.settle_inputs();
    if !options.dry_run
        && let Err(complaint) = write::write(&plan)
    {
        return context.refuse(&complaint, &screen::document(&plan, false)).await;
    }
    let is_written = !options.dry_run && plan.has_work();
    let mut report = match context.output.is_json() {
        true => Report::json(Exit::Done, &screen::document(&plan, is_written)),
        false => Report::new(Exit::Done),
    };
    if !context.output.is_json() {
        if !is_shown {
            report.data = screen::text(&plan);
        }
        report.data.push_str(&screen::ending(&plan, is_written));
    }
    for warning in screen::warnings(&plan, is_written) {
        report = report.warning(&warning);
    }
    context.print(report).await
}

/// What the options ask for.
pub(super) fn prepare(context: &Context<'_>, options: &Import) -> Result<Plan, Complaint> {
    let folders = folders()?;
    let file = write::target(&context.global, options.project)?;
    let sources = sources::find(&options.from, options.project, &folders)?;
    let taken = write::servers_of(&file)?;
    let found = sources::read(&sources, &folders, options.all);
    Ok(Plan::new(file, taken, found, options.force))
}

pub(super) fn folders() -> Result<Folders, Complaint> {
    Folders::of_process(settings::here()).ok_or_else(|| Complaint {
        message: "there is no home folder to look in".to_owned(),
        hint: Some("set HOME".to_owned()),
        exit: Exit::Usage,
    })
}

/// Shows the plan at the terminal and asks.
async fn agree(context: &mut Context<'_>, plan: &mut Plan) -> Result<(), Exit> {
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
        true
    };
    match context.work(asked).await {
        Ending::Done(true) => Ok(()),
        Ending::Done(false) => {
            let complaint = Complaint {
                message: "you did not say yes, so nothing is written".to_owned(),
                hint: None,
                exit: Exit::Refused,
            };
            Err(context.refuse(&complaint, &empty()).await)
        }
        Ending::TimeUp => Err(context.print(time_up(&output, &empty())).await),
        Ending::Interrupted => Err(context.print(interrupted(&output, &empty())).await),
    }
}

fn empty() -> Value {
    json!({"file": null, "written": false, "servers": []})
}
