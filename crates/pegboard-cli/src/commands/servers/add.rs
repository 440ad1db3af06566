//! `pegboard add` and `pegboard add-json`.

use std::path::Path;

use pegboard_base::secret::names_secret;
use pegboard_hosts::{
    Checked, ServersFile, check_server_name, import::find_unset, shorten_path, take_from_secret, user_file::restrict,
};
use serde_json::{Value, json};

use super::{
    bundle,
    entry::{self, Extras, usage},
    has_daemon,
    options::{Add, AddJson, Writing},
    screen,
};
use crate::{
    commands::{
        command::Run,
        context::{Context, Ending, empty, interruption_report, time_up, with_complaint},
        plain_secrets,
        secret_prompt::{self, Need},
        stdin::{self, Input},
        tools::Tools,
    },
    exit::Exit,
    output::{Output, Report, clean},
    settings::Complaint,
};

/// The most bytes of settings that are read from a file or from stdin.
const MOST: u64 = 1 << 20;

impl Run for Add {
    const OWNS_SERVER_OPTIONS: bool = true;

    fn adjust(arg: clap::Arg) -> clap::Arg {
        let arg = match arg.get_id().as_str() {
            "headers" => arg
                .short('H')
                .help("Send this header, as 'Name: value'; may be repeated"),
            "env" => arg.short('e').help("Set this variable of the process; may be repeated"),
            "cwds" => arg.help("The working folder of the process"),
            _ => return arg,
        };
        arg.hide(false)
    }

    /// Adds a server.
    async fn run(self, mut context: Context<'_>) -> Exit {
        if let Some(path) = bundle::path(&self) {
            let unpacked = match bundle::unpack(&mut context, &self, path).await {
                Ok(unpacked) => unpacked,
                Err(report) => return context.print(report).await,
            };
            let report = write_and_report(&context, &unpacked.name, &unpacked.entry, &self.writing, self.check).await;
            unpacked.clean_up(report.exit == Exit::Done, &context.global.configs);
            let name = unpacked.name.clone();
            // Its lock is not held while servers are started.
            drop(unpacked);
            return finish(context, name, report, self.check).await;
        }
        let extras = Extras::new(&context.global);
        let checked = bundle::refuse_options(&self).and_then(|()| refuse_runner(&self));
        let entry = match checked.and_then(|()| entry::from_arguments(&self, &extras)) {
            Ok(entry) => entry,
            Err(complaint) => {
                return context
                    .refuse(&complaint, &super::refusal_document(&self.name, &complaint))
                    .await;
            }
        };
        let entry = match ask_for_secrets(&mut context, &self.name, entry, &self.writing).await {
            Ok(entry) => entry,
            Err(exit) => return exit,
        };
        let report = write_and_report(&context, &self.name, &entry, &self.writing, self.check).await;
        finish(context, self.name, report, self.check).await
    }
}

/// Programs that run others. One in the place of a server's name was meant to be the command.
const RUNNERS: [&str; 8] = ["uvx", "npx", "bunx", "pnpx", "docker", "node", "python", "python3"];

/// Refuses `add uvx PACKAGE`, which would add a server with the name `uvx`.
fn refuse_runner(options: &Add) -> Result<(), Complaint> {
    match &options.target {
        Some(package) if options.command.is_empty() && RUNNERS.contains(&options.name.as_str()) => Err(Complaint {
            message: format!(
                "`{}` is the program that runs the server, and a server needs a name",
                options.name
            ),
            hint: Some(super::advice::add_line(
                "NAME",
                &[options.name.as_str(), package.as_str()],
            )),
            exit: Exit::Usage,
        }),
        _ => Ok(()),
    }
}

