//! `pegboard tools`: lists tools by server, finds them, or shows what their definitions cost.

mod arguments;
mod example;
mod explain;
mod pattern;
mod schema_text;
pub(super) mod spelling;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use pegboard::{
    Config, ListedTool, Listing, Provider, ServerName, State, View,
    catalog::ListWarning,
    status::BoardStatus,
    toolset::{ServerCost, Unavailable},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    command::Run,
    consent,
    context::{Context, Ending, interruption_report, time_up},
    listing,
    needed_variables::{self, LastWords},
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    output::{self, Paint, Report, Table, USUAL_WIDTH, one_line},
    settings::{Complaint, HostServers, Settings},
};
use pattern::Pattern;

/// How many tools a search shows at most.
const SEARCHED: usize = 10;

/// How many warnings are told in full.
const TOLD: usize = 3;

/// List tools
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard tools 'demo.*'\n  pegboard tools --server demo -o json --provider openai"
)]
pub(crate) struct Tools {
    /// Part of a tool's name, or a whole name with `*` for any text;
    /// a tool's whole name explains that tool
    pub(super) pattern: Option<String>,
    /// The API to define tools for: mcp, openai, openai-responses,
    /// openai-strict, anthropic, gemini, gemini-json, bedrock. With
    /// json, the list is exactly what it takes
    #[arg(long, value_parser = provider(), hide_possible_values = true)]
    pub(super) provider: Option<Provider>,
    /// Find tools by what they are for, the best first
    #[arg(long, value_name = "QUERY", conflicts_with = "pattern")]
    pub(super) search: Option<String>,
    /// Show what each server's definitions cost, in tokens
    #[arg(long, conflicts_with_all = ["pattern", "provider", "search"])]
    pub(super) cost: bool,
    /// Show each tool's JSON Schemas
    #[arg(long, conflicts_with_all = ["cost", "search"])]
    pub(super) schema: bool,
    /// Show each tool as one line with its arguments' types
    #[arg(long, conflicts_with_all = ["cost", "search", "schema"])]
    pub(super) signatures: bool,
}

/// Parses a provider by its name.
fn provider() -> impl TypedValueParser<Value = Provider> {
    PossibleValuesParser::new(Provider::ALL.map(Provider::as_str))
        .try_map(|word| Provider::parse(&word).ok_or("there is no such provider"))
}

