//! All findings that `doctor` knows: their ids, and the meaning and remedy that the guide lists.

use std::fmt;

use pegboard::diagnosis::Code;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ok,
    Warning,
    Problem,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The steps of reaching a server, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReachStep {
    Config,
    Trust,
    Program,
    Start,
    Connection,
    SignIn,
    Handshake,
    List,
    Tools,
    Machine,
}

impl ReachStep {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Trust => "trust",
            Self::Program => "program",
            Self::Start => "start",
            Self::Connection => "connection",
            Self::SignIn => "sign-in",
            Self::Handshake => "handshake",
            Self::List => "list",
            Self::Tools => "tools",
            Self::Machine => "machine",
        }
    }
}

impl fmt::Display for ReachStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A kind of finding.
#[derive(Debug)]
pub(crate) struct FindingKind {
    /// The stable name in text, JSON and docs.
    pub(crate) id: &'static str,
    pub(crate) step: ReachStep,
    pub(crate) level: Level,
    /// What it means, for the guide.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares the guide with it"))]
    pub(crate) means: &'static str,
    /// What mends it, in general.
    pub(crate) remedy: &'static str,
}

/// The kind of finding that has the word of a diagnosis.
pub(crate) fn find(code: Code) -> Option<&'static FindingKind> {
    ALL.iter().copied().find(|kind| kind.id == code.as_str())
}

macro_rules! kinds {
    ($($name:ident = $id:literal $step:ident $level:ident $means:literal $remedy:literal;)*) => {
        $(pub(crate) static $name: FindingKind = FindingKind {
            id: $id,
            step: ReachStep::$step,
            level: Level::$level,
            means: $means,
            remedy: $remedy,
        };)*
        pub(crate) static ALL: &[&FindingKind] = &[$(&$name),*];
    };
}

