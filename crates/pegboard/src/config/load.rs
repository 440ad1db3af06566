//! Reads files and texts, layer over layer, into one config with every problem found on the way.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    Config, Explained, Format, Misconfigured, Preset, Problem, Queue, ServerConfig, Severity, adhoc,
    check::{Check, join},
    expand::Env,
    explain,
    fields::{SERVER, TOP, nearest, snake},
    import, preset,
    problem::{MAX_PROBLEMS, Report},
    resolve::{self, Resolve, masking},
    setting::{Rank, Setting, Values},
    show,
    tree::{self, Entry, Node, Value},
};
use crate::{
    mask::Masking,
    name::{BadNameStyle, NameStyle, ServerName},
};

/// What a config file is called when nobody says otherwise, the preferred name first.
const FILE_NAMES: [&str; 5] = [
    "pegboard.toml",
    "pegboard.yaml",
    "pegboard.yml",
    "pegboard.json",
    ".mcp.json",
];

/// Where settings come from.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    content: Content,
}

#[derive(Clone)]
enum Content {
    File(PathBuf),
    Text(String, Option<Format>),
    /// `NAME=COMMAND…` or `NAME=URL`.
    Server(String),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "file",
            Self::Text(..) => "text",
            Self::Server(_) => "server",
        })
    }
}

impl Source {
    /// A file. Its extension tells its format; without a known one the formats are tried.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: path.display().to_string(),
            content: Content::File(path),
        }
    }

    /// The config file that is used when none is named: the nearest one in `folder` and the folders above it, or else one in
    /// the user's config folder.
    ///
    /// The search ends with the root of the repository (a folder with `.git`), the home folder or the root of the file
    /// system, and before a folder above that any user may write to: a file there could have been left by anybody.
    pub fn discover(folder: &Path, env: &Env<'_>) -> Option<Self> {
        let user = if cfg!(windows) {
            env.get("APPDATA").map(PathBuf::from)
        } else {
            let home = || Some(PathBuf::from(env.get("HOME")?).join(".config"));
            env.get("XDG_CONFIG_HOME")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
                .or_else(home)
        };
        let user = user.map(|folder| folder.join("pegboard"));
        let folders = project_folders(folder, env).into_iter().chain(user);
        let mut files = folders.flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
        files.find(|path| path.is_file()).map(Self::file)
    }

    /// A text, and what it is called in problems. Without a format the formats are tried.
    pub fn text(name: impl Into<String>, text: impl Into<String>, format: Option<Format>) -> Self {
        Self {
            name: name.into(),
            content: Content::Text(text.into(), format),
        }
    }

    /// One server as the command line writes it: `NAME=COMMAND…` or `NAME=URL`.
    pub fn server(text: impl Into<String>) -> Self {
        Self {
            name: "--server".into(),
            content: Content::Server(text.into()),
        }
    }
}

/// `folder` and the folders above it that belong to the same project.
fn project_folders(folder: &Path, env: &Env<'_>) -> Vec<PathBuf> {
    let home = env.get("HOME").or_else(|| env.get("USERPROFILE")).map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let start = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut folders = vec![folder.to_owned()];
    for (inner, outer) in start.ancestors().zip(start.ancestors().skip(1)) {
        if inner.join(".git").exists() || home.as_deref() == Some(inner) || is_open_to_all(outer) {
            break;
        }
        folders.push(outer.to_owned());
    }
    folders
}

