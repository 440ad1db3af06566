//! Resolves how results are handled: the settings of a server, overridden by those of a tool.

use std::collections::BTreeMap;

use crate::{
    fields::{ServerTable, result, server, summarise as summarise_fields, tool},
    key::Table,
    policy::{Results, Structured, Summarise, SummaryModel},
    problem::{Report, join},
};
use pegboard_base::secret::{SafeUrl, Secret};

/// Reports an invalid URL in `summarise`.
pub(super) fn check(values: ServerTable<'_>, path: &str, report: &mut Report) {
    let Some(found) = values.find(&server::SUMMARISE) else {
        return;
    };
    let Some(url) = values
        .table(&server::SUMMARISE)
        .and_then(|table| table.get(&summarise_fields::URL))
    else {
        return;
    };
    let problem = match SafeUrl::parse(&url.value) {
        Ok(parsed) if !matches!(parsed.expose().scheme(), "http" | "https") => Some("must start with https://"),
        Ok(_) => None,
        Err(_) => Some("is not a URL with a host"),
    };
    if let Some(problem) = problem {
        let path = join(&join(path, &found.key), summarise_fields::URL.name);
        report.error(url.at, &path, problem);
    }
}

/// The settings of a server.
pub(super) fn of_server(values: ServerTable<'_>) -> Results {
    let short = (values.get(&server::MAX_RESULT), values.get(&server::STRUCTURED));
    over(Results::default(), values.table(&server::RESULT), short)
}

/// The settings of a view. What it does not set has the default, regardless of the servers.
pub(super) fn of_view(table: Table<'_, result::In>) -> Results {
    over(Results::default(), Some(table), (None, None))
}

/// The settings of tools that override those of the server.
pub(super) fn of_tools(values: ServerTable<'_>, base: Results) -> BTreeMap<String, Results> {
    let tools = values.tables(&server::TOOLS).into_iter();
    let results = tools.filter_map(|(name, table)| {
        let short = (table.get(&tool::MAX_RESULT), table.get(&tool::STRUCTURED));
        let result = table.table(&tool::RESULT);
        let differs = result.is_some() || short != (None, None);
        differs.then(|| (name.clone(), over(base, result, short)))
    });
    results.collect()
}

/// Overrides `base` by the settings of a table and of its short forms.
fn over(
    base: Results,
    table: Option<Table<'_, result::In>>,
    (max_result, structured): (Option<usize>, Option<Structured>),
) -> Results {
    let mut results = base;
    if let Some(structured) = structured {
        results.structured = structured;
    }
    let max_bytes = table.and_then(|table| table.set(&result::MAX_BYTES));
    if let Some(bytes) = max_bytes.or(max_result) {
        results.max_bytes = bytes;
        // A written limit is exact: a server cannot raise it.
        results.ceiling = bytes;
    }
    let Some(table) = table else { return results };
    Results {
        max_bytes: results.max_bytes,
        max_lines: table.set(&result::MAX_LINES).unwrap_or(results.max_lines),
        max_tokens: table.set(&result::MAX_TOKENS).unwrap_or(results.max_tokens),
        mode: table.set(&result::MODE).unwrap_or(results.mode),
        ceiling: table.set(&result::CEILING).unwrap_or(results.ceiling),
        join: table.set(&result::JOIN).unwrap_or(results.join),
        structured: table.set(&result::STRUCTURED).unwrap_or(results.structured),
        fence: table.set(&result::FENCE).unwrap_or(results.fence),
        clean: table.set(&result::CLEAN).unwrap_or(results.clean),
        images: table.set(&result::IMAGES).unwrap_or(results.images),
        find_images: table.set(&result::FIND_IMAGES).unwrap_or(results.find_images),
    }
}

/// When long results are summarised; `None` for never.
pub(super) fn summarise(values: ServerTable<'_>) -> Option<Summarise> {
    let table = values.table(&server::SUMMARISE)?;
    table.get(&summarise_fields::ENABLED).then(|| Summarise {
        threshold_tokens: table.get(&summarise_fields::THRESHOLD_TOKENS),
        max_tokens: table.get(&summarise_fields::MAX_TOKENS),
        timeout: table.get(&summarise_fields::TIMEOUT),
        model: model(table),
    })
}

fn model(table: Table<'_, summarise_fields::In>) -> Option<SummaryModel> {
    let written = table.get(&summarise_fields::URL)?;
    let mut url = SafeUrl::parse(&written.value).ok()?;
    if written.is_from_variable() {
        url = url.shown_as(written.written.as_str());
    }
    Some(SummaryModel {
        url,
        model: table.get(&summarise_fields::MODEL).unwrap_or_default(),
        api_key: table.get(&summarise_fields::API_KEY).map(|key| Secret::new(key.value)),
    })
}
