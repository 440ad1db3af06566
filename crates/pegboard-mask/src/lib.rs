//! Masks secrets in texts and JSON values: the config's own secrets wherever they occur, and everything that matches a secret pattern.
//!
//! ```text
//! Masking (the policy) ──▶ PatternSet ──┐
//! known secrets ──▶ known_values ───────┤
//!                                       ▼
//! a text or a JSON value ──▶ Masker: spans of secrets ──▶ replacement ──▶ Masked, with Counts
//!                              │ keywords: one scan selects the patterns that can match
//!                              │ named_values, documents, kubernetes: secrets by the names and structure around them
//!                              └ encoded, wrapped_tokens, quoted_strings: secrets in base64, over line breaks, in strings
//! ```
//!
//! One scan finds the keywords of all patterns in a text; only patterns whose keywords occur are run. A replacement covers the secret alone,
//! so JSON stays JSON and YAML stays YAML. If masking fails, the text is withheld, never passed on.
//!
//! [`ServerMasker`] is the masker of one server, which follows changes of its policy and of the known secrets. [`Crossing`] finds the secrets of
//! other servers in what is sent to a server. `raw_json` proves most JSON texts clean without parsing them.
//!
//! The API follows the needs of the other crates. Programs use the crate `pegboard`.

mod assignments;
#[cfg(any(test, feature = "test-util"))]
pub mod corpus;
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

pub use counts::Counts;
pub use crossing::{Crossed, Crossing};
#[doc(hidden)]
pub use keywords::Keywords;
pub use masker::{Carried, Masked, Masker};
pub use named_values::{is_literal, is_secret_string};
pub use pattern_set::{check_custom, check_exception, check_group, check_pattern};
pub use policy::{BadMasking, CustomPattern, MaskStyle, Masking};
pub use raw_json::DecodedJson;
pub use server_masker::{KnownSecrets, LONG, ServerMasker};