impl Run for Tools {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let mut settings = Settings::load_for(&context.global, self.pattern.as_deref().unwrap_or_default());
        let pattern = self.pattern.as_deref().map(Pattern::new);
        let is_needed = needed(&settings, pattern.as_ref());
        if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
            return exit;
        }
        let nothing = match self {
            Self { provider: Some(_), .. } => json!([]),
            Self { cost: true, .. } => json!({"servers": [], "tokens": 0}),
            _ => json!(ToolsDocument::new(
                &settings,
                &without_tools(&settings, pattern.as_ref())
            )),
        };
        let config = settings.config().and_then(|config| {
            let pattern = pattern.as_ref();
            match pattern.and_then(|pattern| out_of_use(&settings, &config, pattern)) {
                Some(complaint) => Err(complaint),
                None => settings.usable_config(),
            }
        });
        let mut config = match config {
            Ok(config) => config,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let named = pattern.map_or_else(Vec::new, |pattern| pattern.servers(config.servers.keys()));
        if !named.is_empty() {
            // Other servers are not started.
            config.servers.retain(|name, _| named.contains(name));
            settings.tell_only_of(named.iter().map(ServerName::as_str));
        }
        settings.announce(&context.output);
        let starting = StartingServers::new(&config);
        let what = "asking the servers for their tools";
        let mut servers = context.servers(&settings).await;
        let (board, toolset, listing) = loop {
            let board = servers.board(config.clone()).tools_only().open();
            let toolset = board.toolset_with(View::new().provider(self.provider.unwrap_or_default()));
            let patience = context.deadline.remaining();
            let listing = context
                .work_showing_starts(&starting, what, &board, toolset.list(patience))
                .await;
            let is_missing = matches!(&listing, Ending::Done(listing) if !listing.unavailable.is_empty());
            if !is_missing || !context.has_lost(&settings, &mut servers).await {
                break (board, toolset, listing);
            }
        };
        let mut missing = Vec::new();
        let report = match listing {
            Ending::Interrupted => interruption_report(&context.output, &nothing),
            Ending::TimeUp => time_up(&context.output, &nothing),
            Ending::Done(mut found) => {
                // Servers that the pattern cannot mean are not missed.
                let is_meant = |server: &Unavailable| named.is_empty() || named.contains(&server.server);
                found.unavailable.retain(is_meant);
                let own = servers.daemon.is_none().then(|| board.status());
                let of_daemon = match &servers.daemon {
                    Some(daemon) if !found.unavailable.is_empty() => daemon.status().await.ok(),
                    _ => None,
                };
                for server in &mut found.unavailable {
                    let words = match (&own, &of_daemon) {
                        (Some(status), _) => {
                            let row = status.servers.iter().find(|row| row.name == server.server);
                            row.and_then(|row| LastWords::here(row.last_error.as_ref()?))
                        }
                        (None, Some(status)) => LastWords::in_daemon(status, server.server.as_str()),
                        (None, None) => None,
                    };
                    let Some(words) = words else { continue };
                    let secrets = needed_variables::missing_secrets(&config, &server.server, &words);
                    missing.push((server.server.to_string(), secrets));
                    let advice = needed_variables::advice(&config, &server.server, &words);
                    server.hint = advice.or(server.hint.take());
                }
                let exit = listing::exit(&found.unavailable, &config, context.is_late());
                let known: BTreeSet<String> = found.tools.iter().map(|listed| listed.tool.dotted_name()).collect();
                if let Some(query) = &self.search {
                    let matches = toolset.find(query, SEARCHED);
                    found.tools = matches.into_iter().map(|found| found.tool).collect();
                }
                if self.cost {
                    let report = costs(&context, &toolset.cost(), exit);
                    let report = listing::add_unavailable(report, &found.unavailable, context.is_late(), own.as_ref());
                    return context.close(&board, report).await;
                }
                show(&context, &self, &settings, found, &known, exit, own.as_ref())
            }
        };
        consent::ask_after_failure(&mut context, &missing).await;
        context.close(&board, report).await
    }
}

/// Whether a server is needed to list what fits the pattern.
fn needed(settings: &Settings, pattern: Option<&Pattern>) -> impl Fn(&str) -> bool + use<> {
    let config = &settings.loaded.config;
    let names = config.servers.keys().chain(config.misconfigured.keys());
    let named: Vec<String> = pattern
        .map_or_else(Vec::new, |pattern| pattern.servers(names))
        .iter()
        .map(ToString::to_string)
        .collect();
    move |name| named.is_empty() || named.iter().any(|known| known == name)
}

/// The complaint about a server that the pattern names and that is not used: it is disabled, not approved or misconfigured.
fn out_of_use(settings: &Settings, config: &Config, pattern: &Pattern) -> Option<Complaint> {
    if pattern.has_stars() {
        return None;
    }
    let named = pattern.servers(config.servers.keys());
    if let Some(name) = named.first() {
        let is_on = |name: &ServerName| config.servers.get(name).is_some_and(|server| server.enabled);
        return (!named.iter().any(is_on)).then(|| Complaint {
            message: format!("server `{name}` is disabled"),
            hint: Some(format!("`pegboard enable {name}` switches it on")),
            exit: Exit::Unavailable,
        });
    }
    let unusable = pattern.servers(config.misconfigured.keys());
    unusable
        .first()
        .map(|name| settings.missing_server_complaint(name.as_str()))
}

