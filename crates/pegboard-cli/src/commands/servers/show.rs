//! `pegboard get` and `pegboard list`: what is configured. No server is started.

use clap::Args;
use pegboard::{Loaded, config::ValueOrigin};
use pegboard_hosts::{ServersFile, shorten_path, show_entry};
use serde_json::{Value, json};

use super::{change::absent_server_complaint, screen};
use crate::{
    cli::Global,
    commands::{command::Run, context::Context},
    exit::Exit,
    output::{Paint, Report, Table, clean, one_line, path_text, width},
    settings::{Complaint, Settings, is_pending},
};

/// Columns of the list.
const STATE: usize = 2;
const PLACE: usize = 3;

/// Show how one server is configured
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard get time")]
pub(crate) struct Get {
    /// The server
    #[arg(id = "server", value_name = "NAME")]
    name: String,
}

impl Run for Get {
    /// Shows one server: what it is, where it is defined, and how to change it.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let name = &self.name;
        let settings = Settings::load_or_hosts(&context.global);
        let files = match ServersFile::with(&context.global.configs, name) {
            Ok(files) => files,
            Err(error) => {
                let complaint = Complaint::from(error);
                return context
                    .refuse(&complaint, &super::refusal_document(name, &complaint))
                    .await;
            }
        };
        let mut listed = all(&settings);
        if let Some(hosts) = settings.hosts() {
            listed.iter_mut().for_each(|server| hosts.complete(server));
        }
        let Some(server) = listed.iter().find(|server| server["name"] == **name) else {
            let complaint = absent_server_complaint(&context, name);
            return context
                .refuse(&complaint, &super::refusal_document(name, &complaint))
                .await;
        };
        let shown = match files.first() {
            Some(file) => {
                let entry = file.entry(name).unwrap_or_default();
                match show_entry(&settings.loaded, name, &entry) {
                    // A server that cannot be used as it is has no settings in effect, so those of the file are shown.
                    Value::Null => file.check(name).shown,
                    shown => shown,
                }
            }
            // The built-in server, or one of the command line.
            None => show_entry(&settings.loaded, name, &keys_of_settings(&settings.loaded, name)),
        };
        let mut document = server.clone();
        document["settings"] = shown.clone();
        let exit = Exit::Done;
        let report = if context.output.is_json() {
            Report::json(exit, &document)
        } else {
            let mut report = Report::new(exit);
            let state = server["state"].as_str().unwrap_or_default();
            let mut more = vec![("state", state.to_owned())];
            let origin = place(server);
            more.extend(
                origin
                    .or_else(|| files.first().map(ServersFile::shown_path))
                    .map(|place| ("defined in", place)),
            );
            report.data = clean(&format!("{name}\n{}", screen::lines(&shown, &more))).into_owned();
            for problem in server["problems"].as_array().into_iter().flatten() {
                report = report.warning(problem.as_str().unwrap_or_default());
            }
            let switch = if state == "disabled" { "enable" } else { "disable" };
            if files.is_empty() {
                report
            } else {
                report.hint(&format!(
                    "`pegboard doctor {name}` tries it; `{switch}` and `remove` change it"
                ))
            }
        };
        context.print(report).await
    }
}

/// The keys of the settings that some source has for a server, without their values.
fn keys_of_settings(loaded: &Loaded, name: &str) -> Value {
    let explained = loaded.explain().into_iter();
    let own = explained.filter(|one| one.server.as_ref().is_some_and(|server| server.as_str() == name));
    let set = own.filter(|one| matches!(one.from, ValueOrigin::File { .. }));
    // `auth.bearer` is a part of `auth`.
    let key = |field: String| field.split('.').next().unwrap_or_default().to_owned();
    Value::Object(set.map(|one| (key(one.field), Value::Null)).collect())
}

/// List the configured servers, without starting any
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard list -o json")]
pub(crate) struct List {}

