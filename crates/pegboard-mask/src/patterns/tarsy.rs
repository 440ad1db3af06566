//! The sixteen masking patterns of the TARSy agent, under its names. They mask less than the originals: they replace the value alone, and do
//! not mask digests, commits and placeholders.

use super::{pem, prefixless};
use crate::{
    kubernetes,
    pattern::{
        Detection::{Assigned, Find, FindSpans, Groups, Token},
        Pattern, pattern,
    },
    plausibility,
};

pub(super) static TARSY: [Pattern; 16] = [
    pattern("kubernetes_secret", &["secret", "apiversion"], FindSpans(kubernetes::find)),
    pattern(
        "api_key",
        &["key"],
        Assigned(r"\bkey|api[_.-]?key|api[_.-]?secret|access[_.-]?key"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value) && !plausibility::is_reference(value))
    .on_request(),
    pattern("password", &["pass", "pwd"], Assigned(r"password|passwd|pwd|pass"))
        .check(|_, value| value.len() >= 6 && plausibility::plausible(value))
        .on_request(),
    pattern("certificate", &["-----begin"], Find(pem::any_pem)).on_request(),
    pattern(
        "certificate_authority_data",
        &["certificate-authority-data", "certificate_authority_data"],
        Assigned(r"certificate[_-]authority[_-]data"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value))
    .on_request(),
    pattern(
        "token",
        &["token", "bearer", "jwt"],
        Groups(
            r#"(?i)(?:token|bearer|jwt)(?:\\*["'])?(?:[ \t]*(?:=>|:=|[:=])[ \t]*|[ \t]+)(?:\\*["'])?([0-9A-Z_.+/~=-]{20,})"#,
        ),
    )
    .keyed()
    .check(|_, value| plausibility::is_token_like(value))
    .on_request(),
    pattern("email", &["@"], Groups(r"\b([0-9A-Za-z._%+-]+@(?:[0-9A-Za-z-]+\.)+[A-Za-z]{2,})\b"))
        .aliases(&["pii_email"])
        .on_request(),
    pattern(
        "ssh_key",
        &["ssh-", "ecdsa-sha2-"],
        Groups(r"\b((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]+)[ \t]+AAAA[0-9A-Za-z+/=]{16,})"),
    )
    .on_request(),
    pattern("base64_secret", &[], Find(prefixless::base64)).on_request(),
    pattern("base64_short", &[":"], Groups(r#"(?m):[ \t]+["']?([0-9A-Za-z+/]{2,18}={0,2})["']?[ \t]*\r?$"#))
        .check(|_, value| is_short_base64(value))
        .on_request(),
    pattern(
        "private_key",
        &["private"],
        Assigned(r"private[_.-]?key"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value) && !plausibility::is_reference(value))
    .on_request(),
    pattern("secret_key", &["secret"], Assigned(r"secret[_.-]?key"))
        .check(|_, value| value.len() >= 16 && plausibility::plausible(value) && !plausibility::is_reference(value))
        .on_request(),
    pattern(
        "aws_access_key",
        &["akia", "asia", "abia", "acca"],
        Token(r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    )
    .aliases(&["aws_access_key_id"]),
    pattern(
        "aws_secret_key",
        &["secret_key", "secretkey", "secret-key", "secret.key", "secret_access", "secretaccess", "secret-access", "secret.access"],
        Assigned(r"aws[_.-]?secret[_.-]?key|(?:aws[_.-]?)?secret[_.-]?access[_.-]?key"),
    )
    .aliases(&["aws_secret_access_key"])
    .check(|_, value| value.len() == 40 && value.bytes().all(is_base64) && !plausibility::is_hex(value) && plausibility::is_random(value)),
    pattern(
        "github_token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        Token(r"gh[pousr]_(?:[0-9]+_eyJ[0-9A-Za-z_.-]{20,}|[0-9A-Za-z]{36,255})"),
    )
    .check(|_, value| plausibility::is_random(&value[4..])),
    pattern(
        "slack_token",
        &["xox", "xapp-", "xwfp-"],
        Token(r"(?:xox[abeprs]|xapp|xwfp)(?:\.xox[bp])?-[0-9A-Za-z-]{10,}"),
    )
    .check(|_, value| value.bytes().any(|b| b.is_ascii_digit())),
];

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"+/=".contains(&b)
}

/// Whether a value is short base64. Words can have a valid length too, so padding, mixed case or digits must set it apart.
fn is_short_base64(value: &str) -> bool {
    let whole = value.len().is_multiple_of(4) && (4..20).contains(&value.len());
    let digits = value.bytes().any(|b| b.is_ascii_digit());
    let turns = value.as_bytes().windows(2);
    let turns = turns.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    whole && letters && (value.ends_with('=') || turns.count() >= 2 || (digits && plausibility::is_mixed(value)))
}
