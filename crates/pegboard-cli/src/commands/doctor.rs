//! `pegboard doctor`: tries each step of reaching a server, and says what is wrong and what mends it.
//!
//! `kinds` is the table of all findings. `config_checks`, `program`, `machine` and `unmanaged` look without starting anything; `reach` starts the
//! servers and connects to them, `running` has those of the daemon, `outage` says why one could not be reached, `runners` whose words it wrote, `other_paths` where it may be, `clock` compares clocks, `definitions` judges the tools of the others. `fix` applies remedies, `urls` makes those of URLs.

mod clock;
mod config_checks;
mod definitions;
mod finding;
mod fix;
mod handshake;
mod kinds;
mod machine;
mod other_paths;
mod outage;
mod overview;
mod package_version;
mod program;
mod reach;
mod runners;
mod running;
mod screen;
mod stopped;
mod unmanaged;
mod urls;

use std::path::Path;

use clap::Args;
use pegboard::{Config, ServerName, config::Transport};
use serde_json::json;

use super::{
    agreement,
    command::Run,
    consent,
    context::{Context, Ending},
    needed_variables,
};
use crate::{
    exit::Exit,
    logging::LogUse,
    output::{self, Output, Report},
    settings::{Complaint, Settings},
};
use finding::{Finding, Fixes, Remedy, ReportSection};
use kinds::{Level, ReachStep};
pub(super) use overview::Overview;
use program::Written;
pub(super) use program::is_missing;
use screen::Detail;
use stopped::Stopped;

/// The most rounds of fixing and looking again.
const MAX_ROUNDS: usize = 8;

/// Find out what is wrong with servers and how to fix it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard doctor\n  pegboard doctor github --fix\n  pegboard doctor --offline -o json"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Doctor {
    /// Only these servers; all when none is given
    #[arg(id = "server", value_name = "SERVER")]
    names: Vec<String>,
    /// Mend what can be mended safely, after a question
    #[arg(long)]
    fix: bool,
    /// Apply the fixes without a question
    #[arg(short, long, requires = "fix")]
    yes: bool,
    /// Show what `--fix` would change, and change nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Start no server and connect to none
    #[arg(long)]
    offline: bool,
}

impl Run for Doctor {
    const LOG: LogUse = LogUse::FINDINGS;

    async fn run(self, mut context: Context<'_>) -> Exit {
        let detail = match self.names.is_empty() && context.output.verbose == 0 {
            true => Detail::Findings,
            false => Detail::Steps,
        };
        let is_needed = |server: &str| self.names.is_empty() || self.names.iter().any(|name| name == server);
        let mut settings = Settings::load_or_hosts(&context.global);
        if !self.offline
            && let Err(exit) = consent::approve_hosts(&mut context, &mut settings, &is_needed).await
        {
            return exit;
        }
        if self.fix
            && !self.dry_run
            && let Err(exit) = consent::ask_for_secrets(&mut context, &mut settings, &is_needed).await
        {
            return exit;
        }
        let mut sections = Vec::new();
        if let Err(stopped) = diagnose(&mut context, &self, &mut sections).await {
            return stopped.end(context, &sections, &Fixes::default(), detail).await;
        }
        if self.fix && !self.dry_run {
            let missing = asked_for(&sections);
            if consent::give_missing_secrets(&mut context, &missing).await
                && let Err(stopped) = diagnose(&mut context, &self, &mut sections).await
            {
                return stopped.end(context, &sections, &Fixes::default(), detail).await;
            }
        }
        if self.dry_run {
            let would = apply(&remedies(&sections, &[]), true, &context.output);
            let fixes = Fixes {
                would,
                ..Fixes::default()
            };
            return finish(&mut context, &sections, &fixes, 0, detail).await;
        }
        if !self.fix {
            let fixable = remedies(&sections, &[]).len();
            return finish(&mut context, &sections, &Fixes::default(), fixable, detail).await;
        }
        let mut mending = Mending {
            sections,
            fixes: Fixes::default(),
            tried: Vec::new(),
        };
        for _ in 0..MAX_ROUNDS {
            match mending.round(&mut context, &self).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(stopped) => return stopped.end(context, &mending.sections, &mending.fixes, detail).await,
            }
        }
        let left = remedies(&mending.sections, &mending.tried).len();
        finish(&mut context, &mending.sections, &mending.fixes, left, detail).await
    }
}

/// The repeated fixing and looking again of `--fix`: what one fix uncovers, such as the problems of a file that could not be used before, the next
/// round mends.
struct Mending {
    /// The latest report.
    sections: Vec<ReportSection>,
    fixes: Fixes,
    /// All remedies so far, also those that failed. None is applied twice.
    tried: Vec<Remedy>,
}

