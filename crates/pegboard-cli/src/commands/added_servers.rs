//! [`AddedServers`]: the servers that clients have added over the HTTP API, until the next restart.

use std::collections::BTreeMap;

use pegboard::{Format, Problem, ServerName, config::Source};
use pegboard_base::sync::Mutex;
use pegboard_daemon::{ResolvedServer, ServerSettings, UnresolvedServer};
use serde_json::json;

use crate::{cli::Global, daemon::ConfigDigests, settings::Settings};

/// The name of the source in problems.
const REQUEST: &str = "request";

/// The settings of added servers as JSON objects. They are read together with the config files, so they get presets, settings for all
/// servers and variables as if they were written there.
#[derive(Debug)]
pub(super) struct AddedServers {
    global: Global,
    added: Mutex<BTreeMap<ServerName, String>>,
}

impl AddedServers {
    pub(super) fn new(global: Global) -> Self {
        Self {
            global,
            added: Mutex::default(),
        }
    }

    /// Loads the config with the servers that were added, if the config still allows them. Also returns the digests of the config without
    /// them, by which commands find out whether the daemon reads the same files.
    pub(super) fn load(&self) -> (Settings, ConfigDigests) {
        let settings = Settings::load(&self.global);
        let digests = ConfigDigests::new(&settings.loaded.config);
        let added = self.added.lock().clone();
        if added.is_empty() || !settings.loaded.config.serve.allow_new_servers {
            return (settings, digests);
        }
        let added: Vec<_> = added.iter().map(source).collect();
        (Settings::load_with(&self.global, &added), digests)
    }
}

/// A config with one server.
fn source((name, settings): (&ServerName, &String)) -> (ServerName, Source) {
    let text = format!(r#"{{"servers": {{{}: {settings}}}}}"#, json!(name));
    (name.clone(), Source::text(REQUEST, text, Some(Format::Json)))
}

impl ServerSettings for AddedServers {
    fn resolve(&self, name: &ServerName, settings: Option<&str>) -> Result<ResolvedServer, UnresolvedServer> {
        let broken = |error: crate::settings::Complaint| UnresolvedServer::ConfigBroken(error.message);
        let config = Settings::load(&self.global);
        let configured = config.selected_config().map_err(broken)?;
        let Some(settings) = settings else {
            return match configured.servers.get(name) {
                Some(server) => Ok(ResolvedServer::new(server.clone(), true)),
                None if configured.misconfigured.contains_key(name) => {
                    Err(UnresolvedServer::Invalid(find_problems(name, &config)))
                }
                None => Err(UnresolvedServer::Unknown),
            };
        };
        let with = Settings::load_with(&self.global, &[source((name, &settings.to_owned()))]);
        let resolved = with.selected_config().map_err(broken)?;
        match resolved.servers.get(name) {
            Some(server) => {
                let is_of_config = configured.servers.get(name) == Some(server);
                Ok(ResolvedServer::new(server.clone(), is_of_config))
            }
            None => Err(UnresolvedServer::Invalid(find_problems(name, &with))),
        }
    }

    fn keep(&self, name: &ServerName, settings: &str) {
        self.added.lock().insert(name.clone(), settings.to_owned());
    }

    fn forget(&self, name: &ServerName) {
        self.added.lock().remove(name);
    }
}

/// The errors that make a server unusable: its own, and those of settings for all servers.
fn find_problems(name: &ServerName, settings: &Settings) -> Vec<Problem> {
    let is_about = |problem: &&Problem| problem.server().is_none_or(|server| server == name.as_str());
    settings.loaded.errors().filter(is_about).cloned().collect()
}
