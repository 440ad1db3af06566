//! What is hidden in results: the settings for all servers, and on top of them those of one.

use crate::{
    config::{
        fields::nearest,
        problem::{Report, join},
        setting::{Found, Setting, Values},
        tree::Place,
    },
    mask::{self, BadMasking, CustomPattern, MaskStyle, Masker, Masking},
};

/// `base` with what a setting says on top: what it names is added, what it decides is decided.
pub(in crate::config) fn layered(base: &Masking, setting: Option<&Setting>) -> Masking {
    let mut masking = base.clone();
    let table = match setting {
        Some(Setting::Bool(enabled)) => {
            masking.enabled = *enabled;
            return masking;
        }
        Some(Setting::Table(table)) => table,
        _ => return masking,
    };
    masking.enabled = table.bool("enabled").unwrap_or(masking.enabled);
    masking.defaults = table.bool("defaults").unwrap_or(masking.defaults);
    masking.style = match table.word("style") {
        Some("value") => MaskStyle::Value,
        Some("whole") => MaskStyle::Whole,
        _ => masking.style,
    };
    masking.groups.extend(table.strings("groups"));
    masking.patterns.extend(table.strings("patterns"));
    masking.except.extend(table.strings("except"));
    masking
        .custom
        .extend(customs(table).into_iter().map(|(custom, _)| custom));
    masking
}

/// Reports what cannot be followed. A server whose secrets would pass unseen must not be used.
pub(in crate::config) fn check(report: &mut Report, path: &str, found: &Found) {
    let Setting::Table(table) = &found.setting else { return };
    let path = join(path, &found.key);
    for text in table.texts("groups") {
        if let Err(error) = mask::check_group(&text.value) {
            let near = nearest(&text.value, Masker::group_names());
            complain(report, text.at, &join(&path, "groups"), &error, near);
        }
    }
    for text in table.texts("patterns") {
        if let Err(error) = mask::check_pattern(&text.value) {
            let near = nearest(&text.value, Masker::pattern_names());
            complain(report, text.at, &join(&path, "patterns"), &error, near);
        }
    }
    for (custom, at) in customs(table) {
        if let Err(error) = mask::check_custom(&custom) {
            complain(report, at.unwrap_or(found.at), &join(&path, "custom"), &error, None);
        }
    }
    for text in table.texts("except") {
        if let Err(error) = mask::check_exception(&text.value) {
            complain(report, text.at, &join(&path, "except"), &error, None);
        }
    }
}

fn complain(report: &mut Report, at: Place, path: &str, error: &BadMasking, near: Option<&str>) {
    match near {
        Some(near) => report.error_with(at, path, error.to_string(), format!("did you mean `{near}`?")),
        None => report.error(at, path, error.to_string()),
    }
}

fn customs(table: &Values) -> Vec<(CustomPattern, Option<Place>)> {
    let Some(Setting::List(items)) = table.get("custom") else {
        return Vec::new();
    };
    let custom = |setting: &Setting| {
        let Setting::Table(table) = setting else { return None };
        let mut custom = CustomPattern::new(table.value("pattern")?);
        custom.replacement = table.value("replacement").unwrap_or(custom.replacement);
        custom.description = table.value("description");
        Some((custom, table.at("pattern")))
    };
    items.iter().filter_map(custom).collect()
}
