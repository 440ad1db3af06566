//! The definitions of commands and options, without their implementation.

mod config;
mod doctor;
mod find;
mod generate;
mod global;
mod help;
mod hosts;
mod logs;
mod recording;
mod review;
mod servers;
mod serving;
mod sign_in;
mod torture;
mod using;

pub(crate) use doctor::Doctor;
pub(crate) use find::Find;
pub(crate) use generate::Generate;
pub(crate) use global::{Format, Global};
pub(crate) use hosts::{Import, Init, Install, Uninstall};
pub(crate) use logs::Logs;
pub(crate) use recording::{Record, Replay};
pub(crate) use review::{AuditShow, AuditVerify, PinsAccept, PinsDiff, TrustAccept};
pub(crate) use servers::{Add, AddJson, Get, Named, Rename, Writing};
pub(crate) use serving::{Health, Mcp, Serve, TokenNew};
pub(crate) use sign_in::{Login, Logout};
pub(crate) use torture::{Eras, Torture};
pub(crate) use using::{Call, Mask, PromptGet, ResourceRead, Status, Tools};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::demo::DemoOptions;
use config::{ConfigArgs, ConfigVerb};
use global::{Nothing, With, for_call, for_files};
use help::Help;
use review::{AuditArgs, AuditVerb, PinsArgs, PinsVerb, TrustArgs, TrustVerb};
use serving::{TokenArgs, TokenVerb};
use using::{PromptsArgs, PromptsVerb, ResourcesArgs, ResourcesVerb};

/// List and call the tools of any MCP server
#[derive(Debug, Parser)]
#[command(
    name = "pegboard",
    version,
    disable_help_subcommand = true,
    max_term_width = 80,
    after_help = "Examples:\n  pegboard call demo.calculate expression='6 * 7'\n  \
                  pegboard --server time='uvx mcp-server-time' tools"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// The command, and the global options from before and after its name merged.
    pub(crate) fn into_parts(self) -> (Verb, Global) {
        match self.command {
            Command::Tools(tools) => tools.under(self.global, Verb::Tools),
            Command::Call(call) => call.under(self.global, Verb::Call),
            Command::Resources(resources) => {
                let global = resources.global.over(self.global);
                match resources.verb {
                    None => (Verb::ResourcesList, global),
                    Some(ResourcesVerb::List(list)) => list.under(global, |_| Verb::ResourcesList),
                    Some(ResourcesVerb::Read(read)) => read.under(global, Verb::ResourcesRead),
                }
            }
            Command::Prompts(prompts) => {
                let global = prompts.global.over(self.global);
                match prompts.verb {
                    None => (Verb::PromptsList, global),
                    Some(PromptsVerb::List(list)) => list.under(global, |_| Verb::PromptsList),
                    Some(PromptsVerb::Get(get)) => get.under(global, Verb::PromptsGet),
                }
            }
            Command::Status(status) => status.under(self.global, Verb::Status),
            Command::Find(find) => find.under(self.global, Verb::Find),
            Command::Doctor(doctor) => doctor.under(self.global, Verb::Doctor),
            Command::Generate(generate) => generate.under(self.global, Verb::Generate),
            Command::Record(record) => record.under(self.global, Verb::Record),
            Command::Replay(replay) => replay.under(self.global, Verb::Replay),
            Command::Logs(logs) => logs.under(self.global, Verb::Logs),
            Command::Add(add) => add.under(self.global, |add| Verb::Add(Box::new(add))),
            Command::AddJson(add) => add.under(self.global, Verb::AddJson),
            Command::Remove(named) => named.under(self.global, Verb::Remove),
            Command::Get(get) => get.under(self.global, Verb::Get),
            Command::Enable(named) => named.under(self.global, Verb::Enable),
            Command::Disable(named) => named.under(self.global, Verb::Disable),
            Command::Rename(rename) => rename.under(self.global, Verb::Rename),
            Command::List(list) => list.under(self.global, |_| Verb::List),
            Command::Login(login) => login.under(self.global, Verb::Login),
            Command::Logout(logout) => logout.under(self.global, Verb::Logout),
            Command::Serve(serve) => serve.under(self.global, Verb::Serve),
            Command::Mcp(mcp) => mcp.under(self.global, Verb::Mcp),
            Command::Import(import) => import.under(self.global, Verb::Import),
            Command::Install(install) => install.under(self.global, Verb::Install),
            Command::Uninstall(uninstall) => uninstall.under(self.global, Verb::Uninstall),
            Command::Init(init) => init.under(self.global, Verb::Init),
            Command::Health(health) => health.under(self.global, Verb::Health),
            Command::Token(token) => {
                let global = token.global.over(self.global);
                match token.verb {
                    TokenVerb::New(new) => new.under(global, Verb::TokenNew),
                    TokenVerb::Hash(hash) => hash.under(global, |_| Verb::TokenHash),
                }
            }
            Command::Config(config) => {
                let global = config.global.over(self.global);
                match config.verb {
                    ConfigVerb::Show(show) => show.under(global, |_| Verb::ConfigShow),
                    ConfigVerb::Explain(explain) => explain.under(global, |explain| Verb::ConfigExplain(explain.what)),
                    ConfigVerb::Schema => (Verb::ConfigSchema, global),
                }
            }
            Command::Trust(trust) => {
                let global = trust.global.over(self.global);
                match trust.verb {
                    TrustVerb::Show(show) => show.under(global, |show| Verb::TrustShow(show.path)),
                    TrustVerb::Accept(accept) => accept.under(global, Verb::TrustAccept),
                    TrustVerb::Forget(forget) => forget.under(global, |forget| Verb::TrustForget(forget.path)),
                }
            }
            Command::Pins(pins) => {
                let global = pins.global.over(self.global);
                match pins.verb {
                    PinsVerb::Show(show) => show.under(global, |show| Verb::PinsShow(show.server)),
                    PinsVerb::Diff(diff) => diff.under(global, Verb::PinsDiff),
                    PinsVerb::Accept(accept) => accept.under(global, Verb::PinsAccept),
                }
            }
            Command::Audit(audit) => {
                let global = audit.global.over(self.global);
                match audit.verb {
                    AuditVerb::Verify(verify) => verify.under(global, Verb::AuditVerify),
                    AuditVerb::Show(show) => show.under(global, Verb::AuditShow),
                }
            }
            Command::Torture(torture) => torture.under(self.global, Verb::Torture),
            Command::Mask(mask) => mask.under(self.global, Verb::Mask),
            Command::DemoServer(options) => (Verb::DemoServer(options), self.global),
            Command::Man(man) => (Verb::Man(man.folder), self.global),
            Command::Help(help) => Self::parse_from(help.line()).into_parts(),
            Command::Complete(complete) => (Verb::Complete(complete.into_typed()), self.global),
            Command::Completions(completions) => (Verb::Completions(completions.shell), self.global),
        }
    }
}

