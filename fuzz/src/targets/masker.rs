//! Masking of secrets.

use std::sync::LazyLock;

use pegboard::{
    Secret,
    mask::{Masker, Masking},
};
use serde_json::Value;

/// A secret of the config, which is masked wherever it stands.
const KNOWN: &str = "Kx9-canary-41c7Zq";
/// Made-up secrets that patterns find, in parts so that secret scanners do not report this file. `%0%` in an input stands for the first.
const FOUND: [&[&str]; 8] = [
    &["gh", "p_", "sY7bXgSA9f5j34sRwh5yCmX4w0VvG6XqH1hN"],
    &["AK", "IA", "9R8JGORMXBEK92L8"],
    &[
        "xo",
        "xb-",
        "777639269962",
        "-",
        "850863709717",
        "-",
        "3vdlcNn9Ps247dDKswHy0q3z",
    ],
    &["password", "=", "hunter2-hunter3-Qz81"],
    &[
        "-----BEGIN RSA ",
        "PRIVATE KEY-----\nMIIEowIBAAKCAQEAq7BFUpkGp3+LQmlQYx2eqzDV\n",
        "-----END RSA ",
        "PRIVATE KEY-----",
    ],
    &[
        "ey",
        "JhbGciOiJIUzI1NiJ9",
        ".ey",
        "JzdWIiOiIxMjM0NTY3ODkwIn0",
        ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ],
    &["postgres://app:", "p4ssW0rd-91x", "@db.example.org/x"],
    &["kind: Secret\ndata:\n  key: ", "c3VwZXItc2VjcmV0LXZhbHVl", "\n"],
];

/// The first two bytes choose where the known secret is planted in the rest. It never survives; masking twice changes nothing; JSON stays
/// JSON; and no text is withheld, because that hides a failure of the masker.
pub fn masker(data: &[u8]) {
    let [high, low, rest @ ..] = data else { return };
    let mut text = String::from_utf8_lossy(rest).into_owned();
    for (number, parts) in FOUND.iter().enumerate() {
        text = text.replace(&format!("%{number}%"), &parts.concat());
    }
    let before: Option<Value> = serde_json::from_str(&text).ok();
    if let Some(value) = before {
        check_json(&text, value);
    }
    let at = usize::from(u16::from_be_bytes([*high, *low])) % (text.len() + 1);
    let at = text.floor_char_boundary(at);
    text.insert_str(at, KNOWN);
    check_text(&text);
    if let Ok(value) = serde_json::from_str(&text) {
        check_json(&text, value);
    }
}

fn check_text(text: &str) -> String {
    let masked = MASKER.text(text);
    assert!(
        masked.counts.iter().all(|(name, _)| name != "withheld"),
        "withheld: {text:?}"
    );
    let masked = masked.text.into_owned();
    assert!(!masked.contains(KNOWN), "the secret is left in {masked:?}");
    let again = MASKER.text(&masked).text;
    assert_eq!(again, masked, "masked twice");
    assert!(
        masked.len() <= text.len() * 8 + 64,
        "{} bytes became {}",
        text.len(),
        masked.len()
    );
    masked
}

fn check_json(text: &str, mut value: Value) {
    let masked = check_text(text);
    let parsed = serde_json::from_str::<Value>(&masked);
    assert!(parsed.is_ok(), "{text} became {masked}");
    MASKER.value(&mut value);
    assert!(!value.to_string().contains(KNOWN), "the secret is left in {value}");
    let once = value.clone();
    MASKER.value(&mut value);
    assert_eq!(value, once, "masked twice");
}

static MASKER: LazyLock<Masker> = LazyLock::new(|| {
    let mut policy = Masking::default();
    policy.groups = vec!["all".to_owned()];
    Masker::new(&policy, [Secret::new(KNOWN)]).expect("a valid policy")
});