/// The complaint about a name that neither a server nor a tool has. A pattern with stars may fit nothing.
fn explain_unknown(options: &Tools, settings: &Settings, tools: &[ListedTool]) -> Option<(String, String)> {
    let text = options.pattern.as_deref()?;
    let pattern = Pattern::new(text);
    if pattern.has_stars() || options.search.is_some() || tools.iter().any(|tool| pattern.fits(tool)) {
        return None;
    }
    let config = &settings.loaded.config;
    if tools.is_empty() && !pattern.servers(config.servers.keys()).is_empty() {
        return None;
    }
    let dotted: Vec<String> = tools.iter().map(|listed| listed.tool.dotted_name()).collect();
    let servers = config.servers.keys().chain(config.misconfigured.keys());
    let names = servers.map(ServerName::as_str).chain(dotted.iter().map(String::as_str));
    let names = names.chain(tools.iter().map(|listed| listed.tool.name.as_str()));
    let all = "`pegboard tools` lists all";
    let hint = match (settings.demo_hint(text), spelling::find_nearest(text, names)) {
        (Some(hint), _) => hint.to_owned(),
        (None, Some(near)) => format!("did you mean `{}`? {all}", one_line(near)),
        (None, None) => all.to_owned(),
    };
    Some((format!("no server or tool has such a name: `{}`", one_line(text)), hint))
}

fn show(
    context: &Context<'_>,
    options: &Tools,
    settings: &Settings,
    mut listing: Listing,
    known: &BTreeSet<String>,
    mut exit: Exit,
    own: Option<&BoardStatus>,
) -> Report {
    let found = listing.tools.len();
    let mut all: BTreeMap<ServerName, usize> = BTreeMap::new();
    for listed in &listing.tools {
        *all.entry(listed.tool.server.clone()).or_default() += 1;
    }
    let mut explained = None;
    let unknown = explain_unknown(options, settings, &listing.tools);
    if let Some(text) = &options.pattern {
        let pattern = Pattern::new(text);
        listing.tools.retain(|tool| pattern.fits(tool));
        explained = the_one(&listing.tools, text);
    }
    let tools = &listing.tools;
    listing.problems.retain(|problem| is_about(problem, known, tools));
    listing.warnings = listing.problems.iter().map(ToString::to_string).collect();
    if unknown.is_some() && exit == Exit::Done {
        exit = Exit::Usage;
    }
    let (is_json, is_for_provider) = (context.output.is_json(), options.provider.is_some());
    let is_in_document = is_json && !is_for_provider;
    let why_empty = match &unknown {
        Some((message, hint)) => is_in_document.then(|| format!("{message}; {hint}")),
        None => why_empty(options, settings, &listing, found),
    };
    listing.warnings.extend(why_empty);
    let (tools, unavailable, warnings) = (&listing.tools, &listing.unavailable, &listing.warnings);
    let mut report = match (is_json, is_for_provider) {
        (true, true) => Report::json(exit, &listing.definitions()),
        (true, false) => Report::json(exit, &ToolsDocument::new(settings, &listing)),
        (false, _) => {
            let mut report = Report::new(exit);
            report.data = match explained.and_then(|index| tools.get(index)) {
                Some(tool) if !is_for_provider && !options.schema && !options.signatures => {
                    let paint = Paint::detect(&std::io::stdout());
                    explain::explain(tool, paint, output::width().unwrap_or(USUAL_WIDTH))
                }
                _ => {
                    let style = Style {
                        is_for_provider,
                        is_verbose: context.output.verbose > 0,
                        is_ranked: options.search.is_some(),
                        has_schemas: options.schema,
                        has_signatures: options.signatures,
                    };
                    text(tools, &all, style, settings)
                }
            };
            report
        }
    };
    // Our own document contains unavailable servers and warnings; a provider's array and the text do not.
    if !is_in_document {
        report = listing::add_unavailable(report, unavailable, context.is_late(), own);
    }
    let told = match context.output.verbose {
        0 if warnings.len() > TOLD + 1 => TOLD,
        _ => warnings.len(),
    };
    if !is_in_document {
        report = warnings[..told]
            .iter()
            .fold(report, |report, warning| report.warning(warning));
        if told < warnings.len() {
            report = report.note(&format!("{} more warnings: pegboard tools -v", warnings.len() - told));
        }
    }
    match unknown.filter(|_| !is_in_document) {
        Some((message, hint)) => report.error(&message, Some(&hint)),
        None => report,
    }
}

