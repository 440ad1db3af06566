//! The transport of a server: a command to run, or a URL with headers, credentials and TLS settings.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    choice::words,
    field::{DefaultValue, ValueKind, Word},
    key::{bytes, either, number},
    oauth::OAuthConfig,
    sandbox::Sandbox,
    settings::settings,
    spiffe_id::SpiffeId,
};
use pegboard_base::secret::{SafeUrl, Secret};

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTransport", into = "StoredTransport")]
pub enum Transport {
    /// A child process that exchanges messages over its standard input and output.
    Stdio(Command),
    /// A server at a URL.
    Remote {
        /// How messages are exchanged.
        kind: RemoteKind,
        /// Where the server is, and with which credentials.
        endpoint: Endpoint,
    },
}

/// How messages are exchanged with a server at a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteKind {
    /// Not known yet: streamable HTTP, or HTTP+SSE if the server supports only that.
    Auto,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the transport of 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// A transport as it is stored: the type beside the fields of the command or the endpoint.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum StoredTransport {
    Stdio(Command),
    Auto(Endpoint),
    Http(Endpoint),
    Sse(Endpoint),
    WebSocket(Endpoint),
}

impl From<StoredTransport> for Transport {
    fn from(stored: StoredTransport) -> Self {
        match stored {
            StoredTransport::Stdio(command) => Self::Stdio(command),
            StoredTransport::Auto(endpoint) => Self::auto(endpoint),
            StoredTransport::Http(endpoint) => Self::http(endpoint),
            StoredTransport::Sse(endpoint) => Self::sse(endpoint),
            StoredTransport::WebSocket(endpoint) => Self::websocket(endpoint),
        }
    }
}

impl From<Transport> for StoredTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Stdio(command) => Self::Stdio(command),
            Transport::Remote { kind, endpoint } => match kind {
                RemoteKind::Auto => Self::Auto(endpoint),
                RemoteKind::Http => Self::Http(endpoint),
                RemoteKind::Sse => Self::Sse(endpoint),
                RemoteKind::WebSocket => Self::WebSocket(endpoint),
            },
        }
    }
}

impl RemoteKind {
    /// The name of the transport in config, status and logs. A transport that is not known yet is called `http`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto | Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}

impl Transport {
    /// Streamable HTTP, or HTTP+SSE if the server supports only that.
    pub fn auto(endpoint: Endpoint) -> Self {
        let kind = RemoteKind::Auto;
        Self::Remote { kind, endpoint }
    }

    /// Streamable HTTP.
    pub fn http(endpoint: Endpoint) -> Self {
        let kind = RemoteKind::Http;
        Self::Remote { kind, endpoint }
    }

    /// HTTP+SSE, the transport of 2024-11-05.
    pub fn sse(endpoint: Endpoint) -> Self {
        let kind = RemoteKind::Sse;
        Self::Remote { kind, endpoint }
    }

    /// WebSocket.
    pub fn websocket(endpoint: Endpoint) -> Self {
        let kind = RemoteKind::WebSocket;
        Self::Remote { kind, endpoint }
    }

    /// A hash that differs between servers with another transport, address or credentials.
    #[doc(hidden)]
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(self.kind());
        match self {
            Self::Stdio(command) => visit_command(command, &mut add),
            Self::Remote { endpoint, .. } => {
                add(endpoint.url.expose().as_str());
                for (name, value) in &endpoint.headers {
                    add(name);
                    add(value.expose());
                }
                match &endpoint.auth {
                    Auth::None => add("none"),
                    Auth::Anonymous => add("anonymous"),
                    Auth::Bearer(token) => add(token.expose()),
                    Auth::Basic { user, password } => {
                        add(user);
                        add(password.expose());
                    }
                    Auth::BearerFile(path) => add(&format!("file {}", path.display())),
                    Auth::HeadersHelper(helper) => {
                        add(&format!("{helper:?}"));
                        visit_command(&helper.command, &mut add);
                    }
                    Auth::OAuth(settings) => add(&settings.fingerprint()),
                }
                add(&format!("{:?}", endpoint.tls));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this build supports the transport. The feature that it needs has the name of its kind.
    pub(crate) fn is_built(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Remote { kind, .. } => match kind {
                RemoteKind::Auto | RemoteKind::Http => cfg!(feature = "http"),
                RemoteKind::Sse => cfg!(feature = "sse"),
                RemoteKind::WebSocket => cfg!(feature = "websocket"),
            },
        }
    }

    /// The name of the transport in config, status and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Remote { kind, .. } => kind.as_str(),
        }
    }

