//! Collects the secret values of a config, which are masked in everything that servers send.

use std::ffi::OsString;

use super::{
    board::Config,
    environment::carries_urls,
    secret_detection,
    server::ServerConfig,
    transport::{Auth, Command, Endpoint, EnvPolicy, Transport},
};
use crate::secret::Secret;

impl Config {
    /// The values to mask in the output of all servers: credentials, and values that look like credentials.
    pub fn secrets(&self) -> Vec<Secret> {
        self.servers.values().flat_map(ServerConfig::secrets).collect()
    }
}

impl ServerConfig {
    /// The values to mask in the output of this server.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.written_secrets();
        if let Transport::Stdio(command) = &self.transport
            && command.env_policy != EnvPolicy::Explicit
        {
            secrets.extend(of_environment(std::env::vars_os()));
        }
        secrets
    }

    /// The secrets in its config.
    fn written_secrets(&self) -> Vec<Secret> {
        let mut secrets = match &self.transport {
            Transport::Stdio(command) => of_command(command),
            Transport::Auto(to) | Transport::Http(to) | Transport::Sse(to) | Transport::WebSocket(to) => {
                of_endpoint(to)
            }
        };
        if let Some(model) = self.policy.summarise.as_ref().and_then(|policy| policy.model.as_ref()) {
            secrets.extend(model.api_key.clone());
            add_url(&mut secrets, model.url.expose().as_str());
        }
        secrets
    }
}

fn of_command(command: &Command) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (name, value) in &command.env {
        add_named(&mut secrets, name, value.expose());
    }
    let args: Vec<&str> = command.args.iter().map(Secret::expose).collect();
    for index in secret_detection::secret_args(&args) {
        let arg = args[index];
        match arg.split_once('=') {
            Some((name, value)) if secret_detection::names_secret(name) => secrets.push(Secret::new(value)),
            _ => secrets.push(Secret::new(arg)),
        }
    }
    args.iter().for_each(|arg| add_url(&mut secrets, arg));
    secrets
}

/// The credentials in the proxy and package index URLs that a child process inherits.
fn of_environment(ours: impl Iterator<Item = (OsString, OsString)>) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (name, value) in ours {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && carries_urls(name)
        {
            // A variable may hold several indexes, separated by spaces. A proxy may lack its scheme.
            for word in value.split_whitespace().filter(|word| word.contains('@')) {
                match word.contains("://") {
                    true => add_url(&mut secrets, word),
                    false => add_url(&mut secrets, &format!("http://{word}")),
                }
            }
        }
    }
    secrets
}

fn of_endpoint(endpoint: &Endpoint) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for value in endpoint.headers.values() {
        add_header(&mut secrets, value.expose());
    }
    match &endpoint.auth {
        Auth::None => {}
        Auth::Bearer(token) => secrets.push(token.clone()),
        Auth::Basic { user, password } => {
            secrets.push(password.clone());
            secrets.push(Secret::new(format!("{user}:{}", password.expose())));
        }
    }
    add_url(&mut secrets, endpoint.url.expose().as_str());
    let segments = endpoint.url.expose().path_segments();
    for segment in segments
        .into_iter()
        .flatten()
        .filter(|segment| secret_detection::is_random(segment))
    {
        secrets.push(Secret::new(segment));
    }
    secrets
}

/// Adds the value of a header, without its scheme (`Bearer …`).
fn add_header(secrets: &mut Vec<Secret>, value: &str) {
    match value.split_once(' ') {
        Some((_, credentials)) if !credentials.trim().contains(' ') => secrets.push(Secret::new(credentials.trim())),
        // Several words, as in a user agent, are no secret.
        Some(_) => {}
        None if secret_detection::is_random(value) || value.len() >= 8 && !secret_detection::is_word(value) => {
            secrets.push(Secret::new(value))
        }
        None => {}
    }
}

/// Adds the value of a variable if its name or its value looks like a secret.
fn add_named(secrets: &mut Vec<Secret>, name: &str, value: &str) {
    let is_file = value.starts_with(['/', '.', '~']) || name.to_ascii_lowercase().ends_with("file");
    if (secret_detection::names_secret(name) && !is_file)
        || secret_detection::is_random(value)
        || secret_detection::is_secret(value)
    {
        secrets.push(Secret::new(value));
    }
    add_url(secrets, value);
}

