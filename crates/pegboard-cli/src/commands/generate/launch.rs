//! How a generated program reaches a server without Pegboard: its command or its URL, with variables in place of all secrets.

use pegboard::{
    Loaded,
    config::{Auth, Command, Endpoint, EnvPolicy, RemoteKind, SandboxLevel, ServerConfig, Tls, Transport},
    mask::{Masker, Masking},
};
use serde_json::{Map, Value, json};

use crate::{commands::plain_secrets, exit::Exit, output::path_text, settings::Complaint};

/// What stands for hidden text when settings are shown.
const HIDDEN: &str = "****";

/// The settings of a server for a program of its own, or why there can be none.
pub(super) fn of_server(loaded: &Loaded, name: &str, server: &ServerConfig) -> Result<Value, Complaint> {
    let shown = &loaded.show()["servers"][name];
    let mut writer = Writer::new(name, shown);
    match &server.transport {
        Transport::Stdio(command) => writer.process(command),
        Transport::Remote { kind, endpoint } => writer.remote(*kind, endpoint),
    }
    .map_err(|why| Complaint {
        message: format!("no program of its own can be made for the server `{name}`: {why}"),
        hint: Some("`--through-pegboard` makes one that calls `pegboard`, which can do that".to_owned()),
        exit: Exit::Usage,
    })
}

struct Writer<'a> {
    server: &'a str,
    /// The settings as they are written, literal secrets hidden.
    shown: &'a Value,
    masker: Option<Masker>,
    /// How many variables stand for secrets without a name.
    unnamed: usize,
}

impl<'a> Writer<'a> {
    fn new(server: &'a str, shown: &'a Value) -> Self {
        Self {
            server,
            shown,
            masker: Masker::new(&Masking::default(), []).ok(),
            unnamed: 0,
        }
    }

    fn process(&mut self, command: &Command) -> Result<Value, String> {
        if command.sandbox.level != SandboxLevel::Off {
            return Err("its sandbox would not apply".to_owned());
        }
        let shown = self.shown;
        let mut words = vec![self.text(shown["command"].as_str().unwrap_or(&command.program))?];
        for word in shown["args"].as_array().into_iter().flatten() {
            words.push(self.text(word.as_str().unwrap_or_default())?);
        }
        let passed = texts(&shown["env_pass"]);
        let mut env = Map::new();
        for (key, value) in &command.env {
            let written = shown["env"].get(key).and_then(Value::as_str);
            let text = match written {
                Some(written) => self.value(key, written, value.expose())?,
                None if passed.contains(key) => continue,
                // From a file beside the config, which may hold secrets.
                None => format!("${{{key}}}"),
            };
            env.insert(key.clone(), text.into());
        }
        let (mut names, prefixes) = EnvPolicy::allowed();
        let inherited = match command.env_policy {
            EnvPolicy::Allowlist => {
                names.extend(passed);
                json!(names)
            }
            EnvPolicy::Explicit => json!(passed),
            EnvPolicy::Inherit => Value::Null,
            _ => return Err("its `env_policy` would not apply".to_owned()),
        };
        let prefixes = match command.env_policy {
            EnvPolicy::Allowlist => prefixes,
            _ => &[],
        };
        Ok(json!({
            "era": "legacy", "command": words, "cwd": command.cwd, "env": env,
            "inherit": inherited, "inherit_prefixes": prefixes,
        }))
    }

