//! Secrets that are known by where they stand: in keys' armour, headers, URLs, command lines, assignments. And what is about persons.

use super::{finders, pem};
use crate::mask::{
    plausibility,
    rule::{
        How::{Assigned, Find, Groups, Token},
        Rule, rule,
    },
};

pub(super) static STRUCTURE: [Rule; 13] = [
    rule("pem_private_key", &["private key"], Find(pem::private_pem)),
    rule(
        "putty_private_key",
        &["private-lines", "private-mac"],
        Groups(
            r"Private-Lines:[ \t]*[0-9]+\s+((?:[0-9A-Za-z+/=]{8,}\s+)*[0-9A-Za-z+/=]{8,}(?:\s+[0-9A-Za-z+/]{1,7}=+)?)|Private-MAC:[ \t]*([0-9a-f]{32,})",
        ),
    )
    .check(|_, _| true),
    rule(
        "jwt",
        &["eyj"],
        Token(r"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*(?:\.[0-9A-Za-z_-]+){0,2}"),
    ),
    rule(
        "authorization_header",
        &["authorization"],
        Groups(
            r#"(?i)authorization(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?(?:(?:bearer|basic|token|digest|negotiate|apikey|api-key|aws4-hmac-sha256)[ \t]+)?([^\s"'<>,;\\{}\[\]]{8,})"#,
        ),
    )
    .keyed()
    .check(|_, value| plausibility::is_no_word(value)),
    rule(
        "bearer_token",
        &["bearer"],
        Groups(r"(?i)\bbearer[ \t]+([0-9A-Z._~+/=-]{16,})"),
    )
    .check(|_, value| plausibility::is_no_word(value)),
    rule(
        "cookie_header",
        &["cookie"],
        Groups(r#"(?i)\b(?:set-)?cookie(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?([0-9A-Z_.!#$%&*+^|~-]{1,64}=[^\r\n"'\\]{6,})"#),
    )
    .keyed()
    .check(|_, _| true),
    rule(
        "url_userinfo_password",
        &["://"],
        Groups(r#"://[^\s/:@"'<>?#\\]*:([^\s/"'<>?#\\]+)@"#),
    )
    .check(|_, value| plausibility::plausible(value) || value.len() < 4),
    rule(
        "connection_string_password",
        &["password", "pwd"],
        Groups(r#"(?i)(?:;[ \t]*(?:password|pwd)[ \t]*=[ \t]*([^;\s"']{4,})|(?:password|pwd)[ \t]*=[ \t]*([^;\s"']{4,});)"#),
    ),
    rule(
        "netrc_password",
        &["machine"],
        Groups(r#"machine\s+[^\s"']+\s+login\s+[^\s"']+\s+password\s+([^\s"'\\]{4,})"#),
    ),
    rule(
        "cli_flag_secret",
        &["token", "pass", "secret", "key"],
        Groups(
            r#"(?i)(?:^|[\s"'=\[,])--?(?:[a-z0-9]+[_-])*(?:token|password|passwd|pass|secret|api[_-]?key|access[_-]?key|secret[_-]?key)(?:=|[ \t]+|["'],[ \t]*["'])["']?([^\s"'\\<>$-][^\s"'\\<>]{5,})"#,
        ),
    )
    .check(|_, value| plausibility::is_no_word(value) && !plausibility::is_reference(value)),
    rule(
        "curl_user",
        &["curl"],
        Groups(r#"\bcurl\b[^\r\n|;]*?[ \t](?:-u|--user|--proxy-user)[ \t=]*["']?[^\s:"'$]+:([^\s"'$]{4,})"#),
    ),
    rule(
        "kubeconfig_data",
        &["client-key-data", "client_key_data"],
        Assigned(r"client[_-]key[_-]data"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value)),
    rule(
        "env_value",
        &["value"],
        Groups(
            r#"(?i)(?:\\*")?name(?:\\*")?[ \t]*:[ \t]*(?:\\*["'])?[A-Z0-9_.-]*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key|credentials?)(?:\\*["'])?[ \t]*,?\s*(?:\\*")?value(?:\\*")?[ \t]*:[ \t]*(?:\\*["'])?([^\s"'\\,{}]{4,})"#,
        ),
    )
    .check(|_, value| plausibility::plausible(value) && !plausibility::is_reference(value)),
];

pub(super) static GENERIC: [Rule; 1] = [
    rule(
        "secret_assignment",
        &["pass", "pwd", "secret", "token", "key", "credential"],
        Assigned(
            r"password|passwd|pwd|passphrase|secret|token|api[_.-]?key|access[_.-]?key|private[_.-]?key|secret[_.-]?key|encryption[_.-]?key|signing[_.-]?key|credentials?",
        ),
    )
    .check(is_assigned_secret),
];

/// Names of tokens that say where in a listing one is. Agents need them.
const PLACES: &[&str] = &[
    "next", "page", "continu", "cursor", "sync", "resume", "progress", "prev", "offset",
];

fn is_assigned_secret(key: &str, value: &str) -> bool {
    value.len() >= 8 && plausibility::is_no_word(value) && !plausibility::is_reference(value) && !is_place(key)
}

/// Whether a name holds a word of [`PLACES`], in any case.
fn is_place(key: &str) -> bool {
    let key = key.as_bytes();
    let begins = |at: usize, word: &str| {
        let there = key.get(at..at + word.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(word.as_bytes()))
    };
    let stands_at = |at: usize| PLACES.iter().any(|word| begins(at, word));
    let may_begin = |byte: u8| matches!(byte.to_ascii_lowercase(), b'n' | b'p' | b'c' | b's' | b'r' | b'o');
    (0..key.len()).any(|at| may_begin(key[at]) && stands_at(at))
}

pub(super) static PII: [Rule; 3] = [
    rule("pii_credit_card", &[], Find(finders::cards))
        .check(|_, value| plausibility::luhn(value))
        .on_request(),
    rule(
        "pii_iban",
        &[],
        Token(r"[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,4})?\b"),
    )
    .check(|_, value| plausibility::iban(value))
    .on_request(),
    rule("pii_us_ssn", &[], Token(r"[0-9]{3}-[0-9]{2}-[0-9]{4}\b"))
        .check(|_, value| plausibility::ssn(value))
        .on_request(),
];