/// A parsed command.
#[derive(Debug)]
pub(crate) enum Verb {
    Tools(Tools),
    Call(Call),
    ResourcesList,
    ResourcesRead(ResourceRead),
    PromptsList,
    PromptsGet(PromptGet),
    Status(Status),
    Find(Find),
    Doctor(Doctor),
    Generate(Generate),
    Record(Record),
    Replay(Replay),
    Logs(Logs),
    Add(Box<Add>),
    AddJson(AddJson),
    Remove(Named),
    Get(Get),
    Enable(Named),
    Disable(Named),
    Rename(Rename),
    List,
    Login(Login),
    Logout(Logout),
    Serve(Serve),
    Mcp(Mcp),
    Import(Import),
    Install(Install),
    Uninstall(Uninstall),
    Init(Init),
    Health(Health),
    TokenNew(TokenNew),
    TokenHash,
    PinsShow(Option<String>),
    PinsDiff(PinsDiff),
    PinsAccept(PinsAccept),
    ConfigShow,
    ConfigExplain(Option<String>),
    ConfigSchema,
    TrustShow(Option<PathBuf>),
    TrustAccept(TrustAccept),
    TrustForget(Option<PathBuf>),
    AuditVerify(AuditVerify),
    AuditShow(AuditShow),
    Torture(Torture),
    Mask(Mask),
    DemoServer(DemoOptions),
    Man(PathBuf),
    Complete(Typed),
    Completions(clap_complete::Shell),
}

