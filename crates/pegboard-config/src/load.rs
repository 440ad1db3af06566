//! Loads sources in order into one config, and collects all problems.

use std::path::{Path, PathBuf};

use super::{
    board::Config,
    board_limits::BoardLimits,
    check::TableChecker,
    env_file::EnvFiles,
    expand::Env,
    field::Via,
    fields::{SERVER, TOP, TopTable, server, top as top_fields},
    import, layers,
    loaded::{Loaded, Origin, PendingTrust},
    misconfigured::Misconfigured,
    problem::{MAX_PROBLEMS, Problem, Report, Severity, join},
    project_file, project_floor, project_rules, protective, queue_names,
    relative_path::with_folders,
    resolve::{self, Context, audit, gateway, masking, serve, views},
    server::ServerConfig,
    setting::{Rank, Setting, Values},
    source::{Approval, Source},
    spelling::{find_nearest, snake},
    tree::{Format, KeyValue, Value},
};
use pegboard_base::{diagnosis::Code, name::ServerName};
use pegboard_mask::Masking;

/// What to do about a project file that is not approved.
const TRUST_HINT: &str = "`pegboard trust show` shows what it would start, `pegboard trust accept` approves it";

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
    let mut layers: Vec<Layer<'_>> = sources
        .iter()
        .map(|source| Layer::read(source, env, &mut loaded))
        .collect();
    // Project files come last, wherever they are in the list: they can only make the others stricter.
    let mut preset = TopTable::new(&loaded.top).set(&top_fields::preset);
    for layer in &mut layers {
        layer.tighten(&mut loaded);
        preset = preset.or_else(|| TopTable::new(&layer.own_top).set(&top_fields::preset));
    }
    let masking = masking::extend(
        &Masking::default(),
        TopTable::new(&loaded.top).find(&top_fields::masking),
    );
    let lost: Vec<Problem> = layers
        .iter()
        .filter(|layer| !layer.is_project())
        .flat_map(Layer::lost_protections)
        .collect();
    for layer in layers {
        let lost = match layer.is_project() {
            true => [lost.as_slice(), &layer.lost].concat(),
            false => lost.clone(),
        };
        layer.add_servers(env, &masking, &lost, &mut loaded);
    }
    add_misshapen(&mut loaded);
    let config = &mut loaded.config;
    let top = TopTable::new(&loaded.top);
    config.preset = preset.unwrap_or_default();
    config.limits = BoardLimits::default().overlay(top);
    config.naming = top.set(&top_fields::naming).unwrap_or_else(|| config.preset.naming());
    config.masking = masking;
    config.audit = audit::audit(top);
    config.views = views::views(top);
    let (serve, unknown_views) = serve::serve(top, &config.views);
    config.serve = serve;
    config.daemon = top.get(&top_fields::daemon);
    let unknown_servers = views::unknown_servers(top, config);
    loaded.problems.extend(unknown_views.into_iter().chain(unknown_servers));
    queue_names::bind(&mut loaded);
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

/// Checks the top-level settings of a source.
fn top(rest: Vec<KeyValue>, base: Option<&Path>, env: &Env<'_>, report: &mut Report) -> Values {
    let rest = without_stray_servers(rest, report);
    let mut top = TableChecker::new(report, env, Rank::Top).section(TOP, &rest, "");
    audit::anchor(&mut top, base, env, report);
    serve::anchor(&mut top, base, env);
    resolve::check_gateway(&mut top, report);
    resolve::check(&top, "", report);
    if let Some(found) = TopTable::new(&top).find(&top_fields::masking) {
        masking::check(report, "", found);
    }
    top
}

/// One of the sources.
struct Layer<'a> {
    source: &'a Source,
    base: Option<PathBuf>,
    standing: Standing,
    servers: Vec<(KeyValue, Vec<KeyValue>)>,
    /// The top of a project file; after [`Layer::tighten`] the defaults of its own servers.
    own_top: Values,
    /// The errors at the top that leave a protection out.
    lost: Vec<Problem>,
    report: Report,
}

/// What a source may do.
enum Standing {
    /// A source of the system, the user or the program, which is used as it is.
    Own,
    /// An approved project file, with the environment files that were approved with it.
    Project(EnvFiles),
    /// A project file that is not approved.
    Pending,
}

