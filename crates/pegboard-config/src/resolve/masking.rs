//! Resolves masking: the settings of one server extend those of all servers.

use crate::{
    fields::{masking as fields, pattern},
    key::{Key, Table},
    problem::{Report, join},
    setting::{Found, Setting, Text},
    spelling::find_nearest,
};
use pegboard_mask::{BadMasking, CustomPattern, Masker, Masking};

/// Extends `base` by a setting: lists are appended, other fields are replaced.
pub(crate) fn extend(base: &Masking, found: Option<&Found>) -> Masking {
    let mut masking = base.clone();
    let table = match found.map(|found| &found.setting) {
        Some(Setting::Bool(enabled)) => {
            masking.enabled = *enabled;
            return masking;
        }
        Some(Setting::Table(table)) => Table::<fields::In>::new(table),
        _ => return masking,
    };
    let values = |key: &Key<fields::In, Vec<Text>>| table.get(key).into_iter().map(|text| text.value);
    masking.enabled = table.set(&fields::enabled).unwrap_or(masking.enabled);
    masking.defaults = table.set(&fields::defaults).unwrap_or(masking.defaults);
    masking.style = table.set(&fields::style).unwrap_or(masking.style);
    masking.groups.extend(values(&fields::groups));
    masking.patterns.extend(values(&fields::patterns));
    masking.except.extend(values(&fields::except));
    masking
        .custom
        .extend(customs(table).into_iter().map(|(custom, _)| custom));
    masking
}

/// Reports invalid patterns as errors, so that a server whose secrets would not be masked is not used.
pub(crate) fn check(report: &mut Report, path: &str, found: &Found) {
    let Setting::Table(table) = &found.setting else { return };
    let table = Table::<fields::In>::new(table);
    let path = join(path, &found.key);
    for text in table.get(&fields::groups) {
        if let Err(error) = pegboard_mask::check_group(&text.value) {
            let near = find_nearest(&text.value, Masker::group_names());
            report_bad_masking(report, &text, &join(&path, fields::groups.name), &error, near);
        }
    }
    for text in table.get(&fields::patterns) {
        if let Err(error) = pegboard_mask::check_pattern(&text.value) {
            let near = find_nearest(&text.value, Masker::pattern_names());
            report_bad_masking(report, &text, &join(&path, fields::patterns.name), &error, near);
        }
    }
    for (custom, text) in customs(table) {
        if let Err(error) = pegboard_mask::check_custom(&custom) {
            report_bad_masking(report, &text, &join(&path, fields::custom.name), &error, None);
        }
    }
    for text in table.get(&fields::except) {
        if let Err(error) = pegboard_mask::check_exception(&text.value) {
            report_bad_masking(report, &text, &join(&path, fields::except.name), &error, None);
        }
    }
}

/// Reports a text that cannot be used. The value of a variable may be a secret, so it is not shown.
fn report_bad_masking(report: &mut Report, text: &Text, path: &str, error: &BadMasking, near: Option<&str>) {
    match near {
        _ if text.is_from_variable() => {
            report.error(text.at, path, "with its variables expanded it cannot be used here")
        }
        Some(near) => report.error_with(text.at, path, error.to_string(), format!("did you mean `{near}`?")),
        None => report.error(text.at, path, error.to_string()),
    }
}

/// The custom patterns, with the texts of their expressions.
fn customs(table: Table<'_, fields::In>) -> Vec<(CustomPattern, Text)> {
    let custom = |table: Table<'_, pattern::In>| {
        let text = table.get(&pattern::pattern)?;
        let mut custom = CustomPattern::new(text.value.clone());
        if let Some(replacement) = table.get(&pattern::replacement) {
            custom.replacement = replacement;
        }
        custom.description = table.get(&pattern::description);
        Some((custom, text))
    };
    table.list(&fields::custom).into_iter().filter_map(custom).collect()
}
