//! The messages on the wire, for `--log pegboard::wire=trace`: masked, and cut where they are long.

use crate::{mask::ServerMasker, name::ServerName};

/// How much of a message is shown, in bytes.
const SHOWN: usize = 4 << 10;
/// How much of a message is masked for that. Longer than what is shown, so that a secret at the cut is still recognised.
const MASKED: usize = 64 << 10;

/// Whether a subscriber wants the messages on the wire.
pub(super) fn is_wanted() -> bool {
    tracing::enabled!(target: "pegboard::wire", tracing::Level::TRACE)
}

/// Where requests of the newest era carry what the user has answered.
const ANSWERS: &[u8] = b"\"inputResponses\"";

/// A message to the server. One that carries what the user has typed is not shown.
#[cold]
pub(super) fn sent(server: &ServerName, masker: &ServerMasker, message: &[u8]) {
    if message.windows(ANSWERS.len()).any(|part| part == ANSWERS) {
        return answered(server, "inputResponses", message.len());
    }
    let (bytes, text) = (message.len(), shown(masker, message));
    tracing::trace!(target: "pegboard::wire", %server, bytes, message = %text, "sent");
}

/// An answer to a question that only the user can answer. What the user typed is not shown.
#[cold]
pub(super) fn answered(server: &ServerName, method: &str, bytes: usize) {
    tracing::trace!(target: "pegboard::wire", %server, bytes, method, "sent an answer of the user");
}

/// A message from the server.
#[cold]
pub(super) fn received(server: &ServerName, masker: &ServerMasker, message: &[u8]) {
    let (bytes, text) = (message.len(), shown(masker, message));
    tracing::trace!(target: "pegboard::wire", %server, bytes, message = %text, "received");
}

fn shown(masker: &ServerMasker, message: &[u8]) -> String {
    let looked_at = &message[..message.len().min(MASKED)];
    let text = String::from_utf8_lossy(looked_at);
    let mut masked = masker.text(&text).into_owned();
    if looked_at.len() < message.len() {
        // The end of what was looked at may be half a secret, and masking may have moved it forward.
        let end = masked.len().saturating_sub(SHOWN);
        masked.truncate(masked.floor_char_boundary(end));
    }
    let is_cut = masked.len() > SHOWN || looked_at.len() < message.len();
    masked.truncate(masked.floor_char_boundary(SHOWN));
    if is_cut {
        masked.push('…');
    }
    masked.escape_debug().to_string().replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mask::{KnownSecrets, Masking},
        secret::Secret,
    };

    fn masker() -> ServerMasker {
        let known = KnownSecrets::default();
        known.learn([Secret::new("hunter2hunter2")]);
        ServerMasker::new(&Masking::default(), known)
    }

    #[test]
    fn a_message_is_shown_without_its_secrets_on_one_line() {
        let message = b"{\"a\":\"hunter2hunter2\",\n\"b\":1}";
        assert_eq!(shown(&masker(), message), "{\"a\":\"[MASKED_SECRET]\",\\n\"b\":1}");
    }

    #[test]
    fn a_long_message_is_cut_and_no_half_of_a_secret_is_shown() {
        for at in [SHOWN - 7, MASKED - 7] {
            let message = format!("{}hunter2hunter2{}", "x".repeat(at), "y".repeat(MASKED));
            let shown = shown(&masker(), message.as_bytes());
            assert!(shown.len() <= SHOWN + 8 && shown.ends_with('…'), "{}", shown.len());
            assert!(!shown.contains("hunt"), "at {at}");
        }
        // Masked secrets are shorter than themselves, so what stands at the end comes closer to the beginning.
        let message = "hunter2hunter2".repeat(MASKED);
        assert!(!shown(&masker(), message.as_bytes()).contains("hunt"));
    }
}
