//! Resolves the settings of the audit log.

use std::path::Path;

use crate::{
    audit::{AuditConfig, AuditTarget},
    expand::Env,
    fields::{TopTable, audit as fields, top},
    key::Table,
    problem::{Report, join},
    relative_path,
    setting::{Setting, Values},
};

/// Makes the path of the log absolute: it is relative to the file that sets it. Reports a table without a path.
pub(crate) fn anchor(values: &mut Values, base: Option<&Path>, env: &Env<'_>, report: &mut Report) {
    let Some(found) = values.find_mut(&top::audit) else {
        return;
    };
    let (at, key) = (found.at, found.key.clone());
    if let Setting::Table(table) = &found.setting {
        let table = Table::<fields::In>::new(table);
        // What is no target is reported with its syntax.
        let goes_elsewhere = table.find(&fields::to).is_some() && table.set(&fields::to) != Some(AuditTarget::File);
        match (goes_elsewhere, table.find(&fields::file)) {
            (true, Some(file)) => {
                let message = "an audit log goes to one place: remove `file` or `to`";
                return report.error(file.at, &join(&key, fields::file.name), message);
            }
            (true, None) => return,
            (false, _) => {}
        }
    }
    let text = match &mut found.setting {
        Setting::Text(text) => Some(text),
        Setting::Table(table) => match table.find_mut(&fields::file).map(|file| &mut file.setting) {
            Some(Setting::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    match text {
        Some(text) if !text.value.trim().is_empty() => {
            text.value = relative_path::resolve(&text.value, base, env)
                .to_string_lossy()
                .into_owned();
        }
        _ => report.error(at, &join(&key, fields::file.name), "an audit log needs a file"),
    }
}

/// The settings of the log, if there is one.
pub(crate) fn audit(values: TopTable<'_>) -> Option<AuditConfig> {
    let table = match &values.find(&top::audit)?.setting {
        Setting::Text(text) => return Some(AuditConfig::new(&text.value)),
        Setting::Table(table) => Table::<fields::In>::new(table),
        _ => return None,
    };
    let target = table.get(&fields::to);
    if target != AuditTarget::File {
        return Some(AuditConfig::to(target).overlay(table));
    }
    Some(AuditConfig::new(&table.get(&fields::file)?.value).overlay(table))
}
