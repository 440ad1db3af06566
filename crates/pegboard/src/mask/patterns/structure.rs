//! Secrets that are recognised by their context (PEM blocks, headers, URLs, command lines, assignments), and personal data.

use super::{pem, prefixless};
use crate::mask::{
    pattern::{
        Detection::{Assigned, Find, Groups, Token},
        Pattern, pattern,
    },
    plausibility,
};

pub(super) static STRUCTURE: [Pattern; 13] = [
    pattern("pem_private_key", &["private key"], Find(pem::private_pem)),
    pattern(
        "putty_private_key",
        &["private-lines", "private-mac"],
        Groups(
            r"Private-Lines:[ \t]*[0-9]+\s+((?:[0-9A-Za-z+/=]{8,}\s+)*[0-9A-Za-z+/=]{8,}(?:\s+[0-9A-Za-z+/]{1,7}=+)?)|Private-MAC:[ \t]*([0-9a-f]{32,})",
        ),
    )
    .check(|_, _| true),
    pattern(
        "jwt",
        &["eyj"],
        Token(r"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*(?:\.[0-9A-Za-z_-]+){0,2}"),
    ),
    pattern(
        "authorization_header",
        &["authorization"],
        Groups(
            r#"(?i)authorization(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?(?:(?:bearer|basic|token|digest|negotiate|apikey|api-key|aws4-hmac-sha256)[ \t]+)?([^\s"'<>,;\\{}\[\]]{8,})"#,
        ),
    )
    .keyed()
    .check(|_, value| plausibility::is_token_like(value)),
    pattern(
        "bearer_token",
        &["bearer"],
        Groups(r"(?i)\bbearer[ \t]+([0-9A-Z._~+/=-]{16,})"),
    )
    .check(|_, value| plausibility::is_token_like(value)),
    pattern(
        "cookie_header",
        &["cookie"],
        Groups(r#"(?i)\b(?:set-)?cookie(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?([0-9A-Z_.!#$%&*+^|~-]{1,64}=[^\r\n"'\\]{6,})"#),
    )
    .keyed()
    .check(|_, _| true),
    pattern(
        "url_userinfo_password",
        &["://"],
        Groups(r#"://[^\s/:@"'<>?#\\]*:([^\s/"'<>?#\\]+)@"#),
    )
    .check(|_, value| plausibility::plausible(value) || value.len() < 4),
    pattern(
        "connection_string_password",
        &["password", "pwd"],
        Groups(r#"(?i)(?:;[ \t]*(?:password|pwd)[ \t]*=[ \t]*([^;\s"']{4,})|(?:password|pwd)[ \t]*=[ \t]*([^;\s"']{4,});)"#),
    ),
    pattern(
        "netrc_password",
        &["machine"],
        Groups(r#"machine\s+[^\s"']+\s+login\s+[^\s"']+\s+password\s+([^\s"'\\]{4,})"#),
    ),
    pattern(
        "cli_flag_secret",
        &["token", "pass", "secret", "key"],
        Groups(
            r#"(?i)(?:^|[\s"'=\[,])--?(?:[a-z0-9]+[_-])*(?:token|password|passwd|pass|secret|api[_-]?key|access[_-]?key|secret[_-]?key)(?:=|[ \t]+|["'],[ \t]*["'])["']?([^\s"'\\<>$-][^\s"'\\<>]{5,})"#,
        ),
    )
    .check(|_, value| plausibility::is_token_like(value) && !plausibility::is_reference(value)),
    pattern(
        "curl_user",
        &["curl"],
        Groups(r#"\bcurl\b[^\r\n|;]*?[ \t](?:-u|--user|--proxy-user)[ \t=]*["']?[^\s:"'$]+:([^\s"'$]{4,})"#),
    ),
    pattern(
        "kubeconfig_data",
        &["client-key-data", "client_key_data"],
        Assigned(r"client[_-]key[_-]data"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value)),
    pattern(
        "env_value",
        &["value"],
        Groups(
            r#"(?i)(?:\\*")?name(?:\\*")?[ \t]*:[ \t]*(?:\\*["'])?[A-Z0-9_.-]*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key|credentials?)(?:\\*["'])?[ \t]*,?\s*(?:\\*")?value(?:\\*")?[ \t]*:[ \t]*(?:\\*["'])?([^\s"'\\,{}]{4,})"#,
        ),
    )
    .check(|_, value| plausibility::plausible(value) && !plausibility::is_reference(value)),
];

pub(super) static GENERIC: [Pattern; 1] = [
    pattern(
        "secret_assignment",
        &["pass", "pwd", "secret", "token", "key", "credential"],
        Assigned(
            r"password|passwd|pwd|passphrase|secret|token|api[_.-]?key|access[_.-]?key|private[_.-]?key|secret[_.-]?key|encryption[_.-]?key|signing[_.-]?key|credentials?",
        ),
    )
    .check(is_assigned_secret),
];

/// Words in the names of pagination tokens. Agents need these tokens.
const PAGINATION: &[&str] = &[
    "next", "page", "continu", "cursor", "sync", "resume", "progress", "prev", "offset",
];

fn is_assigned_secret(key: &str, value: &str) -> bool {
    value.len() >= 8 && plausibility::is_token_like(value) && !plausibility::is_reference(value) && !is_pagination(key)
}

/// Whether a name contains a word of [`PAGINATION`], ignoring case.
fn is_pagination(key: &str) -> bool {
    let key = key.as_bytes();
    let begins = |at: usize, word: &str| {
        let there = key.get(at..at + word.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(word.as_bytes()))
    };
    let matches_at = |at: usize| PAGINATION.iter().any(|word| begins(at, word));
    let may_begin = |byte: u8| matches!(byte.to_ascii_lowercase(), b'n' | b'p' | b'c' | b's' | b'r' | b'o');
    (0..key.len()).any(|at| may_begin(key[at]) && matches_at(at))
}

pub(super) static PII: [Pattern; 3] = [
    pattern("pii_credit_card", &[], Find(prefixless::cards))
        .check(|_, value| plausibility::luhn(value))
        .on_request(),
    pattern(
        "pii_iban",
        &[],
        Token(r"[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,4})?\b"),
    )
    .check(|_, value| plausibility::iban(value))
    .on_request(),
    pattern("pii_us_ssn", &[], Token(r"[0-9]{3}-[0-9]{2}-[0-9]{4}\b"))
        .check(|_, value| plausibility::ssn(value))
        .on_request(),
];