/// Whether every user may create files in a folder.
#[cfg(unix)]
fn is_open_to_all(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    // A folder that cannot be looked at is not trusted.
    folder
        .metadata()
        .map_or(true, |meta| meta.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

/// A config and what is worth knowing about it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The config, without what could not be read.
    pub config: Config,
    /// Everything that is wrong or worth a warning, file by file and line by line.
    pub problems: Vec<Problem>,
    /// Where each server was written.
    pub origins: BTreeMap<ServerName, Origin>,
    /// The sources, in order.
    pub sources: Vec<String>,
    /// The sources of which nothing could be read: a file that is not there, or a text that does not parse. Whatever they
    /// forbid is not forbidden, so a program should rather stop than go on without them.
    pub unreadable: Vec<String>,
    /// What was written for each server, for showing.
    pub(super) written: BTreeMap<ServerName, Values>,
    pub(super) top: Values,
}

impl Loaded {
    /// The config, unless a source could not be read. A config without that source allows what the source forbids, and
    /// [`Pegboard::apply`](crate::Pegboard::apply) would take the servers away that it names.
    ///
    /// Problems of single servers are no error here: they are in `problems`, and such servers are `misconfigured`.
    pub fn readable(self) -> Result<Config, Unreadable> {
        if self.unreadable.is_empty() {
            return Ok(self.config);
        }
        let of_source = |problem: &&Problem| self.unreadable.contains(&problem.file);
        let problems = self.problems.iter().filter(of_source).map(ToString::to_string);
        Err(Unreadable {
            problems: problems.collect(),
            sources: self.unreadable,
        })
    }
}

/// A source of a config could not be read: a file that is not there, or a text that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the config cannot be read: {}", .problems.join("; "))]
#[non_exhaustive]
pub struct Unreadable {
    /// The sources.
    pub sources: Vec<String>,
    /// What is wrong with them.
    pub problems: Vec<String>,
}

/// Where a server was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Origin {
    /// The file, or the name of the text.
    pub file: String,
    /// The line of its name.
    pub line: u32,
}

impl Loaded {
    /// The problems that keep something from being used.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.is_error())
    }

    /// The problems that keep nothing from being used.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| !problem.is_error())
    }

    /// The resolved config for people: every setting of every server, variables not replaced, secrets hidden.
    pub fn show(&self) -> serde_json::Value {
        show::loaded(self)
    }

    /// Every setting that is in effect, with where it comes from: the top of the file first, then server by server.
    pub fn explain(&self) -> Vec<Explained> {
        explain::loaded(self)
    }

    /// What is in force for a setting that no source sets, by its full name: of a server, or for all servers. A value of null is none at all.
    pub fn explain_unset(&self, name: &str, server: Option<&ServerName>) -> Vec<Explained> {
        explain::unset(self, name, server)
    }

    /// The full name and the meaning of a setting of servers, or of the top of the file: `callTimeout` is `call_timeout`.
    pub fn setting(name: &str, is_server: bool) -> Option<(String, &'static str)> {
        explain::doc(name, is_server)
    }
}

pub(super) fn load(sources: &[Source], env: &Env<'_>) -> Loaded {
    let mut loaded = Loaded::default();
    // What stands at the top of any layer holds for the servers of all, so all tops are read first.
    let mut layers = Vec::new();
    for source in sources {
        let mut report = Report::new(source.name.as_str());
        let base = base(source);
        let servers = match read(source, &mut report) {
            Some(root) => {
                let layer = with_folders(env, base.as_deref());
                top(root, &layer, &mut loaded, &mut report)
            }
            None => {
                loaded.unreadable.push(source.name.clone());
                Vec::new()
            }
        };
        layers.push((source, base, servers, report));
    }
    for (source, base, servers, mut report) in layers {
        let layer = Layer {
            base: base.as_deref(),
            env: &with_folders(env, base.as_deref()),
            file: &source.name,
        };
        for (entry, settings) in &servers {
            layer.server(entry, settings, &mut loaded, &mut report);
        }
        loaded.sources.push(source.name.clone());
        loaded.problems.extend(report.into_problems());
    }
    add_misshapen(&mut loaded);
    loaded.config.preset = Preset::named(loaded.top.word("preset"));
    let limits = &mut loaded.config.limits;
    for (name, limit) in [
        ("max_servers", &mut limits.servers),
        ("max_processes", &mut limits.processes),
        ("max_starts", &mut limits.starts),
        ("max_buffered", &mut limits.buffered),
    ] {
        *limit = loaded.top.count(name).unwrap_or(*limit);
    }
    let written = naming(&loaded.top).and_then(Result::ok);
    loaded.config.naming = written.unwrap_or_else(|| loaded.config.preset.naming());
    spread_masking(&mut loaded);
    loaded
}

/// What is hidden in the results of every server, and on top of that what each server's own settings say.
fn spread_masking(loaded: &mut Loaded) {
    let everywhere = masking::layered(&Masking::default(), loaded.top.get("masking"));
    for (name, server) in &mut loaded.config.servers {
        let own = loaded.written.get(name).and_then(|values| values.get("masking"));
        server.policy.masking = masking::layered(&everywhere, own);
    }
    loaded.config.masking = everywhere;
}