impl Mending {
    /// Applies the new remedies, and looks again. Returns `false` if there is none, or the user wants no more of them.
    async fn round(&mut self, context: &mut Context<'_>, options: &Doctor) -> Result<bool, Stopped> {
        let remedies = remedies(&self.sections, &self.tried);
        if remedies.is_empty() {
            return Ok(false);
        }
        let is_first = self.tried.is_empty();
        if !options.yes && !ask_for_agreement(context, &self.sections, &remedies).await? {
            return match is_first {
                true => Err(Stopped::Refused(Complaint {
                    message: "not confirmed, so nothing is changed".to_owned(),
                    hint: None,
                    exit: Exit::Refused,
                })),
                false => Ok(false),
            };
        }
        self.fixes.fixed.extend(apply(&remedies, false, &context.output));
        let tried: Vec<Remedy> = remedies.into_iter().map(|(_, remedy)| remedy.clone()).collect();
        self.tried.extend(tried);
        diagnose(context, options, &mut self.sections).await?;
        Ok(true)
    }
}

/// How many servers are fine and how many are not, as far as that can be told without starting any; `None` if there is none.
pub(super) async fn overview(context: &mut Context<'_>) -> Option<Overview> {
    let options = Doctor {
        names: Vec::new(),
        fix: false,
        yes: false,
        dry_run: false,
        offline: true,
    };
    let mut sections = Vec::new();
    diagnose(context, &options, &mut sections).await.ok()?;
    Overview::new(&sections)
}

/// Looks at everything once. What is found replaces `report`, also if the time is up before all servers were tried.
async fn diagnose(context: &mut Context<'_>, options: &Doctor, report: &mut Vec<ReportSection>) -> Result<(), Stopped> {
    let settings = Settings::load_or_hosts(&context.global);
    let loaded = &settings.loaded;
    let mut general = ReportSection::for_machine();
    config_checks::check_files(&mut general, loaded);
    let is_readable = loaded.unreadable.is_empty();
    let names = select(&settings, options).map_err(Stopped::Refused)?;
    if names.is_empty() && is_readable {
        general.add_finding(
            Finding::new(&kinds::NO_SERVERS, "the config names no server")
                .fix("pegboard add NAME -- COMMAND, or pegboard import"),
        );
    }
    machine::check(&mut general, &context.global, &settings).await;
    // Without a config, the servers of hosts are those that are checked.
    if options.names.is_empty() && settings.hosts().is_none() {
        unmanaged::check(&mut general, &context.global, loaded);
    }
    let duplicates = config_checks::duplicates(&loaded.config);
    let unpinned = loaded.config.unpinned();
    let mut sections: Vec<ReportSection> = Vec::new();
    for name in &names {
        let mut section = ReportSection::for_server(name.as_str(), title(&loaded.config, name));
        if loaded.config.servers.get(name).is_some_and(|server| !server.enabled) {
            // What would be wrong with it does not matter now.
            if let Some(origin) = loaded.origins.get(name) {
                section.add_fine(ReachStep::Config, format!("{}:{}", origin.file, origin.line));
            }
            section.is_off = true;
            section.add_fine(ReachStep::Start, "disabled by `enabled = false`, so it was not started");
            sections.push(section);
            continue;
        }
        config_checks::check_server(&mut section, name, &settings);
        if let Some(first) = duplicates.get(name) {
            section.add_finding(
                Finding::new(&kinds::DUPLICATE_SERVER, format!("it is the same server as `{first}`"))
                    .fix(format!("remove `servers.{name}` or `servers.{first}`")),
            );
        }
        if let Some(config) = loaded.config.servers.get(name) {
            if let Transport::Stdio(command) = &config.transport
                && !section.is_blocked()
            {
                let file = loaded
                    .origins
                    .get(name)
                    .map(|origin| Path::new(&origin.file))
                    .filter(|file| file.is_file());
                let server = name.as_str();
                program::check(&mut section, command, &Written { server, file });
                for one in unpinned.iter().filter(|one| one.server == *name) {
                    let pinned =
                        file.and_then(|file| package_version::find_pin(&command.program, &one.package, server, file));
                    let version = match &pinned {
                        Some((version, _)) => version.clone(),
                        None => package_version::example(&one.package, &one.example),
                    };
                    section.add_finding(
                        Finding::new(
                            &kinds::UNPINNED_PACKAGE,
                            format!("each start runs the newest version of `{}`", one.package),
                        )
                        .fix(format!("write one version: `{version}`"))
                        .remedy_if_any(pinned.map(|(_, remedy)| remedy)),
                    );
                }
            }
            machine::proxy_of_local(&mut section, config);
        }
        sections.push(section);
    }
    let reached = match is_readable && !options.offline {
        true => reach::servers(context, &settings, &mut sections, &mut general).await,
        false => Ok(()),
    };
    sections.push(general);
    *report = sections;
    reached
}

