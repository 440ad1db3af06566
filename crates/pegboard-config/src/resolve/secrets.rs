//! Collects the secrets of a server's settings: the values of variables, and fields that are meant for secrets.

use super::context::Context;
use crate::{
    environment::is_open,
    keyring_references,
    secret_parts::secrets_in,
    setting::{Setting, Values},
};
use pegboard_base::secret::Secret;

/// Returns the secrets among the variables that the settings refer to, and in the fields that are meant for secrets, with or without effect.
pub(super) fn collect(context: &Context<'_>, values: &Values) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (name, found) in values.iter() {
        for variable in found.variables.iter().filter(|variable| !is_open(variable)) {
            let value = context.env.get(variable).unwrap_or_default();
            if keyring_references::is_meant(variable) {
                secrets.push(Secret::new(value));
                continue;
            }
            secrets.extend(secrets_in(variable, &value));
        }
        collect_from(name, &found.setting, &mut secrets);
    }
    secrets.sort();
    secrets.dedup();
    secrets
}

fn collect_from(name: &str, setting: &Setting, secrets: &mut Vec<Secret>) {
    match setting {
        Setting::Secret(text) if !is_open(name) => secrets.extend(secrets_in(name, &text.value)),
        Setting::List(items) => items.iter().for_each(|item| collect_from(name, item, secrets)),
        Setting::Map(entries) => entries
            .iter()
            .for_each(|(key, value)| collect_from(key, value, secrets)),
        Setting::Table(values) => values
            .iter()
            .for_each(|(name, found)| collect_from(name, &found.setting, secrets)),
        _ => {}
    }
}
