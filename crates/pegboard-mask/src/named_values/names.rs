//! Tells from a name whether its value is a secret: `DB_PASSWORD`, `clientSecret`, `api-key-1`.

/// How sure a name makes us that its value is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// It often names something else, such as a token of a parser. The value decides.
    Weak,
    /// It names a key or a token. Its value is a secret unless it is a reference, a placeholder or short.
    Strong,
    /// It names a password. Its value is a secret unless it is a reference or a placeholder.
    Password,
    /// It names a password of several words.
    Phrase,
}

/// How much of the end of a name is looked at, in letters and digits.
const MAX_NAME: usize = 40;

/// Endings of names of passwords, in lower case and without separators.
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passcode",
    "secretstring",
    "secretbinary",
    "storepass",
    "keypass",
    REQUIRE_PASS,
];
/// The directive of Redis that sets its password.
pub(super) const REQUIRE_PASS: &str = "requirepass";
/// Endings of names of passwords that consist of words.
const PHRASES: &[&str] = &["passphrase", "seedphrase", "recoveryphrase", "mnemonic", "psk"];
/// Endings of names of keys and tokens.
const STRONG: &[&str] = &[
    "clientsecret",
    "appsecret",
    "apisecret",
    "jwtsecret",
    "webhooksecret",
    "sharedsecret",
    "sessionsecret",
    "signingsecret",
    "cookiesecret",
    "consumersecret",
    "tokensecret",
    "oauthsecret",
    "authsecret",
    "hmacsecret",
    "totpsecret",
    "secretkey",
    "secretkeybase",
    "secretaccesskey",
    "secrettext",
    "apikey",
    "apitoken",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "idtoken",
    "bearertoken",
    "oauthtoken",
    "bottoken",
    "clienttoken",
    "personalaccesstoken",
    "sessiontoken",
    "securitytoken",
    "devicecode",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "privatekey",
    "privatekeypem",
    "accountkey",
    "sharedaccesskey",
    "clientkeydata",
    "amzsignature",
    "samlresponse",
    "samlassertion",
    "presharedkey",
];
/// Endings that name a password only as a word of their own: `db_pass`, `dbPass`, but not `compass`.
const STRONG_WORDS: &[&str] = &["pass", "pwd", "pw"];
const WEAK: &[&str] = &[
    "secret",
    "token",
    "accesskey",
    "sshkey",
    "deploykey",
    "licensekey",
    "storagekey",
    "subscriptionkey",
    "authkey",
    "hmackey",
    "cipherkey",
    "sessionkey",
    "credential",
    "credentials",
    "xapikey",
    "passwordhash",
    "applicationkey",
    "ddappkey",
];
/// Words in the names of tokens for pages and positions. Agents need these tokens.
const PAGINATION: &[&str] = &[
    "next", "page", "continu", "cursor", "sync", "resume", "progress", "prev", "offset", "watch", "csrf", "stop",
    "unk", "eos", "bos", "pad",
];

/// Returns how much the name says, or `None` if it is not the name of a secret.
pub(crate) fn strength(name: &str) -> Option<Strength> {
    let mut buffer = [0; MAX_NAME];
    let plain = plain_end(name, &mut buffer);
    // The last bytes are compared first: most endings differ in it.
    let ends_in = |ending: &str| ending.as_bytes().last() == plain.last() && plain.ends_with(ending.as_bytes());
    let ends = |endings: &[&str]| endings.iter().any(|ending| ends_in(ending));
    // Most names end in none of these letters.
    if !matches!(
        plain.last(),
        Some(b'a' | b'c' | b'd' | b'e' | b'g' | b'h' | b'k' | b'l' | b'm' | b'n' | b's' | b't' | b'w' | b'y')
    ) {
        return None;
    }
    let is_word = |word: &&&str| {
        plain.ends_with(word.as_bytes()) && (plain.len() == word.len() || begins_word(trim(name), word.len()))
    };
    if matches!(plain, b"pass") {
        return Some(Strength::Weak);
    }
    if STRONG_WORDS.iter().any(|word| is_word(&word)) {
        let is_folder = matches!(plain, b"pwd" | b"oldpwd") && !name.contains(|c: char| c.is_ascii_lowercase());
        // Variables that are passed on, by name.
        let is_passed_on = plain.ends_with(b"envpass");
        return (plain != b"pw" && !is_folder && !is_passed_on).then_some(Strength::Password);
    }
    if ends(PHRASES) {
        return Some(Strength::Phrase);
    }
    if ends(PASSWORDS) {
        return Some(Strength::Password);
    }
    if ends(STRONG) {
        return Some(Strength::Strong);
    }
    (ends(WEAK) && !has_any(plain, PAGINATION)).then_some(Strength::Weak)
}

/// Whether a name in the plural holds a list of secrets: `passwords`, `api_keys`.
pub(crate) fn strength_of_list(name: &str) -> Option<Strength> {
    strength(name).or_else(|| strength_of_plural(name))
}

/// The strength of a name in the plural.
pub(super) fn strength_of_plural(name: &str) -> Option<Strength> {
    strength(name.strip_suffix(['s', 'S'])?)
}

/// The name without the number at its end.
fn trim(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || "_.-".contains(c))
}

/// Writes the end of a name in lower case and without separators. A number at the end is left out.
fn plain_end<'b>(name: &str, buffer: &'b mut [u8; MAX_NAME]) -> &'b [u8] {
    let mut at = MAX_NAME;
    for byte in trim(name).bytes().rev() {
        if at == 0 {
            break;
        }
        if byte.is_ascii_alphanumeric() {
            at -= 1;
            buffer[at] = byte.to_ascii_lowercase();
        }
    }
    &buffer[at..]
}

/// Whether the last `len` bytes of a name are a word of their own, after a separator or in camel case.
fn begins_word(name: &str, len: usize) -> bool {
    let bytes = name.as_bytes();
    let Some(start) = bytes.len().checked_sub(len) else {
        return false;
    };
    let is_camel =
        bytes[start].is_ascii_uppercase() && start.checked_sub(1).is_none_or(|at| bytes[at].is_ascii_lowercase());
    is_camel || start.checked_sub(1).is_none_or(|at| !bytes[at].is_ascii_alphanumeric())
}

fn has_any(plain: &[u8], words: &[&str]) -> bool {
    (0..plain.len()).any(|at| words.iter().any(|word| plain[at..].starts_with(word.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_passwords_are_known_in_every_spelling() {
        for name in [
            "password",
            "DB_PASSWORD",
            "spring.datasource.password",
            "clientSecret",
            "API-KEY-1",
            "password2",
            "dbPass",
            "SMTP_PASS",
            "db.pwd",
            "X-Amz-Security-Token",
            "SecretString",
        ] {
            assert!(strength(name) >= Some(Strength::Strong), "{name}");
        }
        for name in ["token", "secret", "GITHUB_TOKEN", "pass", "aws_access_key"] {
            assert_eq!(strength(name), Some(Strength::Weak), "{name}");
        }
        assert!(strength_of_list("passwords").is_some() && strength("passwords").is_none());
    }

    #[test]
    fn names_of_other_things_are_left() {
        for name in [
            "max_tokens",
            "tokenizer",
            "next_token",
            "nextPageToken",
            "token_endpoint",
            "secretName",
            "secretKeyRef",
            "passwordPolicy",
            "compass",
            "bypass",
            "monkey",
            "key",
            "primary_key",
            "public_key",
            "PWD",
            "OLDPWD",
            "key_id",
            "",
        ] {
            assert_eq!(strength(name), None, "{name}");
        }
    }
}
