//! `pegboard generate`: typed wrappers of a server's tools, and programs with a subcommand for each.

mod launch;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use pegboard::{Config, deadline::Deadline};
use serde_json::{Value, json};

use super::{
    command::Run,
    consent,
    context::{Context, Ending, ServerSource, interruption_report, time_up},
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    generate::{Definition, Language, Place, generate},
    output::{Report, path_text},
    settings::{Complaint, Settings},
};

/// What the first line of every generated file has.
const MARK: &str = "Made by `pegboard generate";

/// Write typed wrappers of a server's tools
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard generate ts github --out github.ts\n  pegboard generate cli github --out github.py"
)]
pub(crate) struct Generate {
    /// What to generate
    #[arg(value_enum, value_name = "ts|python|rust|cli", hide_possible_values = true)]
    language: Language,
    /// The server whose tools are wrapped
    #[arg(value_name = "SERVER")]
    server: String,
    /// Write to this file, not to stdout; - is stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that was not generated
    #[arg(long, requires = "out")]
    force: bool,
    /// With cli: let the program call `pegboard`
    #[arg(long)]
    through_pegboard: bool,
}

impl Run for Generate {
    async fn run(mut self, mut context: Context<'_>) -> Exit {
        self.out.take_if(|path| path.as_os_str() == "-");
        let mut settings = Settings::load_for(&context.global, &self.server);
        let is_needed = |server: &str| server == self.server;
        if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
            return exit;
        }
        let nothing = document(&self, 0, None);
        let found = settings.usable_one(&self.server).and_then(|config| {
            check_files(&self)?;
            let place = self.place(&settings, &config)?;
            Ok((config, place))
        });
        let (config, mut place) = match found {
            Ok(found) => found,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        settings.announce(&context.output);
        let servers: ServerSource = context.running_servers(&settings).await;
        let is_direct = servers.daemon.is_none();
        let starting = StartingServers::new(&config);
        let board = servers.board(config).open();
        let deadline: Deadline = context.deadline;
        let toolset = board.toolset();
        let listing = toolset.list(deadline.remaining());
        let what = format!("asking {} for its tools", self.server);
        let report = match context.work_showing_starts(&starting, &what, &board, listing).await {
            Ending::TimeUp => time_up(&context.output, &nothing),
            Ending::Interrupted => interruption_report(&context.output, &nothing),
            Ending::Done(listing) => match listing.unavailable.first() {
                Some(unavailable) => {
                    let exit = match unavailable.state {
                        pegboard::State::NeedsAuth => Exit::SignIn,
                        _ => Exit::Unavailable,
                    };
                    let message = format!("server `{}`: {}", unavailable.server, unavailable.error);
                    super::context::empty(&context.output, exit, &nothing).error(&message, unavailable.hint.as_deref())
                }
                None => {
                    let is_wanted =
                        |server: Option<&Value>| server.and_then(Value::as_str) == Some(self.server.as_str());
                    // The JSON of the listing is what `tools -o json` prints.
                    let tools = serde_json::to_value(&listing.tools).unwrap_or_default();
                    let tools = tools.as_array().cloned().unwrap_or_default();
                    let tools: Vec<Definition> = tools
                        .iter()
                        .filter(|tool| is_wanted(tool.get("server")))
                        .filter_map(definition)
                        .collect();
                    let status = board.status();
                    let era = status
                        .servers
                        .iter()
                        .find(|row| row.name == *self.server)
                        .and_then(|row| row.era);
                    // The era of a connection through the daemon is the daemon's.
                    if let (Some(launch), Some(era), true) = (&mut place.launch, era, is_direct) {
                        launch["era"] = json!(era);
                    }
                    let source = generate(self.language, &self.server, &tools, &place);
                    write_and_report(&context, &self, &tools, source)
                }
            },
        };
        context.close(&board, report).await
    }
}

