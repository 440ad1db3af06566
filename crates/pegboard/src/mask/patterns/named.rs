//! The fifteen patterns and the one structure that TARSy knows, under its names. Where its expressions were loose, these are not: they replace the
//! value alone, and leave digests, commits and placeholders.

use super::{finders, pem};
use crate::mask::{
    plausibility,
    rule::{
        How::{Assigned, Find, Groups, Kubernetes, Token},
        Rule, rule,
    },
};

pub(super) static NAMED: [Rule; 16] = [
    rule("kubernetes_secret", &["secret", "apiversion"], Kubernetes),
    rule(
        "api_key",
        &["key"],
        Assigned(r"\bkey|api[_.-]?key|api[_.-]?secret|access[_.-]?key"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value) && !plausibility::is_reference(value))
    .on_request(),
    rule("password", &["pass", "pwd"], Assigned(r"password|passwd|pwd|pass"))
        .check(|_, value| value.len() >= 6 && plausibility::plausible(value))
        .on_request(),
    rule("certificate", &["-----begin"], Find(pem::any_pem)).on_request(),
    rule(
        "certificate_authority_data",
        &["certificate-authority-data", "certificate_authority_data"],
        Assigned(r"certificate[_-]authority[_-]data"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value))
    .on_request(),
    rule(
        "token",
        &["token", "bearer", "jwt"],
        Groups(
            r#"(?i)(?:token|bearer|jwt)(?:\\*["'])?(?:[ \t]*(?:=>|:=|[:=])[ \t]*|[ \t]+)(?:\\*["'])?([0-9A-Z_.+/~=-]{20,})"#,
        ),
    )
    .keyed()
    .check(|_, value| plausibility::is_no_word(value))
    .on_request(),
    rule("email", &["@"], Groups(r"\b([0-9A-Za-z._%+-]+@(?:[0-9A-Za-z-]+\.)+[A-Za-z]{2,})\b"))
        .aka(&["pii_email"])
        .on_request(),
    rule(
        "ssh_key",
        &["ssh-", "ecdsa-sha2-"],
        Groups(r"\b((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]+)[ \t]+AAAA[0-9A-Za-z+/=]{16,})"),
    )
    .on_request(),
    rule("base64_secret", &[], Find(finders::base64)).on_request(),
    rule("base64_short", &[":"], Groups(r#"(?m):[ \t]+["']?([0-9A-Za-z+/]{2,18}={0,2})["']?[ \t]*\r?$"#))
        .check(|_, value| is_short_base64(value))
        .on_request(),
    rule(
        "private_key",
        &["private"],
        Assigned(r"private[_.-]?key"),
    )
    .check(|_, value| value.len() >= 20 && plausibility::plausible(value) && !plausibility::is_reference(value))
    .on_request(),
    rule("secret_key", &["secret"], Assigned(r"secret[_.-]?key"))
        .check(|_, value| value.len() >= 16 && plausibility::plausible(value) && !plausibility::is_reference(value))
        .on_request(),
    rule(
        "aws_access_key",
        &["akia", "asia", "abia", "acca"],
        Token(r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    )
    .aka(&["aws_access_key_id"]),
    rule(
        "aws_secret_key",
        &["secret"],
        Assigned(r"aws[_.-]?secret[_.-]?key|(?:aws[_.-]?)?secret[_.-]?access[_.-]?key"),
    )
    .aka(&["aws_secret_access_key"])
    .check(|_, value| value.len() == 40 && value.bytes().all(is_base64) && !plausibility::is_hex(value) && plausibility::is_random(value)),
    rule(
        "github_token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        Token(r"gh[pousr]_(?:[0-9]+_eyJ[0-9A-Za-z_.-]{20,}|[0-9A-Za-z]{36,255})"),
    )
    .check(|_, value| plausibility::is_random(&value[4..])),
    rule(
        "slack_token",
        &["xox", "xapp-", "xwfp-"],
        Token(r"(?:xox[abeprs]|xapp|xwfp)(?:\.xox[bp])?-[0-9A-Za-z-]{10,}"),
    )
    .check(|_, value| value.bytes().any(|b| b.is_ascii_digit())),
];

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"+/=".contains(&b)
}

/// Four letters of base64 stand for three bytes. Words have such lengths too, so something must be in it that no word has.
fn is_short_base64(value: &str) -> bool {
    let whole = value.len().is_multiple_of(4) && (4..20).contains(&value.len());
    let digits = value.bytes().any(|b| b.is_ascii_digit());
    let turns = value.as_bytes().windows(2);
    let turns = turns.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    whole && letters && (value.ends_with('=') || turns.count() >= 2 || (digits && plausibility::is_mixed(value)))
}
