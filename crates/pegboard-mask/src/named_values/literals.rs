//! Tells a secret from what else is written after its name: references, placeholders, types and expressions of source code.

use super::{
    expressions::{ValueForm, has_words, is_expression},
    names::{Strength, strength},
    words::{REFERENCES, is_placeholder},
};
use crate::plausibility;

/// The shortest password, and the shortest key or token.
const MIN_PASSWORD: usize = 3;
const MIN_TOKEN: usize = 8;
/// How many bytes of a value are looked at.
const MAX_LOOK: usize = 512;

/// Whether a value with a name of this strength is a secret.
pub(crate) fn is_secret(name: Strength, value: &str, form: ValueForm) -> bool {
    let value = value.trim();
    let look = floor(value, MAX_LOOK);
    let is_phrase = || name == Strength::Phrase && is_words(look);
    if is_no_literal(look) || (form != ValueForm::Quoted && !is_phrase() && is_expression(look, form)) {
        return false;
    }
    match name {
        Strength::Phrase if is_phrase() => true,
        Strength::Phrase | Strength::Password | Strength::Strong => {
            let least = if name >= Strength::Password {
                MIN_PASSWORD
            } else {
                MIN_TOKEN
            };
            value.len() >= least && !is_description(look) && !is_version(look) && !is_type_name(look, name)
        }
        Strength::Weak => {
            value.len() >= MIN_TOKEN
                && !look.contains(['<', '>', ' '])
                && plausibility::is_token_like(look)
                && (!plausibility::is_reference(look) || form == ValueForm::Variable && plausibility::is_uuid(look))
        }
    }
}

/// Whether a JSON string is a secret by its key.
pub fn is_secret_string(key: &str, value: &str) -> bool {
    strength(key).is_some_and(|strength| is_secret(strength, value, ValueForm::Quoted))
}

/// Whether a value in a command line is a literal, and no reference or placeholder, nor, without quotes, an expression.
pub fn is_literal(value: &str, is_quoted: bool) -> bool {
    let look = floor(value, MAX_LOOK);
    !is_no_literal(look) && (is_quoted || !is_expression(look, ValueForm::Variable))
}

/// The first `len` bytes of a text, or a few less, so that no character is cut.
fn floor(text: &str, len: usize) -> &str {
    match text.len() > len {
        true => &text[..text.floor_char_boundary(len)],
        false => text,
    }
}

/// Whether a value is no literal: empty, a reference, a placeholder, or masked already.
pub(crate) fn is_no_literal(value: &str) -> bool {
    let bytes = value.as_bytes();
    let begins = |prefix: &&str| {
        // The first bytes are compared first: most prefixes differ in it.
        bytes[0].eq_ignore_ascii_case(&prefix.as_bytes()[0])
            && bytes
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    value.is_empty()
        || is_variable(value)
        || has_template(bytes)
        || is_faded(bytes)
        || plausibility::is_instruction(value)
        || is_rule(value)
        || is_placeholder(value)
        || REFERENCES.iter().any(begins)
}

/// Whether a value names a variable: `$NAME`, `%NAME%`, `<name>`.
fn is_variable(value: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.>[]'\":".contains(&b))
    };
    let within = |open: char, close: char| value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    value
        .strip_prefix("$")
        .is_some_and(|name| is_name(name) && has_words(name))
        || within('%', '%').is_some_and(is_name)
        || within('<', '>').is_some()
        || within('@', '@').is_some_and(is_name)
        || value.starts_with("%(")
        || value.starts_with("$(")
        || value.starts_with('`')
        || value.starts_with("&lt;") && value.ends_with("&gt;")
        || is_format(value)
}

/// Whether a value is a format directive: `%s`, `{}`, `{0}`, `{name}`.
fn is_format(value: &str) -> bool {
    let inner = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let is_simple = |b: u8| b.is_ascii_alphanumeric() || b"_.:?$-!".contains(&b);
    matches!(value.as_bytes(), [b'%', b'a'..=b'z'] | [b'%', b'a'..=b'z', _])
        || inner.is_some_and(|inner| inner.bytes().all(is_simple))
}

/// Whether a value contains `${`, `{{`, `...`, `…` or `#{`.
fn has_template(value: &[u8]) -> bool {
    let begins = |at: usize, rest: &[u8]| value[at + 1..].starts_with(rest);
    value.iter().enumerate().any(|(at, byte)| match byte {
        // `#{` alone may be a part of a password.
        b'$' | b'{' | b'#' => begins(at, b"{") && value[at..].contains(&b'}'),
        b'.' => begins(at, b"..") && at + 3 >= value.len(),
        b'*' => begins(at, b"**"),
        b'%' => {
            (begins(at, b"s") || begins(at, b"r") || begins(at, b"v"))
                && (at == 0 || !value[at - 1].is_ascii_alphanumeric())
                && value.get(at + 2).is_none_or(|b| !b.is_ascii_alphanumeric())
        }
        0xe2 => begins(at, b"\x80\xa6") || begins(at, b"\x80\xa2"),
        _ => false,
    })
}

