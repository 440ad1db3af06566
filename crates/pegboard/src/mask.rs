//! Masks secrets in texts and JSON values: the config's own secrets wherever they occur, and everything that matches a secret pattern.
//!
//! One scan finds the keywords of all patterns in a text; only patterns whose keywords occur are run. A replacement covers the secret alone,
//! so JSON stays JSON and YAML stays YAML. If masking fails, the text is withheld, never passed on.

mod assignments;
mod counts;
mod crossing;
mod documents;
mod encoded;
mod json_values;
mod keywords;
mod known_values;
mod kubernetes;
mod masker;
mod named_values;
mod pattern;
mod pattern_set;
mod patterns;
mod plausibility;
mod policy;
mod quoted_strings;
mod raw_json;
mod server_masker;
mod span;
mod withheld;
mod wrapped_tokens;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::CORPUS;

pub use counts::Counts;
pub(crate) use crossing::{Crossed, Crossing};
pub use masker::{Carried, Masked, Masker};
pub(crate) use named_values::{is_literal, is_secret_string};
pub(crate) use pattern_set::{check_custom, check_exception, check_group, check_pattern};
pub use policy::{BadMasking, CustomPattern, MaskStyle, Masking};
pub(crate) use raw_json::DecodedJson;
pub(crate) use server_masker::{KnownSecrets, LONG, ServerMasker};
