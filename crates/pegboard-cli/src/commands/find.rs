//! `pegboard find`: looks for servers in a registry.

mod listed;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::context::{Context, Ending, interrupted, time_up};
use crate::{
    cli::Find,
    exit::Exit,
    output::Report,
    registry::{Entry, OFFICIAL, Registry, RegistryError, Status},
    settings::Complaint,
};

/// The most pages that are read for one search.
const MAX_PAGES: usize = 20;

/// What a search found.
#[derive(Debug, Default)]
struct Found {
    entries: Vec<Entry>,
    /// Whether the registry has more that were not read or are not shown.
    has_more: bool,
    /// How many entries could not be read.
    unreadable: usize,
}

pub(super) async fn run(mut context: Context<'_>, options: Find) -> Exit {
    let address = options
        .registry
        .clone()
        .or_else(|| std::env::var("PEGBOARD_REGISTRY").ok().filter(|url| !url.is_empty()))
        .unwrap_or_else(|| OFFICIAL.to_owned());
    let nothing = document(&address, &Found::default());
    let registry = match Registry::at(&address) {
        Ok(registry) => registry,
        Err(error) => return context.refuse(&complaint(&error), &nothing).await,
    };
    context.output.waiting(&format!("asking {}", registry.address()));
    let found = match context.work(search(&registry, &options)).await {
        Ending::Done(Ok(found)) => found,
        Ending::Done(Err(error)) => return context.refuse(&complaint(&error), &nothing).await,
        Ending::TimeUp => {
            let report = time_up(&context.output, &nothing);
            return context.print(report).await;
        }
        Ending::Interrupted => {
            let report = interrupted(&context.output, &nothing);
            return context.print(report).await;
        }
    };
    let report = report(&context, &registry, &found);
    context.print(report).await
}

/// Reads pages until enough servers were found. The registry looks for the first word only.
async fn search(registry: &Registry, options: &Find) -> Result<Found, RegistryError> {
    let words: Vec<String> = options
        .words
        .iter()
        .flat_map(|words| words.split_whitespace())
        .map(str::to_lowercase)
        .collect();
    let first = words.first().map_or("", String::as_str);
    let (mut found, mut known) = (Found::default(), BTreeSet::new());
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

fn report(context: &Context<'_>, registry: &Registry, found: &Found) -> Report {
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

fn document(registry: &str, found: &Found) -> Value {
    let servers: Vec<Value> = found.entries.iter().map(listed::json).collect();
    json!({"registry": registry, "servers": servers, "more": found.has_more, "unreadable": found.unreadable})
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
