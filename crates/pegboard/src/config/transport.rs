//! How a server is reached: one variant per way, each complete.

use std::{collections::BTreeMap, path::PathBuf};

use sha2::{Digest, Sha256};

use crate::secret::{SafeUrl, Secret};

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Transport {
    /// A child process that speaks on its standard input and output.
    Stdio(Command),
    /// A URL whose kind was not said: streamable HTTP, or HTTP+SSE if the server turns out to be that old.
    Auto(Endpoint),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP+SSE, the transport of 2024-11-05.
    Sse(Endpoint),
    /// WebSocket.
    WebSocket(Endpoint),
}

impl Transport {
    /// Tells apart whatever is reached in another way or with other credentials.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(self.kind());
        match self {
            Self::Stdio(command) => {
                add(&command.program);
                command.args.iter().for_each(|arg| add(arg.expose()));
                add(&format!("{:?} {:?}", command.env_policy, command.cwd));
                for (name, value) in &command.env {
                    add(name);
                    add(value.expose());
                }
            }
            Self::Auto(endpoint) | Self::Http(endpoint) | Self::Sse(endpoint) | Self::WebSocket(endpoint) => {
                add(endpoint.url.expose().as_str());
                for (name, value) in &endpoint.headers {
                    add(name);
                    add(value.expose());
                }
                match &endpoint.auth {
                    Auth::None => add("none"),
                    Auth::Bearer(token) => add(token.expose()),
                    Auth::Basic { user, password } => {
                        add(user);
                        add(password.expose());
                    }
                }
                add(&format!("{:?}", endpoint.tls));
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this build can reach it. The feature that it needs has the name of its kind.
    pub(crate) fn is_built(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Auto(_) | Self::Http(_) => cfg!(feature = "http"),
            Self::Sse(_) => cfg!(feature = "sse"),
            Self::WebSocket(_) => cfg!(feature = "websocket"),
        }
    }

    /// The word for it in config, status and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Auto(_) | Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
        }
    }

    /// The URL and what is sent to it, unless it is a child process.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Stdio(_) => None,
            Self::Auto(endpoint) | Self::Http(endpoint) | Self::Sse(endpoint) | Self::WebSocket(endpoint) => {
                Some(endpoint)
            }
        }
    }
}

/// A program to start.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Command {
    /// The program: a path, or a name that is looked up on the child's `PATH`.
    pub program: String,
    /// Its arguments. Each element stays one argument. They may hold secrets, so they are not printed.
    pub args: Vec<Secret>,
    /// Variables set for it, on top of what `env_policy` lets through.
    pub env: BTreeMap<String, Secret>,
    /// Which of our own variables it sees.
    pub env_policy: EnvPolicy,
    /// The folder it is started in; ours when not set.
    pub cwd: Option<PathBuf>,
    /// Bounds that the operating system sets for it.
    pub rlimits: Rlimits,
}

impl Command {
    /// `program` without arguments and with the default environment.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_policy: EnvPolicy::default(),
            cwd: None,
            rlimits: Rlimits::default(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| Secret::new(arg.into())));
        self
    }

    /// Whether the program fetches a server before it starts it, as `npx`, `uvx` and `docker` do. Its first start may take minutes.
    pub fn fetches_first(&self) -> bool {
        let name = self.program.rsplit(['/', '\\']).next().unwrap_or(&self.program);
        let name = name
            .strip_suffix(".cmd")
            .or_else(|| name.strip_suffix(".exe"))
            .unwrap_or(name);
        INSTALLERS.contains(&name)
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Secret::new(value.into()));
        self
    }
}

/// Programs that fetch a server before they start it. They may be silent for long, and a second one would fetch it twice.
const INSTALLERS: &[&str] = &[
    "npx", "uvx", "bunx", "pnpm", "yarn", "npm", "pipx", "uv", "docker", "podman", "nix",
];

/// Which of our own environment variables a child sees.
///
/// Without [`shim`](crate::shim()) a child on Linux also gets `PEGBOARD_FAMILY`, by which what it leaves behind is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvPolicy {
    /// What programs need to run and to reach the network: `PATH`, `HOME`, `LANG`, proxies, certificates, settings of package managers and
    /// the like, but no tokens or passwords.
    #[default]
    Allowlist,
    /// All of them, except the keys of model providers (`OPENAI_API_KEY` and the like), `OTEL_*`, `PEGBOARD_*`, and those that
    /// make programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS` and the like). A config hands these on by name.
    Inherit,
    /// None: only what the config names.
    Explicit,
}

/// Variables that make a program load or run code that its command line does not name.
const LOADER: &[&str] = &[
    "BASH_ENV",
    "GCONV_PATH",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

/// Whether a variable makes a program load or run code that its command line does not name.
pub(crate) fn is_loader(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("LD_") || name.starts_with("DYLD_") || LOADER.contains(&name.as_str())
}

/// Bounds that the operating system sets for each process of a server, on Linux. A bound above our own has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rlimits {
    /// The most files that it has open at once.
    pub open_files: Option<u64>,
    /// The most memory for its data.
    pub data_bytes: Option<u64>,
    /// The most processes and threads that its user runs at once, those of other programs included.
    pub processes: Option<u64>,
    /// The largest file that it writes.
    pub file_bytes: Option<u64>,
}

/// A URL and what is sent to it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Where the server listens.
    pub url: SafeUrl,
    /// Sent with every request, to this origin only.
    pub headers: BTreeMap<String, Secret>,
    /// Who we say we are.
    pub auth: Auth,
    /// How the connection is secured.
    pub tls: Tls,
    /// HTTP statuses by which this server says that it forgot the session, besides 404.
    pub session_gone: Vec<u16>,
}

impl Endpoint {
    /// `url` without headers or credentials.
    pub fn new(url: SafeUrl) -> Self {
        Self {
            url,
            headers: BTreeMap::new(),
            auth: Auth::default(),
            tls: Tls::default(),
            session_gone: Vec::new(),
        }
    }
}

/// Who we say we are.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Auth {
    /// Nobody in particular.
    #[default]
    None,
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic {
        /// The user's name.
        user: String,
        /// The password.
        password: Secret,
    },
}

/// How a connection is secured. The default trusts the system's certificate authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// A PEM file with certificate authorities to trust besides the system's.
    pub ca: Option<PathBuf>,
    /// PEM files with our certificate and its key, for servers that ask for one.
    pub client_cert: Option<ClientCert>,
    /// Do not check the server's certificate. Said aloud at every start.
    pub insecure: bool,
}

/// Our certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCert {
    /// PEM file with the certificate chain.
    pub cert: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}
