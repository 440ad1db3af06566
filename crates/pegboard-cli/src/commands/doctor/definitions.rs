//! Findings about the tools of a server that runs: what it lists, for which models, and at what cost.

use pegboard::{
    ListedTool, Listing, Provider,
    catalog::ListWarning,
    config::Transport,
    diagnosis::Code,
    pin::{PinChange, PinState},
};

use super::{
    finding::{Finding, ReportSection},
    kinds::{self, ReachStep},
    outage,
};

/// The most tokens of a server's definitions that need no warning: a twentieth of a context of 200,000.
const TOKENS: usize = 10_000;
/// The most tools that OpenAI's API takes.
const TOOLS: usize = 128;
/// The most names that a finding lists.
const NAMED: usize = 3;

const PROVIDERS: &[Provider] = &[
    Provider::OpenAi,
    Provider::Anthropic,
    Provider::Gemini,
    Provider::Bedrock,
];

/// Adds what is found in the listing of a server.
pub(super) fn check(
    section: &mut ReportSection,
    name: &str,
    transport: &Transport,
    listing: &Listing,
    changes: &[PinChange],
) {
    let tools: Vec<&ListedTool> = listing
        .tools
        .iter()
        .filter(|tool| tool.tool.server.as_str() == name)
        .collect();
    warnings(section, name, transport, listing);
    for provider in PROVIDERS {
        let refused: Vec<(&str, String)> = tools
            .iter()
            .filter_map(|tool| {
                Some((
                    tool.tool.name.as_str(),
                    provider.define(&tool.tool, None).err()?.to_string(),
                ))
            })
            .collect();
        if let Some((_, why)) = refused.first() {
            let names = list_first_names(refused.iter().map(|(name, _)| *name));
            section.add_finding(
                Finding::new(
                    &kinds::SCHEMA_REFUSED,
                    format!("{provider} cannot be offered {names}: {why}"),
                )
                .fix(format!("pegboard tools '{name}.*' --provider {provider} -o json")),
            );
        }
    }
    let long: Vec<&str> = tools
        .iter()
        .filter(|tool| !Provider::OpenAi.name_rules().allow(&tool.name))
        .map(|tool| tool.name.as_str())
        .collect();
    if !long.is_empty() {
        section.add_finding(
            Finding::new(
                &kinds::NAME_ADAPTED,
                format!(
                    "longer than models' APIs take, or with other characters: {}",
                    list_first_names(long.into_iter())
                ),
            )
            .fix(format!(
                "give `servers.{name}` a shorter name; the model sees a shortened one until then"
            )),
        );
    }
    if tools.len() > TOOLS {
        section.add_finding(
            Finding::new(
                &kinds::MANY_TOOLS,
                format!("{} tools, and OpenAI's API takes {TOOLS} in all", tools.len()),
            )
            .fix("allow = [\"get_*\", \"list_*\"], or a view with `tool_budget`"),
        );
    }
    cost(section, &tools);
    pins(section, name, changes);
}

/// The token cost, with the most expensive tools.
fn cost(section: &mut ReportSection, tools: &[&ListedTool]) {
    let tokens: usize = tools.iter().map(|tool| tool.tokens()).sum();
    if tokens <= TOKENS {
        if !tools.is_empty() {
            section.add_fine(ReachStep::Tools, format!("about {tokens} tokens of definitions"));
        }
        return;
    }
    let mut largest = tools.to_vec();
    largest.sort_by_key(|tool| std::cmp::Reverse(tool.tokens()));
    let shown: Vec<String> = largest
        .iter()
        .take(NAMED)
        .map(|tool| format!("{} ({})", tool.tool.name, tool.tokens()))
        .collect();
    let names: Vec<String> = largest
        .iter()
        .take(NAMED)
        .map(|tool| format!("{:?}", tool.tool.name))
        .collect();
    section.add_finding(
        Finding::new(
            &kinds::TOKEN_COST,
            format!(
                "the definitions take about {tokens} tokens of every conversation; the largest are {}",
                shown.join(", ")
            ),
        )
        .fix(format!("deny = [{}], or a view with `tool_budget`", names.join(", "))),
    );
}

/// The problems of the server's listing.
fn warnings(section: &mut ReportSection, name: &str, transport: &Transport, listing: &Listing) {
    let is_own = |problem: &&ListWarning| problem.server.as_ref().is_some_and(|server| server.as_str() == name);
    for problem in listing.problems.iter().filter(is_own) {
        let log = outage::log_says_more(name, transport);
        let (kind, fix) = match problem.code {
            Code::ToolDuplicate => (&kinds::TOOL_DUPLICATE, "rename one of the two in the server"),
            Code::OffersNothing => (
                &kinds::OFFERS_NOTHING,
                "check `args` and `env`: many servers offer tools only with a token or a list of them",
            ),
            Code::ToolLeftOut => (&kinds::TOOL_LEFT_OUT, "correct the definition in the server"),
            Code::ListFailed => (&kinds::LIST_FAILED, log.as_str()),
            // The pins say it in full.
            Code::DefinitionChanged | Code::DefinitionSuspicious => continue,
            _ => (
                &kinds::LIST_WARNING,
                "correct what the server lists, or look for a newer version of it",
            ),
        };
        section.add_finding(Finding::new(kind, problem.message.as_str()).fix(fix));
    }
}

fn pins(section: &mut ReportSection, name: &str, changes: &[PinChange]) {
    let own: Vec<&PinChange> = changes.iter().filter(|change| change.server.as_str() == name).collect();
    let changed: Vec<&str> = own
        .iter()
        .filter(|change| change.held || change.state == PinState::Changed)
        .map(|change| change.tool.as_deref().unwrap_or("its instructions"))
        .collect();
    if !changed.is_empty() {
        let held = if own.iter().any(|change| change.held) {
            ", and are held until you accept them"
        } else {
            ""
        };
        section.add_finding(
            Finding::new(
                &kinds::DEFINITION_CHANGED,
                format!(
                    "definitions are not as they were pinned{held}: {}",
                    list_first_names(changed.into_iter())
                ),
            )
            .fix(format!("pegboard pins diff {name} && pegboard pins accept {name}")),
        );
    }
    for change in own.iter().filter(|change| !change.findings.is_empty()) {
        let tool = change.tool.as_deref().unwrap_or("its instructions");
        let why = change.findings.first().map(ToString::to_string).unwrap_or_default();
        section.add_finding(
            Finding::new(
                &kinds::DEFINITION_SUSPICIOUS,
                format!("the definition of `{tool}` looks like an attack: {why}"),
            )
            .fix(format!("pegboard pins diff {name}")),
        );
    }
}

/// The first names of a list.
fn list_first_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
