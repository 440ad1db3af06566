//! The servers of a run: from config files, from the command line, or the built-in demo server.

mod boards;
mod folder;
mod hosts;
mod marks;
mod pipes;
mod secrets;

pub(crate) use boards::{
    board, gateway_key_file, in_short, pins_folder, serving_board, set, torture_folder, whole_board, with_lazy_start,
    with_tokens,
};
#[cfg(unix)]
pub(crate) use boards::{catalogs_folder, state_folder};
pub(crate) use folder::here;
pub(crate) use hosts::{HostServers, PendingServer, approve_hint, decline_hosts, forget_hosts, hosts_found, join};
pub(crate) use secrets::secret_store;

use std::{collections::BTreeSet, time::Duration};

use pegboard::{
    Config, Format, Kind, Loaded, Problem, ServerName,
    config::{Misconfigured, Reading, Source, Start, Transport, TrustStore},
    diagnosis::Diagnosis,
};
use serde_json::json;

use crate::{
    cli::Global,
    exit::Exit,
    output::{self, Output},
};
use pipes::{is_pipe, refuse};
use secrets::{SecretUse, environment};

const DEMO: &str =
    "no config found, using the built-in demo server; `pegboard init` writes a config, `pegboard add` adds a server";
/// The hint about the demo server, which is built in only as long as there is no config.
const ADD_DEMO: &str = "`pegboard add demo -- pegboard demo-server` adds the built-in demo server";
/// The connect timeout of programs that download a server before they start it, such as `npx`, when no limit is set.
const FETCH: Duration = Duration::from_secs(600);
/// Added to the command's limit for the connect timeout, so that the command's limit always fires first.
const MARGIN: Duration = Duration::from_secs(1);
/// The warning when the config names no server.
const EMPTY: &str =
    "the config names no server; `pegboard add NAME -- COMMAND` adds one, `pegboard import` those of other programs";
/// The error when every server is misconfigured.
pub(crate) const NOTHING: &str = "no server can be used";

/// The servers of this run.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) loaded: Loaded,
    /// The servers selected with `--server NAME`; empty means all.
    only: Vec<String>,
    /// The servers whose problems are told, if they are not those of `only`.
    told_of: Option<Vec<String>>,
    /// Whether no config was found, so that the demo server is used.
    is_demo: bool,
    /// The servers of hosts, which are used where no config was found.
    hosts: Option<HostServers>,
    /// Whether the config refers to secrets of the user.
    secrets: SecretUse,
    /// The limit of the whole command, if the user set one.
    timeout: Option<Duration>,
}

/// Why a command cannot run, found before any server was contacted.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Complaint {
    /// The kind of outcome of a request that fails because of it.
    pub(crate) fn kind(&self) -> Kind {
        match self.exit {
            Exit::Refused => Kind::NotPermitted,
            _ => Kind::Unavailable,
        }
    }
}

impl Settings {
    /// Loads the configs that the options name, or discovers them.
    pub(crate) fn load(global: &Global) -> Self {
        Self::load_with(global, &[])
    }

    /// Like [`Self::load`], but without a config the servers are those of hosts, if there are any. Only those that are approved can be used.
    pub(crate) fn load_or_hosts(global: &Global) -> Self {
        let settings = Self::load(global);
        match settings.is_demo {
            true => HostServers::find(global.trust).map_or(settings, |hosts| Self::of_hosts(global, hosts)),
            false => settings,
        }
    }

    /// Like [`Self::load_or_hosts`] for a command about what has this name. The demo server is there for who names it, if no other server is called so.
    pub(crate) fn load_for(global: &Global, name: &str) -> Self {
        let settings = Self::load_or_hosts(global);
        match settings.hosts.is_some() && settings.demo_hint(name).is_some() {
            true => Self::load(global),
            false => settings,
        }
    }

