//! `pegboard config`: the resolved config, the origin of each setting, and the JSON Schema of config files.

mod toml;

use clap::Args;
use pegboard::{
    Config, Loaded, Problem,
    config::{Explained, ValueOrigin},
};
use serde_json::{Value, json};

use super::{
    command::{Bare, Run, With, commands},
    context::{Context, empty, with_complaint},
};
use crate::{
    exit::Exit,
    output::{self, Report, Table, one_line},
    settings::{Complaint, Settings},
};

commands! {
    /// Show the config, or what may be in one
    #[command(
        after_help = "Examples:\n  pegboard config show -c pegboard.toml\n  pegboard config explain github.call_timeout"
    )]
    pub(crate) enum ConfigCommand {
        Show(With<Show>),
        Explain(With<Explain>),
        Schema(Bare<Schema>),
    }
}

/// Show the config that is used, and what is wrong with it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard config show -c pegboard.toml")]
pub(crate) struct Show {}

impl Run for Show {
    /// Shows the resolved config and every problem with its file and line. Errors make the command fail.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load(&context.global);
        let loaded = &settings.loaded;
        let picked: Vec<&str> = settings.picked_servers().collect();
        if loaded.unreadable.is_empty()
            && let Some(unknown) = picked.iter().find(|name| !is_known(loaded, name))
        {
            let complaint = settings.missing_server_complaint(unknown);
            return context.refuse(&complaint, &json!({"problems": loaded.problems})).await;
        }
        let is_shown = |server: &str| picked.is_empty() || picked.contains(&server);
        let problems: Vec<&Problem> = loaded
            .problems
            .iter()
            .filter(|problem| problem.server().is_none_or(is_shown))
            .collect();
        let unpinned = loaded.config.unpinned();
        let unpinned = unpinned.iter().filter(|one| is_shown(one.server.as_str()));
        let exit = exit(problems.iter().copied());
        let mut report = if context.output.is_json() {
            let mut shown = loaded.show();
            for table in ["servers", "misconfigured"] {
                if let Some(servers) = shown[table].as_object_mut() {
                    servers.retain(|name, _| is_shown(name));
                }
            }
            shown["problems"] = json!(problems);
            let unpinned = unpinned.map(ToString::to_string);
            let warnings: Vec<String> = settings
                .demo_note()
                .map(str::to_owned)
                .into_iter()
                .chain(unpinned)
                .collect();
            if !warnings.is_empty() {
                shown["warnings"] = json!(warnings);
            }
            Report::json(exit, &shown)
        } else {
            if let Some(note) = settings.demo_note() {
                context.output.note(note);
            }
            let mut report = Report::new(exit);
            report.data = output::clean(&toml::render(loaded, is_shown)).into_owned();
            unpinned.fold(report, |report, one| report.warning(&one.to_string()))
        };
        report = with_problems(report, problems.into_iter());
        context.print(report).await
    }
}

/// Whether a server is configured, usable or not.
fn is_known(loaded: &Loaded, name: &str) -> bool {
    let Config {
        servers, misconfigured, ..
    } = &loaded.config;
    servers.contains_key(name) || misconfigured.contains_key(name)
}

/// Tell where each setting comes from, and what it means
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard config explain\n  pegboard config explain github\n  \
                  pegboard config explain github.call_timeout"
)]
pub(crate) struct Explain {
    /// A server, one setting of it, or a setting of the top
    #[arg(value_name = "SERVER[.SETTING]")]
    what: Option<String>,
}

impl Run for Explain {
    /// Shows where settings come from: all of them, those of a server, or one.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load(&context.global);
        let loaded = &settings.loaded;
        let report = match select(&settings, self.what.as_deref()) {
            Err(complaint) => {
                let document = json!({"settings": [], "problems": loaded.problems});
                with_complaint(empty(&context.output, Exit::Usage, &document), &complaint)
            }
            Ok(found) => {
                // Problems of other servers do not concern this one.
                let server = self
                    .what
                    .as_ref()
                    .and(found.settings.first())
                    .and_then(|one| one.server.as_ref());
                let concerns = |problem: &&Problem| match (server, problem.server()) {
                    (Some(server), Some(other)) => server.as_str() == other,
                    _ => true,
                };
                let problems: Vec<&Problem> = loaded.problems.iter().filter(concerns).collect();
                let exit = exit(problems.iter().copied());
                if context.output.is_json() {
                    Report::json(exit, &json!({"settings": found.settings, "problems": problems}))
                } else {
                    let mut report = Report::new(exit);
                    report.data = match found.settings.as_slice() {
                        [one] if found.is_one => in_full(one),
                        settings => in_a_table(settings),
                    };
                    with_problems(report, problems.into_iter())
                }
            }
        };
        context.print(report).await
    }
}

