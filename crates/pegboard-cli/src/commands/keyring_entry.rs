//! Stores a secret in the keyring of the desktop, for `${keyring:SERVICE/USER}`.

use std::{process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt as _, process::Command};

/// How long the keyring may take. It may have to ask for its password first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stores a secret; the error says why it could not.
pub(super) async fn store(service: &str, user: &str, secret: &str) -> Result<(), String> {
    let Storing { program, args, input } = if cfg!(target_os = "linux") {
        in_secret_service(service, user, secret)
    } else if cfg!(target_os = "macos") {
        in_keychain(service, user, secret)?
    } else {
        return Err("this system's keyring cannot be written from here".to_owned());
    };
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|_| "there is no keyring".to_owned())?;
    let stored = async {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        child.wait().await
    };
    match tokio::time::timeout(PATIENCE, stored).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(_) => Err("the keyring refused it".to_owned()),
        Err(_) => Err("the keyring did not answer".to_owned()),
    }
}

/// A program that stores a secret. It reads it from standard input: other users can see arguments.
struct Storing {
    program: &'static str,
    args: Vec<String>,
    input: String,
}

/// The Secret Service of a Linux desktop.
fn in_secret_service(service: &str, user: &str, secret: &str) -> Storing {
    let label = format!("--label={service} {user}");
    let args = ["store", &label, "service", service, "username", user];
    Storing {
        program: "secret-tool",
        args: args.map(str::to_owned).to_vec(),
        input: secret.to_owned(),
    }
}

/// The keychain of macOS, whose program reads commands from its standard input. Their words must not need quotes.
fn in_keychain(service: &str, user: &str, secret: &str) -> Result<Storing, String> {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=._-".contains(&b))
    };
    if ![service, user, secret].into_iter().all(is_plain) {
        return Err("it has characters that cannot be given to the keychain from here".to_owned());
    }
    Ok(Storing {
        program: "/usr/bin/security",
        args: vec!["-i".to_owned()],
        input: format!("add-generic-password -U -s {service} -a {user} -w {secret}\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_an_argument() {
        for storing in [
            in_secret_service("pegboard", "gh-token", "s3cret"),
            in_keychain("pegboard", "gh-token", "s3cret").unwrap(),
        ] {
            assert!(
                !storing.args.iter().any(|arg| arg.contains("s3cret")),
                "{:?}",
                storing.args
            );
            assert!(storing.input.contains("s3cret"));
        }
        assert!(in_keychain("pegboard", "gh-token", "two words\n-x").is_err());
    }
}
