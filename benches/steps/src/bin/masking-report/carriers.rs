//! Texts and values in which secrets are found: config files, the output of commands, logs, diffs.

use serde_json::{Value, json};

use crate::classes::Random;

/// A text or a structured value with a secret in it.
pub enum Carried {
    Text(String),
    /// Several content blocks, or lines of stderr.
    Value(Value),
}

pub type Carrier = (&'static str, fn(&str, &str) -> Carried);

/// Carriers of a token, which needs no name. The name is not used.
#[rustfmt::skip]
pub const NEUTRAL: &[Carrier] = &[
    ("alone", |_, s| text(s)),
    ("in a line", |_, s| text(&format!("the value is {s} and more words follow\n"))),
    ("json", |_, s| text(&json!({"note": s, "n": 1}).to_string())),
    ("json, indented", |_, s| text(&format!("{:#}", json!({"items": [{"note": s}], "n": 1})))),
    ("json in json", |_, s| text(&json!({"body": json!({"note": s}).to_string()}).to_string())),
    ("structured", |_, s| Carried::Value(json!({"items": [{"note": s}], "n": 1}))),
    ("yaml", |_, s| text(&format!("a: 1\nnote: '{}'\nb: 2\n", s.replace('\'', "''")))),
    ("shell", |_, s| text(&format!("export NOTE=\"{s}\"\n"))),
    ("diff", |_, s| text(&format!("@@ -1,2 +1,2 @@\n-{s}\n+other\n"))),
    ("log", |_, s| text(&format!("2026-03-01T10:00:00Z INFO app: note={s}\n"))),
    ("quoted mail", |_, s| text(&format!("> {s}\n> regards\n"))),
    ("numbered lines", |_, s| text(&format!("   12\t{s}\n   13\tend\n"))),
    ("grep", |_, s| text(&format!("src/app.cfg:12:{s}\n"))),
    ("coloured", |_, s| text(&format!("\u{1b}[32m{s}\u{1b}[0m\n"))),
    ("markdown", |_, s| text(&format!("| key | value |\n|---|---|\n| x | `{s}` |\n"))),
    ("comment", |_, s| text(&format!("# {s}\n"))),
];

/// Carriers of a password under a name in lower case with underscores.
#[rustfmt::skip]
pub const NAMED: &[Carrier] = &[
    ("json", |n, s| text(&json!({"user": "ada", n: s, "port": 5432}).to_string())),
    ("json, indented", |n, s| text(&format!("{:#}", json!({"db": {"user": "ada", n: s, "port": 5432}})))),
    ("json in json", |n, s| text(&json!({"body": json!({"user": "ada", n: s}).to_string()}).to_string())),
    ("json, camel case", |n, s| text(&json!({"user": "ada", camel(n): s}).to_string())),
    ("structured", |n, s| Carried::Value(json!({"db": {"user": "ada", n: s}}))),
    ("structured array", |n, s| Carried::Value(json!({"db": {"user": "ada", n: [s, s]}}))),
    ("structured pair", |n, s| Carried::Value(json!({"env": [{"name": upper(n), "value": s}]}))),
    ("json pair", |n, s| text(&json!({"env": [{"name": upper(n), "value": s}, {"name": "A", "value": "b"}]}).to_string())),
    ("json pair, reversed", |n, s| text(&format!(r#"{{"env": [{{"value": {}, "name": "{}"}}]}}"#, json!(s), upper(n)))),
    ("json key pair", |n, s| text(&format!("{:#}", json!([{"Key": upper(n), "Value": s}])))),
    ("yaml", |n, s| text(&format!("db:\n  user: ada\n  {n}: {}\n  port: 5432\n", yaml(s)))),
    ("yaml, quoted", |n, s| text(&format!("db:\n  user: ada\n  {n}: '{s}'\n  port: 5432\n"))),
    ("yaml pair", |n, s| text(&format!("env:\n- name: {}\n  value: {}\n- name: A\n  value: b\n", upper(n), yaml(s)))),
    ("yaml block", |n, s| text(&format!("db:\n  {n}: |-\n    {s}\n  port: 5432\n"))),
    ("compose", |n, s| text(&format!("    environment:\n      - A=b\n      - {}={s}\n", upper(n)))),
    ("env file", |n, s| text(&format!("A=b\n{}={s}\nC=d\n", upper(n)))),
    ("env file, quoted", |n, s| text(&format!("A=b\n{}=\"{s}\"\nC=d\n", upper(n)))),
    ("export", |n, s| text(&format!("export {}='{s}'\n", upper(n)))),
    ("powershell", |n, s| text(&format!("$env:{} = '{s}'\n", upper(n)))),
    ("cmd", |n, s| text(&format!("set {}={s}\r\n", upper(n)))),
    ("systemd", |n, s| text(&format!("[Service]\nEnvironment=\"{}={s}\"\n", upper(n)))),
    ("docker inspect", |n, s| text(&format!("{:#}", json!({"Env": ["PATH=/bin", format!("{}={s}", upper(n))]})))),
    ("docker inspect, structured", |n, s| Carried::Value(json!({"Env": ["PATH=/bin", format!("{}={s}", upper(n))]}))),
    ("ini", |n, s| text(&format!("[client]\nuser = root\n{n} = {s}\nport = 1\n"))),
    ("properties", |n, s| text(&format!("spring.datasource.username=sa\nspring.datasource.{}={s}\n", n.replace('_', "-")))),
    ("toml", |n, s| text(&format!("user = \"ada\"\n{n} = {}\n", json!(s)))),
    ("hcl", |n, s| text(&format!("resource \"x\" \"y\" {{\n  user = \"ada\"\n  {n} = {}\n}}\n", json!(s)))),
    ("python settings", |n, s| text(&format!("DATABASES = {{'default': {{'USER': 'a', '{}': '{s}'}}}}\n", upper(n)))),
    ("php define", |n, s| text(&format!("define('{}', '{s}');\n", upper(n)))),
    ("xml element", |n, s| text(&format!("<db>\n  <user>a</user>\n  <{n}>{}</{n}>\n</db>\n", xml(s)))),
    ("xml attributes", |n, s| text(&format!("<add key=\"{}\" value=\"{}\" />\n", camel(n), xml(s)))),
    ("vault table", |n, s| text(&format!("====== Data ======\nKey         Value\n---         -----\n{n:<11} {s}\n"))),
    ("terraform plan", |n, s| text(&format!("  ~ {n:<16} = \"{s}\" -> (known after apply)\n"))),
    ("diff", |n, s| text(&format!("@@ -1,3 +1,3 @@\n user: ada\n-{n}: {}\n+{n}: x\n", yaml(s)))),
    ("log", |n, s| text(&format!("2026-03-01T10:00:00Z INFO app: connecting {n}={s}\n"))),
    ("quoted mail", |n, s| text(&format!("> user: ada\n> {n}: {}\n", yaml(s)))),
    ("numbered lines", |n, s| text(&format!("   12\t{}={s}\n   13\tend\n", upper(n)))),
    ("comment", |n, s| text(&format!("# {}={s}\n", upper(n)))),
    ("kubectl describe", |n, s| text(&format!("    Environment:\n      A:            b\n      {}:  {s}\n", upper(n)))),
];

/// The names of passwords.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "password", "db_password", "passwd", "db_pwd", "passphrase", "client_secret", "secret_key", "api_key", "api_secret", "auth_token",
    "access_token", "refresh_token", "jwt_secret", "password2", "api_key_1", "encryption_key", "postgres_password", "secret_access_key",
];

fn text(text: &str) -> Carried {
    Carried::Text(text.to_owned())
}

fn upper(name: &str) -> String {
    name.to_uppercase()
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + &part[..1].to_uppercase() + &part[1..])
}

/// A YAML scalar: plain where it may be, quoted where it must.
fn yaml(value: &str) -> String {
    let is_plain = value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with(':');
    if is_plain {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

fn xml(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Spreads a PEM block over the lines of a carrier.
pub fn pem(random: &mut Random) -> (String, Vec<String>) {
    let body: Vec<String> = (0..6).map(|_| crate::classes::generate("{b64}", random)).collect();
    let label = concat!("RSA PRIV", "ATE KEY");
    (
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", body.join("\n")),
        body,
    )
}

/// What is written before each line of a PEM block.
pub const PREFIXES: &[&str] = &[
    "",
    "    ",
    "> ",
    "| ",
    "+",
    "-",
    "# ",
    "// ",
    "12: ",
    "   12\t",
    "2026-03-01T10:00:00Z INFO ",
    "[stderr] ",
    "app-1  | ",
];
