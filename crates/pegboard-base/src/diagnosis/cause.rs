//! [`Cause`]: why a step failed, as typed facts.

use serde::{Deserialize, Serialize};

/// The steps of using a server, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// The config is read.
    Config,
    /// A person approves the project file.
    Trust,
    /// The server's process is started.
    Spawn,
    /// The connection is opened.
    Connect,
    /// The TLS session is opened.
    Tls,
    /// The credentials are checked.
    SignIn,
    /// The protocol version is negotiated.
    Handshake,
    /// The server's tools, resources and prompts are listed.
    List,
    /// The call is permitted.
    Permit,
    /// The server answers calls.
    Call,
}

impl Step {
    /// The word in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Trust => "trust",
            Self::Spawn => "spawn",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::SignIn => "sign-in",
            Self::Handshake => "handshake",
            Self::List => "list",
            Self::Permit => "permit",
            Self::Call => "call",
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A setting is wrong; the place of the diagnosis names it.
    Setting,
    /// An environment variable is not set.
    Variable {
        /// Its name.
        name: String,
    },
    /// The server is closed, disabled or still starting.
    State,
    /// A limit of this program is reached.
    Limit,
    /// The program or a folder of its config cannot be used.
    Program {
        /// The program or folder.
        path: String,
    },
    /// The process exited by itself or was killed. Both are absent if the system does not tell.
    Exit {
        /// Its exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that killed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// The process wrote text in place of messages.
    Output {
        /// The number of lines.
        lines: usize,
    },
    /// There was no response before the timeout.
    Timeout {
        /// How long Pegboard waited, in milliseconds.
        waited_ms: u64,
    },
    /// The connection could not be opened.
    Connect {
        /// Why.
        fault: ConnectFault,
    },
    /// The open connection was closed or broke.
    Connection,
    /// The server answered with an HTTP status.
    HttpStatus {
        /// The status code.
        status: u16,
    },
    /// The server answered with a JSON-RPC error.
    RpcError {
        /// The code of the error.
        code: i64,
    },
    /// The response violates the protocol.
    Response,
    /// The server names no protocol version that this program knows.
    Version,
    /// There is no usable credential.
    Credential,
    /// A rule of the config, of the program or of a person.
    Rule,
}

impl Cause {
    /// Whether the process exited by itself, without a signal. Only then its stderr may say more than the cause.
    pub fn is_own_exit(&self) -> bool {
        matches!(self, Self::Exit { signal: None, .. })
    }

    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        match self {
            Self::Variable { name: text } | Self::Program { path: text } => Some(text),
            _ => None,
        }
        .into_iter()
    }
}

/// Why no connection could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectFault {
    /// Nothing listens at the address.
    Refused,
    /// The host name cannot be resolved.
    Dns,
    /// The connection was not open in time.
    Timeout,
    /// The TLS handshake failed.
    Tls(TlsFault),
    /// The server closed the connection during the TLS handshake. It may be starting.
    TlsClosed,
    /// The server redirects in a way that is not followed, such as to another origin.
    Redirect,
    /// Any other cause.
    Other,
}

/// Why a TLS handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TlsFault {
    /// No trusted authority has signed the server's certificate.
    UnknownIssuer,
    /// The server's certificate has expired.
    Expired,
    /// The server's certificate is not valid yet.
    NotYetValid,
    /// The server's certificate is for another host.
    WrongHost,
    /// The server asks for a client certificate, or refuses ours.
    ClientCertificate,
    /// The server does not speak TLS.
    NotTls,
    /// Any other cause.
    Other,
}
