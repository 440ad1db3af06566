//! Entry points for the fuzz targets: single parsers with plain inputs and results. They are not part of the public API and exist only with
//! the feature `fuzz`.

use serde_json::Value;

use pegboard_config::Check;
use pegboard_tools::{
    args::{Arguments, CompiledSchemas, LazyValidator},
    catalog::sanitize,
};

pub use pegboard_client::{
    session::fuzz_steps::{PENDING, Received, receive},
    transport::fuzz_steps::{Events, LinesRead, SseEvent, parse_events, read_lines},
};

/// The result of validating arguments: the arguments that are sent and the notes about them, or the problems.
pub type Validated = Result<(Arguments, Vec<String>), Vec<String>>;

/// Validates arguments against a schema.
pub fn validate(schema: &Value, arguments: &Arguments, mode: Check) -> Validated {
    let compiled = CompiledSchemas::default();
    let checked = LazyValidator::default().arguments(arguments, &schema.to_string(), mode, &compiled)?;
    Ok((checked.changed.unwrap_or_else(|| arguments.clone()), checked.notes))
}

/// Validates structured output against a schema. Returns a sentence for each problem.
pub fn validate_output(schema: &Value, output: &Value) -> Vec<String> {
    LazyValidator::default().structured_output(output, &schema.to_string(), &CompiledSchemas::default())
}

/// Removes invisible characters from a text for a model.
pub fn remove_invisible(text: &str) -> String {
    let mut text = text.to_owned();
    sanitize::remove_invisible(&mut text);
    text
}
