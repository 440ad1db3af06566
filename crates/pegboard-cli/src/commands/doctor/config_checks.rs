//! Findings in the config files, without starting anything.

use std::{collections::BTreeMap, path::Path};

use pegboard::{
    Config, Loaded, Problem, ServerName,
    config::{Explained, Tls, Transport, ValueOrigin, WithSecrets},
    diagnosis::{Code, Edit},
};
use pegboard_hosts::document::Document;
use serde_json::{Value, json};

use super::{
    finding::{Finding, Remedy, ReportSection},
    fix::{find_written, is_taken, place},
    kinds::{self, ReachStep},
    urls,
};
use crate::{
    commands::{address, plain_secrets},
    settings::{Settings, approve_hint},
};

/// The settings that may hold secrets, entry by entry.
const SECRET_FIELDS: &[&str] = &["env", "headers", "auth"];
/// The entries of `auth` that are secrets.
const SECRETS_OF_AUTH: &[&str] = &["bearer", "api_key", "token", "password", "client_secret"];

/// What shells do not take as it is written.
const OF_SHELLS: [char; 10] = ['\'', '"', '`', '\\', '$', '|', '&', ';', '<', '>'];

/// Adds the problems that name a server to its section.
pub(super) fn check_server(section: &mut ReportSection, name: &ServerName, settings: &Settings) {
    let loaded = &settings.loaded;
    let is_unreadable = |problem: &&Problem| !loaded.unreadable.contains(&problem.file);
    let own = loaded
        .problems
        .iter()
        .filter(|problem| problem.server() == Some(name.as_str()));
    for problem in own.filter(is_unreadable) {
        section.add_finding(report(problem));
    }
    if let Some(found) = loaded.config.misconfigured.get(name) {
        match &found.pending_trust {
            Some(_) if settings.hosts().is_some() => {
                section
                    .add_finding(Finding::new(&kinds::HOST_SERVER_UNAPPROVED, found.why.clone()).fix(approve_hint()));
            }
            Some(file) => section.add_finding(
                Finding::new(
                    &kinds::PROJECT_UNTRUSTED,
                    format!("{} is not approved, so it was not started", file.display()),
                )
                .fix("pegboard trust show && pegboard trust accept"),
            ),
            // The problem may have named no server.
            None if !section.is_blocked() => section.add_finding(Finding::new(&kinds::CONFIG_ERROR, found.why.clone())),
            None => {}
        }
        return;
    }
    secrets_in_clear(section, name, loaded);
    if let Some(config) = loaded.config.servers.get(name)
        && let Some(Tls { insecure: true, .. }) = config.transport.endpoint().map(|endpoint| &endpoint.tls)
        && !section
            .findings()
            .any(|finding| finding.kind.id == kinds::CERTIFICATE_UNCHECKED.id)
    {
        section.add_finding(
            Finding::new(&kinds::CERTIFICATE_UNCHECKED, "the server's certificate is not checked")
                .fix(format!("remove `tls.insecure` of servers.{name}")),
        );
    }
    if let Some(origin) = loaded.origins.get(name).filter(|_| !section.is_blocked()) {
        section.lines.insert(
            0,
            super::finding::ReportLine::Fine {
                step: ReachStep::Config,
                found: format!("{}:{}", origin.file, origin.line),
            },
        );
    }
}

/// The problems that concern no single server.
pub(super) fn check_files(section: &mut ReportSection, loaded: &Loaded) {
    for problem in &loaded.problems {
        let is_of_known_server = problem.server().is_some_and(|server| {
            loaded.config.servers.contains_key(server) || loaded.config.misconfigured.contains_key(server)
        });
        // The permissions say it, with their fix.
        let is_of_mode = cfg!(unix) && problem.code == Code::ConfigWritable;
        if is_of_mode {
            continue;
        }
        if loaded.unreadable.contains(&problem.file) {
            let fix = problem.hint.as_deref().unwrap_or(kinds::CONFIG_UNREADABLE.remedy);
            let finding = Finding::new(&kinds::CONFIG_UNREADABLE, without_hint(problem)).fix(fix);
            section.add_finding(finding.with_diagnosis(problem.diagnosis()));
        } else if !is_of_known_server && !is_of_trust(problem, loaded) {
            section.add_finding(report(problem));
        }
    }
    for file in &loaded.sources {
        permissions(section, Path::new(file), loaded);
        byte_order_mark(section, Path::new(file));
    }
}

