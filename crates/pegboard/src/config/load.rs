//! Loads sources in order into one config, and collects all problems.

use std::path::Path;

use super::{
    board::Config,
    board_limits::BoardLimits,
    check::TableChecker,
    expand::Env,
    field::Via,
    fields::{SERVER, TOP, TopTable, server, top as top_fields},
    from_setting::Naming,
    import, layers,
    loaded::{Loaded, Origin},
    misconfigured::Misconfigured,
    problem::{MAX_PROBLEMS, Problem, Report, join},
    resolve::{self, Context, audit, masking},
    server::ServerConfig,
    setting::{Rank, Values},
    source::Source,
    spelling::{nearest, snake},
    tree::{Entry, Format, Node, Value},
};
use crate::{mask::Masking, name::ServerName};

impl Config {
    /// Loads the sources in order. A later source replaces servers of the same name and overrides other settings.
    ///
    /// Never fails: errors are in [`Loaded::problems`], and the rest of the config is usable.
    pub fn load(sources: &[Source], env: &Env<'_>) -> Loaded {
        load(sources, env)
    }

    /// Loads a config from text.
    pub fn from_text(text: &str, format: Format, env: &Env<'_>) -> Loaded {
        load(&[Source::text("config", text, Some(format))], env)
    }
}

impl ServerConfig {
    /// Parses `NAME=COMMAND…` or `NAME=URL`.
    ///
    /// The command is split into words like in a shell, with quotes and backslashes. Of a shell's expansions only
    /// `${NAME}` is supported, and its value stays one word.
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
    // Top-level settings of any source apply to the servers of all sources, so they are read first.
    let mut layers = Vec::new();
    for source in sources {
        let mut report = Report::new(source.name());
        let base = source.folder();
        let servers = match source.read(&mut report) {
            Some(root) => {
                let layer = with_folders(env, base.as_deref());
                top(root, &layer, base.as_deref(), &mut loaded, &mut report)
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
    config.audit = audit::audit(top);
    loaded
}

/// Adds servers with errors that never became a table of settings, such as a server that is a number.
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

/// Reads the top-level settings of a source, and returns its servers.
fn top(
    root: Node,
    env: &Env<'_>,
    base: Option<&Path>,
    loaded: &mut Loaded,
    report: &mut Report,
) -> Vec<(Entry, Vec<Entry>)> {
    let shaped = import::shape(root, report);
    let rest = without_stray_servers(shaped.rest, report);
    let mut top = TableChecker::new(report, env, Rank::Top).section(TOP, &rest, "");
    audit::anchor(&mut top, base, env, report);
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

/// Adds the variables that editors define to the environment: `workspaceFolder` and `userHome`.
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

/// One of the sources.
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
        // This entry replaces that of an earlier source, even if it has errors.
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
        let mut check = TableChecker::new(report, self.env, Rank::Server);
        check.lenient(is_disabled(settings));
        let written = check.section(SERVER, settings, path);
        resolve::check(&written, path, report);
        let values = layers::filled(written, top);
        // Resolving would report refused settings once more, as missing.
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

/// Whether a server is disabled. Its missing variables are only warnings then.
fn is_disabled(settings: &[Entry]) -> bool {
    settings.iter().any(|setting| {
        let Some(found) = SERVER.find(&setting.key) else {
            return false;
        };
        let disabled = Value::Bool(found.via == Some(Via::Negated));
        found.field.name == server::ENABLED.name && setting.value.value == disabled
    })
}

/// The name without the differences that models and providers confuse.
fn folded(name: &ServerName) -> String {
    name.as_str().to_ascii_lowercase().replace('-', "_")
}

/// Reports servers outside of `servers`, or under a misspelt `servers`, with a hint, and returns the other entries.
fn without_stray_servers(entries: Vec<Entry>, report: &mut Report) -> Vec<Entry> {
    let mut rest = Vec::new();
    for entry in entries {
        // `TableChecker` reports that the rest is not checked after this many errors.
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

/// The hint for a server in the wrong place.
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

/// Merges top-level settings: those of the later source win, except that a queue gets the larger of two sizes.
fn merge_top(top: Values, loaded: &mut Loaded) {
    for (name, queue) in TopTable::new(&top).get(&top_fields::QUEUES) {
        let known = loaded.config.queues.entry(name).or_insert(queue);
        known.concurrent = known.concurrent.max(queue.concurrent);
    }
    let mut merged = top;
    merged.fill_from(std::mem::take(&mut loaded.top));
    loaded.top = merged;
}
