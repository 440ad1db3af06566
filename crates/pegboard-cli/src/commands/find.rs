//! `pegboard find`: looks for servers in a registry.

mod adding;
mod listed;
mod options;

use std::collections::BTreeSet;

use pegboard_hosts::shorten_path;
use serde_json::{Value, json};

use super::{
    agreement::{agrees, can_ask},
    command::Run,
    context::{Context, Ending, interruption_report, time_up},
};
use crate::{
    exit::Exit,
    output::Report,
    registry::{OFFICIAL, Registry, RegistryEntry, RegistryError, Status},
    settings::Complaint,
};

use adding::Plan;
pub(super) use options::Find;

/// The most pages that are read for one search.
const MAX_PAGES: usize = 20;

/// What a search found.
#[derive(Debug, Default)]
struct SearchResults {
    entries: Vec<RegistryEntry>,
    /// Whether the registry has more that were not read or are not shown.
    has_more: bool,
    /// How many entries could not be read.
    unreadable: usize,
}

impl Run for Find {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let address = self
            .registry
            .clone()
            .or_else(|| std::env::var("PEGBOARD_REGISTRY").ok().filter(|url| !url.is_empty()))
            .unwrap_or_else(|| OFFICIAL.to_owned());
        let nothing = document(&address, &SearchResults::default());
        let registry = match Registry::at(&address) {
            Ok(registry) => registry,
            Err(error) => return context.refuse(&complaint(&error), &nothing).await,
        };
        context.output.show_waiting(&format!("asking {}", registry.address()));
        let found = match context.work_or_end(search(&registry, &self), &nothing).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return context.refuse(&complaint(&error), &nothing).await,
            Err(exit) => return exit,
        };
        if self.add && !found.entries.is_empty() {
            return add(context, &self, &registry, &found).await;
        }
        let mut report = report(&context, &registry, &found);
        if self.add {
            report.exit = Exit::Usage;
        }
        context.print(report).await
    }
}

/// Adds the server that is meant, after a question.
async fn add(mut context: Context<'_>, options: &Find, registry: &Registry, found: &SearchResults) -> Exit {
    let Some(entry) = adding::find_meant(&found.entries, &options.words) else {
        let mut report = report(&context, registry, found);
        report.exit = Exit::Usage;
        let hint = "write its whole name, such as `pegboard find --add io.github.acme/git`";
        return context
            .print(report.error("several servers are found, so none was added", Some(hint)))
            .await;
    };
    let nothing = document(&registry.address(), found);
    let mut plan = match Plan::new(entry, options, &context.global) {
        Ok(plan) => plan,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    if plan.is_known {
        let report = match context.output.is_json() {
            true => {
                let mut document = nothing;
                document["added"] = plan.json(false);
                Report::json(Exit::Done, &document)
            }
            false => {
                let mut report = Report::new(Exit::Done);
                report.data = format!("there already as {} in {}\n", plan.name, shorten_path(plan.path()));
                report
            }
        };
        return context.print(report).await;
    }
    if !options.dry_run && !options.yes {
        if !can_ask() || context.output.is_json() {
            let complaint = Complaint {
                message: "nothing was added, because there is nobody to ask".to_owned(),
                hint: Some("`--yes` adds it without a question, `--dry-run` shows what would be added".to_owned()),
                exit: Exit::Refused,
            };
            return context.refuse(&complaint, &nothing).await;
        }
        context.output.say(&plan.describe(entry));
        let output = context.output.clone();
        match context.work(agrees(&output, "Add it?")).await {
            Ending::Done(true) => {}
            Ending::Done(false) => return context.print(Report::new(Exit::Refused)).await,
            Ending::TimeUp => return context.print(time_up(&output, &nothing)).await,
            Ending::Interrupted => return context.print(interruption_report(&output, &nothing)).await,
        }
    }
    if !options.dry_run
        && let Err(complaint) = plan.save()
    {
        return context.refuse(&complaint, &nothing).await;
    }
    let report = if context.output.is_json() {
        let mut document = nothing;
        document["added"] = plan.json(!options.dry_run);
        Report::json(Exit::Done, &document)
    } else {
        let mut report = Report::new(Exit::Done);
        let word = if options.dry_run { "would add" } else { "added" };
        report.data = format!("{word} {}", plan.describe(entry));
        report
    };
    context.print(report).await
}

/// Reads pages until enough servers were found. The registry looks for the first word only.
async fn search(registry: &Registry, options: &Find) -> Result<SearchResults, RegistryError> {
    let words: Vec<String> = options
        .words
        .iter()
        .flat_map(|words| words.split_whitespace())
        .map(str::to_lowercase)
        .collect();
    let first = words.first().map_or("", String::as_str);
    let (mut found, mut known) = (SearchResults::default(), BTreeSet::new());
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = registry.search(first, cursor.as_deref()).await?;
        found.unreadable += page.unreadable;
        for entry in page.entries {
            let is_shown = options.all || entry.status == Status::Active;
            let is_meant = words.iter().skip(1).all(|word| entry.mentions(word));
            if is_shown && is_meant && known.insert(entry.name.clone()) {
                found.entries.push(entry);
            }
        }
        // A registry that names the same page again would be asked forever.
        let is_new = page.next.is_some() && page.next != cursor;
        found.has_more = is_new || found.entries.len() > options.limit;
        if !is_new || found.entries.len() > options.limit {
            break;
        }
        cursor = page.next;
    }
    found.entries.truncate(options.limit.max(1));
    Ok(found)
}

fn report(context: &Context<'_>, registry: &Registry, found: &SearchResults) -> Report {
    if context.output.is_json() {
        return Report::json(Exit::Done, &document(&registry.address(), found));
    }
    let mut report = Report::new(Exit::Done);
    report.data = listed::text(&found.entries);
    if found.unreadable > 0 {
        report = report.warning(&format!("{} entries could not be read", found.unreadable));
    }
    match found.entries.as_slice() {
        [] => report.hint(&format!(
            "{} has no such server; try one word of its name",
            registry.address()
        )),
        _ if found.has_more => report.hint("there are more; add a word, or show more with `--limit`"),
        _ => report,
    }
}

fn document(registry: &str, found: &SearchResults) -> Value {
    let servers: Vec<Value> = found.entries.iter().map(listed::json).collect();
    json!({"registry": registry, "servers": servers, "more": found.has_more, "unreadable": found.unreadable,
           "added": null})
}

fn complaint(error: &RegistryError) -> Complaint {
    let (exit, hint) = match error {
        RegistryError::Address(_) => (
            Exit::Usage,
            "`--registry`, or the variable PEGBOARD_REGISTRY, takes an https address",
        ),
        RegistryError::Failed(_) => (
            Exit::Unavailable,
            "try again later, or name another registry with `--registry URL`",
        ),
    };
    Complaint {
        message: error.to_string(),
        hint: Some(hint.to_owned()),
        exit,
    }
}