    fn of_hosts(global: &Global, hosts: HostServers) -> Self {
        let secrets = SecretUse::default();
        let mut loaded = Config::load(&hosts.sources(), &environment(&secrets));
        hosts.add_pending(&mut loaded);
        Self {
            loaded,
            only: global.servers.clone(),
            told_of: None,
            is_demo: false,
            hosts: Some(hosts),
            secrets,
            timeout: global.timeout,
        }
    }

    /// Loads the same configs, and more servers after them, each from a source of its own.
    pub(crate) fn load_with(global: &Global, more: &[(ServerName, Source)]) -> Self {
        let secrets = SecretUse::default();
        let env = environment(&secrets);
        let (added, only): (Vec<&String>, Vec<&String>) =
            global.servers.iter().partition(|server| server.contains('='));
        let mut sources: Vec<Source> = if global.configs.is_empty() {
            let found = Source::discover(&here(), &env, &TrustStore::user(&env)).into_iter();
            found
                .map(|source| if global.trust { source.trusted() } else { source })
                .collect()
        } else {
            let files = global.configs.iter().filter(|path| !is_pipe(path));
            files.map(Source::file).collect()
        };
        match &global.added_settings {
            Some(server) => sources.push(Source::text("--server", server, Some(Format::Json))),
            None => sources.extend(added.into_iter().map(Source::server)),
        }
        let is_demo = sources.is_empty() && global.configs.is_empty();
        if is_demo {
            sources.extend(demo());
        }
        sources.extend(more.iter().map(|(_, source)| source.clone()));
        let mut only: Vec<String> = only.into_iter().cloned().collect();
        if !only.is_empty() {
            only.extend(more.iter().map(|(name, _)| name.to_string()));
        }
        let mut loaded = Config::load(&sources, &env);
        for path in global.configs.iter().filter(|path| is_pipe(path)) {
            refuse(&mut loaded, path, "is not a regular file");
        }
        Self {
            loaded,
            only,
            told_of: None,
            is_demo,
            hosts: None,
            secrets,
            timeout: global.timeout,
        }
    }