/// Print the JSON Schema of config files
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard config schema > pegboard.schema.json")]
pub(crate) struct Schema {}

impl Run for Schema {
    /// Prints the JSON Schema of config files.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let report = Report::json(Exit::Done, &Config::schema());
        context.print(report).await
    }
}

fn exit<'a>(mut problems: impl Iterator<Item = &'a Problem>) -> Exit {
    match problems.any(Problem::is_error) {
        true => Exit::Usage,
        false => Exit::Done,
    }
}

fn with_problems<'a>(mut report: Report, problems: impl Iterator<Item = &'a Problem>) -> Report {
    for problem in problems {
        report = if problem.is_error() {
            report.error(&problem.to_string(), None)
        } else {
            report.warning(&problem.to_string())
        };
    }
    report
}

/// The settings to explain.
struct Selected {
    settings: Vec<Explained>,
    /// Whether a single setting was named.
    is_one: bool,
}

fn select(settings: &Settings, what: Option<&str>) -> Result<Selected, Complaint> {
    let mut explained = settings.loaded.explain();
    let all = |settings| Selected {
        settings,
        is_one: false,
    };
    let Some(what) = what.map(|what| what.strip_prefix("servers.").unwrap_or(what)) else {
        return Ok(all(explained));
    };
    let (server, field) = match what.split_once('.') {
        Some((server, field)) => (server, Some(field)),
        None => (what, None),
    };
    let loaded = &settings.loaded;
    let is_server = loaded.config.servers.keys().any(|name| name.as_str() == server);
    let is_broken = settings.misconfigured_names().any(|name| name == server);
    // A setting at the top of the file has no server in front.
    let (server, field) = match (is_server || is_broken, Loaded::setting(what, false)) {
        (false, Some(_)) => (None, Some(what)),
        _ => (Some(server), field),
    };
    if let Some(name) = server.filter(|_| !is_server) {
        return Err(settings.missing_server_complaint(name));
    }
    explained.retain(|one| one.server.as_ref().map(pegboard::ServerName::as_str) == server);
    let Some(field) = field else {
        return Ok(all(explained));
    };
    let Some((name, _)) = Loaded::setting(field, server.is_some()) else {
        return Err(Complaint {
            message: format!("there is no setting `{field}`"),
            hint: Some("`pegboard config schema` lists the settings there are".to_owned()),
            exit: Exit::Usage,
        });
    };
    explained.retain(|one| one.field == name || one.field.starts_with(&format!("{name}.")));
    if explained.is_empty() {
        let mut servers = loaded.config.servers.keys();
        let server = server.and_then(|server| servers.find(|name| name.as_str() == server));
        explained = loaded.explain_unset(&name, server);
    }
    Ok(Selected {
        is_one: explained.len() == 1,
        settings: explained,
    })
}

fn full_name(one: &Explained) -> String {
    match &one.server {
        Some(server) => format!("servers.{server}.{}", one.field),
        None => one.field.clone(),
    }
}

fn in_full(one: &Explained) -> String {
    let mut text = match &one.value {
        Value::Null => format!("{} is not set\n", full_name(one)),
        value => format!("{} = {}\n", full_name(one), toml::value(value)),
    };
    let mut line = |line: String| text.push_str(&format!("  {}\n", one_line(&line)));
    line(match &one.from {
        ValueOrigin::Follows { .. } => one.from.to_string(),
        ValueOrigin::Default if one.value.is_null() => "there is no default".to_owned(),
        from => format!("from {from}"),
    });
    if !one.variables.is_empty() {
        line(format!("with the variables {}", one.variables.join(", ")));
    }
    for over in &one.over {
        line(format!("instead of {} ({})", toml::value(&over.value), over.from));
    }
    if !one.doc.is_empty() {
        line(one.doc.to_owned());
    }
    output::clean(&text).into_owned()
}

fn in_a_table(settings: &[Explained]) -> String {
    let mut table = Table::with_indent(0);
    table.row(["SETTING", "FROM", "VALUE"].map(str::to_owned));
    for one in settings {
        let value: &Value = &one.value;
        table.row([
            one_line(&full_name(one)),
            one_line(&one.from.to_string()),
            one_line(&toml::value(value)),
        ]);
    }
    table.render(output::width())
}