impl<'a> Layer<'a> {
    /// Reads a source, and merges its top-level settings unless it is a project file.
    fn read(source: &'a Source, env: &Env<'_>, loaded: &mut Loaded) -> Self {
        let mut layer = Self {
            source,
            base: source.folder(),
            standing: Standing::Own,
            servers: Vec::new(),
            own_top: Values::default(),
            lost: Vec::new(),
            report: Report::new(source.name()),
        };
        let Some((text, root)) = source.read(&mut layer.report) else {
            loaded.unreadable.push(source.name().to_owned());
            return layer;
        };
        if source.is_file() && text.trim().is_empty() {
            loaded.blank.push(source.name().to_owned());
        }
        let mut report = Report::new(source.name());
        let shaped = import::shape(root, &mut report);
        layer.servers = shaped.servers;
        if let Some(approval) = source.approval() {
            // An unapproved file must not choose which files are read.
            let env_files = match approval {
                Approval::None(_) => EnvFiles::default(),
                _ => project_file::env_files(&layer.servers, layer.base.as_deref(), env),
            };
            if !approval.covers(&project_file::digest(&text, &env_files)) {
                layer.standing = Standing::Pending;
                layer.report_pending(approval);
                return layer;
            }
            layer.standing = Standing::Project(env_files);
        }
        layer.report = report;
        let top = top(
            shaped.rest,
            layer.base.as_deref(),
            &with_folders(env, layer.base.as_deref()),
            &mut layer.report,
        );
        layer.lost = protective::find_lost(&layer.report);
        match layer.standing {
            Standing::Own => merge_top(top, loaded),
            Standing::Project(_) | Standing::Pending => layer.own_top = top,
        }
        layer
    }

    fn report_pending(&mut self, approval: &Approval) {
        let message = match approval {
            Approval::Digest(_) => "has changed since it was approved, so none of it is used",
            Approval::None(_) | Approval::Any => "is not approved, so none of it is used",
        };
        self.report
            .file(Severity::Warning, message, Some(TRUST_HINT.to_owned()));
        if let Approval::None(Some(problem)) = approval {
            self.report.file(Severity::Warning, problem, None);
        }
    }

    fn is_project(&self) -> bool {
        matches!(self.standing, Standing::Project(_) | Standing::Pending)
    }

    fn lost_protections(&self) -> impl Iterator<Item = Problem> {
        self.lost.iter().cloned()
    }

    /// Applies the top of a project file to the other sources.
    fn tighten(&mut self, loaded: &mut Loaded) {
        if let Standing::Project(_) = self.standing {
            let top = std::mem::take(&mut self.own_top);
            self.own_top = project_rules::apply(top, loaded, &mut self.report);
        }
    }

    /// Adds the servers. With a `lost` protection they are misconfigured.
    fn add_servers(mut self, env: &Env<'_>, masking: &Masking, lost: &[Problem], loaded: &mut Loaded) {
        if let Standing::Pending = self.standing {
            self.add_pending(loaded);
        } else {
            let reader = ServerReader {
                base: self.base.as_deref(),
                env: &with_folders(env, self.base.as_deref()),
                file: self.source.name(),
                masking,
                own_top: &self.own_top,
                env_files: match &self.standing {
                    Standing::Project(env_files) => Some(env_files),
                    Standing::Own | Standing::Pending => None,
                },
                lost,
            };
            for (entry, settings) in &self.servers {
                reader.server(entry, settings, loaded, &mut self.report);
            }
        }
        loaded.sources.push(self.source.name().to_owned());
        loaded.problems.extend(self.report.into_problems());
    }

    /// Adds the servers of a project file that is not approved. Nothing of them is read but name and transport.
    fn add_pending(&self, loaded: &mut Loaded) {
        let Some(path) = self.source.project_path() else { return };
        let file = project_file::canonicalize(path);
        let mut servers = Vec::new();
        for (entry, settings) in &self.servers {
            let Ok(name) = ServerName::parse(&entry.key) else {
                continue;
            };
            if !is_taken(&name, loaded) {
                let pending = Misconfigured::from_unapproved(settings, file.clone(), TRUST_HINT);
                loaded.config.misconfigured.insert(name.clone(), pending);
                servers.push(name);
            }
        }
        let has_changed = matches!(self.source.approval(), Some(Approval::Digest(_)));
        loaded.pending_trust.push(PendingTrust {
            file,
            servers,
            has_changed,
        });
    }
}

/// Whether servers that do not say so themselves are required.
fn are_servers_required(top: &Values) -> bool {
    let required = top.find(&server::required.field);
    required.is_some_and(|found| matches!(found.setting, Setting::Bool(true)))
}

/// Whether a source before has a server of this name.
fn is_taken(name: &ServerName, loaded: &Loaded) -> bool {
    loaded.config.servers.contains_key(name) || loaded.config.misconfigured.contains_key(name)
}

/// Reads the servers of one source.
struct ServerReader<'a> {
    base: Option<&'a Path>,
    env: &'a Env<'a>,
    file: &'a str,
    /// The masking of all servers.
    masking: &'a Masking,
    /// The defaults that a project file sets for its own servers.
    own_top: &'a Values,
    /// The environment files of a project file; `None` for other sources.
    env_files: Option<&'a EnvFiles>,
    lost: &'a [Problem],
}