    /// The note that the demo server is used, if it is.
    pub(crate) fn demo_note(&self) -> Option<&'static str> {
        self.is_demo.then_some(DEMO)
    }

    /// The warning that the config names no server, unless another error already explains it.
    pub(crate) fn empty_warning(&self) -> Option<&'static str> {
        let Config {
            servers, misconfigured, ..
        } = &self.loaded.config;
        let is_empty = servers.is_empty() && misconfigured.is_empty() && self.loaded.unreadable.is_empty();
        is_empty.then_some(EMPTY)
    }

    /// Prints notes and problems of the config to stderr. In JSON format they are in the document instead.
    pub(crate) fn announce(&self, output: &Output) {
        if let Some(note) = self.demo_note() {
            output.note(note);
        }
        self.host_notes().for_each(|note| output.note(&note));
        if let Some(warning) = self.empty_warning() {
            output.say(&output::warning(warning));
        }
        for problem in self.problems() {
            output.say(&output::warning(&in_short(&problem.to_string())));
        }
    }

    /// Limits the problems that are told to those of these servers and those of the config as a whole.
    pub(crate) fn tell_only_of<'a>(&mut self, servers: impl IntoIterator<Item = &'a str>) {
        self.told_of = Some(servers.into_iter().map(str::to_owned).collect());
    }

    /// Takes back what [`Self::tell_only_of`] limits.
    pub(crate) fn tell_of_all(&mut self) {
        self.told_of = None;
    }

    /// The problems of the config that concern this run: not those of servers that it does not use, nor warnings about disabled servers.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        let servers = &self.loaded.config.servers;
        let is_off = |name: &str| servers.get(name).is_some_and(|server| !server.enabled);
        let problems = self.loaded.problems.iter();
        problems.filter(move |problem| match problem.server() {
            Some(server) => self.is_told(server) && (problem.is_error() || !is_off(server)),
            None => true,
        })
    }

    /// Whether what is wrong with a server concerns this run.
    fn is_told(&self, name: &str) -> bool {
        match &self.told_of {
            Some(names) => names.iter().any(|told| told == name),
            None => self.only.is_empty() || self.only.iter().any(|wanted| wanted == name),
        }
    }

    /// Notes and problems of the config, for the JSON document.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let notes = self.demo_note().into_iter().chain(self.empty_warning());
        let notes = notes.map(str::to_owned).chain(self.host_notes());
        notes.chain(self.problems().map(ToString::to_string))
    }

    /// The config with the selected servers, or why no server can be used.
    ///
    /// A source that could not be read at all is an error: what it forbids would be allowed without it.
    pub(crate) fn usable_config(&self) -> Result<Config, Complaint> {
        let config = self.config_with_unapproved()?;
        let mut pending = config.misconfigured.values().filter(|server| is_pending(server));
        match pending.next() {
            Some(_) if config.servers.is_empty() && self.hosts.is_some() => {
                let names = self
                    .hosts
                    .as_ref()
                    .and_then(|hosts| hosts.pending_names(|name| self.is_told(name)));
                Err(Complaint {
                    message: format!("not approved to start: {}", names.unwrap_or_default()),
                    hint: Some(approve_hint().to_owned()),
                    exit: Exit::Refused,
                })
            }
            Some(first) if config.servers.is_empty() => Err(Complaint {
                message: format!("{NOTHING}: {}", first.why),
                hint: Some(first.problems.join("\n")),
                exit: Exit::Refused,
            }),
            _ => Ok(config),
        }
    }

    /// Like [`Self::usable_config`], but also succeeds when all servers are those of a project file that is not approved.
    pub(crate) fn config_with_unapproved(&self) -> Result<Config, Complaint> {
        let config = self.config()?;
        match list(self.loaded.errors()) {
            Some(errors) if config.servers.is_empty() => Err(Complaint {
                message: NOTHING.to_owned(),
                hint: Some(
                    std::iter::once(errors)
                        .chain(self.describe_unapproved())
                        .collect::<Vec<_>>()
                        .join("\n"),
                ),
                exit: Exit::Usage,
            }),
            _ => Ok(config),
        }
    }

    /// A line for each project file whose servers wait for its approval.
    fn describe_unapproved(&self) -> BTreeSet<String> {
        let servers = self.loaded.config.misconfigured.values();
        let pending = servers.filter(|server| is_pending(server));
        pending
            .map(|server| format!("{} ({})", server.why, server.problems.join("; ")))
            .collect()
    }

    /// The config with one server, whose problems alone are told from then on, or why it cannot be used.
    pub(crate) fn usable_one(&mut self, name: &str) -> Result<Config, Complaint> {
        let mut config = match self.find_misconfigured(|known| known == name) {
            // What is wrong with this server matters more than what is wrong with all.
            Some(_) => self.config()?,
            None => self.usable_config()?,
        };
        if !config.servers.contains_key(name) {
            return Err(self.missing_server_complaint(name));
        }
        config.select(|known| known == name);
        self.tell_only_of([name]);
        Ok(config)
    }

    /// Like [`Self::usable_config`], but also succeeds when no server can be used.
    pub(crate) fn config(&self) -> Result<Config, Complaint> {
        let mut config = self.selected_config()?;
        self.await_starts(&mut config);
        Ok(config)
    }

    /// Like [`Self::shown`] for all servers, whatever `--server NAME` selects.
    pub(crate) fn config_of_all(&self) -> Result<Config, Complaint> {
        let mut config = self.readable_config()?;
        self.await_starts(&mut config);
        Ok(config)
    }

    /// The selected servers as they are configured, for a program that keeps running.
    pub(crate) fn selected_config(&self) -> Result<Config, Complaint> {
        let mut config = self.readable_config()?;
        for name in &self.only {
            if !config.servers.keys().any(|known| known.as_str() == name) {
                return Err(self.missing_server_complaint(name));
            }
        }
        if !self.only.is_empty() {
            let is_wanted = |name: &ServerName| self.only.iter().any(|wanted| wanted == name.as_str());
            config.select(is_wanted);
            // Whoever names a server connects it.
            for server in config.servers.values_mut() {
                if server.start == Start::Explicit {
                    server.start = Start::Lazy;
                }
            }
        }
        Ok(config)
    }

    fn readable_config(&self) -> Result<Config, Complaint> {
        let unreadable = &self.loaded.unreadable;
        if !unreadable.is_empty() {
            let problems = self.loaded.errors();
            return Err(Complaint {
                message: format!(
                    "{} cannot be read as a config, so nothing was done",
                    unreadable.join(" and ")
                ),
                hint: list(problems.filter(|problem| unreadable.contains(&problem.file))),
                exit: Exit::Usage,
            });
        }
        Ok(self.loaded.config.clone())
    }

    /// Extends `connect_timeout` to the command's limit where neither the config nor a preset sets it.
    ///
    /// A host is answered while a slow start continues in the background. A command can only wait for it.
    pub(crate) fn await_starts(&self, config: &mut Config) {
        let set = self.loaded.servers_that_set("connect_timeout");
        for (_, server) in config.servers.iter_mut().filter(|(name, _)| !set.contains(name)) {
            let fetches = matches!(&server.transport, Transport::Stdio(command) if command.fetches_first());
            let allowed = match self.timeout {
                Some(timeout) => timeout.saturating_add(MARGIN),
                None if fetches => FETCH,
                None => continue,
            };
            server.limits.connect_timeout = server.limits.connect_timeout.max(allowed);
        }
    }

    /// Sets guided reading of text arguments where neither the config nor a preset sets `call_arguments.read`.
    pub(crate) fn guide(&self, config: &mut Config) {
        let set = self.loaded.servers_that_set("call_arguments.read");
        for (_, server) in config.servers.iter_mut().filter(|(name, _)| !set.contains(name)) {
            server.policy.call_arguments.read = Reading::Guided;
        }
    }

    /// The server selected with `--server NAME`, if it is exactly one.
    pub(crate) fn picked_server(&self) -> Option<&str> {
        match self.only.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The servers selected with `--server NAME`.
    pub(crate) fn picked_servers(&self) -> impl Iterator<Item = &str> {
        self.only.iter().map(String::as_str)
    }

    /// The names of misconfigured servers.
    pub(crate) fn misconfigured_names(&self) -> impl Iterator<Item = &str> {
        self.loaded.config.misconfigured.keys().map(ServerName::as_str)
    }

    /// The first misconfigured server that `is_meant` accepts.
    pub(crate) fn find_misconfigured(&self, is_meant: impl Fn(&str) -> bool) -> Option<&ServerName> {
        let mut names = self.loaded.config.misconfigured.keys();
        names.find(|name| is_meant(name.as_str()))
    }

    /// What is wrong with the config, as data, if no file can be used or the server that is meant cannot.
    pub(crate) fn config_diagnosis(&self, is_meant: impl Fn(&str) -> bool) -> Option<Box<Diagnosis>> {
        let unreadable = &self.loaded.unreadable;
        let mut errors = self.loaded.errors();
        match errors.find(|problem| unreadable.contains(&problem.file)) {
            Some(problem) => Some(Box::new(problem.diagnosis())),
            None => {
                let name = self.find_misconfigured(is_meant)?;
                self.loaded.config.misconfigured.get(name)?.diagnosis.clone()
            }
        }
    }

    /// Whether the config has a server of this name, even one that cannot be used.
    pub(crate) fn has(&self, name: &str) -> bool {
        let config = &self.loaded.config;
        config.servers.contains_key(name) || config.misconfigured.contains_key(name)
    }

    /// The hint for `demo` and the names of what the demo server offers, if no server is called so.
    pub(crate) fn demo_hint(&self, name: &str) -> Option<&'static str> {
        let rest = name.strip_prefix("demo")?;
        let is_its = rest.is_empty() || [".", "__", "://"].iter().any(|after| rest.starts_with(after));
        (is_its && !self.has("demo")).then_some(ADD_DEMO)
    }

    /// The complaint about a requested server that does not exist or is misconfigured.
    pub(crate) fn missing_server_complaint(&self, name: &str) -> Complaint {
        self.missing_of(name, "COMMAND")
    }

    /// Like [`Self::missing_server_complaint`] for a command that is about remote servers.
    pub(crate) fn missing_remote(&self, name: &str) -> Complaint {
        self.missing_of(name, "URL")
    }

    fn missing_of(&self, name: &str, what: &str) -> Complaint {
        let mut misconfigured = self.loaded.config.misconfigured.iter();
        if let Some((_, found)) = misconfigured.find(|(known, _)| known.as_str() == name) {
            let problems = &found.problems;
            let is_pending = is_pending(found);
            return Complaint {
                message: match is_pending {
                    true => format!("server `{name}` is not started: {}", found.why),
                    false => format!("server `{name}` cannot be used as it is configured"),
                },
                exit: if is_pending { Exit::Refused } else { Exit::Usage },
                hint: Some(if problems.is_empty() {
                    found.why.clone()
                } else {
                    problems.join("\n")
                }),
            };
        }
        // The server may be in a file that cannot be read.
        if let Err(complaint) = self.readable_config() {
            return complaint;
        }
        let names: Vec<_> = self.loaded.config.servers.keys().map(ServerName::as_str).collect();
        // The demo server is no remote one.
        let demo = self.demo_hint(name).filter(|_| what == "COMMAND");
        Complaint {
            message: format!("there is no server `{name}`"),
            hint: Some(match (demo, names.as_slice()) {
                (Some(hint), []) => hint.to_owned(),
                (Some(hint), names) => format!("the servers are {}; {hint}", names.join(", ")),
                (None, []) => "no server is configured".to_owned(),
                (None, names) => format!(
                    "the servers are {}; `--server {name}={what}` adds one",
                    names.join(", ")
                ),
            }),
            exit: Exit::Usage,
        }
    }
}