    fn remote(&mut self, kind: RemoteKind, endpoint: &Endpoint) -> Result<Value, String> {
        if !matches!(kind, RemoteKind::Auto | RemoteKind::Http) {
            return Err(format!("it speaks {}, not streamable HTTP", kind.as_str()));
        }
        if endpoint.tls != Tls::default() {
            return Err("its TLS settings would not apply".to_owned());
        }
        let shown = self.shown;
        let url = self.text(shown["url"].as_str().unwrap_or_default())?;
        let mut headers = Map::new();
        for (key, value) in &endpoint.headers {
            let text = match shown["headers"].get(key).and_then(Value::as_str) {
                Some(written) => self.value(key, written, value.expose())?,
                None => match shown["env_headers"].get(key).and_then(Value::as_str) {
                    Some(variable) => format!("${{{variable}}}"),
                    None => plain_secrets::from_variable(key, value.expose()),
                },
            };
            headers.insert(key.clone(), text.into());
        }
        let token = format!("{}_TOKEN", variable(self.server));
        let has_own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let (mut basic, mut token_file, mut token_variable) = (Value::Null, Value::Null, Value::Null);
        match &endpoint.auth {
            Auth::None | Auth::Anonymous if has_own => {}
            Auth::Anonymous => {}
            Auth::None | Auth::OAuth(_) => token_variable = token.into(),
            Auth::Bearer(secret) => {
                let written = [&shown["auth"]["bearer"], &shown["bearer_token"]];
                let written = written.into_iter().find_map(Value::as_str).unwrap_or(HIDDEN);
                let text = match written.contains(HIDDEN) {
                    true => format!("${{{token}}}"),
                    false => self.value("token", written, secret.expose())?,
                };
                headers.insert("Authorization".to_owned(), format!("Bearer {text}").into());
            }
            Auth::Basic { user, password } => {
                let of = |key: &str| shown["auth"][key].as_str().unwrap_or(HIDDEN);
                let user = match of("user").contains(HIDDEN) {
                    true => escape(user),
                    false => self.text(of("user"))?,
                };
                basic = json!([
                    user,
                    self.value(
                        &format!("{}_PASSWORD", variable(self.server)),
                        of("password"),
                        password.expose()
                    )?
                ]);
            }
            Auth::BearerFile(path) => token_file = json!(path_text(path)),
            Auth::HeadersHelper(_) => return Err("its `headers_helper` would not run".to_owned()),
        }
        Ok(json!({
            "era": "modern", "url": url, "headers": headers, "basic": basic, "token": token_variable,
            "token_file": token_file,
        }))
    }

    /// A value of `env` or `headers`: as it is written, or a variable if it holds a secret in clear.
    fn value(&self, key: &str, written: &str, value: &str) -> Result<String, String> {
        if !written.contains(HIDDEN) {
            return references(written);
        }
        let is_masked = |masker: &Masker| masker.text(value).counts.total() > 0;
        // Shown without its text because any value may be a secret.
        let is_literal = written.replace(HIDDEN, "").is_empty();
        let is_harmless =
            is_literal && !plain_secrets::is_secret(key, value) && !self.masker.as_ref().is_none_or(is_masked);
        Ok(match is_harmless {
            true => escape(value),
            false => plain_secrets::from_variable(key, if is_literal { value } else { written }),
        })
    }

    /// Any other text. A variable stands for each part that is hidden.
    fn text(&mut self, written: &str) -> Result<String, String> {
        let mut parts = written.split(HIDDEN);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            self.unnamed += 1;
            let number = match self.unnamed {
                1 => String::new(),
                number => format!("_{number}"),
            };
            text.push_str(&format!("${{{}_SECRET{number}}}{part}", variable(self.server)));
        }
        references(&text)
    }
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// A name in upper case with `_` for everything that no variable has.
fn variable(name: &str) -> String {
    let in_name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.to_uppercase().chars().map(in_name).collect()
}

/// A text of a config with all its references as `${NAME}` or `${NAME:-default}`.
fn references(text: &str) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['$', '{']) {
        written.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some(after) = rest.strip_prefix("$$") {
            written.push_str("$$");
            rest = after;
        } else if let Some((inner, after)) = rest.strip_prefix("${").and_then(|rest| rest.split_once('}')) {
            written.push_str(&reference(inner));
            rest = after;
        } else if let Some((inner, after)) = rest.strip_prefix("{{").and_then(|rest| rest.split_once("}}")) {
            let Some(name) = inner.trim().strip_prefix('.') else {
                return Err(format!("`{{{{{inner}}}}}` is a value of a view"));
            };
            written.push_str(&reference(name));
            rest = after;
        } else {
            let letter = if rest.starts_with('$') { "$$" } else { "{" };
            written.push_str(letter);
            rest = &rest[1..];
        }
    }
    Ok(written + rest)
}