/// Adds the password of a URL, percent-encoded and decoded, and the secret values of its query.
fn add_url(secrets: &mut Vec<Secret>, text: &str) {
    if !text.contains("://") {
        return;
    }
    let Ok(url) = url::Url::parse(text.trim()) else { return };
    if let Some(password) = url.password() {
        secrets.push(Secret::new(password));
        let encoded = format!("x={}", password.replace('+', "%2B"));
        secrets.extend(url::form_urlencoded::parse(encoded.as_bytes()).map(|(_, value)| Secret::new(&*value)));
    }
    for (name, value) in url.query_pairs() {
        if secret_detection::names_secret(&name)
            || secret_detection::is_random(&value)
            || secret_detection::is_secret(&value)
        {
            secrets.push(Secret::new(&*value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_environment;
    use crate::config::{Config, Env, Format};

    fn secrets(text: &str) -> Vec<String> {
        let loaded = Config::from_text(&format!("[servers.x]\n{text}"), Format::Toml, &Env::new(|_| None));
        assert_eq!(loaded.errors().count(), 0, "{:?}", loaded.problems);
        let server = loaded.config.servers.into_values().next().unwrap();
        server
            .written_secrets()
            .iter()
            .map(|secret| secret.expose().to_owned())
            .collect()
    }

    #[test]
    fn credentials_of_proxies_and_indexes_are_secrets() {
        let ours = [
            ("HTTPS_PROXY", "http://me:pr0xy-pw@proxy:3128"),
            ("all_proxy", "me:s3cond-pw@proxy:3128"),
            (
                "UV_EXTRA_INDEX_URL",
                "https://a.example https://u:1ndex-pw@b.example/simple",
            ),
            ("PIP_INDEX_URL", "https://plain.example"),
            ("DATABASE_URL", "postgres://u:database-pw@db"),
        ];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let mut found: Vec<String> = of_environment(ours.into_iter())
            .iter()
            .map(|secret| secret.expose().to_owned())
            .collect();
        found.dedup();
        assert_eq!(found, ["pr0xy-pw", "s3cond-pw", "1ndex-pw"]);
    }

    #[test]
    fn credentials_are_secrets_wherever_they_are_written() {
        for (text, want) in [
            ("url = 'https://h/mcp'\nauth = { bearer = 'abc' }", &["abc"][..]),
            (
                "url = 'https://h/mcp'\nauth = { user = 'me', password = 'pw' }",
                &["pw", "me:pw"],
            ),
            (
                "url = 'https://h/mcp'\nauth = { api_key = 'k3yk3yk3y' }",
                &["k3yk3yk3y"],
            ),
            (
                "url = 'https://h/mcp'\nheaders = { Authorization = 'token abc' }",
                &["abc"],
            ),
            ("url = 'https://u:p%40w@h/mcp?key=abc&v=1'", &["p%40w", "p@w", "abc"]),
            (
                "command = 'a'\nargs = ['--token', 'abcdefgh', '--api-key=ijklmnop']",
                &["abcdefgh", "ijklmnop"],
            ),
            (
                "command = 'a'\nenv = { API_TOKEN = 'abc', DB = 'postgres://u:pw@h/x' }",
                &["abc", "pw", "pw"],
            ),
            (
                "command = 'a'\nenv = { OTHER = 'c4nary-7f3a9b1e' }",
                &["c4nary-7f3a9b1e"],
            ),
        ] {
            assert_eq!(secrets(text), want, "{text}");
        }
    }

    #[test]
    fn ordinary_settings_are_no_secrets() {
        for text in [
            "command = 'a'\nenv = { TZ = 'UTC', LEVEL = 'debug', REGION = 'eu-central-1', HOME = '/home/me', NODE_ENV = 'production' }",
            "command = 'a'\nenv = { KUBECONFIG = '/home/me/.kube/config', TOKEN_FILE = '/run/token', ID = '123e4567-e89b-12d3-a456-426614174000' }",
            "command = 'uvx'\nargs = ['mcp-server-time', '--local-timezone', 'Europe/Berlin']",
            "url = 'https://example.com/mcp/v1?version=2024-11-05'\nheaders = { Accept-Language = 'en', X-Client = 'my agent 1.0' }",
        ] {
            assert_eq!(secrets(text), [""; 0], "{text}");
        }
    }
}
