//! Configs that are written in code: endpoints, commands, servers and boards.

use std::path::PathBuf;

use super::{
    board::Config,
    server::ServerConfig,
    transport::{Auth, ClientCert, Command, Endpoint, Transport},
};
use pegboard_base::{
    name::{BadServerName, ServerName},
    secret::{BadUrl, SafeUrl, Secret},
};

impl Config {
    /// Creates a config without servers.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; }
    /// use pegboard::{Config, ServerConfig, config::Command};
    ///
    /// let config = Config::new()
    ///     .server("time", ServerConfig::stdio(Command::new("uvx").arg("mcp-server-time")))?
    ///     .server("docs", ServerConfig::http("https://mcp.example.com/mcp")?)?;
    /// assert!(config.servers.contains_key("docs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server, in place of one of the same name.
    pub fn server(mut self, name: impl AsRef<str>, config: ServerConfig) -> Result<Self, BadServerName> {
        let name = ServerName::parse(name.as_ref())?;
        self.misconfigured.remove(&name);
        self.servers.insert(name, config);
        Ok(self)
    }
}

impl ServerConfig {
    /// Creates a server that is started as a child process.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::{ServerConfig, config::Command};
    ///
    /// let files = ServerConfig::stdio(Command::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"]));
    /// assert_eq!(files.transport.kind(), "stdio");
    /// ```
    pub fn stdio(command: Command) -> Self {
        Self::new(Transport::Stdio(command))
    }

    /// Creates a server at a URL or [`Endpoint`]: streamable HTTP, or HTTP+SSE if the server supports only that. Fails if the URL does not
    /// start with `http://` or `https://`.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::{ServerConfig, config::Endpoint};
    ///
    /// let docs = ServerConfig::http("https://mcp.example.com/mcp")?;
    /// let github = ServerConfig::http(Endpoint::new("https://mcp.example.com/mcp")?.bearer("t0ken"))?;
    /// assert!(ServerConfig::http("wss://mcp.example.com/mcp").is_err());
    /// # Ok::<(), pegboard::config::BadUrl>(())
    /// ```
    pub fn http<E>(endpoint: E) -> Result<Self, BadUrl>
    where
        E: TryInto<Endpoint>,
        BadUrl: From<E::Error>,
    {
        let endpoint = with_scheme(endpoint.try_into()?, &["http", "https"])?;
        Ok(Self::new(Transport::auto(endpoint)))
    }

    /// Creates a server over HTTP+SSE, the transport of 2024-11-05. Fails if the URL does not start with `http://` or `https://`.
    pub fn sse<E>(endpoint: E) -> Result<Self, BadUrl>
    where
        E: TryInto<Endpoint>,
        BadUrl: From<E::Error>,
    {
        let endpoint = with_scheme(endpoint.try_into()?, &["http", "https"])?;
        Ok(Self::new(Transport::sse(endpoint)))
    }

    /// Creates a server over WebSocket. Fails if the URL does not start with `ws://` or `wss://`.
    pub fn websocket<E>(endpoint: E) -> Result<Self, BadUrl>
    where
        E: TryInto<Endpoint>,
        BadUrl: From<E::Error>,
    {
        let endpoint = with_scheme(endpoint.try_into()?, &["ws", "wss"])?;
        Ok(Self::new(Transport::websocket(endpoint)))
    }
}

/// Fails unless the URL has one of these schemes.
fn with_scheme(endpoint: Endpoint, schemes: &[&str]) -> Result<Endpoint, BadUrl> {
    if schemes.contains(&endpoint.url.expose().scheme()) {
        return Ok(endpoint);
    }
    let starts: Vec<_> = schemes.iter().map(|scheme| format!("`{scheme}://`")).collect();
    Err(BadUrl::new(format!("it must start with {}", starts.join(" or "))))
}

/// Words in the names of headers that carry credentials, such as `X-Api-Key`.
const CREDENTIAL_WORDS: [&str; 5] = ["authorization", "cookie", "key", "secret", "token"];

impl Endpoint {
    /// Whether a header or the URL carries credentials, so that those of a person are not sent beside them.
    #[doc(hidden)]
    pub fn has_credentials(&self) -> bool {
        let is_credential = |name: &String| {
            let name = name.to_ascii_lowercase();
            CREDENTIAL_WORDS.iter().any(|word| name.contains(word))
        };
        self.headers.keys().any(is_credential) || !self.url.expose().username().is_empty()
    }

    /// Creates an endpoint without headers or credentials. Fails if the URL does not start with `http://`, `https://`, `ws://` or
    /// `wss://`.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::config::Endpoint;
    ///
    /// let endpoint = Endpoint::new("https://mcp.example.com/mcp")?.bearer("t0ken").header("X-Team", "blue");
    /// assert!(!format!("{endpoint:?}").contains("t0ken"));
    /// let bad = Endpoint::new("mcp.example.com").unwrap_err();
    /// assert_eq!(bad.to_string(), "the URL cannot be used: relative URL without a base");
    /// # Ok::<(), pegboard::config::BadUrl>(())
    /// ```
    pub fn new(url: impl AsRef<str>) -> Result<Self, BadUrl> {
        let url = SafeUrl::parse(url.as_ref().trim())?;
        with_scheme(Self::from(url), &["http", "https", "ws", "wss"])
    }

    /// Sends `Authorization: Bearer …` with every request.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<Secret>) -> Self {
        self.auth = Auth::Bearer(token.into());
        self
    }

    /// Sends `Authorization: Basic …` with every request.
    #[must_use]
    pub fn basic(mut self, user: impl Into<String>, password: impl Into<Secret>) -> Self {
        self.auth = Auth::Basic {
            user: user.into(),
            password: password.into(),
        };
        self
    }

    /// Sends a header with every request, in place of one of the same name. A name or value that HTTP does not allow fails the
    /// start of the server, and its status says so.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        let name = name.into();
        self.headers.retain(|known, _| !known.eq_ignore_ascii_case(&name));
        self.headers.insert(name, value.into());
        self
    }
}

impl TryFrom<&str> for Endpoint {
    type Error = BadUrl;

    fn try_from(url: &str) -> Result<Self, BadUrl> {
        Self::new(url)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = BadUrl;

    fn try_from(url: String) -> Result<Self, BadUrl> {
        Self::new(url)
    }
}

impl TryFrom<&String> for Endpoint {
    type Error = BadUrl;

    fn try_from(url: &String) -> Result<Self, BadUrl> {
        Self::new(url)
    }
}

impl Command {
    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Secret>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets environment variables.
    #[must_use]
    pub fn envs<N: Into<String>, V: Into<String>>(self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        variables
            .into_iter()
            .fold(self, |command, (name, value)| command.env(name, value))
    }

    /// Sets the working directory.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::config::Command;
    ///
    /// let command = Command::new("python").arg("server.py").env("TZ", "UTC").cwd("/srv/tools");
    /// assert_eq!(command.cwd.as_deref(), Some("/srv/tools".as_ref()));
    /// ```
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }
}

impl ClientCert {
    /// A client certificate: PEM files with the certificate chain and the private key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            cert: cert.into(),
            key: key.into(),
        }
    }
}

impl Auth {
    /// The kind of credentials as config files write it: `none`, `bearer`, `bearer_file`, `basic`, `headers_helper` or `oauth`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None | Self::Anonymous => "none",
            Self::Bearer(_) => "bearer",
            Self::BearerFile(_) => "bearer_file",
            Self::HeadersHelper(_) => "headers_helper",
            Self::Basic { .. } => "basic",
            Self::OAuth(_) => "oauth",
        }
    }
}