/// A reference to a variable. That of a secret is a variable with the name of the secret.
fn reference(inner: &str) -> String {
    if let Some(name) = inner.strip_prefix("keyring:").or_else(|| inner.strip_prefix("secret:")) {
        let last = name.rsplit('/').next().unwrap_or(name);
        return format!("${{{}}}", variable(last));
    }
    format!("${{{}}}", inner.strip_prefix("env:").unwrap_or(inner))
}

#[cfg(test)]
mod tests {
    use pegboard::{Config, Env, config::Source};

    use super::*;

    fn launch(text: &str) -> Result<Value, String> {
        let env = Env::from_pairs([("GITHUB_TOKEN", "ghp_from_the_environment"), ("ZONE", "UTC")]);
        let loaded = Config::load(&[Source::text("test", format!("[servers.fx-1]\n{text}"), None)], &env);
        let server = loaded.config.servers.values().next().expect("a server");
        of_server(&loaded, "fx-1", server).map_err(|complaint| complaint.message)
    }

    #[test]
    fn no_secret_of_the_config_or_of_the_environment_is_in_it() {
        let stdio = launch(
            "command = 'srv'\nargs = ['--zone', '{{.ZONE}}', '--token=c4nary-7f3a9b1e']\n\
             [servers.fx-1.env]\nTZ = 'UTC'\nPRICE = '5 $$'\nGITHUB_TOKEN = '${GITHUB_TOKEN}'\nAPI_KEY = 'c4nary-7f3a9b1e'\n\
             NOTE = 'ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789'",
        )
        .unwrap();
        assert_eq!(
            stdio["command"],
            json!(["srv", "--zone", "${ZONE}", "--token=${FX_1_SECRET}"])
        );
        assert_eq!(
            stdio["env"],
            json!({"TZ": "UTC", "PRICE": "5 $$", "GITHUB_TOKEN": "${GITHUB_TOKEN}", "API_KEY": "${API_KEY}", "NOTE": "${NOTE}"})
        );
        let http = launch("url = 'https://h.example/mcp'\nauth = { bearer = 'c4nary-7f3a9b1e' }\nheaders = { X-Team = 'blue', X-Api-Key = 'c4nary-7f3a9b1e' }").unwrap();
        assert_eq!(
            http["headers"],
            json!({"Authorization": "Bearer ${FX_1_TOKEN}", "X-Team": "blue", "X-Api-Key": "${X_API_KEY}"})
        );
        for made in [stdio, http] {
            let text = made.to_string();
            assert!(!text.contains("c4nary") && !text.contains("ghp_"), "{text}");
        }
    }

    #[test]
    fn references_become_variables() {
        for (written, expected) in [
            ("${env:A}/${B:-c}", "${A}/${B:-c}"),
            ("Bearer ${keyring:web/X-Auth}", "Bearer ${X_AUTH}"),
            ("${secret:github}", "${GITHUB}"),
            ("{{ .A }} $$ $5 {\"a\": 1}", "${A} $$ $$5 {\"a\": 1}"),
        ] {
            assert_eq!(references(written).as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn what_a_program_of_its_own_cannot_do_is_refused() {
        for (text, why) in [
            ("url = 'wss://h.example/mcp'", "websocket"),
            ("command = 'srv'\nsandbox = true", "sandbox"),
            (
                "url = 'https://h.example/mcp'\nheaders_helper = ['tokens']",
                "headers_helper",
            ),
            ("url = 'https://h.example/mcp'\ninsecure = true", "TLS"),
        ] {
            let refused = launch(text).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
