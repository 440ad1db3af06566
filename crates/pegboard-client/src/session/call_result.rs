//! [`CallResult`]: the result of a tool call, as the server sent it.

mod content_blocks;
mod fast_parse;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use pegboard_tools::outcome::{Content, ForwardedResult};

/// The result of a tool call, as the server sent it.
#[derive(Debug, Default, Deserialize)]
pub struct CallResult {
    /// The content blocks in their order.
    #[serde(default, deserialize_with = "content_blocks::deserialize")]
    pub content: Vec<Content>,
    /// The structured content.
    #[serde(default, rename = "structuredContent")]
    pub structured: Option<Value>,
    /// Whether the tool reports a failure.
    #[serde(default, rename = "isError", deserialize_with = "null_as_default")]
    pub is_error: bool,
    /// The result's `_meta`.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
    /// Whether a user or a model was asked while the call ran, so that the result may depend on their input.
    #[serde(skip)]
    pub had_input: bool,
    /// The unparsed result in place of all parts but `is_error`.
    #[serde(skip)]
    pub raw: Option<Box<ForwardedResult>>,
}

/// Deserialises null as the default.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::response::parse_result;

    #[test]
    fn a_result_that_is_no_object_is_rejected() {
        for result in ["[]", r#"[[],null,true]"#, "null", r#""done""#] {
            assert!(parse_result::<CallResult>(result.as_bytes()).is_err(), "{result}");
        }
    }

    #[test]
    fn every_field_is_optional_and_an_unknown_block_is_kept() {
        let result: CallResult = serde_json::from_str("{}").unwrap();
        assert!(result.content.is_empty() && !result.is_error);
        let result: CallResult =
            serde_json::from_str(r#"{"content":[{"type":"text","text":"a"},{"type":"new"},5],"isError":null}"#)
                .unwrap();
        assert_eq!(result.content.len(), 3);
    }
}