/// The folder that a source's paths are relative to: that of the file itself, however its path is written and whatever links
/// lead to it.
fn base(source: &Source) -> Option<PathBuf> {
    let Content::File(path) = &source.content else {
        return None;
    };
    // The canonical paths of Windows are of a form that many programs do not take.
    let real = if cfg!(windows) { None } else { path.canonicalize().ok() };
    let path = real.or_else(|| std::path::absolute(path).ok())?;
    path.parent().map(Path::to_owned)
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
    let top = Check::new(report, env, Rank::Top).section(&TOP, &rest, "");
    resolve::check(&top, "", report);
    if let Some(found) = top.find("masking") {
        masking::check(report, "", found);
    }
    if let (Some(Err(error)), Some(found)) = (naming(&top), top.find("naming")) {
        report.error(found.at, &found.key, error.to_string());
    }
    merge_top(&top, loaded);
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

fn read(source: &Source, report: &mut Report) -> Option<Node> {
    let from_file;
    let (text, format) = match &source.content {
        Content::Server(text) => return adhoc::tree(text, report),
        Content::Text(text, format) => (text, *format),
        Content::File(path) => {
            from_file = read_file(path, report)?;
            (&from_file, Format::of(path))
        }
    };
    match tree::read(text, format) {
        Ok(root) if matches!(root.value, Value::Map(_) | Value::List(_) | Value::Null) => Some(root),
        Ok(root) => {
            report.error(root.at, "", "a config is a table of settings");
            None
        }
        Err(error) => {
            report.error(error.at, "", error.message);
            None
        }
    }
}

fn read_file(path: &Path, report: &mut Report) -> Option<String> {
    let limit = tree::MAX_BYTES as u64;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        warn_if_others_may_write(&file, report);
        file.take(limit + 1).read_to_end(&mut bytes)
    });
    if let Err(error) = read {
        report.file(Severity::Error, format!("cannot be read: {error}"), None);
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) => {
            report.file(Severity::Error, "is not UTF-8 text", None);
            None
        }
    }
}

#[cfg(unix)]
fn warn_if_others_may_write(file: &File, report: &mut Report) {
    use std::os::unix::fs::PermissionsExt as _;

    let open = file
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o022 != 0);
    if open {
        let hint = Some("`chmod go-w` it".to_owned());
        report.file(
            Severity::Warning,
            "other users may change it and so choose what is started",
            hint,
        );
    }
}

#[cfg(not(unix))]
fn warn_if_others_may_write(_: &File, _: &mut Report) {}

/// One source on top of those before it.
struct Layer<'a> {
    base: Option<&'a Path>,
    env: &'a Env<'a>,
    file: &'a str,
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
        let written = check.section(&SERVER, settings, path);
        resolve::check(&written, path, report);
        let values = preset::filled(written, top);
        // Settings that were refused would be reported once more as missing.
        let good = report.errors() == errors;
        let mut resolve = Resolve {
            report,
            env: self.env,
            base: self.base,
            path,
            at: entry.at,
        };
        let server = good.then(|| resolve.server(&values)).flatten()?;
        (report.errors() == errors).then_some((values, server))
    }
}

/// Whether a server is switched off, so that its missing variables hurt nobody.
fn is_disabled(settings: &[Entry]) -> bool {
    settings.iter().any(|setting| {
        matches!(
            (snake(&setting.key).as_str(), &setting.value.value),
            ("enabled", Value::Bool(false)) | ("disabled", Value::Bool(true))
        )
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

/// How tools are named: a word or a template.
fn naming(top: &Values) -> Option<Result<NameStyle, BadNameStyle>> {
    let template = || top.value("naming");
    let text = top.word("naming").map(str::to_owned).or_else(template)?;
    Some(NameStyle::parse(&text))
}

/// The later layer's settings win; of two sizes for one queue the larger wins.
fn merge_top(top: &Values, loaded: &mut Loaded) {
    for field in TOP.fields {
        if let Some(found) = top.find(field.name) {
            loaded.top.insert(field.name, found.clone());
        }
    }
    let Some(Setting::Map(queues)) = top.get("queues") else {
        return;
    };
    for (name, setting) in queues {
        let size = match setting {
            Setting::Count(size) => usize::try_from(*size).ok(),
            Setting::Table(table) => table.count("concurrent"),
            _ => None,
        };
        if let Some(size) = size {
            let queue = loaded.config.queues.entry(name.clone()).or_insert(Queue::new(size));
            queue.concurrent = queue.concurrent.max(size);
        }
    }
}
