//! What the settings of views and of the gateway have in common: names, entries with errors, and the merge of two sources.
//!
//! An entry with an error is removed as a whole: without the setting that is wrong it could allow more than was meant.

use crate::{
    field::Field,
    fields::{serve, top},
    problem::{MAX_PROBLEMS, Report, join},
    setting::{Found, Setting, Values},
};

/// The longest name of a view or a token.
const MAX_NAME: usize = 64;

/// Removes the views and tokens of one source that have errors.
pub(super) fn remove_broken(values: &mut Values, report: &Report) {
    mark_broken(values.find_mut(&top::views), "", report);
    if let Some(found) = values.find_mut(&top::serve)
        && let Setting::Table(table) = &mut found.setting
    {
        let path = found.key.clone();
        mark_broken(table.find_mut(&serve::tokens), &path, report);
        if let Some(oauth) = table.find_mut(&serve::oauth)
            && has_errors(&join(&path, &oauth.key), report)
        {
            oauth.setting = Setting::Bool(false);
        }
    }
}

/// Adds the entries of an earlier source to those of a later one, which win name by name.
pub(crate) fn merge(later: &mut Values, earlier: &mut Values) {
    merge_maps(later, earlier, &top::views);
    if let Some(Setting::Table(later)) = later.find_mut(&top::serve).map(|found| &mut found.setting)
        && let Some(Setting::Table(earlier)) = earlier.find_mut(&top::serve).map(|found| &mut found.setting)
    {
        merge_maps(later, earlier, &serve::tokens);
        later.fill_from(std::mem::take(earlier));
    }
}

fn merge_maps(later: &mut Values, earlier: &mut Values, field: &Field) {
    let map = |values: &'_ mut Values| match values.find_mut(field).map(|found| &mut found.setting) {
        Some(Setting::Map(entries)) => std::mem::take(entries),
        _ => Default::default(),
    };
    let entries = map(earlier);
    if let Some(Setting::Map(known)) = later.find_mut(field).map(|found| &mut found.setting) {
        for (name, setting) in entries {
            known.entry(name).or_insert(setting);
        }
    } else if let Some(Setting::Map(emptied)) = earlier.find_mut(field).map(|found| &mut found.setting) {
        *emptied = entries;
    }
}

/// Reports names that cannot be part of a URL or of the audit log.
pub(super) fn check_names<'a>(names: impl Iterator<Item = &'a String>, found: &Found, path: &str, report: &mut Report) {
    for name in names.filter(|name| !is_name(name)) {
        let message =
            format!("a name has at most {MAX_NAME} letters, digits, `-` and `_`, and begins with a letter or digit");
        report.error(found.at, &join(path, name), message);
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= MAX_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part)
}

/// Replaces the entries with errors by a mark, which hides the entry of that name in an earlier source too.
fn mark_broken(found: Option<&mut Found>, path: &str, report: &Report) {
    let Some(found) = found else { return };
    let path = join(path, &found.key);
    let Setting::Map(entries) = &mut found.setting else {
        return;
    };
    for (name, setting) in entries {
        if has_errors(&join(&path, name), report) {
            *setting = Setting::Bool(false);
        }
    }
}

/// Returns `true` if a table has errors. Beyond so many of them, what was not read is not reported either.
fn has_errors(table: &str, report: &Report) -> bool {
    let is_inside = |field: &str| {
        let rest = field.strip_prefix(table);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    report.errors() >= MAX_PROBLEMS || report.errors_from(0).any(|problem| is_inside(&problem.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_urls_and_logs() {
        for name in ["coding", "a", "0-9_Z", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "_a", "a.b", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