impl Generate {
    /// Where the generated code is used.
    fn place(&self, settings: &Settings, config: &Config) -> Result<Place, Complaint> {
        if self.language != Language::Cli && self.through_pegboard {
            return Err(Complaint {
                message: "`--through-pegboard` is for `generate cli`; wrappers always call `pegboard`".to_owned(),
                hint: None,
                exit: Exit::Usage,
            });
        }
        let server = config.servers.iter().find(|(name, _)| name.as_str() == self.server);
        let launch = match (self.language, server) {
            (Language::Cli, Some((name, server))) if !self.through_pegboard => {
                Some(launch::of_server(&settings.loaded, name.as_str(), server)?)
            }
            _ => None,
        };
        let folder = self.out.as_deref().map(folder_of);
        let is_package = folder.is_some_and(|folder| folder.join("__init__.py").is_file());
        Ok(Place { is_package, launch })
    }

    /// The file beside the wrappers that all of them share, and its source.
    fn shared(&self) -> Option<(PathBuf, &'static str)> {
        let (name, source) = self.language.shared()?;
        Some((folder_of(self.out.as_deref()?).join(name), source))
    }
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn definition(tool: &Value) -> Option<Definition> {
    Some(Definition {
        tool: tool.get("tool")?.as_str()?.to_owned(),
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        input: tool.get("input_schema").cloned().unwrap_or_default(),
        output: tool.get("output_schema").filter(|schema| !schema.is_null()).cloned(),
    })
}

fn write_and_report(context: &Context<'_>, options: &Generate, tools: &[Definition], source: String) -> Report {
    let Some(path) = &options.out else {
        let mut report = Report::new(Exit::Done);
        if context.output.is_json() {
            return Report::json(Exit::Done, &document(options, tools.len(), Some(&source)));
        }
        report.data = source;
        return match options.language.shared() {
            Some((name, _)) => report.hint(&format!("it imports {name}, which `--out FILE` writes beside it")),
            None => report,
        };
    };
    let shared = options.shared();
    let written = match &shared {
        Some((path, source)) => write(path, source, options.language),
        None => Ok(()),
    };
    if let Err(error) = written.and_then(|()| write(path, &source, options.language)) {
        let nothing = document(options, 0, None);
        let message = format!("{} cannot be written: {error}", path.display());
        return super::context::empty(&context.output, Exit::Usage, &nothing).error(&message, None);
    }
    if context.output.is_json() {
        return Report::json(Exit::Done, &document(options, tools.len(), None));
    }
    let mut report = Report::new(Exit::Done);
    report.data = format!("{}: {} tools of {}\n", path.display(), tools.len(), options.server);
    if let Some((path, _)) = &shared {
        report
            .data
            .push_str(&format!("{}: what all wrappers share\n", path.display()));
    }
    report
}

fn write(path: &Path, source: &str, language: Language) -> std::io::Result<()> {
    fs::write(path, source)?;
    #[cfg(unix)]
    if language == Language::Cli {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path)?.permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))?;
    }
    let _ = language;
    Ok(())
}

/// Refuses to replace a file that was not generated.
fn check_files(options: &Generate) -> Result<(), Complaint> {
    let shared = options.shared().map(|(path, _)| path);
    for path in options.out.iter().chain(&shared) {
        let Ok(text) = fs::read(path) else { continue };
        let start = String::from_utf8_lossy(&text[..text.len().min(256)]).into_owned();
        if !(options.force || text.is_empty() || start.contains(MARK)) {
            return Err(Complaint {
                message: format!("{} was not generated, so it is not replaced", path.display()),
                hint: Some("`--force` replaces it".to_owned()),
                exit: Exit::Usage,
            });
        }
    }
    Ok(())
}

fn document(options: &Generate, tools: usize, source: Option<&str>) -> Value {
    let shared = options.language.shared().filter(|_| source.is_some());
    let shared = shared.map(|(name, source)| json!({"name": name, "source": source}));
    json!({"server": options.server, "file": options.out.as_deref().map(path_text), "tools": tools, "source": source, "shared": shared})
}