    /// The endpoint, unless the server is a child process.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Stdio(_) => None,
            Self::Remote { endpoint, .. } => Some(endpoint),
        }
    }
}

/// Adds everything that distinguishes a command from others.
fn visit_command(command: &Command, add: &mut impl FnMut(&str)) {
    add(&command.program);
    command.args.iter().for_each(|arg| add(arg.expose()));
    add(&format!("{:?} {:?}", command.env_policy, command.cwd));
    add(&format!("{:?} {:?}", command.rlimits, command.sandbox));
    for (name, value) in &command.env {
        add(name);
        add(value.expose());
    }
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Command {
    /// The program: a path, or a name that is looked up on the child's `PATH`.
    pub program: String,
    /// The arguments. Each element stays one argument. They may contain secrets, so `Debug` hides them.
    #[serde(default)]
    pub args: Vec<Secret>,
    /// Environment variables that are set for it, in addition to those that `env_policy` passes on.
    #[serde(default)]
    pub env: BTreeMap<String, Secret>,
    /// Which environment variables it inherits.
    #[serde(default)]
    pub env_policy: EnvPolicy,
    /// The working directory; `None` for that of this process.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Resource limits of its processes.
    #[serde(default)]
    pub rlimits: Rlimits,
    /// What its processes may access.
    #[serde(default)]
    pub sandbox: Sandbox,
}

impl Command {
    /// Creates a command without arguments and with the default environment.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_policy: EnvPolicy::default(),
            cwd: None,
            rlimits: Rlimits::default(),
            sandbox: Sandbox::default(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| Secret::new(arg.into())));
        self
    }

    /// Whether the program downloads a server before it starts it, as `npx`, `uvx` and `docker` do. The first start may take minutes.
    pub fn fetches_first(&self) -> bool {
        let name = self.program.rsplit(['/', '\\']).next().unwrap_or(&self.program);
        let name = name
            .strip_suffix(".cmd")
            .or_else(|| name.strip_suffix(".exe"))
            .unwrap_or(name);
        INSTALLERS.contains(&name)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Secret::new(value.into()));
        self
    }
}

/// Programs that download a server before they start it. They may be silent for long, and a second process would download it twice.
const INSTALLERS: &[&str] = &[
    "npx", "uvx", "bunx", "pnpm", "yarn", "npm", "pipx", "uv", "docker", "podman", "nix",
];

words! {
    /// Which environment variables of this process a child inherits. The order is from the weakest to the strictest.
    ///
    /// Without `shim` a child on Linux also gets `PEGBOARD_FAMILY`, by which its orphans are found.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum EnvPolicy as "environment policy" default Allowlist {
        /// All of them, except the keys of model providers (`OPENAI_API_KEY` and the like), `OTEL_*`, `PEGBOARD_*`, and those that
        /// make programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS` and the like). A config passes these on by name.
        Inherit = "inherit",
        /// Those that programs need to run and to reach the network: `PATH`, `HOME`, `LANG`, proxies, certificates, settings of package
        /// managers and the like, but no tokens or passwords.
        Allowlist = "allowlist" | "allow_list",
        /// None: only those that the config names.
        Explicit = "explicit" | "none",
    }
}