impl Verb {
    /// Whether the command runs until it is stopped.
    pub(crate) fn keeps_running(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Mcp(_) | Self::Record(_) | Self::Replay(_))
    }

    /// Whether what servers write is kept in memory.
    pub(crate) fn keeps_logs(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Logs(_))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List tools
    #[command(
        after_help = "Examples:\n  pegboard tools 'demo.*'\n  pegboard tools --server demo -o json --provider openai"
    )]
    Tools(With<Tools>),
    /// Call one tool
    #[command(
        mut_args(for_call),
        after_help = "Examples:\n  pegboard call demo.calculate '6 * 7' -o raw\n  \
                      pegboard call demo.calculate --json '{\"expression\": \"6 * 7\"}' -o json\n  \
                      pegboard call 'demo.draw(color: red)' --save pictures"
    )]
    Call(With<Call>),
    /// List resources, or read one
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard resources\n  pegboard resources read demo://about"
    )]
    Resources(ResourcesArgs),
    /// List prompts, or get one
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard prompts\n  pegboard prompts get demo.greet name=Ada"
    )]
    Prompts(PromptsArgs),
    /// Show how every server is
    #[command(after_help = "Examples:\n  pegboard status -o json\n  pegboard status --wait --timeout 30s --check")]
    Status(With<Status>),
    /// Find servers in a registry
    #[command(after_help = "Examples:\n  pegboard find github\n  pegboard find postgres --add --set DATABASE_URL")]
    Find(With<Find>),
    /// Try each step of reaching a server, and say what to mend
    #[command(
        after_help = "Examples:\n  pegboard doctor\n  pegboard doctor github --fix\n  pegboard doctor --offline -o json"
    )]
    Doctor(With<Doctor>),
    /// Write typed wrappers of a server's tools
    #[command(
        after_help = "Examples:\n  pegboard generate ts github --out github.ts\n  pegboard generate cli github --out github.py"
    )]
    Generate(With<Generate>),
    /// Serve like `mcp`, and record the answers
    #[command(
        after_help = "Examples:\n  pegboard record run.jsonl --server github\n  pegboard record run.jsonl -- npx -y some-server@1.2.3"
    )]
    Record(With<Record>),
    /// Serve a recording as a fake MCP server
    #[command(
        after_help = "Examples:\n  pegboard replay run.jsonl\n  pegboard --server fake='pegboard replay run.jsonl' tools"
    )]
    Replay(With<Replay>),
    /// Show what a server wrote
    #[command(after_help = "Examples:\n  pegboard logs github\n  pegboard logs github -f --level debug")]
    Logs(With<Logs>),
    /// List the configured servers, without starting any
    #[command(after_help = "Example:\n  pegboard list -o json")]
    List(With<Nothing>),
    /// Add a server to the config file
    #[command(
        mut_arg("headers", |arg| arg.short('H').hide(false).help("Send this header, as 'Name: value'; may be repeated")),
        mut_arg("env", |arg| arg.short('e').hide(false).help("Set this variable of the process; may be repeated")),
        mut_arg("cwds", |arg| arg.hide(false).help("The working folder of the process")),
        after_help = "Examples:\n  pegboard add time -- uvx mcp-server-time\n  \
                      pegboard add linear https://mcp.linear.app/mcp --header 'X-Team: core'\n  \
                      pegboard add github --env TOKEN='${GITHUB_TOKEN}' -- npx -y PACKAGE"
    )]
    Add(With<Add>),
    /// Add a server whose settings are given as JSON
    #[command(
        after_help = "Examples:\n  pegboard add-json time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'\n  \
                      pegboard add-json linear @linear.json"
    )]
    AddJson(With<AddJson>),
    /// Remove servers from the config file
    #[command(after_help = "Example:\n  pegboard remove time linear")]
    Remove(With<Named>),
    /// Show how one server is configured
    #[command(after_help = "Example:\n  pegboard get time")]
    Get(With<Get>),
    /// Use servers that were disabled
    #[command(after_help = "Example:\n  pegboard enable time")]
    Enable(With<Named>),
    /// Keep servers in the config file without using them
    #[command(after_help = "Example:\n  pegboard disable time")]
    Disable(With<Named>),
    /// Give a server of the config file another name
    #[command(after_help = "Example:\n  pegboard rename time clock")]
    Rename(With<Rename>),
    /// Sign in to a server
    #[command(after_help = "Examples:\n  pegboard login linear\n  pegboard login --list")]
    Login(With<Login>),
    /// Sign out of a server
    #[command(after_help = "Examples:\n  pegboard logout linear\n  pegboard logout --all")]
    Logout(With<Logout>),
    /// Serve all tools at one MCP endpoint over HTTP
    #[command(after_help = "Examples:\n  pegboard serve\n  pegboard serve --listen 127.0.0.1:8080 -c pegboard.toml")]
    Serve(With<Serve>),
    /// Serve all tools as one MCP server on stdio
    #[command(after_help = "Examples:\n  pegboard mcp --view coding\n  pegboard mcp --server github")]
    Mcp(With<Mcp>),
    /// Copy the servers of other programs into the config
    #[command(
        mut_args(for_files),
        after_help = "Examples:\n  pegboard import --dry-run\n  pegboard import claude cursor\n  pegboard import --yes mcp.json"
    )]
    Import(With<Import>),
    /// Make a host such as Claude or Cursor use Pegboard
    #[command(
        mut_args(for_files),
        after_help = "Examples:\n  pegboard install claude\n  pegboard install cursor --take-over"
    )]
    Install(With<Install>),
    /// Take Pegboard out of a host again
    #[command(
        mut_args(for_files),
        after_help = "Examples:\n  pegboard uninstall claude\n  pegboard uninstall cursor --restore"
    )]
    Uninstall(With<Uninstall>),
    /// Set Pegboard up: import servers, and enter it in hosts
    #[command(
        mut_args(for_files),
        after_help = "Examples:\n  pegboard init\n  pegboard init --yes"
    )]
    Init(With<Init>),
    /// Check whether a running `serve` is alive, or ready
    #[command(after_help = "Examples:\n  pegboard health\n  pegboard health --ready --url http://127.0.0.1:8080")]
    Health(With<Health>),
    /// Make a token for a client of `serve`
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard token new laptop\n  pegboard token hash < token.txt"
    )]
    Token(TokenArgs),
    /// Show the config, or what may be in one
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard config show -c pegboard.toml\n  pegboard config explain github.call_timeout"
    )]
    Config(ConfigArgs),
    /// Approve the config file of a project
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard trust show\n  pegboard trust accept"
    )]
    Trust(TrustArgs),
    /// Show which tool definitions changed, and accept them
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard pins diff\n  pegboard pins accept github.create_issue"
    )]
    Pins(PinsArgs),
    /// Verify the audit log, or show its records
    #[command(
        disable_help_subcommand = true,
        after_help = "Examples:\n  pegboard audit verify\n  pegboard audit show --last 10"
    )]
    Audit(AuditArgs),
    /// Try a server with faults and protocol cases
    #[command(
        after_help = "Examples:\n  pegboard torture 'python server.py' --tool slow_search\n  pegboard torture http://127.0.0.1:8080/mcp --junit report.xml"
    )]
    Torture(With<Torture>),
    /// Hide secrets in what comes in on stdin
    #[command(
        after_help = "Examples:\n  kubectl get secret db -o yaml | pegboard mask\n  pegboard mask --group security -o json < answer.txt"
    )]
    Mask(With<Mask>),
    /// Run the built-in MCP server
    #[command(
        mut_arg("transport", |arg| arg.hide_possible_values(true).value_name("stdio|http|sse|ws")),
        after_help = "Example:\n  pegboard demo-server --transport http --listen 127.0.0.1:8080"
    )]
    DemoServer(DemoOptions),
    /// Write the man pages of all commands to a folder
    #[command(hide = true, after_help = "Example:\n  pegboard man ~/.local/share/man/man1")]
    Man(Man),
    /// Print the help of a command
    #[command(hide = true, after_help = "Example:\n  pegboard help config show")]
    Help(Help),
    /// Print the candidates for a shell's completion
    #[command(name = "__complete", hide = true)]
    Complete(Complete),
    /// Print a shell's completion script
    #[command(after_help = "Example:\n  pegboard completions bash > pegboard.bash")]
    Completions(Completions),
}

