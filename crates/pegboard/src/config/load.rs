//! Loads sources, one over the other, into one config, and collects every problem on the way.

use std::path::Path;

use super::{
    board::Config,
    board_limits::BoardLimits,
    check::Check,
    expand::Env,
    field::Via,
    fields::{SERVER, TOP, TopTable, server, top as top_fields},
    from_setting::Naming,
    import, layers,
    loaded::{Loaded, Origin},
    misconfigured::Misconfigured,
    problem::{MAX_PROBLEMS, Problem, Report, join},
    resolve::{self, Context, masking},
    server::ServerConfig,
    setting::{Rank, Values},
    source::Source,
    spelling::{nearest, snake},
    tree::{Entry, Format, Node, Value},
};
use crate::{mask::Masking, name::ServerName};

impl Config {
    /// Reads the sources in turn. A later one replaces servers of the same name; its other settings win.
    ///
    /// It never fails: what could not be read is among the problems, and everything else is there.
    pub fn load(sources: &[Source], env: &Env<'_>) -> Loaded {
        load(sources, env)
    }

    /// Reads one text.
    pub fn from_text(text: &str, format: Format, env: &Env<'_>) -> Loaded {
        load(&[Source::text("config", text, Some(format))], env)
    }
}

impl ServerConfig {
    /// Reads `NAME=COMMAND…` or `NAME=URL`.
    ///
    /// The command is split into words as a shell would, with quotes and backslashes, but no shell is involved: of all
    /// its signs only `${NAME}` has a meaning, and what a variable holds stays one word.
    pub fn parse(text: &str, env: &Env<'_>) -> Result<(ServerName, Self), Vec<Problem>> {
        let mut loaded = load(&[Source::server(text)], env);
        match loaded.config.servers.pop_first() {
            Some(server) => Ok(server),
            None => Err(loaded.problems),
        }
    }
}

fn load(sources: &[Source], env: &Env<'_>) -> Loaded {
    let mut loaded = Loaded::default();
    // What stands at the top of any layer holds for the servers of all, so all tops are read first.
    let mut layers = Vec::new();
    for source in sources {
        let mut report = Report::new(source.name());
        let base = source.folder();
        let servers = match source.read(&mut report) {
            Some(root) => {
                let layer = with_folders(env, base.as_deref());
                top(root, &layer, &mut loaded, &mut report)
            }
            None => {
                loaded.unreadable.push(source.name().to_owned());
                Vec::new()
            }
        };
        layers.push((source, base, servers, report));
    }
    let masking = masking::layered(
        &Masking::default(),
        TopTable::new(&loaded.top).find(&top_fields::MASKING),
    );
    for (source, base, servers, mut report) in layers {
        let layer = Layer {
            base: base.as_deref(),
            env: &with_folders(env, base.as_deref()),
            file: source.name(),
            masking: &masking,
        };
        for (entry, settings) in &servers {
            layer.server(entry, settings, &mut loaded, &mut report);
        }
        loaded.sources.push(source.name().to_owned());
        loaded.problems.extend(report.into_problems());
    }
    add_misshapen(&mut loaded);
    let config = &mut loaded.config;
    let top = TopTable::new(&loaded.top);
    config.preset = top.get(&top_fields::PRESET);
    config.limits = BoardLimits {
        servers: top.get(&top_fields::MAX_SERVERS),
        processes: top.get(&top_fields::MAX_PROCESSES),
        starts: top.get(&top_fields::MAX_STARTS),
        buffered: top.get(&top_fields::MAX_BUFFERED),
    };
    let written = top.set(&top_fields::NAMING).and_then(|naming| naming.0.ok());
    config.naming = written.unwrap_or_else(|| config.preset.naming());
    config.masking = masking;
    loaded
}

/// Adds the servers that are not even tables, or that were not read for other reasons.
fn add_misshapen(loaded: &mut Loaded) {
    let Loaded { config, problems, .. } = loaded;
    for problem in problems.iter().filter(|problem| problem.is_error()) {
        let name = problem.server().and_then(|name| ServerName::parse(name).ok());
        if let Some(name) = name.filter(|name| !config.servers.contains_key(name)) {
            let entry = config.misconfigured.entry(name).or_default();
            if entry.why.is_empty() {
                entry.why.clone_from(&problem.message);
                entry.problems.push(problem.to_string());
            }
        }
    }
}

/// Reads what stands at the top of a layer, and hands back its servers.
fn top(root: Node, env: &Env<'_>, loaded: &mut Loaded, report: &mut Report) -> Vec<(Entry, Vec<Entry>)> {
    let shaped = import::shape(root, report);
    let rest = without_stray_servers(shaped.rest, report);
    let top = Check::new(report, env, Rank::Top).section(TOP, &rest, "");
    resolve::check(&top, "", report);
    let table = TopTable::new(&top);
    if let Some(found) = table.find(&top_fields::MASKING) {
        masking::check(report, "", found);
    }
    if let (Some(Naming(Err(error))), Some(found)) = (table.set(&top_fields::NAMING), table.find(&top_fields::NAMING)) {
        report.error(found.at, &found.key, error.to_string());
    }
    merge_top(top, loaded);
    shaped.servers
}