/// Whether a value is a rule of a form's validation: `required|min:8`.
fn is_rule(value: &str) -> bool {
    const RULES: [&str; 8] = [
        "required",
        "nullable",
        "sometimes",
        "string",
        "confirmed",
        "current_password",
        "min",
        "max",
    ];
    let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let is_argument = |argument: &str| {
        let bytes = argument.bytes();
        { bytes }.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_,.".contains(&b))
    };
    let is_part = |part: &str| {
        let (word, argument) = part.split_once(':').unwrap_or((part, ""));
        is_word(word) && is_argument(argument)
    };
    let first = value.split(['|', ':']).next().unwrap_or_default();
    value.contains('|') && RULES.contains(&first) && value.split('|').all(is_part)
}

/// Whether a value repeats one or two of the characters that are written in place of a secret: `xxxx`, `----`, `....`.
fn is_faded(value: &[u8]) -> bool {
    value.iter().all(|b| b"xX*.-_#?0 ".contains(b)) || value.iter().all(|b| *b == value[0])
}

/// Whether a value consists of at least three words, none of which tells about passwords.
fn is_words(value: &str) -> bool {
    let is_word = |word: &str| word.len() < 16 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let is_telling = |word: &str| {
        let tells = |known: &&str| known.eq_ignore_ascii_case(word);
        [
            "password",
            "passphrase",
            "phrase",
            "secret",
            "token",
            "key",
            "your",
            "must",
            "enter",
            "required",
            "invalid",
        ]
        .iter()
        .any(tells)
    };
    value.split(' ').count() >= 3 && value.split(' ').all(|word| is_word(word) && !is_telling(word))
}

/// Whether a quoted text describes a password and is none: several words, one of which is `password` or belongs to a sentence. A word with
/// letters and digits in it is part of a password; a number may belong to a sentence.
fn is_description(value: &str) -> bool {
    if !value.contains(' ') {
        return false;
    }
    let is_one_of = |words: &[&str], word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    let topics = ["password", "passphrase", "secret", "token", "key"];
    let links = [
        "your", "the", "must", "enter", "required", "is", "invalid", "for", "be", "not", "and", "with", "of", "to",
    ];
    let (mut has_topic, mut has_link, mut has_number) = (false, false, false);
    for word in value.split(|c: char| !c.is_ascii_alphanumeric()) {
        let has_digit = word.bytes().any(|b| b.is_ascii_digit());
        if has_digit && word.bytes().any(|b| b.is_ascii_alphabetic()) {
            return false;
        }
        has_number |= has_digit;
        has_topic |= is_one_of(&topics, word);
        has_link |= is_one_of(&links, word);
    }
    has_link || has_topic && !has_number
}

/// Whether a value is the version of a package: `^1.2.3`.
fn is_version(value: &str) -> bool {
    let plain = value.trim_start_matches(['^', '~', '>', '<', '=', 'v', ' ']);
    plain.len() <= 12 && plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') && plain.split('.').count() == 3
}

/// Whether a value is the name of a type that holds secrets, as in `"rsa.RSAPrivateKey"`.
fn is_type_name(value: &str, name: Strength) -> bool {
    value.bytes().all(|b| b.is_ascii_alphabetic() || b"._".contains(&b))
        && (value.contains('.') || name == Strength::Strong)
        && strength(value).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_under_a_sure_name_is_a_secret_however_it_looks() {
        for value in [
            "hunter2",
            "x.Y9!kk(p",
            "Sunny.Garden.River",
            "correct",
            "a$b%c",
            "123e4567-e89b-12d3-a456-426614174000",
            "8472910472",
            "-dash9",
            "hunter2 secret",
            "Top Secret pass 99",
        ] {
            assert!(is_secret(Strength::Password, value, ValueForm::Quoted), "{value}");
        }
        for value in [
            "Your password",
            "must have at least 8 characters",
            "the secret of the database",
        ] {
            assert!(!is_secret(Strength::Password, value, ValueForm::Quoted), "{value}");
        }
        for value in [
            "hunter2",
            "x.Y9!kk(p",
            "Sunny.Garden.River",
            "sunnygarden",
            "hunter2secret",
            "mysecret",
            "Token1234",
            "p4ss:w0rd!",
            "aB3$xY9(z",
        ] {
            assert!(is_secret(Strength::Password, value, ValueForm::Line), "{value}");
        }
    }

    #[test]
    fn references_and_placeholders_are_no_secrets() {
        for value in [
            "",
            "${PASSWORD}",
            "$PASSWORD",
            "$(cat x)",
            "<your password>",
            "{{ .Values.x }}",
            "****",
            "xxxxxx",
            "changeme-in-production",
            "your_password_here",
            "null",
            "%DB_PASS%",
            "op://a/b",
            "/run/secrets/db",
            "[MASKED_TOKEN]",
            "required|min:8",
            "nullable|string|confirmed",
        ] {
            assert!(!is_secret(Strength::Password, value, ValueForm::Quoted), "{value}");
        }
    }

    #[test]
    fn source_code_is_no_secret() {
        for value in [
            "String,",
            "&str",
            "get_password()",
            "self.config.password",
            "os.environ[\"X\"]",
            "Option<String>",
            "password",
            "hashed_password_field",
            "userToken",
            "secret_key2",
            "None,",
            "PrivateKeyDer::Sec1",
            "str = None",
            "string;",
            "getpass.getpass()",
            "getpass.getpass(\"Password: \")",
        ] {
            assert!(!is_secret(Strength::Password, value, ValueForm::Line), "{value}");
            assert!(!is_secret(Strength::Password, value, ValueForm::Inline), "{value}");
        }
    }
}