/// The servers that were asked about, whether they can be used or not.
fn select(settings: &Settings, options: &Doctor) -> Result<Vec<ServerName>, Complaint> {
    let config = &settings.loaded.config;
    let all = config.servers.keys().chain(config.misconfigured.keys());
    let mut names: Vec<ServerName> = all.cloned().collect();
    names.sort();
    let wanted: Vec<&str> = options
        .names
        .iter()
        .map(String::as_str)
        .chain(settings.picked_servers())
        .collect();
    if wanted.is_empty() {
        return Ok(names);
    }
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| !names.iter().any(|name| name.as_str() == **wanted))
    {
        return Err(settings.missing_server_complaint(unknown));
    }
    names.retain(|name| wanted.contains(&name.as_str()));
    Ok(names)
}

/// What a server runs or connects to, without arguments: they may be secrets.
fn title(config: &Config, name: &ServerName) -> String {
    match config.servers.get(name).map(|server| &server.transport) {
        Some(Transport::Stdio(command)) => program::show(&command.program),
        Some(other) => other
            .endpoint()
            .map(|endpoint| endpoint.url.to_string())
            .unwrap_or_default(),
        None => "not usable".to_owned(),
    }
}

/// The servers that asked for secrets before they ended which are not stored, each with the names. The others have a remedy.
fn asked_for(sections: &[ReportSection]) -> Vec<(String, Vec<String>)> {
    let of_server = |section: &ReportSection| {
        let names = section.findings().flat_map(|finding| &finding.asked_for);
        let names = names.filter(|name| !needed_variables::is_stored(name)).cloned();
        Some((section.server.clone()?, names.collect()))
    };
    sections.iter().filter_map(of_server).collect()
}

/// The remedies of a report, without those that were tried.
fn remedies<'a>(sections: &'a [ReportSection], tried: &[Remedy]) -> Vec<(&'a Finding, &'a Remedy)> {
    let findings = sections.iter().flat_map(ReportSection::findings);
    findings
        .filter_map(|finding| Some((finding, finding.remedy.as_ref()?)))
        .filter(|(_, remedy)| !tried.contains(remedy))
        .collect()
}

/// Shows the fixes, and asks whether to apply them.
async fn ask_for_agreement(
    context: &mut Context<'_>,
    sections: &[ReportSection],
    remedies: &[(&Finding, &Remedy)],
) -> Result<bool, Stopped> {
    let output = context.output.clone();
    if !agreement::can_ask() {
        return Err(Stopped::Refused(Complaint {
            message: "a person must agree to the fixes, and there is no terminal to ask at".to_owned(),
            hint: Some("`pegboard doctor` shows them, `pegboard doctor --fix --yes` applies them".to_owned()),
            exit: Exit::Refused,
        }));
    }
    output.say(&screen::show(sections, Detail::Findings));
    let plan: Vec<String> = remedies
        .iter()
        .map(|(finding, _)| {
            format!(
                "  {}: {}\n",
                finding.kind.id,
                output::one_line(finding.fix.as_deref().unwrap_or_default())
            )
        })
        .collect();
    output.say(&plan.concat());
    match context.work(agreement::agrees(&output, "Apply these fixes?")).await {
        Ending::Done(answer) => Ok(answer),
        Ending::TimeUp => Err(Stopped::TimeUp),
        Ending::Interrupted => Err(Stopped::Interrupted),
    }
}

/// Applies the remedies, or tries them without a change. Returns what was done or would be; what fails is said at once.
fn apply(remedies: &[(&Finding, &Remedy)], is_dry: bool, output: &Output) -> Vec<String> {
    let mut done = Vec::new();
    for (finding, remedy) in remedies {
        match fix::apply(remedy, is_dry) {
            Ok(what) => done.push(format!("{}: {what}", finding.kind.id)),
            Err(why) => output.say(&output::warning(&format!("{}: {why}", finding.kind.id))),
        }
    }
    done
}

/// Prints the report. `fixable` is the number of findings that another `--fix` would mend.
async fn finish(
    context: &mut Context<'_>,
    sections: &[ReportSection],
    fixes: &Fixes,
    fixable: usize,
    detail: Detail,
) -> Exit {
    let exit = match screen::count(sections, Level::Problem) {
        0 => Exit::Done,
        // The code 1, as for other checks that found something.
        _ => Exit::ToolError,
    };
    let report = match context.output.is_json() {
        true => Report::json(exit, &json!(screen::json(sections, fixes))),
        false => {
            let mut report = Report::new(exit);
            report.data = screen::show(sections, detail);
            report.data.push_str(&fixes.text());
            report.data.push_str(&screen::summary(sections, fixable));
            report
        }
    };
    context.print(report).await
}
