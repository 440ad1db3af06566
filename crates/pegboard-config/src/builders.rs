//! Configs that are written in code: endpoints, commands, servers and boards.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use super::{
    board::Config,
    expand::Env,
    loaded::ConfigErrors,
    policy::{Approval, Results},
    server::{ServerConfig, Start},
    source::Source,
    transport::{Auth, ClientCert, Command, Endpoint, Transport},
    tree::Format,
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

    /// Reads a config file: TOML, YAML or JSON by its extension, with variables of this process. Any error in it is an error here;
    /// [`Config::load`] reads several files, and goes on with the servers whose settings have no errors.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; }
    /// use pegboard::Config;
    ///
    /// let missing = Config::from_file("no-such-folder/pegboard.toml").unwrap_err();
    /// assert!(missing.to_string().contains("no-such-folder/pegboard.toml"));
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigErrors> {
        Self::load(&[Source::file(path.as_ref())], &Env::process()).into_result()
    }

    /// Adds a server, in place of one of the same name.
    pub fn server<N>(mut self, name: N, config: ServerConfig) -> Result<Self, BadServerName>
    where
        N: TryInto<ServerName>,
        BadServerName: From<N::Error>,
    {
        let name = name.try_into()?;
        self.misconfigured.remove(&name);
        self.servers.insert(name, config);
        Ok(self)
    }
}

impl ServerConfig {
    /// Creates a server that is started as a child process, by its program and arguments.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; }
    /// use pegboard::ServerConfig;
    ///
    /// let time = ServerConfig::command("uvx", ["mcp-server-time"]);
    /// assert_eq!(time.transport.kind(), "stdio");
    /// ```
    pub fn command<A: Into<String>>(program: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        Self::stdio(Command::new(program).args(args))
    }

    /// Creates a server that is started as a child process, with an environment, a folder or limits of its own.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::{ServerConfig, config::Command};
    ///
    /// let files = ServerConfig::stdio(Command::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"]));
    /// assert_eq!(files.transport.kind(), "stdio");
    /// ```
    pub fn stdio(command: impl Into<Command>) -> Self {
        Self::new(Transport::Stdio(command.into()))
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

/// TOML, or JSON if it begins with `{`, with variables of this process. Any error in it is an error.
///
/// ```
/// # mod pegboard { pub use pegboard_config::*; }
/// use pegboard::Config;
///
/// let config: Config = r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#.parse()?;
/// assert!(config.servers.contains_key("time"));
/// # Ok::<(), pegboard::ConfigErrors>(())
/// ```
impl FromStr for Config {
    type Err = ConfigErrors;

    fn from_str(text: &str) -> Result<Self, ConfigErrors> {
        let format = match text.trim_start().starts_with('{') {
            true => Format::Json,
            false => Format::Toml,
        };
        Self::from_text(text, format, &Env::process()).into_result()
    }
}

/// Settings that programs often make. The others are fields.
///
/// ```
/// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; }
/// use std::time::Duration;
/// use pegboard::{ServerConfig, config::{Approval, Command, Start}};
///
/// let github = ServerConfig::stdio(Command::new("github-mcp-server").arg("stdio"))
///     .start(Start::Lazy)
///     .allow(["get_*", "list_*"])
///     .call_timeout(Duration::from_secs(30))
///     .approval(Approval::Writes);
/// ```
impl ServerConfig {
    /// Sets when the server is started.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Makes the board ready only when this server is ready.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Leaves the server in the config and uses it not at all.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.enabled = false;
        self
    }

    /// Shows only the tools that match one of these globs.
    #[must_use]
    pub fn allow<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.allow = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Hides the tools that match one of these globs, also those that are allowed.
    #[must_use]
    pub fn deny<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.deny = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Describes the server for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Tells models how to use this server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Reports these directories and other URIs to the server as roots.
    #[must_use]
    pub fn roots<S: Into<String>>(mut self, roots: impl IntoIterator<Item = S>) -> Self {
        self.roots = roots.into_iter().map(Into::into).collect();
        self
    }

    /// Believes what the server says of its tools: which only read, and which may be repeated.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.policy.trust = true;
        self
    }

    /// Sets which calls a person approves first.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.policy.approval = approval;
        self
    }

    /// Sets how results are limited and formatted.
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.policy.result = results;
        self
    }

    /// Sets how long the server may take to start or to be connected.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.limits.connect_timeout = limit;
        self
    }

    /// Sets how long a call may go on without progress.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.limits.call_timeout = limit;
        self
    }

    /// Sets how many calls the server gets at once. Others wait.
    #[must_use]
    pub fn max_in_flight(mut self, most: usize) -> Self {
        self.limits.max_in_flight = most;
        self
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

/// A program without arguments. The text is not split into words.
impl From<&str> for Command {
    fn from(program: &str) -> Self {
        Self::new(program)
    }
}

/// A program without arguments. The text is not split into words.
impl From<String> for Command {
    fn from(program: String) -> Self {
        Self::new(program)
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