impl Run for List {
    /// Lists the configured servers.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load_or_hosts(&context.global);
        if let Err(complaint) = settings.selected_config() {
            return context
                .refuse(&complaint, &json!({"servers": [], "warnings": []}))
                .await;
        }
        let mut servers = all(&settings);
        complete(&mut servers, &context.global);
        if let Some(hosts) = settings.hosts() {
            servers.iter_mut().for_each(|server| hosts.complete(server));
        }
        let report = if context.output.is_json() {
            let warnings: Vec<String> = settings.warnings().collect();
            let mut document = json!({"servers": servers, "warnings": warnings});
            settings.add_hosts_to(&mut document);
            Report::json(Exit::Done, &document)
        } else {
            let mut report = Report::new(Exit::Done);
            let mut table = Table::with_indent(0).with_optional(&[PLACE]);
            table.row(["NAME", "KIND", "STATE", "DEFINED IN", "COMMAND OR URL"].map(str::to_owned));
            for server in &servers {
                let cell = |key: &str| one_line(server[key].as_str().unwrap_or("-"));
                let place = place(server).map_or_else(|| "-".to_owned(), |place| one_line(&place));
                let name = one_line(&settings.marked_name(server["name"].as_str().unwrap_or("-")));
                table.row([name, cell("kind"), cell("state"), place, cell("target")]);
            }
            if !servers.is_empty() {
                let paint = Paint::detect(&std::io::stdout());
                report.data = table.render_painted(width(), |row, column, cell| match (column, cell) {
                    _ if row == 0 => paint.bold(cell),
                    (STATE, "misconfigured") => paint.red(cell),
                    (STATE, "disabled" | "not approved") => paint.yellow(cell),
                    _ => cell.to_owned(),
                });
            }
            settings.host_notes().for_each(|note| context.output.note(&note));
            if let Some(note) = settings.demo_note() {
                context.output.note(note);
            } else if servers.is_empty() {
                report = report.hint("no server is configured; `pegboard add NAME -- COMMAND…` adds one");
            }
            settings
                .loaded
                .errors()
                .fold(report, |report, problem| report.warning(&problem.to_string()))
        };
        context.print(report).await
    }
}

/// Every configured server, those that cannot be used included.
fn all(settings: &Settings) -> Vec<Value> {
    let loaded = &settings.loaded;
    let shown = loaded.show();
    let mut servers: Vec<Value> = Vec::new();
    for (name, server) in &loaded.config.servers {
        let target = screen::target(&shown["servers"][name.as_str()]);
        let state = if server.enabled { "enabled" } else { "disabled" };
        servers.push(json!({
            "name": name, "kind": server.transport.kind(), "state": state, "enabled": server.enabled,
            "target": target, "origin": origin(loaded, name.as_str()), "description": server.description, "problems": [],
        }));
    }
    for (name, server) in &loaded.config.misconfigured {
        let state = if is_pending(server) {
            "not approved"
        } else {
            "misconfigured"
        };
        let mut problems = server.problems.clone();
        if problems.is_empty() {
            problems.push(server.why.clone());
        }
        servers.push(json!({
            "name": name, "kind": server.transport, "state": state, "enabled": false,
            "target": null, "origin": origin(loaded, name.as_str()), "description": null, "problems": problems,
        }));
    }
    servers.sort_by_key(|server| server["name"].as_str().map(str::to_owned));
    servers
}

/// Adds what the file says of servers that cannot be used, for which the config has no settings.
fn complete(servers: &mut [Value], global: &Global) {
    for server in servers.iter_mut().filter(|server| server["target"].is_null()) {
        let Some(name) = server["name"].as_str().map(str::to_owned) else {
            continue;
        };
        let files = ServersFile::with(&global.configs, &name).unwrap_or_default();
        if let Some(file) = files.first() {
            server["target"] = json!(screen::target(&file.check(&name).shown));
            if server["origin"].is_null() {
                server["origin"] = json!({"file": path_text(file.path()), "line": null});
            }
        }
    }
}

/// The file and the line of a server.
fn origin(loaded: &Loaded, name: &str) -> Option<Value> {
    let origin = loaded.origins.iter().find(|(known, _)| known.as_str() == name)?.1;
    Some(json!({"file": origin.file, "line": origin.line}))
}

/// `FILE:LINE` of a server, for people.
fn place(server: &Value) -> Option<String> {
    let origin = &server["origin"];
    let file = shorten_path(std::path::Path::new(origin["file"].as_str()?));
    Some(match origin["line"].as_u64().filter(|_| file != "built-in") {
        Some(line) => format!("{file}:{line}"),
        None => file,
    })
}