#[derive(Debug, Args)]
struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
struct Man {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct Complete {
    /// The word that is typed is empty, and not among the words
    #[arg(long)]
    new_word: bool,
    /// The words are bash's `COMP_WORDBREAKS` and its line up to the cursor; the candidates are what it is to insert
    #[arg(long)]
    bash_line: bool,
    /// The words after the program's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What is typed at the shell.
#[derive(Debug)]
pub(crate) enum Typed {
    /// The words after the program's name, without quotes. The last one is being typed.
    Words(Vec<String>),
    /// The line of bash up to the cursor, and the characters that break its words.
    BashLine { breaks: String, line: String },
}

impl Complete {
    fn into_typed(mut self) -> Typed {
        if self.bash_line {
            let mut words = self.words.into_iter();
            let (breaks, line) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            return Typed::BashLine { breaks, line };
        }
        self.words.extend(self.new_word.then(String::new));
        Typed::Words(self.words)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{global::duration, *};

    fn global(line: &str) -> Global {
        Cli::try_parse_from(line.split(' ')).unwrap().into_parts().1
    }

    #[test]
    fn clap_finds_no_fault_with_the_definitions() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn lists_from_before_and_after_the_command_are_joined() {
        let global = global("pegboard -c a --server x=y config -c b show -c d --server x");
        assert_eq!(global.configs, ["a", "b", "d"].map(PathBuf::from));
        assert_eq!(global.servers, ["x=y", "x"]);
    }

    #[test]
    fn a_limit_without_a_unit_is_in_seconds() {
        for (text, millis) in [("30", 30_000), ("1.5", 1500), ("30s", 30_000), ("250ms", 250)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "-1", "nan", "inf", "1e300", "s", "30 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_option_after_the_command_counts_more() {
        let after = global("pegboard -o json --timeout 1s -v tools -o text --timeout 2s -v");
        assert_eq!(after.format(), Format::Text);
        assert_eq!((after.timeout, after.verbose), (Some(Duration::from_secs(2)), 2));
        assert_eq!(global("pegboard -o json tools").format(), Format::Json);
    }
}
