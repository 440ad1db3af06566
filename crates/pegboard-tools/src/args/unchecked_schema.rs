//! Stands in for the validator in a build without the feature `validation`: only the presence of required arguments is checked.

use serde_json::Value;

use super::{
    arguments::Arguments,
    checked::{Checked, check_required},
};
use pegboard_config::Check;

/// A schema that this build cannot compile.
pub(super) struct SchemaCheck;

impl SchemaCheck {
    pub(super) fn new(_: &Value) -> Self {
        Self
    }

    pub(super) fn unusable(&self) -> Option<&str> {
        None
    }

    pub(super) fn bytes(&self) -> usize {
        0
    }

    pub(super) fn arguments(&self, schema: &Value, given: &Arguments, _: Check) -> Result<Checked, Vec<String>> {
        check_required(given, schema)
    }

    pub(super) fn structured_output(&self, _: &Value, _: &Value) -> Vec<String> {
        Vec::new()
    }
}
