//! `pegboard remove`, `enable`, `disable` and `rename`.

use clap::Args;
use pegboard_hosts::{ServersFile, check_server_name};
use serde_json::{Value, json};

use super::{bundle, entry::usage, has_daemon, views};
use crate::{
    commands::{
        command::Run,
        context::{Context, empty, with_complaint},
    },
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// What was done to a server.
struct Done {
    name: String,
    file: String,
    place: String,
    what: &'static str,
    /// Its new name.
    to: Option<String>,
    /// Another file that has a server of that name, which counts now.
    also: Option<String>,
    warnings: Vec<String>,
}

/// The servers that a command changes.
#[derive(Debug, Args)]
struct Named {
    /// The servers
    #[arg(id = "server", value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Remove servers from the config file
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard remove time linear")]
pub(crate) struct Remove {
    #[command(flatten)]
    named: Named,
}

impl Run for Remove {
    /// Removes servers from the file that has them.
    async fn run(self, context: Context<'_>) -> Exit {
        let mut done = Vec::new();
        let daemon = has_daemon(&context).await;
        let result = each(&context, &self.named.names, self.named.dry_run, |name, mut files| {
            let mut file = files.remove(0);
            let entry = file.entry(name);
            file.remove(name, None)?;
            if !self.named.dry_run {
                file.save()?;
                if let Some(entry) = &entry {
                    bundle::forget(entry, &context.global.configs);
                }
            }
            let what = if self.named.dry_run { "would remove" } else { "removed" };
            let mut removed = report(name, &file, what, files.first());
            // A view that names a server of another file still shows that one. A list that becomes empty would show all.
            if files.is_empty() {
                removed.warnings = views::warnings(ServersFile::all(&context.global.configs)?.iter(), name);
            }
            done.push(removed);
            Ok(())
        });
        finish(context, done, result, daemon && !self.named.dry_run).await
    }
}

/// Use servers that were disabled
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard enable time")]
pub(crate) struct Enable {
    #[command(flatten)]
    named: Named,
}

impl Run for Enable {
    async fn run(self, context: Context<'_>) -> Exit {
        switch(context, self.named, true).await
    }
}

/// Keep servers in the config file without using them
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard disable time")]
pub(crate) struct Disable {
    #[command(flatten)]
    named: Named,
}

impl Run for Disable {
    async fn run(self, context: Context<'_>) -> Exit {
        switch(context, self.named, false).await
    }
}

/// Enables or disables servers in the file that has them.
async fn switch(context: Context<'_>, named: Named, on: bool) -> Exit {
    let mut done = Vec::new();
    let daemon = has_daemon(&context).await;
    let result = each(&context, &named.names, named.dry_run, |name, mut files| {
        let file = &mut files[0];
        let entry = file.entry(name).unwrap_or_default();
        // Files of other programs may say the opposite.
        let is_negated = entry.get("disabled").is_some();
        // A server that says both cannot be used.
        let is_double = is_negated && entry.get("enabled").is_some();
        let was_on = match (entry.get("enabled"), entry.get("disabled")) {
            (Some(enabled), _) => enabled != &Value::Bool(false),
            (None, Some(disabled)) => disabled != &Value::Bool(true),
            (None, None) => true,
        };
        let what = if was_on == on && !is_double {
            if on {
                "is enabled already:"
            } else {
                "is disabled already:"
            }
        } else {
            if is_double {
                file.remove(name, Some("enabled"))?;
            }
            if is_negated {
                file.set(name, "disabled", &json!(!on))?;
            } else if on {
                file.remove(name, Some("enabled"))?;
            } else {
                file.set(name, "enabled", &json!(false))?;
            }
            if !named.dry_run {
                file.save()?;
            }
            match (named.dry_run, on) {
                (true, true) => "would enable",
                (true, false) => "would disable",
                (false, true) => "enabled",
                (false, false) => "disabled",
            }
        };
        done.push(report(name, &files[0], what, None));
        Ok(())
    });
    finish(context, done, result, daemon && !named.dry_run).await
}

/// Give a server of the config file another name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard rename time clock")]
pub(crate) struct Rename {
    /// The server
    #[arg(id = "server", value_name = "OLD")]
    old: String,
    /// Its new name
    new: String,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Rename {
    /// Gives a server another name. Its settings stay where they are, with their comments.
    async fn run(self, context: Context<'_>) -> Exit {
        let mut done = Vec::new();
        let daemon = has_daemon(&context).await;
        let Self { old, new, dry_run } = &self;
        let result = each(&context, std::slice::from_ref(old), *dry_run, |name, mut files| {
            check_server_name(new)?;
            if let Some(other) = ServersFile::with(&context.global.configs, new)?.first() {
                return Err(usage(
                    &format!("{} has a server `{new}` already", other.shown_path()),
                    "",
                ));
            }
            let file = &mut files[0];
            file.rename(name, new)?;
            views::rename(file, name, new)?;
            if !dry_run {
                file.save()?;
            }
            let what = if *dry_run { "would rename" } else { "renamed" };
            let mut renamed = report(name, file, what, None);
            renamed.to = Some(new.clone());
            let others = ServersFile::all(&context.global.configs)?;
            let others = others.iter().filter(|other| other.path() != file.path());
            renamed.warnings = views::warnings(others, name);
            done.push(renamed);
            Ok(())
        });
        finish(context, done, result, daemon && !self.dry_run).await
    }
}

fn report(name: &str, file: &ServersFile, what: &'static str, also: Option<&ServersFile>) -> Done {
    Done {
        name: name.to_owned(),
        file: file.path().display().to_string(),
        place: file.shown_path(),
        what,
        to: None,
        also: also.map(ServersFile::shown_path),
        warnings: Vec::new(),
    }
}

/// Does something to each server. All names are looked up first, so that a misspelt one leaves everything as it is.
fn each(
    context: &Context<'_>,
    names: &[String],
    is_dry: bool,
    mut change: impl FnMut(&str, Vec<ServersFile>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let _locks = match is_dry {
        true => Vec::new(),
        false => ServersFile::lock_all(&context.global.configs)?,
    };
    for name in names {
        if ServersFile::with(&context.global.configs, name)?.is_empty() {
            return Err(absent_server_complaint(context, name));
        }
    }
    for name in names {
        let files = ServersFile::with(&context.global.configs, name)?;
        if !files.is_empty() {
            change(name, files)?;
        }
    }
    Ok(())
}

/// The complaint about a server that no file has.
pub(in crate::commands) fn absent_server_complaint(context: &Context<'_>, name: &str) -> Complaint {
    let settings = Settings::load(&context.global);
    let config = &settings.loaded.config;
    let mut names: Vec<&str> = config.servers.keys().map(pegboard::ServerName::as_str).collect();
    names.extend(settings.misconfigured_names());
    let hint = match settings.demo_note() {
        Some(_) => "there is no config file yet; `pegboard add NAME -- COMMAND…` makes one".to_owned(),
        None if names.contains(&name) => {
            "it is written in a way that cannot be edited; change the file by hand".to_owned()
        }
        None if names.is_empty() => "no server is configured".to_owned(),
        None => format!("the servers are {}", names.join(", ")),
    };
    usage(&format!("there is no server `{name}` in the config files"), &hint)
}

async fn finish(mut context: Context<'_>, done: Vec<Done>, result: Result<(), Complaint>, daemon: bool) -> Exit {
    let exit = result.as_ref().err().map_or(Exit::Done, |complaint| complaint.exit);
    let mut report = if context.output.is_json() {
        let changes: Vec<Value> = done
            .iter()
            .map(|one| json!({"name": one.name, "file": one.file, "what": one.what.trim_end_matches(':'), "to": one.to, "also_in": one.also, "warnings": one.warnings}))
            .collect();
        let error = result.as_ref().err().map(super::error);
        empty(
            &context.output,
            exit,
            &json!({"changes": changes, "daemon": daemon, "error": error}),
        )
    } else {
        Report::new(exit)
    };
    if !context.output.is_json() {
        for one in &done {
            let line = if one.what.starts_with("is ") {
                format!("{} {} {}\n", one.name, one.what, one.place)
            } else {
                let to = one.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
                let preposition = if one.what.ends_with("remove") || one.what == "removed" {
                    "from"
                } else {
                    "in"
                };
                format!("{} {}{to} {preposition} {}\n", one.what, one.name, one.place)
            };
            report.data.push_str(&line);
            for warning in &one.warnings {
                report = report.warning(warning);
            }
            if let Some(also) = &one.also {
                report = report.warning(&format!("{also} has a server `{}` too, which is used now", one.name));
            }
        }
        if daemon && !done.is_empty() {
            report
                .messages
                .push_str("The daemon that runs reads the changed file by itself.\n");
        }
    }
    if let Err(complaint) = &result {
        report = with_complaint(report, complaint);
    }
    context.print(report).await
}
