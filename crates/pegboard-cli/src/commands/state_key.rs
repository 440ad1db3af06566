//! The key that seals what clients keep for the gateway: that of the config, or one of this user that outlives the process, so that a restart ends
//! no session.

use std::path::Path;

use pegboard::config::ServeConfig;
use pegboard_base::private_file;
use pegboard_gateway::Sealer;

use crate::settings;

/// A sealer with the key of the config, with the kept one, or with a random one where none can be kept.
pub(super) fn sealer(serve: &ServeConfig) -> std::io::Result<Sealer> {
    if let Some(key) = &serve.state_key {
        let previous = serve.previous_state_key.as_ref().map(|key| key.expose());
        return Ok(Sealer::with_keys(key.expose(), previous));
    }
    match settings::gateway_key_file() {
        Some(path) => match kept_key(&path) {
            Ok(key) => Ok(Sealer::with_key(&key)),
            Err(error) => {
                let (is_there, path) = (path.exists(), path.display());
                if is_there {
                    tracing::warn!(%error, "the key of sessions in {path} is not used, so a restart ends the sessions of clients; delete the file, and a new one is made");
                    return Sealer::random();
                }
                tracing::info!(%error, "the key of sessions cannot be kept in {path}, so a restart ends the sessions of clients");
                Sealer::random()
            }
        },
        None => Sealer::random(),
    }
}

/// The key in a file, which is made if it is not there.
fn kept_key(path: &Path) -> std::io::Result<[u8; Sealer::KEY_LENGTH]> {
    match read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut key = [0; Sealer::KEY_LENGTH];
            getrandom::fill(&mut key)?;
            private_file::replace(path, &key)?;
            // Two gateways that make one at the same time may differ until the next start of one of them.
            read(path)
        }
        read => read,
    }
}

fn read(path: &Path) -> std::io::Result<[u8; Sealer::KEY_LENGTH]> {
    let content = private_file::read(path, Sealer::KEY_LENGTH)?;
    let damaged = |_| {
        std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "it has not the length of a key; delete it",
        )
    };
    content.try_into().map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_a_damaged_one_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/gateway.key");
        let key = kept_key(&path).unwrap();
        assert_ne!(key, [0; 32]);
        assert_eq!(kept_key(&path).unwrap(), key);
        std::fs::write(&path, "short").unwrap();
        assert!(kept_key(&path).is_err());
        assert_eq!(
            std::fs::read(&path).unwrap(),
            b"short",
            "it is left for a person to look at"
        );
    }
}