/// The variables of the environment, and those that editors fill in: the folder of the project and the home folder.
fn with_folders<'a>(env: &'a Env<'a>, base: Option<&'a Path>) -> Env<'a> {
    let project = base.map(|base| match base.file_name().and_then(|name| name.to_str()) {
        Some(".vscode" | ".cursor") => base.parent().unwrap_or(base),
        _ => base,
    });
    let with = Env::new(move |name| match name {
        "workspaceFolder" => project.map(|folder| folder.display().to_string()),
        "userHome" => env.get("HOME").or_else(|| env.get("USERPROFILE")),
        _ => env.get(name),
    });
    if env.is_lenient() { with.lenient() } else { with }
}

/// One source on top of those before it.
struct Layer<'a> {
    base: Option<&'a Path>,
    env: &'a Env<'a>,
    file: &'a str,
    /// The masking of all servers.
    masking: &'a Masking,
}

impl Layer<'_> {
    fn server(&self, entry: &Entry, settings: &[Entry], loaded: &mut Loaded, report: &mut Report) {
        let path = join("servers", &entry.key);
        let name = match ServerName::parse(&entry.key) {
            Ok(name) => name,
            Err(error) => return report.error(entry.at, &path, error.to_string()),
        };
        let before = report.len();
        if let Some(other) = loaded
            .config
            .servers
            .keys()
            .find(|known| **known != name && folded(known) == folded(&name))
        {
            let message = format!("the name is too close to `{other}`: models and providers mix up case, `-` and `_`");
            report.error_with(entry.at, &path, message, "rename one of them");
            let misconfigured = Misconfigured::new(settings, report.errors_from(before));
            loaded.config.misconfigured.insert(name, misconfigured);
            return;
        }
        // Whatever an earlier layer said about this server is void, also when this entry turns out to be bad.
        loaded.config.servers.remove(&name);
        loaded.origins.remove(&name);
        loaded.written.remove(&name);
        loaded.config.misconfigured.remove(&name);
        match self.resolve(entry, settings, &path, &loaded.top, report) {
            Some((values, server)) => {
                let origin = Origin {
                    file: self.file.to_owned(),
                    line: entry.at.line,
                };
                loaded.config.servers.insert(name.clone(), server);
                loaded.origins.insert(name.clone(), origin);
                loaded.written.insert(name, values);
            }
            None => {
                let misconfigured = Misconfigured::new(settings, report.errors_from(before));
                loaded.config.misconfigured.insert(name, misconfigured);
            }
        }
    }

    fn resolve(
        &self,
        entry: &Entry,
        settings: &[Entry],
        path: &str,
        top: &Values,
        report: &mut Report,
    ) -> Option<(Values, ServerConfig)> {
        let errors = report.errors();
        let mut check = Check::new(report, self.env, Rank::Server);
        check.lenient(is_disabled(settings));
        let written = check.section(SERVER, settings, path);
        resolve::check(&written, path, report);
        let values = layers::filled(written, top);
        // Settings that were refused would be reported once more as missing.
        let good = report.errors() == errors;
        let mut context = Context {
            report,
            env: self.env,
            base: self.base,
            path,
            at: entry.at,
            masking: self.masking,
        };
        let server = good.then(|| resolve::resolve(&mut context, &values)).flatten()?;
        (report.errors() == errors).then_some((values, server))
    }
}

/// Whether a server is disabled, so that its missing variables do no harm.
fn is_disabled(settings: &[Entry]) -> bool {
    settings.iter().any(|setting| {
        let Some(found) = SERVER.find(&setting.key) else {
            return false;
        };
        let disabled = Value::Bool(found.via == Some(Via::Negated));
        found.field.name == server::ENABLED.name && setting.value.value == disabled
    })
}

fn folded(name: &ServerName) -> String {
    name.as_str().to_ascii_lowercase().replace('-', "_")
}

/// A server beside `servers` instead of in it, or under a misspelt `servers`, deserves better than "no such setting".
fn without_stray_servers(entries: Vec<Entry>, report: &mut Report) -> Vec<Entry> {
    let mut rest = Vec::new();
    for entry in entries {
        // After so many errors the rest is not looked at; `Check` says so.
        let hint = if report.errors() < MAX_PROBLEMS {
            stray(&entry)
        } else {
            None
        };
        match hint {
            Some(hint) => {
                let path = join("", &entry.key);
                report.error_with(entry.at, &path, "there is no such setting", hint);
            }
            None => rest.push(entry),
        }
    }
    rest
}

fn stray(entry: &Entry) -> Option<String> {
    if TOP.find(&entry.key).is_some() {
        return None;
    }
    if entry.value.get("command").is_some() || entry.value.get("url").is_some() {
        let path = join("servers", &entry.key);
        return Some(format!("put it under `servers`, as `{path}`"));
    }
    let known = ["servers", "mcp_servers", "context_servers"];
    nearest(&snake(&entry.key), known.into_iter()).map(|_| "did you mean `servers`?".to_owned())
}

/// The later layer's settings win; of two sizes for one queue the larger wins.
fn merge_top(top: Values, loaded: &mut Loaded) {
    for (name, queue) in TopTable::new(&top).get(&top_fields::QUEUES) {
        let known = loaded.config.queues.entry(name).or_insert(queue);
        known.concurrent = known.concurrent.max(queue.concurrent);
    }
    let mut merged = top;
    merged.fill_from(std::mem::take(&mut loaded.top));
    loaded.top = merged;
}
