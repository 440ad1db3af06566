//! The result of checking arguments, and the one check that needs no validator: that required arguments are present.

use serde_json::Value;

use super::{arguments::Arguments, json, schema::display_name};

/// The most problems that are reported.
pub(super) const MAX_PROBLEMS: usize = 8;

/// The result of a successful validation.
#[derive(Debug, Default)]
pub struct Checked {
    /// The coerced arguments, if some were changed.
    pub changed: Option<Arguments>,
    /// What was coerced or tolerated, one sentence each.
    pub notes: Vec<String>,
}

/// Accepts arguments that are not validated, with these notes. Fails only on a duplicate key: policies and the server might read different values.
pub(super) fn accept_unchecked(given: &Arguments, notes: Vec<String>) -> Result<Checked, Vec<String>> {
    json::check_keys(given).map_err(|problem| vec![problem])?;
    Ok(Checked { changed: None, notes })
}

/// Checks only that all required arguments are present.
pub(super) fn check_required(given: &Arguments, schema: &Value) -> Result<Checked, Vec<String>> {
    let Some(names) = schema
        .get("required")
        .and_then(Value::as_array)
        .filter(|names| !names.is_empty())
    else {
        return accept_unchecked(given, Vec::new());
    };
    let value = json::value(given).map_err(|problem| vec![problem])?;
    let missing: Vec<_> = names
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| value.get(name).is_none())
        .take(MAX_PROBLEMS)
        .map(|name| format!("`{}` is missing", display_name(name)))
        .collect();
    if missing.is_empty() {
        Ok(Checked::default())
    } else {
        Err(missing)
    }
}