/// Whether a server waits for the approval of its project file.
pub(crate) fn is_pending(server: &Misconfigured) -> bool {
    server.pending_trust.is_some()
}

/// The problems, one per line.
fn list<'a>(problems: impl Iterator<Item = &'a Problem>) -> Option<String> {
    let lines: Vec<String> = problems.map(ToString::to_string).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The demo server: this program, started again. A `$` in its path is escaped, because config values expand variables.
fn demo() -> Option<Source> {
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    let command = program.replace('$', "$$");
    let config = json!({"servers": {"demo": {"command": command, "args": ["demo-server"]}}});
    Some(Source::text("built-in", config.to_string(), Some(Format::Json)))
}

#[cfg(test)]
mod tests {
    use pegboard::Env;

    use super::*;

    fn settings(timeout: Option<Duration>) -> Settings {
        let text = "[servers.cold]\ncommand = 'npx'\nargs = ['-y', 'x']\n[servers.plain]\ncommand = 'x'\n\
                    [servers.said]\ncommand = 'uvx'\nargs = ['x']\nconnect_timeout = '5s'\n";
        let source = Source::text("test", text, Some(Format::Toml));
        Settings {
            loaded: Config::load(&[source], &Env::from_pairs([("", "")])),
            only: Vec::new(),
            told_of: None,
            is_demo: false,
            hosts: None,
            secrets: SecretUse::default(),
            timeout,
        }
    }

    #[test]
    fn a_start_may_take_as_long_as_the_user_allows() {
        let secs = Duration::from_secs;
        for (timeout, cold, plain) in [
            (None, FETCH, secs(30)),
            (Some(secs(120)), secs(121), secs(121)),
            (Some(secs(5)), secs(30), secs(30)),
        ] {
            let config = settings(timeout).usable_config().unwrap();
            let connect: Vec<Duration> = config
                .servers
                .values()
                .map(|server| server.limits.connect_timeout)
                .collect();
            assert_eq!(connect, [cold, plain, secs(5)], "{timeout:?}");
        }
    }
}
