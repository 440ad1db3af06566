//! Collects the secret values of a config, which are masked in everything that servers send.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    board::Config,
    environment::{carries_urls, is_open, open_values},
    secret_args::secret_args,
    secret_parts::{secrets_in, secrets_in_url},
    serve::StateKey,
    server::ServerConfig,
    transport::{Auth, Command, Endpoint, EnvPolicy, Transport},
};
use pegboard_base::{
    name::ServerName,
    secret::{Secret, is_token_like, names_secret},
};

impl Config {
    /// The values to mask in the output of all servers: everything in headers, credentials, variables and URLs that is not plainly public.
    pub fn secrets(&self) -> Vec<Secret> {
        let of_servers = self.servers.values().flat_map(ServerConfig::secrets);
        let keys = self.serve.state_key.iter().chain(&self.serve.previous_state_key);
        let of_store = self.serve.store.iter().flat_map(crate::serve::replicas::secrets_of);
        let of_gateway = keys.map(StateKey::to_secret).chain(of_store);
        let introspection = self.serve.oauth.iter().filter_map(|oauth| oauth.introspection.as_ref());
        let of_gateway = of_gateway.chain(introspection.map(|endpoint| endpoint.client_secret.clone()));
        let of_gateway = of_gateway.chain(self.serve.telemetry.headers.values().cloned());
        let all = of_servers.chain(self.removed_secrets.iter().cloned()).chain(of_gateway);
        all.collect()
    }

    /// Removes the servers that are not wanted. Their secrets stay masked: a server may find them in a file or on the network.
    pub fn select(&mut self, is_wanted: impl Fn(&ServerName) -> bool) {
        let (wanted, removed): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.servers)
            .into_iter()
            .partition(|(name, _)| is_wanted(name));
        self.servers = wanted;
        let secrets = removed.values().flat_map(ServerConfig::secrets);
        self.removed_secrets.extend(secrets);
        self.misconfigured.retain(|name, _| is_wanted(name));
    }
}

impl ServerConfig {
    /// The values to mask in the output of this server.
    #[doc(hidden)]
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.written_secrets();
        if let Transport::Stdio(command) = &self.transport
            && command.env_policy != EnvPolicy::Explicit
        {
            secrets.extend(collect_from_environment(std::env::vars_os(), command.env_policy));
        }
        let open = open_values();
        secrets.retain(|secret| !open.iter().any(|value| value == secret.expose()));
        secrets
    }

    /// The secrets in its config, each once.
    fn written_secrets(&self) -> Vec<Secret> {
        let mut secrets = match &self.transport {
            Transport::Stdio(command) => collect_from_command(command),
            Transport::Remote { endpoint, .. } => collect_from_endpoint(endpoint),
        };
        if let Some(model) = self.policy.summarise.as_ref().and_then(|policy| policy.model.as_ref()) {
            secrets.extend(model.api_key.clone());
            secrets.extend(secrets_in_url(model.url.expose().as_str()));
        }
        secrets.extend(self.roots.iter().flat_map(|root| secrets_in_url(root)));
        secrets.extend(self.hidden.iter().cloned());
        let mut seen = BTreeSet::new();
        secrets.retain(|secret| seen.insert(secret.clone()));
        secrets
    }
}

fn collect_from_command(command: &Command) -> Vec<Secret> {
    let env = command.env.iter().filter(|(name, _)| !is_open(name));
    let mut secrets: Vec<Secret> = env.flat_map(|(name, value)| secrets_in(name, value.expose())).collect();
    let args: Vec<&str> = command.args.iter().map(Secret::expose).collect();
    secrets.extend(secret_args(&args).into_iter().flat_map(|arg| arg.secrets));
    // A whole command line in `command` is a common mistake, which errors repeat.
    if command.program.contains(char::is_whitespace) {
        secrets.extend(secret_args(&[&command.program]).into_iter().flat_map(|arg| arg.secrets));
    }
    secrets
}

/// The secrets that a child process inherits: credentials in the URLs of proxies and package indexes, and with
/// [`EnvPolicy::Inherit`] all variables that are named like secrets or look like tokens.
fn collect_from_environment(ours: impl Iterator<Item = (OsString, OsString)>, policy: EnvPolicy) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (name, value) in ours {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        if carries_urls(name) {
            // A variable may hold several indexes, separated by spaces. A proxy may lack its scheme.
            for word in value.split_whitespace().filter(|word| word.contains('@')) {
                secrets.extend(match word.contains("://") {
                    true => secrets_in_url(word),
                    false => secrets_in_url(&format!("http://{word}")),
                });
            }
        } else if policy == EnvPolicy::Inherit && (names_secret(name) || is_token_like(value)) && !is_open(name) {
            secrets.extend(secrets_in(name, value));
        }
    }
    secrets
}

fn collect_from_endpoint(endpoint: &Endpoint) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (name, value) in &endpoint.headers {
        secrets.extend(secrets_in(name, value.expose()));
    }
    if let Some(url) = &endpoint.session_cleanup_url {
        secrets.extend(secrets_in_url(url.expose().as_str()));
    }
    match &endpoint.auth {
        Auth::None | Auth::Anonymous | Auth::BearerFile(_) => {}
        Auth::HeadersHelper(helper) => secrets.extend(collect_from_command(&helper.command)),
        Auth::Bearer(token) => secrets.push(token.clone()),
        Auth::Basic { user, password } => {
            let both = format!("{user}:{}", password.expose());
            // The header as it is sent: its encoding of a short password would not be found by the password.
            let header = STANDARD.encode(&both);
            secrets.extend([password.clone(), Secret::new(both), Secret::new(header)]);
        }
        Auth::OAuth(settings) => secrets.extend(settings.secrets()),
    }
    secrets.extend(secrets_in_url(endpoint.url.expose().as_str()));
    secrets
}

#[cfg(test)]
mod tests {
    use super::collect_from_environment;
    use crate::{Config, Env, EnvPolicy, Format};

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
        let mut found: Vec<String> = collect_from_environment(ours.into_iter(), EnvPolicy::Allowlist)
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
                &["pw", "me:pw", "bWU6cHc="],
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
                &["abc", "pw"],
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
    fn a_server_that_inherits_all_variables_may_print_the_secrets_among_them() {
        let ours = [("MY_TOKEN", "tomato"), ("EDITOR", "vim"), ("STATE", "a1b2c3d4e5f6")];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let found = collect_from_environment(ours.into_iter(), EnvPolicy::Inherit);
        let found: Vec<&str> = found.iter().map(|secret| secret.expose()).collect();
        assert_eq!(found, ["tomato", "a1b2c3d4e5f6"]);
    }

    #[test]
    fn values_of_variables_are_secrets_in_every_field() {
        let env = Env::from_pairs([
            ("X_KEY", "tomato"),
            ("PART", "s3cr3t"),
            ("HOME", "/home/x9y8z7"),
            ("LEVEL", "debug"),
        ]);
        let text = "[servers.x]\nurl = 'https://h/${PART}/mcp?l=${LEVEL}'\ndescription = 'of ${X_KEY}'\ncwd = '${HOME}'\n\
                    oauth = { enabled = false, client_secret = 'potato' }";
        let loaded = Config::from_text(text, Format::Toml, &env);
        assert_eq!(loaded.errors().count(), 0, "{:?}", loaded.problems);
        let found = loaded.config.secrets();
        let found: Vec<&str> = found.iter().map(|secret| secret.expose()).collect();
        assert_eq!(found, ["potato", "s3cr3t", "tomato"]);
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
