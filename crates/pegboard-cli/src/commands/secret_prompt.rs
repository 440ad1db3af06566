//! Asks the person at the terminal for a secret that is not set, and stores it.

use std::sync::OnceLock;

use pegboard::{Hint as _, Secret};
use pegboard_oauth::{SecretPlace, SecretStoreError};
use tokio_util::sync::CancellationToken;

use super::agreement;
use crate::{
    output::{self, Output, one_line, wrap_message},
    settings::secret_store,
    terminal::{EchoOff, Keyboard, Lines as _},
};

/// The variable that names the file with the key of encrypted files.
const KEY_FILE: &str = "PEGBOARD_TOKEN_KEY_FILE";

/// Set when the user has said that no file may be the place of secrets. It holds for the rest of the command.
static IS_REFUSED: OnceLock<()> = OnceLock::new();

/// A secret that servers need.
#[derive(Debug)]
pub(super) struct Need<'a> {
    /// Its name, which is that of the variable.
    pub(super) name: &'a str,
    pub(super) servers: &'a [String],
    /// What else is said before it is asked for, as a whole sentence.
    pub(super) note: Option<String>,
}

/// Whether the user can be asked for a secret.
pub(super) fn can_ask(output: &Output) -> bool {
    !output.is_json() && agreement::can_ask()
}

/// Returns whether secrets can be stored on this machine. Without a keyring, asks the user whether a file may be the place.
pub(super) async fn find_place(output: &Output) -> bool {
    if has_place() {
        return true;
    }
    if IS_REFUSED.get().is_some() {
        return false;
    }
    let question = "This machine has no keyring. Keep secrets in a file that only you can read?";
    if !agreement::agrees(output, question).await {
        let _ = IS_REFUSED.set(());
        return false;
    }
    match create_place() {
        Ok(()) => true,
        Err(error) => {
            output.say(&output::warning(&error.to_string()));
            false
        }
    }
}

fn has_place() -> bool {
    secret_store().is_some_and(|store| store.place().is_ok())
}

/// Lets secrets be stored in a file where there is no keyring.
pub(super) fn create_place() -> Result<(), SecretStoreError> {
    match secret_store() {
        Some(store) if store.place().is_err() => store.create_key(),
        // Without a home folder, storing the secret fails with the reason.
        _ => Ok(()),
    }
}

/// Reads a line without echo. `None` if it is empty or the terminal is gone.
pub(super) async fn read_hidden(output: &Output, question: &str) -> Option<Secret> {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    // Before the question, so that nothing is shown of an answer that comes at once.
    let hidden = EchoOff::new();
    output.say(&format!("{question}: "));
    // On a blocking thread, so that Ctrl-C works while the terminal is read.
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next_hidden();
        drop((hidden, aside));
        line
    });
    let line = reading.await.ok()?.ok()??;
    (!line.is_empty()).then(|| Secret::new(line))
}

/// Says which servers need a secret, asks for it, and stores it where [`find_place`] finds a place. Returns whether it is stored.
pub(super) async fn ask_and_store(output: &Output, need: &Need<'_>) -> bool {
    if IS_REFUSED.get().is_some() {
        return false;
    }
    let Need { name, servers, note } = need;
    let verb = if servers.len() == 1 { "needs" } else { "need" };
    let servers = one_line(&servers.join(", "));
    let note = note.as_ref().map(|note| format!(" {}", one_line(note)));
    let line = format!(
        "{servers} {verb} `{name}`, which is not set.{}",
        note.unwrap_or_default()
    );
    output.say(&format!("{}\n", wrap_message(&line, output::message_width(), 0)));
    if !find_place(output).await {
        return false;
    }
    let Some(value) = read_hidden(output, &format!("{name} (not shown; empty leaves it)")).await else {
        return false;
    };
    match store(name, value).await {
        Ok(place) => {
            let hosts = match std::env::var_os(KEY_FILE) {
                Some(_) if place == SecretPlace::File => format!("which needs the variable {KEY_FILE} for that"),
                _ => "which reads it from there: no variable has to be set in them".to_owned(),
            };
            output.note(&format!(
                "`{name}` is stored in {}. Claude Desktop, Cursor and other hosts start `pegboard mcp`, {hosts}",
                in_words(place)
            ));
            true
        }
        Err(why) => {
            output.say(&output::warning(&format!("`{name}` is not stored: {why}")));
            false
        }
    }
}

/// Stores a secret. The error says why it could not be, and what to do.
pub(super) async fn store(name: &str, value: Secret) -> Result<SecretPlace, String> {
    let name = name.to_owned();
    let storing = tokio::task::spawn_blocking(move || {
        let store = secret_store().ok_or("there is no home folder; set HOME")?;
        store.set(&name, &value).map_err(|error| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
    });
    storing.await.unwrap_or_else(|_| Err("it was given up".to_owned()))
}

/// Where a secret is, in a sentence.
pub(super) fn in_words(place: SecretPlace) -> &'static str {
    match place {
        SecretPlace::Keyring => "the keyring of this system",
        SecretPlace::File => "an encrypted file of yours",
    }
}
