//! `pegboard remove`, `enable`, `disable` and `rename`.

use pegboard_hosts::{ServersFile, check_server_name};
use serde_json::{Value, json};

use super::{entry::usage, has_daemon, views};
use crate::{
    cli::{Named, Rename},
    commands::context::{Context, empty, with_complaint},
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

/// Removes servers from the file that has them.
pub(in crate::commands) async fn remove(context: Context<'_>, named: Named) -> Exit {
    let mut done = Vec::new();
    let daemon = has_daemon(&context).await;
    let result = each(&context, &named.names, named.dry_run, |name, mut files| {
        let mut file = files.remove(0);
        file.remove(name, None)?;
        if !named.dry_run {
            file.save()?;
        }
        let what = if named.dry_run { "would remove" } else { "removed" };
        let mut removed = of(name, &file, what, files.first());
        // A view that names a server of another file still shows that one. A list that becomes empty would show all.
        if files.is_empty() {
            removed.warnings = views::warnings(ServersFile::all(&context.global.configs)?.iter(), name);
        }
        done.push(removed);
        Ok(())
    });
    finish(context, done, result, daemon && !named.dry_run).await
}

/// Enables or disables servers in the file that has them.
pub(in crate::commands) async fn switch(context: Context<'_>, named: Named, on: bool) -> Exit {
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
        done.push(of(name, &files[0], what, None));
        Ok(())
    });
    finish(context, done, result, daemon && !named.dry_run).await
}

/// Gives a server another name. Its settings stay where they are, with their comments.
pub(in crate::commands) async fn rename(context: Context<'_>, rename: Rename) -> Exit {
    let mut done = Vec::new();
    let daemon = has_daemon(&context).await;
    let Rename { old, new, dry_run } = &rename;
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
        let mut renamed = of(name, file, what, None);
        renamed.to = Some(new.clone());
        let others = ServersFile::all(&context.global.configs)?;
        let others = others.iter().filter(|other| other.path() != file.path());
        renamed.warnings = views::warnings(others, name);
        done.push(renamed);
        Ok(())
    });
    finish(context, done, result, daemon && !rename.dry_run).await
}

fn of(name: &str, file: &ServersFile, what: &'static str, also: Option<&ServersFile>) -> Done {
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
            return Err(absent(context, name));
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
pub(super) fn absent(context: &Context<'_>, name: &str) -> Complaint {
    let settings = Settings::load(&context.global);
    let config = &settings.loaded.config;
    let mut names: Vec<&str> = config.servers.keys().map(pegboard::ServerName::as_str).collect();
    names.extend(settings.broken());
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
