//! Resolves how results are handled: the settings of a server, overridden by those of a tool.

use std::collections::BTreeMap;

use crate::{
    fields::{ServerTable, result, server, summarise as summarise_fields, tool},
    key::Table,
    policy::{Results, Structured, Summarise, SummaryModel},
};
use pegboard_base::secret::{SafeUrl, Secret};

/// The settings of a server.
pub(super) fn resolve_server(values: ServerTable<'_>) -> Results {
    let short = (values.get(&server::max_result), values.get(&server::structured));
    override_results(Results::default(), values.table(&server::result), short)
}

/// The settings of a view. What it does not set has the default, regardless of the servers.
pub(super) fn resolve_view(table: Table<'_, result::In>) -> Results {
    override_results(Results::default(), Some(table), (None, None))
}

/// The settings of tools that override those of the server.
pub(super) fn resolve_tools(values: ServerTable<'_>, base: Results) -> BTreeMap<String, Results> {
    let tools = values.tables(&server::tools).into_iter();
    let results = tools.filter_map(|(name, table)| {
        let short = (table.get(&tool::max_result), table.get(&tool::structured));
        let result = table.table(&tool::result);
        let differs = result.is_some() || short != (None, None);
        differs.then(|| (name.clone(), override_results(base, result, short)))
    });
    results.collect()
}

/// Overrides `base` by the settings of a table and of its short forms.
fn override_results(
    base: Results,
    table: Option<Table<'_, result::In>>,
    (max_result, structured): (Option<usize>, Option<Structured>),
) -> Results {
    let mut results = base;
    if let Some(structured) = structured {
        results.structured = structured;
    }
    let max_bytes = table.and_then(|table| table.set(&result::max_bytes));
    if let Some(bytes) = max_bytes.or(max_result) {
        results.max_bytes = bytes;
        // A written limit is exact: a server cannot raise it.
        results.ceiling = bytes;
    }
    match table {
        Some(table) => results.overlay(table),
        None => results,
    }
}

/// When long results are summarised; `None` for never.
pub(super) fn summarise(values: ServerTable<'_>) -> Option<Summarise> {
    let table = values.table(&server::summarise)?;
    table.get(&summarise_fields::enabled).then(|| Summarise {
        model: model(table),
        ..Summarise::default().overlay(table)
    })
}

fn model(table: Table<'_, summarise_fields::In>) -> Option<SummaryModel> {
    let written = table.get(&summarise_fields::url)?;
    let mut url = SafeUrl::parse(&written.value).ok()?;
    if written.is_from_variable() {
        url = url.shown_as(written.written.as_str());
    }
    Some(SummaryModel {
        url,
        model: table.get(&summarise_fields::model).unwrap_or_default(),
        api_key: table.get(&summarise_fields::api_key).map(|key| Secret::new(key.value)),
    })
}
