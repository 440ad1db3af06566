//! Fuzz targets: functions that take any bytes and panic if a property does not hold. libFuzzer (`fuzz_targets/`) and the driver of the
//! gate (`main.rs`) run the same functions.

mod chunks;
mod dictionary;
mod mutate;
mod targets;

pub use dictionary::parse as parse_dictionary;
pub use mutate::{MAX_INPUT, Mutator};
pub use targets::{arguments, config, framing, json_rpc, masker, schema, sse, terminal_text};

/// A target.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("framing", framing),
    ("sse", sse),
    ("json_rpc", json_rpc),
    ("schema", schema),
    ("masker", masker),
    ("terminal_text", terminal_text),
    ("config", config),
    ("arguments", arguments),
];