/// Whether a problem is about the tools that are shown, or about none of the known ones in particular.
fn is_about(problem: &ListWarning, known: &BTreeSet<String>, shown: &[ListedTool]) -> bool {
    let mut named = problem.tools.iter().filter(|name| known.contains(*name)).peekable();
    named.peek().is_none() || named.any(|name| shown.iter().any(|listed| listed.tool.dotted_name() == *name))
}

/// The position of the only tool with exactly this name.
fn the_one(tools: &[ListedTool], name: &str) -> Option<usize> {
    let is_meant =
        |listed: &ListedTool| listed.tool.dotted_name() == name || listed.name == name || listed.tool.name == name;
    let mut meant = tools.iter().enumerate().filter(|(_, listed)| is_meant(listed));
    match (meant.next(), meant.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    }
}

/// The warning about an empty list, unless another message explains it. `found` is the number of tools before the pattern was applied.
fn why_empty(options: &Tools, settings: &Settings, listing: &Listing, found: usize) -> Option<String> {
    let all = "`pegboard tools` lists all";
    if !listing.tools.is_empty() {
        None
    } else if options.search.is_some() {
        Some(format!("no tool fits these words; {all}"))
    } else if found > 0 {
        let pattern = options.pattern.as_deref().unwrap_or_default();
        let hint = settings.demo_hint(pattern).unwrap_or(all);
        Some(format!("no tool has such a name; {hint}"))
    } else if listing.unavailable.is_empty() && settings.empty_warning().is_none() {
        Some("no server that is switched on offers a tool".to_owned())
    } else {
        None
    }
}

/// The token cost of each server's definitions, the highest first.
fn costs(context: &Context<'_>, costs: &[ServerCost], exit: Exit) -> Report {
    let mut costs = costs.to_vec();
    costs.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.server.cmp(&b.server)));
    let total: usize = costs.iter().map(|cost| cost.tokens).sum();
    if context.output.is_json() {
        return Report::json(exit, &json!({"servers": costs, "tokens": total}));
    }
    let mut table = Table::with_indent(0);
    table.row(["SERVER".to_owned(), "TOOLS".to_owned(), "TOKENS".to_owned()]);
    for cost in &costs {
        table.row([cost.server.to_string(), cost.tools.to_string(), cost.tokens.to_string()]);
    }
    let tools: usize = costs.iter().map(|cost| cost.tools).sum();
    table.row(["all".to_owned(), tools.to_string(), total.to_string()]);
    let mut report = Report::new(exit);
    report.data = table.render(output::width());
    report
}

/// The listing if no server can be asked. It has the servers with a config that cannot be used.
fn without_tools(settings: &Settings, pattern: Option<&Pattern>) -> Listing {
    let mut listing = Listing::from_tools([]);
    let misconfigured = &settings.loaded.config.misconfigured;
    let named = pattern.map_or_else(Vec::new, |pattern| pattern.servers(misconfigured.keys()));
    for (name, found) in misconfigured {
        if !named.is_empty() && !named.contains(name) {
            continue;
        }
        let (state, error) = match &found.pending_trust {
            Some(_) => (State::PendingTrust, found.why.clone()),
            None => (
                State::Misconfigured,
                format!("its config cannot be used: {}", found.why),
            ),
        };
        let mut server = Unavailable::new(name.clone(), error);
        server.state = state;
        server.hint = Some(found.problems.join("\n")).filter(|problems| !problems.is_empty());
        server.code = found.diagnosis.as_ref().map(|diagnosis| diagnosis.code);
        server.diagnosis.clone_from(&found.diagnosis);
        listing.unavailable.push(server);
    }
    listing
}

