//! Recognises form fields that ask for a password, key or token. Forms must not ask for these; servers send users to a page instead.

use super::form::{Field, FieldKind};
use pegboard_base::secret::names_secret;

/// Words in titles and descriptions, without spaces, of fields that ask for a password.
const PASSWORD_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "apitoken",
    "accesskey",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "privatekey",
    "secretkey",
    "clientsecret",
    "credential",
    "seedphrase",
    "recoverycode",
];

/// Whether a field asks for a password, key or token, by its name, title, description or format.
pub(super) fn wants_password(field: &Field) -> bool {
    let is_typed = match field.kind {
        FieldKind::Text { .. } | FieldKind::Other => true,
        FieldKind::Number { .. } => !is_count(&field.name),
        FieldKind::Boolean | FieldKind::Choice(_) | FieldKind::Choices { .. } => false,
    };
    let title = field.title.as_deref().unwrap_or_default();
    let texts = [Some(title), field.description.as_deref()];
    let is_named = names_secret(&field.name) || names_secret(title);
    field.is_password || is_typed && (is_named || texts.into_iter().flatten().any(mentions_password))
}

fn mentions_password(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let plain = plain.to_lowercase();
    PASSWORD_WORDS.iter().any(|word| plain.contains(word))
}

/// Whether a number counts or limits something, as in `max_tokens`.
fn is_count(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["max", "min", "limit", "count", "num", "tokens"];
    words.iter().any(|word| name.contains(word))
}