/// Asks for the secrets that a new server takes from variables which are not set here, and has it refer to them. A project's file is for others too,
/// who have other secrets.
async fn ask_for_secrets(
    context: &mut Context<'_>,
    name: &str,
    mut entry: Value,
    writing: &Writing,
) -> Result<Value, Exit> {
    let output = context.output.clone();
    if writing.dry_run || writing.project || !secret_prompt::can_ask(&output) {
        return Ok(entry);
    }
    let mut unset = entry.as_object().map(find_unset).unwrap_or_default();
    unset.retain(|variable| names_secret(variable));
    for variable in &unset {
        let servers = [name.to_owned()];
        let need = Need {
            name: variable,
            servers: &servers,
            note: None,
        };
        let asking = secret_prompt::ask_and_store(&output, &need);
        let is_stored = context.work_or_end(asking, &json!({"name": name})).await?;
        if let Some(settings) = entry.as_object_mut().filter(|_| is_stored) {
            take_from_secret(settings, variable);
        }
    }
    Ok(entry)
}

/// Prints the report, and lists the tools of the new server if that was asked for.
async fn finish(mut context: Context<'_>, name: String, report: Report, is_checked: bool) -> Exit {
    if !is_checked || report.exit != Exit::Done {
        return context.print(report).await;
    }
    // What was written is said on stderr, so that stdout has one document: the list of its tools.
    if !context.output.is_json() {
        context.output.say(&report.data);
    }
    context.output.say(&report.messages);
    context.global.servers.push(name.clone());
    let output = context.output.clone();
    let all = Tools {
        pattern: None,
        provider: None,
        search: None,
        cost: false,
        schema: false,
        signatures: false,
    };
    let exit = all.run(context).await;
    if exit != Exit::Done {
        output.note(&format!(
            "`{name}` stays in the config; `pegboard remove {name}` takes it out again"
        ));
    }
    exit
}

impl Run for AddJson {
    /// Adds a server whose settings are given as JSON.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"name": self.name});
        let read = match self.json.strip_prefix('@') {
            Some(file) => match stdin::read_file(&mut context, Path::new(file), MOST).await {
                Ending::Done(read) => {
                    read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| format!("{file} is not UTF-8")))
                }
                Ending::TimeUp => return context.print(time_up(&context.output, &nothing)).await,
                Ending::Interrupted => return context.print(interruption_report(&context.output, &nothing)).await,
            },
            None if self.json == "-" => match stdin::read(&mut context, MOST, &nothing).await {
                Input::Read(bytes) => String::from_utf8(bytes).map_err(|_| "stdin is not UTF-8".to_owned()),
                Input::Unreadable(problem) => Err(problem),
                Input::Ended(report) => return context.print(report).await,
            },
            None => Ok(self.json.clone()),
        };
        let text = match read {
            Ok(text) => text,
            Err(problem) => {
                let complaint = usage(&problem, "");
                return context
                    .refuse(&complaint, &super::refusal_document(&self.name, &complaint))
                    .await;
            }
        };
        let report = match entry::from_json(&self.name, &text) {
            Ok(entry) => write_and_report(&context, &self.name, &entry, &self.writing, self.check).await,
            Err(complaint) => report_refusal(&context.output, &self.name, &complaint),
        };
        finish(context, self.name, report, self.check).await
    }
}

/// Writes the server to its file, and reports it.
async fn write_and_report(
    context: &Context<'_>,
    name: &str,
    entry: &Value,
    writing: &Writing,
    is_checked: bool,
) -> Report {
    let daemon = !writing.dry_run && has_daemon(context).await;
    match write(context, name, entry, writing) {
        Ok(mut added) => {
            added.checked.warnings.extend(in_clear(entry));
            added.report(&context.output, name, writing, daemon, is_checked)
        }
        Err(complaint) => report_refusal(&context.output, name, &complaint),
    }
}

fn report_refusal(output: &Output, name: &str, complaint: &Complaint) -> Report {
    with_complaint(
        empty(output, complaint.exit, &super::refusal_document(name, complaint)),
        complaint,
    )
}

/// Warnings about secrets that the file would hold as plain text. The library warns of those in `args`.
fn in_clear(entry: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for table in ["env", "headers"] {
        for (key, value) in entry[table].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if plain_secrets::is_secret(key, value) {
                warnings.push(format!(
                    "the secret in `{table}.{key}` is in the file as plain text; `{}` stores it, and `{}` reads it",
                    plain_secrets::command(key),
                    plain_secrets::from_secret(key, value),
                ));
            }
        }
    }
    warnings
}