kinds! {
    CONFIG_UNREADABLE = "config-unreadable" Config Problem
        "a config file is missing or does not parse, so no server is started" "correct the named line";
    UNKNOWN_SETTING = "unknown-setting" Config Problem
        "there is no setting of this name" "the closest name, if one is close; `--fix` renames it";
    VARIABLE_UNSET = "variable-unset" Config Problem
        "a value refers to an environment variable or a secret that is not set" "set the variable; for a secret, `pegboard secret set NAME` and `${secret:NAME}`";
    URL_INCOMPLETE = "url-incomplete" Config Problem
        "an address has no scheme" "`--fix` adds `https://`, or `http://` on this machine";
    CONFIG_ERROR = "config-error" Config Problem
        "another error in the config" "correct the named line";
    COMMAND_LINE = "command-line" Config Problem
        "`command` holds a whole command line" "`--fix` moves the arguments to `args`";
    SECRET_IN_CLEAR = "secret-in-clear" Config Warning
        "a token or password is written in the config file" "`pegboard secret set NAME`, and write `${secret:NAME}` or the variable `${NAME}`";
    CERTIFICATE_UNCHECKED = "certificate-unchecked" Config Warning
        "the server's certificate is not verified" "remove `tls.insecure`, and name the authority in `tls.ca`";
    CONFIG_WARNING = "config-warning" Config Warning
        "another warning about the config" "see the named line";
    BYTE_ORDER_MARK = "byte-order-mark" Config Warning
        "a config file begins with a byte order mark, which Pegboard skips and other programs do not read" "`--fix` removes it";
    CONFIG_WRITABLE = "config-writable" Config Problem
        "other users can change a config file, and so run programs as this user" "`--fix` runs `chmod go-w`";
    CONFIG_READABLE = "config-readable" Config Warning
        "other users can read a config file that holds a secret" "`--fix` runs `chmod 600`";
    DUPLICATE_SERVER = "duplicate-server" Config Warning
        "two names stand for the same server" "remove one of them";
    NO_SERVERS = "no-servers" Config Problem
        "the config names no server" "add one";
    PROJECT_UNTRUSTED = "project-untrusted" Trust Problem
        "the project file is not approved, so its servers are never started" "read it, then `pegboard trust accept`";
    HOST_SERVER_UNAPPROVED = "host-server-unapproved" Trust Problem
        "there is no config, and the server of a host is not approved to start" "`pegboard init`, or answer the question of `pegboard doctor` at a terminal";
    PROGRAM_MISSING = "program-missing" Program Problem
        "the program is in no folder of the server's PATH" "install it, or name its absolute path";
    PROGRAM_NOT_EXECUTABLE = "program-not-executable" Program Problem
        "the file may not be executed" "`--fix` runs `chmod u+x`, if the file is the user's";
    INTERPRETER_MISSING = "interpreter-missing" Program Problem
        "the first line of the program names an interpreter that is not installed" "install it, or correct the line";
    SCRIPT_MISSING = "script-missing" Program Problem
        "the script that the command runs does not exist" "correct its path in `args`, or `cwd`";
    FOLDER_MISSING = "folder-missing" Program Problem
        "the working folder does not exist" "create it, or correct `cwd`";
    PATH_DIFFERS = "path-differs" Program Warning
        "a desktop program that starts Pegboard has a shorter PATH and would not find the program" "`--fix` writes its absolute path";
    UNPINNED_PACKAGE = "unpinned-package" Program Warning
        "each start may run another version of the package" "name one version; `--fix` writes the one that `npx` fetched last";
    EXITS_AT_START = "exits-at-start" Start Problem
        "the process ends before it answers" "its own words say why; a variable that they ask for is passed on with `env_pass`";
    MODULE_MISSING = "module-missing" Start Problem
        "the program ends because a module of it is not installed" "install the module where the program looks for it";
    PACKAGE_UNKNOWN = "package-unknown" Start Problem
        "the registry does not have the package or version" "correct its name or version in `args`";
    DOCKER_NOT_RUNNING = "docker-not-running" Start Problem
        "the program needs Docker, which does not run" "start Docker";
    SILENT = "silent" Start Problem
        "the process runs and says nothing" "run its command by hand, or raise `connect_timeout`";
    OTHER_JSON = "other-json" Start Problem
        "the process writes JSON that is no MCP message, and answers nothing" "check that the command starts an MCP server on stdio; print other JSON to stderr";
    WAITS_FOR_INPUT = "waits-for-input" Start Problem
        "the process writes text and no message: it may ask a question, or serve over HTTP" "answer the question once by hand, or configure its `url`";
    STDOUT_FLOOD = "stdout-flood" Start Problem
        "the process fills stdout with text and writes no message, so it was stopped" "check that the command starts an MCP server on stdio; print text to stderr";
    STDOUT_NOISE = "stdout-noise" Start Warning
        "the server prints text or other JSON to stdout, where only messages belong; many hosts fail on it" "print it to stderr";
    START_FAILED = "start-failed" Start Problem
        "the server cannot be started for another reason" "see the message";
    STILL_STARTING = "still-starting" Start Problem
        "the server was still starting when the timeout passed" "raise `--timeout`, or `connect_timeout` of the server";
    SLOW_START = "slow-start" Start Warning
        "the server takes more than 10 s to start, or more than half of its `connect_timeout`" "install it, instead of having it downloaded at each start; or raise `connect_timeout`";
    HOST_UNKNOWN = "host-unknown" Connection Problem
        "the host name cannot be resolved" "correct `url`, or check the network";
    CONNECTION_REFUSED = "connection-refused" Connection Problem
        "nothing listens at the address" "start the server, or correct the port in `url`";
    CONNECT_TIMEOUT = "connect-timeout" Connection Problem
        "the host does not answer in time" "check the network, a firewall or a proxy";
    PATH_NOT_FOUND = "path-not-found" Connection Problem
        "the host answers with 404 or 405 at this path" "the path that works, if one of the usual ones does; `--fix` writes it";
    REDIRECTED = "redirected" Connection Problem
        "the server points to another address" "put the final address into `url`";
    NOT_MCP = "not-mcp" Connection Problem
        "the address answers, but not as an MCP server" "correct `url`";
    SERVER_ERROR = "server-error" Connection Problem
        "the server answers with a 5xx status" "its log says more";
    RATE_LIMITED = "rate-limited" Connection Problem
        "the server refuses because of too many requests" "try again later";
    CERTIFICATE_UNKNOWN = "certificate-unknown" Connection Problem
        "no trusted authority has signed the certificate: a private authority, or a proxy that intercepts TLS" "name the authority in `tls.ca`";
    CERTIFICATE_EXPIRED = "certificate-expired" Connection Problem
        "the certificate has expired" "renew it at the server; check the clock of this machine";
    CERTIFICATE_NOT_YET_VALID = "certificate-not-yet-valid" Connection Problem
        "the certificate is not valid yet, which mostly means that the clock of this machine is wrong" "set the clock";
    CERTIFICATE_WRONG_HOST = "certificate-wrong-host" Connection Problem
        "the certificate is for another host" "use the host name of the certificate in `url`";
    TLS_FAILED = "tls-failed" Connection Problem
        "the secure connection fails for another reason" "see the message; it names the client certificate, the protocol or the setting";
    CONNECTION_FAILED = "connection-failed" Connection Problem
        "the connection fails for another reason" "see the message";
    PROXY_AND_LOCAL = "proxy-and-local" Connection Warning
        "a proxy is set and NO_PROXY does not exempt this server on this machine" "add the host to NO_PROXY";
    PROXY_INVALID = "proxy-invalid" Connection Problem
        "a proxy variable is no URL" "correct or unset the variable";
    SIGN_IN_NEEDED = "sign-in-needed" SignIn Problem
        "the server requires a sign-in" "`pegboard login SERVER`";
    SIGN_IN_EXPIRED = "sign-in-expired" SignIn Problem
        "there was a sign-in, and it has ended: its token has expired or was refused, and cannot be renewed" "`pegboard login SERVER`";
    CREDENTIALS_REFUSED = "credentials-refused" SignIn Problem
        "the server refuses the configured credentials" "correct the token in `auth` or `headers`";
    FORBIDDEN = "forbidden" SignIn Problem
        "the credentials are valid and not allowed to use the server" "use others, or ask its operator";
    PROTOCOL_UNSUPPORTED = "protocol-unsupported" Handshake Problem
        "the server speaks no protocol version that Pegboard knows, or not the configured `era`" "update the server, or leave `era` out";
    HANDSHAKE_REFUSED = "handshake-refused" Handshake Problem
        "the server answers the handshake with an error" "its message says why";
    LIST_ENDLESS = "list-endless" List Problem
        "a list repeats a page or does not end" "mend the paging of the server";
    LIST_FAILED = "list-failed" List Problem
        "the tools cannot be listed" "see the message";
    ANSWER_TOO_LARGE = "answer-too-large" List Problem
        "an answer of the server is larger than `max_message`" "raise `max_message` of the server";
    TOOL_DUPLICATE = "tool-duplicate" List Warning
        "two tools have one name; the first one is used" "rename one in the server";
    TOOL_LEFT_OUT = "tool-left-out" List Warning
        "a tool cannot be used, because its definition is broken" "correct the definition in the server";
    OFFERS_NOTHING = "offers-nothing" List Warning
        "the server offers no tool, resource or prompt" "check its settings: many servers enable tools by arguments or tokens";
    LIST_WARNING = "list-warning" List Warning
        "another warning about the listing" "see the message";
    SCHEMA_REFUSED = "schema-refused" Tools Warning
        "a tool cannot be offered to a model provider" "correct the schema in the server";
    NAME_ADAPTED = "name-adapted" Tools Warning
        "a name is too long for a model provider and is shortened there" "a shorter name of the server in the config";
    TOKEN_COST = "token-cost" Tools Warning
        "the definitions take many tokens of every conversation" "hide tools with `deny`, or use `tool_budget` in a view";
    MANY_TOOLS = "many-tools" Tools Warning
        "the server has more tools than a model's API takes" "choose with `allow`, or use `tool_budget` in a view";
    DEFINITION_CHANGED = "definition-changed" Tools Warning
        "a tool's definition differs from the pinned one" "`pegboard pins diff SERVER`, then `pegboard pins accept`";
    DEFINITION_SUSPICIOUS = "definition-suspicious" Tools Warning
        "a definition looks like an attack on the model" "`pegboard pins diff SERVER` shows the text";
    CLOCK_WRONG = "clock-wrong" Machine Warning
        "the clock of this machine and that of a server differ by more than 5 minutes, so certificates and tokens may seem expired" "set the clock";
    DAEMON_LEFTOVERS = "daemon-leftovers" Machine Warning
        "a daemon was killed and left its socket" "`--fix` removes the file";
    DAEMON_VERSION = "daemon-version" Machine Warning
        "a running daemon is of another version, so commands start servers without it" "end it; `pegboard serve` starts the new one";
    DAEMON_FOLDER = "daemon-folder" Machine Problem
        "other users can enter the folder of the daemon's sockets, so it is not used" "`--fix` runs `chmod 700`";
    DAEMON_DIFFERS = "daemon-differs" Start Warning
        "the server works here, and is down in the daemon, which has another environment" "`pegboard daemon restart`";
    UNFINISHED_CALLS = "unfinished-calls" Machine Warning
        "a daemon was killed during calls, which may have run" "`pegboard status` shows them";
    UNMANAGED_SERVER = "unmanaged-server" Machine Warning
        "another program on this machine has servers that Pegboard does not manage; they are only listed, never started" "`pegboard import HOST` takes them over";
    SERVER_TWICE = "server-twice" Machine Warning
        "a host that uses Pegboard also starts servers of the config itself, so their tools are there twice" "`pegboard install HOST --take-over`";
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The table of the guide, as the code has it.
    fn table() -> String {
        let row = |kind: &&FindingKind| {
            let FindingKind {
                id,
                step,
                level,
                means,
                remedy,
            } = kind;
            format!("| `{id}` | {step} | {} | {means} | {remedy} |\n", level.as_str())
        };
        let rows: String = ALL.iter().map(row).collect();
        format!("| id | step | level | meaning | fix |\n| --- | --- | --- | --- | --- |\n{rows}")
    }

    #[test]
    fn the_guide_has_all_findings() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/doctor.md");
        let guide = fs::read_to_string(&file).unwrap();
        let start = guide.find("| id |").unwrap();
        let end = guide[start..].find("\n\n").map_or(guide.len(), |end| start + end + 1);
        if std::env::var_os("PEGBOARD_BLESS").is_some() {
            fs::write(&file, format!("{}{}{}", &guide[..start], table(), &guide[end..])).unwrap();
            return;
        }
        assert_eq!(guide[start..end], table(), "PEGBOARD_BLESS=1 writes the table");
    }

    #[test]
    fn each_finding_has_an_id_of_its_own() {
        let ids: BTreeSet<&str> = ALL.iter().map(|kind| kind.id).collect();
        assert_eq!(ids.len(), ALL.len());
    }
}