fn byte_order_mark(section: &mut ReportSection, file: &Path) {
    if Document::open(file).is_ok_and(|document| document.has_mark()) {
        section.add_finding(
            Finding::new(
                &kinds::BYTE_ORDER_MARK,
                format!("{} begins with a byte order mark", file.display()),
            )
            .fix("save the file as UTF-8 without a byte order mark")
            .remedy(Remedy::Unmark { file: file.to_owned() }),
        );
    }
}

/// Whether a warning only says that a project file is not approved, which each of its servers says.
fn is_of_trust(problem: &Problem, loaded: &Loaded) -> bool {
    let is_of = |file: &Path| file.display().to_string() == problem.file;
    problem.field.is_empty() && loaded.pending_trust.iter().any(|pending| is_of(&pending.file))
}

fn report(problem: &Problem) -> Finding {
    let path = path_of(problem);
    let file = || Path::new(&problem.file).to_owned();
    let kind = kinds::find(problem.code).unwrap_or(match problem.is_error() {
        true => &kinds::CONFIG_ERROR,
        false => &kinds::CONFIG_WARNING,
    });
    let meant = match &problem.edit {
        Some(Edit::Rename { to, .. }) => Some(to),
        _ => None,
    };
    let taken = meant.filter(|meant| is_taken_beside(&file(), &path, meant));
    let url = address::missing_scheme(problem).and_then(|scheme| urls::with_scheme(&file(), &path, scheme));
    let (line, url) = url.unzip();
    let remedy = match &problem.edit {
        Some(Edit::Rename { to, .. }) if taken.is_none() => Some(Remedy::Rename {
            file: file(),
            path: path.clone(),
            to: to.to_owned(),
        }),
        Some(Edit::SplitCommand { .. }) => split_command(&file(), &path),
        _ => url,
    };
    let own = path.last().map_or("", String::as_str);
    let fix = match (&remedy, &problem.hint) {
        _ if kind.id == kinds::UNKNOWN_SETTING.id && taken.is_some() => {
            taken.map(|taken| format!("remove `{own}`: there is a `{taken}` beside it"))
        }
        (Some(Remedy::Rename { to, .. }), _) => Some(format!("rename `{own}` to `{to}`")),
        // The library's hint splits at spaces.
        (None, _) if kind.id == kinds::COMMAND_LINE.id => Some(
            "write the program alone in `command`, and each of its arguments in `args`, without the quotes of a shell"
                .to_owned(),
        ),
        (_, Some(hint)) => Some(hint.clone()),
        _ => line,
    };
    Finding::new(kind, without_hint(problem))
        .fix(fix.unwrap_or_else(|| kind.remedy.to_owned()))
        .remedy_if_any(remedy)
        .with_diagnosis(problem.diagnosis())
}

/// Whether a setting that was meant is written beside the misspelt one.
fn is_taken_beside(file: &Path, path: &[String], meant: &str) -> bool {
    Document::open(file).is_ok_and(|document| {
        let place = place(&document, path);
        place.is_some_and(|place| is_taken(&document, &place, meant))
    })
}

/// The path of a setting in its file. Only names without dots can be told apart from nested settings.
fn path_of(problem: &Problem) -> Vec<String> {
    problem.field.split('.').map(str::to_owned).collect()
}

fn without_hint(problem: &Problem) -> String {
    let mut plain = problem.clone();
    plain.hint = None;
    plain.to_string()
}

/// Splits the command line that the file has. `None` if it has what a shell would read in its own way.
fn split_command(file: &Path, path: &[String]) -> Option<Remedy> {
    let (path, line) = find_written(file, path)?;
    let line = line.as_str()?;
    let mut words = line.split_whitespace();
    let program = words.next().filter(|_| !line.contains(OF_SHELLS))?;
    let args: Vec<&str> = words.collect();
    let args = ([&path[..path.len() - 1], &["args".to_owned()]].concat(), json!(args));
    Some(Remedy::Set {
        file: file.to_owned(),
        values: vec![(path, json!(program)), args],
    })
}

/// Literal values of `auth`, and those of variables and headers that are secrets.
fn secrets_in_clear(section: &mut ReportSection, name: &ServerName, loaded: &Loaded) {
    for setting in loaded.explain() {
        let is_own = setting.server.as_ref() == Some(name);
        if !is_own || !SECRET_FIELDS.contains(&setting.field.as_str()) {
            continue;
        }
        for (key, value) in literal_secrets(&setting, loaded) {
            let at = match &setting.from {
                ValueOrigin::File { file, line, .. } => format!("{file}:{line}: "),
                _ => String::new(),
            };
            let reference = match setting.field.as_str() {
                "auth" => plain_secrets::from_variable(&format!("{name}_token"), ""),
                _ => plain_secrets::from_variable(key, value),
            };
            section.add_finding(
                Finding::new(
                    &kinds::SECRET_IN_CLEAR,
                    format!("{at}the value of `{}.{key}` is written in the file", setting.field),
                )
                .fix(format!("{} = {{ {key:?} = {reference:?} }}", setting.field)),
            );
        }
    }
}