impl ServerReader<'_> {
    fn is_project(&self) -> bool {
        self.env_files.is_some()
    }

    fn server(&self, entry: &KeyValue, settings: &[KeyValue], loaded: &mut Loaded, report: &mut Report) {
        let path = join("servers", &entry.key);
        let name = match ServerName::parse(&entry.key) {
            Ok(name) => name,
            Err(error) => return report.error(entry.at, &path, error.to_string()),
        };
        if self.is_project() && is_taken(&name, loaded) {
            let owner = loaded.origins.get(&name).map(|origin| origin.file.as_str());
            let owner = owner.unwrap_or("another config file");
            let message = format!("a project file cannot replace the server of {owner}, which stays in use");
            return report.error_with(entry.at, &path, message, "give it another name");
        }
        let before = report.len();
        if let Some(other) = loaded
            .config
            .servers
            .keys()
            .find(|known| **known != name && fold(known) == fold(&name))
        {
            let message = format!("the name is too close to `{other}`: models and providers mix up case, `-` and `_`");
            report.error_with(entry.at, &path, message, "rename one of them");
            let misconfigured =
                Misconfigured::new(settings, are_servers_required(&loaded.top), report.errors_from(before));
            loaded.config.misconfigured.insert(name, misconfigured);
            return;
        }
        // This entry replaces that of an earlier source, even if it has errors.
        loaded.config.servers.remove(&name);
        loaded.origins.remove(&name);
        loaded.written.remove(&name);
        loaded.config.misconfigured.remove(&name);
        match self.resolve(entry, settings, &path, &loaded.top, report) {
            Some((values, server)) if self.lost.is_empty() => {
                let origin = Origin {
                    file: self.file.to_owned(),
                    line: entry.at.line,
                };
                loaded.config.servers.insert(name.clone(), server);
                loaded.origins.insert(name.clone(), origin);
                loaded.written.insert(name, values);
            }
            _ => {
                let errors = self.lost.iter().chain(report.errors_from(before));
                let misconfigured = Misconfigured::new(settings, are_servers_required(&loaded.top), errors);
                loaded.config.misconfigured.insert(name, misconfigured);
            }
        }
    }

    fn resolve(
        &self,
        entry: &KeyValue,
        settings: &[KeyValue],
        path: &str,
        top: &Values,
        report: &mut Report,
    ) -> Option<(Values, ServerConfig)> {
        let errors = report.errors();
        let mut check = TableChecker::new(report, self.env, Rank::Server);
        check.set_lenient(is_disabled(settings));
        let mut written = check.section(SERVER, settings, path);
        resolve::check(&written, path, report);
        if self.is_project() {
            project_rules::keep_masking(&mut written, path, report);
            project_floor::keep(&mut written, top, path, report);
        }
        let values = layers::fill_from_tops(written, &[self.own_top, top]);
        // Resolving would report refused settings once more, as missing.
        let good = report.errors() == errors;
        let mut context = Context {
            report,
            env: self.env,
            base: self.base,
            path,
            at: entry.at,
            masking: self.masking,
            env_files: self.env_files,
        };
        let server = good.then(|| resolve::resolve(&mut context, &values)).flatten()?;
        (report.errors() == errors).then_some((values, server))
    }
}

/// Whether a server is disabled. Its missing variables are only warnings then.
fn is_disabled(settings: &[KeyValue]) -> bool {
    settings.iter().any(|setting| {
        let Some(found) = SERVER.find(&setting.key) else {
            return false;
        };
        let disabled = Value::Bool(found.via == Some(Via::Negated));
        found.field.name == server::enabled.name && setting.value.value == disabled
    })
}

/// The name without the differences that models and providers confuse.
fn fold(name: &ServerName) -> String {
    name.as_str().to_ascii_lowercase().replace('-', "_")
}

/// Reports servers outside of `servers`, or under a misspelt `servers`, with a hint, and returns the other entries.
fn without_stray_servers(entries: Vec<KeyValue>, report: &mut Report) -> Vec<KeyValue> {
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
                report.name_last(Code::UnknownSetting, None);
            }
            None => rest.push(entry),
        }
    }
    rest
}

/// The hint for a server in the wrong place.
fn stray(entry: &KeyValue) -> Option<String> {
    if TOP.find(&entry.key).is_some() {
        return None;
    }
    if entry.value.get("command").is_some() || entry.value.get("url").is_some() {
        let path = join("servers", &entry.key);
        return Some(format!("put it under `servers`, as `{path}`"));
    }
    let known = ["servers", "mcp_servers", "context_servers"];
    find_nearest(&snake(&entry.key), known.into_iter()).map(|_| "did you mean `servers`?".to_owned())
}

/// Merges top-level settings: those of the later source win, except that a queue gets the larger of two sizes.
fn merge_top(top: Values, loaded: &mut Loaded) {
    for (name, queue) in TopTable::new(&top).get(&top_fields::queues) {
        let known = loaded.config.queues.entry(name).or_insert(queue);
        known.concurrent = known.concurrent.max(queue.concurrent);
    }
    let mut merged = top;
    gateway::merge(&mut merged, &mut loaded.top);
    merged.fill_from(std::mem::take(&mut loaded.top));
    loaded.top = merged;
}
