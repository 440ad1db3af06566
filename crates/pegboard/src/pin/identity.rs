//! What a server is, independent of its name in the config.

use std::fmt;

use sha2::{Digest, Sha256};

use pegboard_base::{name::ServerName, secret::HIDDEN};
use pegboard_config::{Command, Endpoint, ServerConfig, Transport};

/// The shortest secret that is replaced in arguments and URLs. Shorter values would replace ordinary text.
const MIN_SECRET: usize = 4;

/// What a server is: its command with arguments, folder and names of environment variables, or its URL without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    /// The SHA-256 of the identity in hexadecimal digits, which is also the name of its file.
    pub(crate) hash: String,
    /// The program or URL for people, without arguments and secrets.
    pub(crate) shown: String,
}

impl ServerIdentity {
    /// The identity of a configured server. Secrets do not count, so that a renewed token does not make it another server.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let secrets = config.secrets();
        let secrets: Vec<&str> = secrets.iter().map(pegboard_base::secret::Secret::expose).collect();
        let without_secrets = |text: &str| {
            let known = secrets.iter().filter(|secret| secret.len() >= MIN_SECRET);
            known.fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
        };
        match &config.transport {
            Transport::Stdio(command) => Self::from_command(command, without_secrets),
            Transport::Remote { kind, endpoint } => Self::from_endpoint(kind.as_str(), endpoint, without_secrets),
        }
    }

    /// The identity of a server in this process. Only the program can tell such servers apart, by their names.
    pub(crate) fn in_process(name: &ServerName) -> Self {
        Self::from_parts(&["in_process", name.as_str()], format!("in this process: {name}"))
    }

    fn from_command(command: &Command, without_secrets: impl Fn(&str) -> String) -> Self {
        let args: Vec<String> = command.args.iter().map(|arg| without_secrets(arg.expose())).collect();
        let cwd = command.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
        let mut parts = vec!["stdio", command.program.as_str(), "args"];
        parts.extend(args.iter().map(String::as_str));
        parts.extend(["cwd", cwd.as_deref().unwrap_or_default(), "env"]);
        parts.extend(command.env.keys().map(String::as_str));
        Self::from_parts(&parts, command.program.clone())
    }

    fn from_endpoint(kind: &str, endpoint: &Endpoint, without_secrets: impl Fn(&str) -> String) -> Self {
        let mut url = endpoint.url.expose().clone();
        // A URL with a host takes a user name and a password, so these cannot fail.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Self::from_parts(&[kind, &without_secrets(url.as_str())], endpoint.url.to_string())
    }

    fn from_parts(parts: &[&str], shown: String) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hash, shown }
    }
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_config::{Config, Env, Format};

    fn identity(text: &str) -> ServerIdentity {
        let loaded = Config::from_text(&format!("[servers.x]\n{text}"), Format::Toml, &Env::new(|_| None));
        assert_eq!(loaded.errors().count(), 0, "{:?}", loaded.problems);
        ServerIdentity::new(&loaded.config.servers.into_values().next().unwrap())
    }

    #[test]
    fn command_arguments_folder_and_variable_names_make_the_identity_of_a_process() {
        let base = "command = 'a'\nargs = ['b', 'c']\n";
        let same = |more: &str| identity(base) == identity(&format!("{base}{more}"));
        assert!(same(""));
        assert!(same("description = 'd'\ncall_timeout = '5s'\nallow = ['x']\n"));
        assert!(!same("cwd = '/tmp'\n"));
        assert!(!same("[servers.x.env]\nA = '1'\n"));
        for other in [
            "command = 'b'\nargs = ['b', 'c']",
            "command = 'a'\nargs = ['c', 'b']",
            "command = 'a'\nargs = ['bc']",
        ] {
            assert_ne!(identity(base), identity(other), "{other}");
        }
        let with = |value: &str| identity(&format!("command = 'a'\n[servers.x.env]\nTOKEN = '{value}'"));
        assert_eq!(
            with("one-value-of-it"),
            with("another-value"),
            "the values do not count"
        );
    }

    #[cfg(feature = "http")]
    #[test]
    fn credentials_are_no_part_of_an_identity() {
        let url = |url: &str| identity(&format!("url = '{url}'"));
        assert_eq!(url("https://a.example/mcp"), {
            let with = url("https://me:hunter2hunter2@a.example/mcp");
            ServerIdentity {
                shown: "https://a.example/mcp".into(),
                ..with
            }
        });
        let token = |token: &str| identity(&format!("command = 'a'\nargs = ['--token', '{token}']"));
        assert_eq!(token("s3cr3t-number-one").hash, token("s3cr3t-number-two").hash);
        assert_ne!(url("https://a.example/mcp"), url("https://b.example/mcp"));
        assert_ne!(url("https://a.example/mcp"), url("https://a.example/other"));
        assert!(!url("https://me:hunter2hunter2@a.example/mcp").shown.contains("hunter2"));
    }
}
