//! What a daemon says of itself to the commands that may use it.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use pegboard::{Config, ServerName, Timestamp};
use pegboard_base::sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{
    identity::{ServerDigests, config_digest, server_digests},
    program_file::ProgramFile,
};
use crate::{
    output::{serialize_optional_path, serialize_path},
    settings::{Settings, here},
};

/// The version that a command and its daemon must share.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A daemon's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    // Another version may leave out what follows, and its user is told which version it is.
    #[serde(default)]
    pub(crate) pid: u32,
    /// The digest of the config that is in effect.
    #[serde(default)]
    pub(crate) config: String,
    /// The digest of the config that a reload applies at this moment; `None` if none is under way.
    #[serde(default)]
    pub(crate) applying: Option<String>,
    /// When the config in effect was read: files that were changed later are not in effect yet.
    #[serde(default)]
    pub(crate) read_at: Option<Timestamp>,
    /// The program that it runs, as it was at its start.
    #[serde(default)]
    pub(super) program: Option<ProgramFile>,
    /// Whether a command or a host started it, in the background.
    #[serde(default)]
    pub(crate) background: bool,
    /// How long it stays without a client.
    #[serde(default)]
    pub(crate) idle_ms: Option<u64>,
    /// The working folder of its servers.
    #[serde(default, serialize_with = "serialize_path")]
    pub(crate) folder: PathBuf,
    #[serde(default)]
    pub(crate) since: Option<Timestamp>,
    /// Its config files.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default, serialize_with = "serialize_optional_path")]
    pub(crate) log: Option<PathBuf>,
}

/// How a daemon was started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Started {
    /// The log of one in the background.
    pub(crate) log: Option<PathBuf>,
    /// How long it stays without a client.
    pub(crate) idle: Option<Duration>,
}

/// What this daemon knows of itself. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Identified(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    hello: Mutex<Hello>,
    /// The servers of the config in effect.
    servers: Mutex<ServerDigests>,
    /// The reload that is under way.
    reload: watch::Sender<Option<UnderWay>>,
}

/// A reload that is under way.
#[derive(Debug)]
struct UnderWay {
    /// The digest of the newest config that it is to apply.
    config: String,
    /// The servers that it changes.
    changing: BTreeSet<ServerName>,
}

/// The config of a daemon, by digests: of all its servers, and of each.
#[derive(Debug)]
pub(crate) struct ConfigDigests {
    config: String,
    servers: ServerDigests,
}

impl ConfigDigests {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            config: config_digest(config),
            servers: server_digests(config),
        }
    }
}

impl Identified {
    /// A daemon that has applied these settings, which were read at that time.
    pub(crate) fn new(settings: &Settings, read_at: Timestamp, started: Started) -> Self {
        let digests = ConfigDigests::new(&settings.loaded.config);
        let hello = Hello {
            version: VERSION.to_owned(),
            pid: std::process::id(),
            config: digests.config,
            applying: None,
            read_at: Some(read_at),
            program: ProgramFile::current(),
            background: started.log.is_some(),
            idle_ms: started
                .idle
                .map(|idle| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)),
            folder: here(),
            since: Some(read_at),
            files: settings.loaded.sources.clone(),
            log: started.log,
        };
        Self::describe(hello, digests.servers)
    }

    fn describe(hello: Hello, servers: ServerDigests) -> Self {
        Self(Arc::new(Shared {
            hello: Mutex::new(hello),
            servers: Mutex::new(servers),
            reload: watch::Sender::new(None),
        }))
    }

    /// Notes that a config is being applied, or will be as soon as the one before it is.
    pub(crate) fn applying(&self, digests: &ConfigDigests) {
        let changing = {
            let now = self.0.servers.lock();
            let is_same = |name: &ServerName| now.get(name) == digests.servers.get(name);
            let names = now.keys().chain(digests.servers.keys());
            names.filter(|name| !is_same(name)).cloned().collect::<BTreeSet<_>>()
        };
        self.0.reload.send_modify(|reload| {
            let mut changing = changing;
            changing.extend(reload.take().into_iter().flat_map(|before| before.changing));
            *reload = Some(UnderWay {
                config: digests.config.clone(),
                changing,
            });
        });
    }

    /// Notes that another config is in effect, which was read at that time.
    pub(crate) fn applied(&self, digests: ConfigDigests, read_at: Timestamp) {
        let mut hello = self.0.hello.lock();
        (hello.config, hello.read_at) = (digests.config, Some(read_at));
        *self.0.servers.lock() = digests.servers;
    }

    /// Notes that no reload is under way any more.
    pub(crate) fn settled(&self) {
        self.0.reload.send_replace(None);
    }

    /// Waits until no reload changes this server.
    pub(super) async fn settles(&self, server: &str) {
        let mut reload = self.0.reload.subscribe();
        let is_settled = |reload: &Option<UnderWay>| !reload.as_ref().is_some_and(|one| one.changing.contains(server));
        // The sender is borrowed, so this cannot fail.
        let _ = reload.wait_for(is_settled).await;
    }

    /// Waits until a reload is under way.
    pub(super) async fn is_applying(&self) {
        let mut reload = self.0.reload.subscribe();
        // The sender is borrowed, so this cannot fail.
        let _ = reload.wait_for(Option::is_some).await;
    }

    pub(super) fn hello(&self) -> Hello {
        let applying = self.0.reload.borrow().as_ref().map(|reload| reload.config.clone());
        Hello {
            applying,
            ..self.0.hello.lock().clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn config(text: &str) -> ConfigDigests {
        let loaded = Config::from_text(
            text,
            pegboard::Format::Toml,
            &pegboard::Env::from_pairs::<&str, &str>([]),
        );
        ConfigDigests::new(&loaded.into_result().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_a_reload_does_not_change_are_settled_while_it_is_under_way() {
        let daemon = Identified::describe(Hello::default(), ServerDigests::new());
        let first = "[servers.a]\ncommand = 'a'\n[servers.b]\ncommand = 'b'\n";
        daemon.applied(config(first), Timestamp::now());
        let is_settled = async |server: &str| {
            let waiting = tokio::time::timeout(Duration::from_secs(1), daemon.settles(server));
            waiting.await.is_ok()
        };
        assert!(is_settled("a").await && is_settled("new").await);
        let second = config(&format!("{first}[servers.new]\ncommand = 'n'\n"));
        daemon.applying(&second);
        assert_eq!(daemon.hello().applying.as_ref(), Some(&second.config));
        assert_ne!(daemon.hello().config, second.config);
        assert!(is_settled("a").await && is_settled("b").await && !is_settled("new").await);
        // A further one waits for it.
        daemon.applying(&config(&first.replace("'b'", "'bb'")));
        assert!(is_settled("a").await && !is_settled("b").await && !is_settled("new").await);
        daemon.applied(second, Timestamp::now());
        assert!(!is_settled("b").await);
        daemon.settled();
        assert!(is_settled("b").await && is_settled("new").await);
        assert_eq!(daemon.hello().applying, None);
    }
}
