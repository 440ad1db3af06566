//! [`Code`]: the stable words for what can be wrong.

use crate::{label::label, serde_as_text};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The stable word for what is wrong. Words are added, never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code, in the order of the steps.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in text and JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }

        label!(Code, "code of a diagnosis", [$($name),+]);
    };
}

codes! {
    /// A config file is missing or does not parse.
    ConfigUnreadable = "config-unreadable",
    /// There is no setting of this name.
    UnknownSetting = "unknown-setting",
    /// A value refers to an environment variable that is not set.
    VariableUnset = "variable-unset",
    /// A URL has no scheme.
    UrlIncomplete = "url-incomplete",
    /// `command` holds a whole command line.
    CommandLine = "command-line",
    /// Another error in the config.
    ConfigError = "config-error",
    /// A secret is written in the config file.
    SecretInClear = "secret-in-clear",
    /// The server's certificate is not verified.
    CertificateUnchecked = "certificate-unchecked",
    /// Other users can change a config file.
    ConfigWritable = "config-writable",
    /// Another warning about the config.
    ConfigWarning = "config-warning",
    /// The project file is not approved.
    ProjectUntrusted = "project-untrusted",
    /// The server is disabled by its config or by an operator.
    Disabled = "disabled",
    /// The config says `start = "explicit"`, and the program has not connected the server.
    NotConnected = "not-connected",
    /// The board has as many servers or processes as it may.
    BoardFull = "board-full",
    /// The accepted definitions of the server's tools cannot be read.
    PinsUnusable = "pins-unusable",
    /// The board is closed, or the server was removed from it.
    Closed = "closed",
    /// The program does not exist.
    ProgramMissing = "program-missing",
    /// The file may not be executed.
    ProgramNotExecutable = "program-not-executable",
    /// The interpreter that the program's first line names does not exist.
    InterpreterMissing = "interpreter-missing",
    /// The working folder does not exist.
    FolderMissing = "folder-missing",
    /// The sandbox that the config requires cannot be enforced.
    SandboxMissing = "sandbox-missing",
    /// The server cannot be started for another reason.
    StartFailed = "start-failed",
    /// The process exits before it answers.
    ExitsAtStart = "exits-at-start",
    /// The process says nothing within its time.
    Silent = "silent",
    /// The process writes text and no message within its time.
    WaitsForInput = "waits-for-input",
    /// The process fills stdout with text and writes no message.
    StdoutFlood = "stdout-flood",
    /// The server is still starting.
    StillStarting = "still-starting",
    /// The host name cannot be resolved.
    HostUnknown = "host-unknown",
    /// Nothing listens at the address.
    ConnectionRefused = "connection-refused",
    /// The host does not answer in time.
    ConnectTimeout = "connect-timeout",
    /// No trusted authority has signed the certificate.
    CertificateUnknown = "certificate-unknown",
    /// The certificate has expired.
    CertificateExpired = "certificate-expired",
    /// The certificate is not valid yet.
    CertificateNotYetValid = "certificate-not-yet-valid",
    /// The certificate is for another host.
    CertificateWrongHost = "certificate-wrong-host",
    /// The TLS connection fails for another reason.
    TlsFailed = "tls-failed",
    /// The host answers with status 404 or 405.
    PathNotFound = "path-not-found",
    /// The server redirects to another address.
    Redirected = "redirected",
    /// The address answers, but not as an MCP server.
    NotMcp = "not-mcp",
    /// The server answers with a 5xx status.
    ServerError = "server-error",
    /// The server refuses because of too many requests.
    RateLimited = "rate-limited",
    /// The connection fails for another reason.
    ConnectionFailed = "connection-failed",
    /// The server requires a sign-in.
    SignInNeeded = "sign-in-needed",
    /// There was a sign-in, and it has ended.
    SignInExpired = "sign-in-expired",
    /// The server refuses the configured credentials.
    CredentialsRefused = "credentials-refused",
    /// There is no credential to send: the program, a helper or a file gives none.
    CredentialsMissing = "credentials-missing",
    /// The credentials are valid and not allowed to use the server.
    Forbidden = "forbidden",
    /// The server speaks no protocol version that this program knows, or not the configured one.
    ProtocolUnsupported = "protocol-unsupported",
    /// The server answers the handshake with an error.
    HandshakeRefused = "handshake-refused",
    /// A list repeats a page or does not end.
    ListEndless = "list-endless",
    /// The tools cannot be listed.
    ListFailed = "list-failed",
    /// Two tools have one name; the first one is used.
    ToolDuplicate = "tool-duplicate",
    /// A tool, or a part of its definition, cannot be used.
    ToolLeftOut = "tool-left-out",
    /// The server offers no tool, resource or prompt.
    OffersNothing = "offers-nothing",
    /// A tool could be taken for one of another server.
    ToolAmbiguous = "tool-ambiguous",
    /// A tool cannot be offered to the model provider.
    SchemaRefused = "schema-refused",
    /// A definition differs from the pinned one.
    DefinitionChanged = "definition-changed",
    /// A definition looks like an attack on the model.
    DefinitionSuspicious = "definition-suspicious",
    /// Another warning about a listing.
    ListWarning = "list-warning",
    /// The server's process exited while it served.
    Exited = "exited",
    /// The connection, or the server's session, was lost while it served.
    ConnectionLost = "connection-lost",
    /// The server did not answer a call in time.
    CallTimeout = "call-timeout",
    /// The server answered a call with an error response.
    CallRefused = "call-refused",
    /// The answer violates the protocol.
    AnswerUnusable = "answer-unusable",
    /// The answer is larger than the limit.
    AnswerTooLarge = "answer-too-large",
    /// The server or the board has no room for the call.
    Overloaded = "overloaded",
    /// No listed tool has the name, or several have it.
    UnknownTool = "unknown-tool",
    /// The arguments cannot be parsed, or do not fit the tool's schema.
    ArgumentsInvalid = "arguments-invalid",
    /// The server's config hides the tool.
    HiddenByConfig = "hidden-by-config",
    /// The view hides the tool.
    HiddenByView = "hidden-by-view",
    /// The tool is not part of the selection.
    NotSelected = "not-selected",
    /// The tool, or a capability that it needs, is not granted.
    NotGranted = "not-granted",
    /// The server keeps the tool from models.
    NotForModels = "not-for-models",
    /// The tool is held until a person accepts its definition.
    DefinitionHeld = "definition-held",
    /// The caller's token lacks the scope.
    ScopeMissing = "scope-missing",
    /// A check of the view refused the arguments.
    CheckRefused = "check-refused",
    /// A hook of the program refused the call.
    HookRefused = "hook-refused",
    /// The arguments contain a secret of another server.
    SecretCrossing = "secret-crossing",
    /// `approval` is `never` for the tool.
    CallForbidden = "call-forbidden",
    /// A person must approve the call, and nobody can be asked.
    ApprovalMissing = "approval-missing",
    /// The person did not approve the call.
    ApprovalRefused = "approval-refused",
    /// Nobody answered the question in time.
    ApprovalTimeout = "approval-timeout",
    /// The agent has read untrusted output, and the call may do harm.
    UntrustedOutput = "untrusted-output",
    /// The rate limit is reached.
    RateExceeded = "rate-exceeded",
    /// Too many calls of the client are in flight.
    TooManyCalls = "too-many-calls",
    /// The agent repeats the same call.
    RepeatedCalls = "repeated-calls",
    /// An earlier call has the same idempotency key.
    KeyInUse = "key-in-use",
    /// Another rule does not permit the call.
    NotPermitted = "not-permitted",
}

serde_as_text!(Code);

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
        schemars::json_schema!({"type": "string", "enum": words})
    }
}
