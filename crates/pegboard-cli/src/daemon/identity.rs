//! [`Identity`]: which daemon a command belongs to.

use std::{collections::BTreeMap, fmt, path::Path};

use pegboard::{
    Config, ServerName,
    config::{ServerConfig, WithSecrets},
};
use sha2::{Digest as _, Sha256};

use crate::{
    cli::Global,
    settings::{Settings, here},
};

/// The name of a daemon: a digest of the config files in their order and of the options that change what is served. It does not depend on
/// the content of the files, so a daemon keeps its name when it reloads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity(String);

impl Identity {
    /// The daemon that this command would use. `--server NAME` picks one of its servers, so it is not part of the name.
    pub(crate) fn for_command(global: &Global, settings: &Settings) -> Self {
        Self::new(global, settings, &[])
    }

    /// The daemon that this command would be. One that serves only some servers has a name of its own.
    pub(crate) fn for_daemon(global: &Global, settings: &Settings) -> Self {
        let picked: Vec<&String> = global.servers.iter().filter(|server| !server.contains('=')).collect();
        Self::new(global, settings, &picked)
    }

    fn new(global: &Global, settings: &Settings, picked: &[&String]) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        };
        add(&[u8::from(global.trust)]);
        for source in &settings.loaded.sources {
            let path = Path::new(source).canonicalize();
            add(path
                .as_deref()
                .unwrap_or(Path::new(source))
                .as_os_str()
                .as_encoded_bytes());
        }
        let added: Vec<&String> = global.servers.iter().filter(|server| server.contains('=')).collect();
        if !added.is_empty() {
            // Their commands may name files of this folder.
            add(here().as_os_str().as_encoded_bytes());
        }
        for part in added.into_iter().chain(picked.iter().copied()) {
            add(part.as_bytes());
        }
        Self(hex(&hash.finalize()[..12]))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A digest of the servers of a config with all variables expanded. It differs if a command and a daemon read another file or have other
/// values of variables.
pub(super) fn config_digest(config: &Config) -> String {
    let mut hash = Sha256::new();
    // A value that cannot be written as JSON is left out on both sides.
    hash.update(serde_json::to_vec(&WithSecrets::new(&config.servers)).unwrap_or_default());
    hex(&hash.finalize())
}

/// The digest of each server of a config, as [`config_digest`] has that of all.
pub(super) type ServerDigests = BTreeMap<ServerName, String>;

pub(super) fn server_digests(config: &Config) -> ServerDigests {
    let digest = |server: &ServerConfig| {
        let written = serde_json::to_vec(&WithSecrets::new(server)).unwrap_or_default();
        hex(&Sha256::digest(written))
    };
    let servers = config.servers.iter();
    servers.map(|(name, server)| (name.clone(), digest(server))).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
