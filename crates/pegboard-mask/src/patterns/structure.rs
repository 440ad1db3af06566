//! Secrets that are recognised by their context (PEM blocks, headers, URLs, command lines, assignments), and personal data.

use super::{pem, prefixless};
use crate::{
    documents,
    named_values::STEMS,
    pattern::{
        Detection::{Find, FindSpans, Groups, Named, Token},
        Pattern, pattern,
    },
    plausibility,
};

pub(super) static STRUCTURE: [Pattern; 16] = [
    pattern(
        "service_header",
        &["x-postmark-", "ssws ", "response="],
        Groups(
            r#"(?i)(?:x-postmark-(?:server|account)-token(?:\\*["'])?[ \t]*[:=][ \t]*(?:\\*["'])?([0-9a-f-]{36})|\bSSWS[ \t]+([0-9A-Z_-]{30,})|\bdigest[ \t][^\r\n]*?\bresponse=\\*"([0-9a-f]{32,64})\\*")"#,
        ),
    ),
    pattern(
        "oracle_password",
        &["jdbc:oracle:", "sqlplus", "sqlldr", "expdp ", "impdp "],
        Groups(
            r#"(?i)(?:jdbc:oracle:(?:thin|oci8?):|\b(?:sqlplus|sqlldr|expdp|impdp)\b[^\r\n|;/]*?[ \t])[0-9A-Z_.$#]{1,64}/(?:\\*["'])?([^\s"'@/$<>{}\\]{4,})(?:\\*["'])?@"#,
        ),
    )
    .check(|_, value| plausibility::plausible(value)),
    pattern(
        "braced_password",
        &["password={", "pwd={", "password = {", "pwd = {"],
        Groups(
            r#"(?i)(?:;[ \t]*(?:password|pwd)[ \t]*=[ \t]*\{((?:[^{}\r\n"]|\}\}){4,})\}|\b(?:password|pwd)[ \t]*=[ \t]*\{((?:[^{}\r\n"]|\}\}){4,})\}[ \t]*;[ \t]*[A-Z][A-Z ]{1,30}=)"#,
        ),
    )
    .check(|_, value| plausibility::plausible(value)),
    pattern(documents::NAME, documents::KEYWORDS, FindSpans(documents::find)),
    pattern("pem_private_key", &["private key"], Find(pem::private_pem)),
    pattern(
        "putty_private_key",
        &["private-lines", "private-mac"],
        Find(pem::putty),
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
    .check(|_, value| plausibility::is_token_like(value) && !plausibility::is_reference(value)),
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
    .check(|_, value| is_cookie(value)),
    pattern(
        "url_userinfo_password",
        &["://"],
        Groups(r#"://[^\s/:@"'<>?#\\]*:([^\s/"'<>?#\\]+)@"#),
    )
    .check(|_, value| plausibility::plausible(value) || value.len() < 4),
    pattern(
        "netrc_password",
        &["machine"],
        Groups(r#"machine\s+[^\s"']+\s+login\s+[^\s"']+\s+password\s+([^\s"'\\]{4,})"#),
    ),
    pattern(
        "login_flag",
        &["sshpass", "add-authtoken", "wandb login", "mysql", "redis-cli", "docker login", "mariadb", "htpasswd", "chpasswd", "openssl enc", "7z ", "zip -p", "net use", "ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"],
        Groups(
            r#"(?:\b|m)(?:(?:add-authtoken|wandb login)[ \t]+["']?([0-9A-Za-z_]{32,})|sshpass[ \t]+-p[ \t]*["']?([^\s"'$<-][^\s"']{3,})|(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\r\n|;]*?[ \t]-p["']?([^\s"'$<=-][^\s"']{3,})|redis-cli\b[^\r\n|;]*?[ \t](?:-a|--pass)[ \t]+["']?([^\s"'$<-][^\s"']{3,})|docker login\b[^\r\n|;]*?[ \t](?:-p|--password)[ \t=]+["']?([^\s"'$<-][^\s"']{3,})|htpasswd\b[^\r\n|;]*?[ \t]-[a-zA-Z]*b[a-zA-Z]*[ \t]+\S+[ \t]+\S+[ \t]+["']?([^\s"'$<-][^\s"']{3,})|echo[ \t]+["']?[0-9A-Za-z_-]+:([^\s"'$]{4,})["']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd|openssl enc\b[^\r\n|;]*?[ \t]-k[ \t]+["']?([^\s"'$<-][^\s"']{3,})|7z[ \t]+[a-z][ \t][^\r\n|;]*?-p["']?([^\s"'$<=-][^\s"']{3,})|zip -P[ \t]+["']?([^\s"'$<-][^\s"']{3,})|net use[ \t][^\r\n|;]*?/user:\S+[ \t]+["']?([^\s"'$</][^\s"']{3,})|net use[ \t]+(?:[A-Za-z]:[ \t]+|\*[ \t]+)?["']?\\{2,}[^\s"']+["']?[ \t]+["']?([^\s"'$</*][^\s"']{3,})|ldap(?:search|modify|add|whoami)\b[^\r\n|;]*?[ \t]-w[ \t]*["']?([^\s"'$<-][^\s"']{3,}))"#,
        ),
    )
    .check(|_, value| plausibility::plausible(value) && value.bytes().any(|b| !b.is_ascii_lowercase())),
    pattern(
        "pgpass",
        &[":5432:", ":5433:", ":5434:", ":6432:", ":26257:", "localhost:*:", "*:*:"],
        Groups(r#"(?:[0-9A-Za-z.*_-]+:(?:5432|5433|5434|6432|26257)|(?:localhost|\*):\*):[0-9A-Za-z.*_-]{1,64}:[0-9A-Za-z.*@_-]{1,64}:([^\s"'\\`/][^\s"'\\`]{3,})"#),
    ),
    pattern(
        "password_hash",
        &["$2a$", "$2b$", "$2y$", "$6$", "$5$", "$1$", "$apr1$", "$argon2", "$y$"],
        Groups(r"(\$(?:2[aby]\$[0-9]{2}\$[0-9A-Za-z./]{53}|[56]\$(?:rounds=[0-9]+\$)?[0-9A-Za-z./]{1,16}\$[0-9A-Za-z./]{43,86}|1\$[0-9A-Za-z./]{1,8}\$[0-9A-Za-z./]{22}|apr1\$[0-9A-Za-z./]{1,8}\$[0-9A-Za-z./]{22}|y\$[0-9A-Za-z./]{3}\$[0-9A-Za-z./]{16,24}\$[0-9A-Za-z./]{43}|argon2id?\$v=[0-9]+\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$[0-9A-Za-z+/]{16,}\$[0-9A-Za-z+/]{32,}))"),
    )
    .check(|_, value| plausibility::is_varied(value)),
    pattern(
        "curl_user",
        &["curl"],
        Groups(r#"curl\b[^\r\n|;]*?[ \t](?:-u|--user|--proxy-user)[ \t=]*["']?[^\s:"'$]+:([^\s"'$]{4,})"#),
    ),
];

/// Whether a cookie holds more than a word: a session, a token.
fn is_cookie(value: &str) -> bool {
    let values = value
        .split([';', ','])
        .filter_map(|pair| pair.split_once('='))
        .map(|(_, value)| value.trim());
    let is_long = |value: &str| {
        value.len() >= 8 && (plausibility::is_token_like(value) || value.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_date = |value: &str| value.contains(", ") || value.contains(' ');
    { values }.any(|value| !is_date(value) && is_long(value))
}

pub(super) static GENERIC: [Pattern; 1] = [pattern("secret_assignment", STEMS, Named).aliases(&[
    "connection_string_password",
    "cli_flag_secret",
    "kubeconfig_data",
    "env_value",
])];

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
