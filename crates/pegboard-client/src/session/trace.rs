//! Traces the messages on the wire for `--log pegboard::wire=trace`, masked and truncated.

use pegboard_base::name::ServerName;
use pegboard_mask::ServerMasker;

/// How many bytes of a message are shown.
const SHOWN: usize = 4 << 10;
/// How many bytes of a message are masked: more than are shown, so that a secret at the cut is still recognised.
const MASKED: usize = 64 << 10;

/// Returns `true` if a tracing subscriber wants the messages on the wire.
pub(super) fn is_enabled() -> bool {
    tracing::enabled!(target: "pegboard::wire", tracing::Level::TRACE)
}

/// The field in which requests of the newest era carry the user's input.
const INPUT_RESPONSES: &[u8] = b"\"inputResponses\"";

/// Traces a message to the server. The content of one that carries user input is not shown.
#[cold]
pub(super) fn log_sent(server: &ServerName, masker: &ServerMasker, message: &[u8]) {
    if message
        .windows(INPUT_RESPONSES.len())
        .any(|part| part == INPUT_RESPONSES)
    {
        return log_sent_user_input(server, "inputResponses", message.len());
    }
    let (bytes, text) = (message.len(), show(masker, message));
    tracing::trace!(target: "pegboard::wire", %server, bytes, message = %text, "sent");
}

/// Traces a response with user input, without its content.
#[cold]
pub(super) fn log_sent_user_input(server: &ServerName, method: &str, bytes: usize) {
    tracing::trace!(target: "pegboard::wire", %server, bytes, method, "sent an answer of the user");
}

/// Traces a message from the server.
#[cold]
pub(super) fn log_received(server: &ServerName, masker: &ServerMasker, message: &[u8]) {
    let (bytes, text) = (message.len(), show(masker, message));
    tracing::trace!(target: "pegboard::wire", %server, bytes, message = %text, "received");
}

fn show(masker: &ServerMasker, message: &[u8]) -> String {
    let prefix = &message[..message.len().min(MASKED)];
    let text = String::from_utf8_lossy(prefix);
    let mut masked = masker.text(&text).into_owned();
    if prefix.len() < message.len() {
        // The end may be a part of a secret, and masking may have moved it towards the start.
        let end = masked.len().saturating_sub(SHOWN);
        masked.truncate(masked.floor_char_boundary(end));
    }
    let is_cut = masked.len() > SHOWN || prefix.len() < message.len();
    masked.truncate(masked.floor_char_boundary(SHOWN));
    if is_cut {
        masked.push('…');
    }
    masked.escape_debug().to_string().replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_base::secret::Secret;
    use pegboard_mask::{KnownSecrets, Masking};

    fn masker() -> ServerMasker {
        let known = KnownSecrets::default();
        known.learn([Secret::new("hunter2hunter2")]);
        ServerMasker::new(&Masking::default(), known)
    }

    #[test]
    fn a_message_is_shown_without_its_secrets_on_one_line() {
        let message = b"{\"a\":\"hunter2hunter2\",\n\"b\":1}";
        assert_eq!(show(&masker(), message), "{\"a\":\"[MASKED_SECRET]\",\\n\"b\":1}");
    }

    #[test]
    fn a_long_message_is_cut_and_no_half_of_a_secret_is_shown() {
        for at in [SHOWN - 7, MASKED - 7] {
            let message = format!("{}hunter2hunter2{}", "x".repeat(at), "y".repeat(MASKED));
            let shown = show(&masker(), message.as_bytes());
            assert!(shown.len() <= SHOWN + 8 && shown.ends_with('…'), "{}", shown.len());
            assert!(!shown.contains("hunt"), "at {at}");
        }
        // Masking shortens secrets, so the end of the text moves towards its start.
        let message = "hunter2hunter2".repeat(MASKED);
        assert!(!show(&masker(), message.as_bytes()).contains("hunt"));
    }
}