struct Added {
    file: String,
    checked: Checked,
    replaced: bool,
    needs_approval: bool,
}

fn write(context: &Context<'_>, name: &str, entry: &Value, writing: &Writing) -> Result<Added, Complaint> {
    check_server_name(name)?;
    let _lock = match writing.dry_run {
        true => None,
        false => Some(ServersFile::lock_to_add(&context.global.configs, writing.project)?),
    };
    let mut file = ServersFile::to_add(&context.global.configs, writing.project)?;
    let replaced = file.entry(name).is_some();
    if replaced && !writing.force {
        return Err(usage(
            &format!("{} has a server `{name}` already", file.shown_path()),
            &format!("`--force` replaces it; `pegboard get {name}` shows it"),
        ));
    }
    if !replaced {
        let others = ServersFile::with(&context.global.configs, name)?;
        if let Some(other) = others.first().filter(|_| !writing.force) {
            return Err(usage(
                &format!(
                    "{} has a server `{name}` already, and this one would hide it or be hidden",
                    other.shown_path()
                ),
                "choose another name, or add it nevertheless with `--force`",
            ));
        }
    }
    file.put(name, entry)?;
    let checked = file.check(name);
    if !checked.errors.is_empty() {
        return Err(usage(
            &format!("server `{name}` could not be used, so nothing was written"),
            &checked.errors.join("\n"),
        ));
    }
    if !writing.dry_run {
        let has_secret = !in_clear(entry).is_empty();
        // Before too: the file keeps its mode, so no other user can read the secret meanwhile.
        if has_secret && file.path().is_file() {
            restrict(file.path())?;
        }
        file.save()?;
        if has_secret {
            restrict(file.path())?;
        }
    }
    Ok(Added {
        file: file.path().display().to_string(),
        replaced,
        needs_approval: file.needs_approval(),
        checked,
    })
}

impl Added {
    fn report(self, output: &Output, name: &str, writing: &Writing, daemon: bool, is_checked: bool) -> Report {
        let dry_run = writing.dry_run;
        let checked = self.checked;
        let unset = checked
            .unset
            .iter()
            .map(|variable| match names_secret(variable) {
                true => format!(
                    "the variable {variable} is not set here; `pegboard secret set {variable}` and `${{secret:{variable}}}` work without it"
                ),
                false => format!("the variable {variable} is not set here"),
            });
        let warnings: Vec<String> = checked.warnings.iter().cloned().chain(unset).collect();
        if output.is_json() {
            let document = json!({
                "name": name, "file": self.file, "replaced": self.replaced, "dry_run": dry_run,
                "server": checked.shown, "needs_approval": self.needs_approval, "daemon": daemon, "warnings": warnings,
            });
            return Report::json(Exit::Done, &document);
        }
        let verb = match (dry_run, self.replaced) {
            (true, true) => "would replace",
            (true, false) => "would add",
            (false, true) => "replaced",
            (false, false) => "added",
        };
        let place = shorten_path(Path::new(&self.file));
        let preposition = if self.replaced { "in" } else { "to" };
        let mut report = Report::new(Exit::Done);
        report.data = format!(
            "{verb} {name} {preposition} {place}\n{}",
            screen::lines(&checked.shown, &[])
        );
        report.data = clean(&report.data).into_owned();
        for warning in &warnings {
            report = report.warning(warning);
        }
        if dry_run {
            return report;
        }
        if daemon {
            report
                .messages
                .push_str("The daemon that runs reads the changed file by itself.\n");
        }
        if self.needs_approval {
            return report.hint("the project file waits for approval: `pegboard trust accept`");
        }
        if is_checked {
            return report;
        }
        report.hint(&format!(
            "`pegboard doctor {name}` tries it step by step, `pegboard tools --server {name}` lists its tools"
        ))
    }
}
