//! What becomes of results: the settings of a server, and of a tool over them.

use std::collections::BTreeMap;

use super::super::{
    Images, Join, Policy, Results, Structured, Summarise, SummaryModel, TooLong,
    problem::{Report, join},
    setting::{Setting, Values},
};
use crate::secret::{SafeUrl, Secret};

/// Reports what is wrong with the `summarise` of a table.
pub(in crate::config) fn check(values: &Values, path: &str, report: &mut Report) {
    let Some(found) = values.find("summarise") else { return };
    let Setting::Table(table) = &found.setting else { return };
    let path = join(path, &found.key);
    if let Some(url) = table.text("url") {
        let problem = match SafeUrl::parse(&url.value) {
            Ok(parsed) if !matches!(parsed.expose().scheme(), "http" | "https") => Some("must start with https://"),
            Ok(_) => None,
            Err(_) => Some("is not a URL with a host"),
        };
        if let Some(problem) = problem {
            report.error(url.at, &join(&path, "url"), problem);
        }
    }
}

/// A policy that says what becomes of a server's results, and nothing else.
pub(super) fn of(values: &Values) -> Policy {
    let results = over(values, Results::default());
    Policy {
        results,
        tool_results: of_tools(values, results),
        summarise: values.table("summarise").and_then(summarise),
        ..Policy::default()
    }
}

/// The settings of a table over those that hold without it.
fn over(values: &Values, base: Results) -> Results {
    let mut results = base;
    let nothing = Values::default();
    let table = values.table("result").unwrap_or(&nothing);
    if let Some(bytes) = table.count("max_bytes").or_else(|| values.count("max_result")) {
        results.max_bytes = bytes;
        // Whoever names a limit means it, whatever a server says about its own tools.
        results.ceiling = bytes;
    }
    results.ceiling = table.count("ceiling").unwrap_or(results.ceiling);
    results.max_lines = table.count("max_lines").or(results.max_lines);
    results.max_tokens = table.count("max_tokens").or(results.max_tokens);
    results.fence = table.bool("fence").unwrap_or(results.fence);
    results.clean = table.bool("clean").unwrap_or(results.clean);
    results.find_images = table.bool("find_images").unwrap_or(results.find_images);
    results.too_long = match table.word("mode") {
        Some("head") => TooLong::Head,
        Some("head_tail") => TooLong::HeadTail,
        Some("spill") => TooLong::Spill,
        Some("summarise") => TooLong::Summarise,
        Some("error") => TooLong::Error,
        _ => results.too_long,
    };
    results.join = match table.word("join") {
        Some("newline") => Join::Newline,
        Some("empty_line") => Join::EmptyLine,
        Some("nothing") => Join::Nothing,
        Some("first") => Join::First,
        _ => results.join,
    };
    results.images = match table.word("images") {
        Some("keep") => Images::Keep,
        Some("spill") => Images::Spill,
        _ => results.images,
    };
    results.structured = match table.word("structured").or_else(|| values.word("structured")) {
        Some("content_first") => Structured::ContentFirst,
        Some("structured_first") => Structured::StructuredFirst,
        Some("both_dedup") => Structured::BothDedup,
        Some("content_only") => Structured::ContentOnly,
        Some("structured_only") => Structured::StructuredOnly,
        _ => results.structured,
    };
    results
}

fn of_tools(server: &Values, base: Results) -> BTreeMap<String, Results> {
    let Some(Setting::Map(tools)) = server.get("tools") else {
        return BTreeMap::new();
    };
    let differs = |tool: &Values| {
        ["max_result", "structured", "result"]
            .iter()
            .any(|name| tool.get(name).is_some())
    };
    tools
        .iter()
        .filter_map(|(name, tool)| match tool {
            Setting::Table(tool) if differs(tool) => Some((name.clone(), over(tool, base))),
            _ => None,
        })
        .collect()
}

fn summarise(table: &Values) -> Option<Summarise> {
    if table.bool("enabled") == Some(false) {
        return None;
    }
    let defaults = Summarise::default();
    Some(Summarise {
        threshold_tokens: table.count("threshold_tokens").unwrap_or(defaults.threshold_tokens),
        max_tokens: table.count("max_tokens").unwrap_or(defaults.max_tokens),
        timeout: table.duration("timeout").unwrap_or(defaults.timeout),
        model: model(table),
    })
}

fn model(table: &Values) -> Option<SummaryModel> {
    let written = table.text("url")?;
    let mut url = SafeUrl::parse(&written.value).ok()?;
    if written.is_from_variable() {
        url = url.shown_as(written.written.as_str());
    }
    Some(SummaryModel {
        url,
        model: table.value("model").unwrap_or_default(),
        api_key: table.value("api_key").map(Secret::new),
    })
}