/// The entries whose value is a secret and does not come from a variable, with their values.
fn literal_secrets<'a>(setting: &'a Explained, loaded: &'a Loaded) -> Vec<(&'a String, &'a str)> {
    // The library hides literal text, and shows where a variable is.
    let is_literal = |shown: &Value| {
        shown
            .as_str()
            .is_some_and(|text| !text.contains('$') && text.contains("***"))
    };
    let transport = setting
        .server
        .as_ref()
        .and_then(|server| loaded.config.servers.get(server))
        .map(|server| &server.transport);
    let entries = setting.value.as_object().into_iter().flatten();
    let literal = entries.filter(|(_, shown)| is_literal(shown));
    let secrets = literal.filter_map(|(key, _)| match setting.field.as_str() {
        "auth" => SECRETS_OF_AUTH.contains(&key.as_str()).then_some((key, "")),
        field => {
            let value = transport.and_then(|transport| value_of(transport, field, key))?;
            plain_secrets::is_secret(key, value).then_some((key, value))
        }
    });
    secrets.collect()
}

/// The value of a variable or of a header.
fn value_of<'a>(transport: &'a Transport, field: &str, key: &str) -> Option<&'a str> {
    let found = match (transport, field) {
        (Transport::Stdio(command), "env") => command.env.get(key),
        (other, "headers") => {
            let mut headers = other.endpoint()?.headers.iter();
            headers
                .find(|(name, _)| name.eq_ignore_ascii_case(key))
                .map(|(_, value)| value)
        }
        _ => None,
    };
    Some(found?.expose())
}

/// Whether other users can change or read a config file.
#[cfg(unix)]
fn permissions(section: &mut ReportSection, file: &Path, loaded: &Loaded) {
    use std::os::unix::fs::PermissionsExt as _;

    let Ok(found) = file.metadata() else { return };
    let (mode, shown) = (found.permissions().mode(), file.display());
    if mode & 0o022 != 0 {
        section.add_finding(
            Finding::new(
                &kinds::CONFIG_WRITABLE,
                format!("{shown} can be changed by other users of this machine"),
            )
            .fix(format!("chmod go-w {shown}"))
            .remedy(Remedy::Mode {
                path: file.to_owned(),
                add: 0,
                remove: 0o022,
            }),
        );
    }
    let has_secret = loaded.explain().iter().any(|setting| {
        let is_here = matches!(&setting.from, ValueOrigin::File { file: origin, .. } if Path::new(origin) == file);
        is_here && SECRET_FIELDS.contains(&setting.field.as_str()) && !literal_secrets(setting, loaded).is_empty()
    });
    if mode & 0o044 != 0 && has_secret {
        section.add_finding(
            Finding::new(
                &kinds::CONFIG_READABLE,
                format!("{shown} holds a secret, and other users of this machine can read it"),
            )
            .fix(format!("chmod 600 {shown}"))
            .remedy(Remedy::Mode {
                path: file.to_owned(),
                add: 0,
                remove: 0o077,
            }),
        );
    }
}

#[cfg(not(unix))]
fn permissions(_section: &mut ReportSection, _file: &Path, _loaded: &Loaded) {}

/// The earlier server that a server repeats, by name.
pub(super) fn duplicates(config: &Config) -> BTreeMap<ServerName, ServerName> {
    let mut known: BTreeMap<String, &ServerName> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (name, server) in &config.servers {
        let what = match &server.transport {
            // Servers that differ in their environment may have other accounts.
            Transport::Stdio(command) => json!([
                command.program,
                WithSecrets::new(&command.args),
                WithSecrets::new(&command.env),
                command.cwd
            ]),
            other @ Transport::Remote { .. } => json!([
                other.endpoint().map(|endpoint| endpoint.url.expose().as_str()),
                other
                    .endpoint()
                    .map(|endpoint| json!(WithSecrets::new(&endpoint.headers)))
            ]),
        };
        // One that has other tools is another server for an agent.
        let policy = &server.policy;
        let what = json!([what, server.allow, server.deny, policy.approval, policy.tools]);
        match known.get(&what.to_string()) {
            Some(first) => {
                found.insert(name.clone(), (*first).clone());
            }
            None => {
                known.insert(what.to_string(), name);
            }
        }
    }
    found
}