/// The document of `-o json`.
#[derive(Serialize)]
struct ToolsDocument<'a> {
    tools: &'a [ListedTool],
    unavailable: &'a [Unavailable],
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    problems: &'a [ListWarning],
    /// The hosts of the servers, if they are those of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_hosts: Option<Value>,
}

impl<'a> ToolsDocument<'a> {
    fn new(settings: &Settings, listing: &'a Listing) -> Self {
        Self {
            tools: &listing.tools,
            unavailable: &listing.unavailable,
            warnings: settings.warnings().chain(listing.warnings.iter().cloned()).collect(),
            problems: &listing.problems,
            from_hosts: settings.hosts().map(HostServers::document),
        }
    }
}

/// How a list of tools is printed.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
struct Style {
    is_for_provider: bool,
    is_verbose: bool,
    is_ranked: bool,
    has_schemas: bool,
    has_signatures: bool,
}

/// The tools by server, one line each; with `-v` with their arguments. With a provider they have the names that its models see.
fn text(tools: &[ListedTool], all: &BTreeMap<ServerName, usize>, style: Style, settings: &Settings) -> String {
    let width = output::width();
    if style.is_ranked {
        let mut table = Table::with_indent(0);
        tools
            .iter()
            .for_each(|listed| table.row([one_line(&listed.tool.dotted_name()), summary(listed)]));
        return table.render(width);
    }
    let line = |listed: &ListedTool| {
        let name = match style.is_for_provider {
            true => listed.name.clone(),
            false => listed.tool.dotted_name(),
        };
        match style.has_signatures {
            true => [one_line(&signature(&name, listed)), String::new()],
            false => [one_line(&name), summary(listed)],
        }
    };
    let section = |tools: &[ListedTool]| {
        let mut text = String::new();
        let mut table = Table::with_indent(2);
        for listed in tools {
            table.row(line(listed));
            if style.has_schemas {
                text.push_str(&table.render(width));
                text.push_str(&schemas(listed));
                table = Table::with_indent(2);
            } else if style.is_verbose {
                text.push_str(&table.render(width));
                text.push_str(&arguments::table(&listed.tool.input_schema.value()).render(width));
                table = Table::with_indent(2);
            }
        }
        text + &table.render(width)
    };
    let name = |server: &ServerName| settings.marked_name(server.as_str());
    listing::sections(tools, "tool", all, |listed| &listed.tool.server, name, section)
}

fn signature(name: &str, listed: &ListedTool) -> String {
    let tool = &listed.tool;
    let (input, order) = (tool.input_schema.value(), tool.argument_names().unwrap_or_default());
    let output = tool.output_schema.as_ref().map(|schema| schema.value());
    schema_text::signature(name, schema_text::SchemaNode::in_order(&input, &order), output.as_ref())
}

/// The schemas of a tool as indented JSON.
fn schemas(listed: &ListedTool) -> String {
    let schemas = [
        ("input", Some(&listed.tool.input_schema)),
        ("output", listed.tool.output_schema.as_ref()),
    ];
    let mut text = String::new();
    for (name, schema) in schemas {
        let Some(schema) = schema else { continue };
        let json = serde_json::to_string_pretty(&schema.value()).unwrap_or_default();
        let _ = writeln!(text, "    {name} {}", output::clean(&json).replace('\n', "\n    "));
    }
    text
}

/// The first line of a tool's description, or its title.
fn summary(listed: &ListedTool) -> String {
    let tool = &listed.tool;
    let description = tool
        .description
        .as_deref()
        .or(tool.title.as_deref())
        .unwrap_or_default();
    listing::first_line(description)
}