settings! {
    /// Resource limits of each process of a server, on Linux; `None` for that of this process. A limit above that of this process has no
    /// effect. The default is enough for ordinary servers, and too little to exhaust the machine. It does not limit the number of processes, because
    /// the kernel counts those of the user's other programs too.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Rlimits in rlimits = "rlimits" {
        /// The most files that each of its processes may have open at once; `none` for no limit.
        open_files: Option<u64> = either(&[number(8, 1 << 20), UNLIMITED], Some(1024), DefaultValue::Count(1024))
            .aka(&["nofile"]);
        /// The most memory that each of its processes may use for data; `none` for no limit.
        memory: Option<u64> = either(&[UNLIMITED, bytes(16 << 20, 1 << 40)], Some(2 << 30), DefaultValue::Size(2 << 30))
            .aka(&["data"]);
        /// The most processes and threads that its user may run at once, including those of other programs; `none` for no limit.
        processes: Option<u64> = either(&[number(1, 1 << 20), UNLIMITED], None, DefaultValue::Text("none")).aka(&["nproc"]);
        /// The largest file that it may write; `none` for no limit.
        file_size: Option<u64> = either(&[UNLIMITED, bytes(0, 1 << 50)], Some(1 << 30), DefaultValue::Size(1 << 30))
            .aka(&["fsize"]);
    }
}

const UNLIMITED: ValueKind = ValueKind::Word(&[Word {
    name: "none",
    spellings: &["off", "unlimited"],
}]);

impl Rlimits {
    /// The default.
    pub const DEFAULT: Self = Self {
        open_files: rlimits::open_files.default,
        memory: rlimits::memory.default,
        processes: rlimits::processes.default,
        file_size: rlimits::file_size.default,
    };
}

/// A URL with headers, credentials and TLS settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Endpoint {
    /// The URL of the server.
    pub url: SafeUrl,
    /// Headers that are sent with every request, to this origin only.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// The credentials.
    #[serde(default)]
    pub auth: Auth,
    /// TLS settings.
    #[serde(default)]
    pub tls: Tls,
    /// A URL that is sent a DELETE request when a view that has used the server ends. `{{NAME}}` in its path or query is replaced for each view.
    #[serde(default)]
    pub session_cleanup_url: Option<SafeUrl>,
    /// HTTP statuses, besides 404, with which this server reports that the session is gone.
    #[serde(default)]
    pub session_gone_status: Vec<u16>,
}

impl From<SafeUrl> for Endpoint {
    fn from(url: SafeUrl) -> Self {
        Self {
            url,
            headers: BTreeMap::new(),
            auth: Auth::default(),
            tls: Tls::default(),
            session_cleanup_url: None,
            session_gone_status: Vec::new(),
        }
    }
}

/// The credentials that are sent to a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// No credentials. If the server requests a sign-in, a person is asked for one.
    #[default]
    None,
    /// No credentials, and nobody is asked to sign in.
    Anonymous,
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// `Authorization: Bearer …` with the token in a file. The file is read again when it changes, and when the server refuses the token.
    BearerFile(PathBuf),
    /// The headers that a program prints.
    HeadersHelper(Arc<HeadersHelper>),
    /// A token that an authorization server issues. It needs the feature `oauth`.
    #[serde(rename = "oauth")]
    OAuth(Arc<OAuthConfig>),
}

/// A program that prints the headers of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeadersHelper {
    /// The program. Limits of resources and the sandbox have no effect on it.
    pub command: Command,
    /// How long its headers are used; without it, until the server refuses them with status 401 or 403.
    #[serde(default)]
    pub ttl: Option<Duration>,
}

impl HeadersHelper {
    /// A program whose headers are used until the server refuses them.
    pub fn new(command: Command) -> Self {
        Self { command, ttl: None }
    }
}

/// TLS settings of a connection. The default trusts the system's certificate authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// A PEM file with certificate authorities to trust besides the system's. It is read again when it changes.
    pub ca: Option<PathBuf>,
    /// The client certificate, for servers that request one.
    pub client_cert: Option<ClientCert>,
    /// The SPIFFE id that the server's certificate must have, in place of the host name. Only the authorities of `ca` are trusted then.
    pub server_id: Option<SpiffeId>,
    /// Accepts the server's certificate without verification. Every start logs a warning.
    pub insecure: bool,
}

/// A client certificate and its private key. The files are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCert {
    /// A PEM file with the certificate chain.
    pub cert: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
}
