//! Stores a secret in the keyring of the desktop, for `${keyring:SERVICE/USER}`.

use std::{process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt as _, process::Command};

/// How long the keyring may take. It may have to ask for its password first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stores a secret; the error says why it could not.
pub(super) async fn store(service: &str, user: &str, secret: &str) -> Result<(), String> {
    let mut command = match cfg!(target_os = "linux") {
        true => {
            let mut command = Command::new("secret-tool");
            command.args([
                "store",
                &format!("--label={service} {user}"),
                "service",
                service,
                "username",
                user,
            ]);
            command
        }
        // The keychain's own command takes a secret only as an argument, which others can see.
        false => return Err("this system's keyring cannot be written from here".to_owned()),
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|_| "there is no keyring".to_owned())?;
    let stored = async {
        if let Some(mut input) = child.stdin.take() {
            input.write_all(secret.as_bytes()).await?;
        }
        child.wait().await
    };
    match tokio::time::timeout(PATIENCE, stored).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(_) => Err("the keyring refused it".to_owned()),
        Err(_) => Err("the keyring did not answer".to_owned()),
    }
}
