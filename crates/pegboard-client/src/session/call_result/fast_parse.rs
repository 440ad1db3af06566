//! Parses common call results in one pass, and leaves unusual ones to serde.

use serde_json::Value;

use super::{CallResult, content_blocks::ContentBlocks};
use pegboard_base::json_scan::Scan;
use pegboard_tools::outcome::Content;

impl CallResult {
    /// Parses the result and its `resultType`. Returns `None` if anything is unusual; serde then parses it, or says what is wrong.
    pub(in crate::session) fn fast_parse(text: &[u8]) -> Option<(Self, Option<String>)> {
        let mut scan = Scan::new(text);
        let (mut result, mut result_type) = (Self::default(), None);
        let mut seen = 0_u8;
        scan.fields(|scan, key| {
            let field = match key {
                "content" => {
                    result.content = blocks(scan)?;
                    1
                }
                "isError" => {
                    result.is_error = scan.boolean()?;
                    2
                }
                "structuredContent" => {
                    result.structured = Some(scan.value(1)?).filter(|value| !value.is_null());
                    4
                }
                "resultType" => {
                    result_type = Some(scan.text()?.into_owned());
                    8
                }
                "_meta" => {
                    let Value::Object(meta) = scan.value(1)? else {
                        return None;
                    };
                    result.meta = Some(meta);
                    16
                }
                // Calls with another round are rare.
                "inputRequests" | "requestState" => return None,
                _ => return scan.skip(),
            };
            let is_first = seen & field == 0;
            seen |= field;
            is_first.then_some(())
        })?;
        scan.is_at_end().then_some((result, result_type))
    }
}

fn blocks(scan: &mut Scan<'_>) -> Option<Vec<Content>> {
    let mut blocks = ContentBlocks::new();
    scan.items(|scan| {
        if blocks.has_room() {
            blocks.push(Content::read_plain(scan, 2)?);
            return Some(());
        }
        blocks.leave_out();
        scan.skip()
    })?;
    Some(blocks.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the fast path parses the text as serde does. Returns `false` if it leaves the text to serde.
    fn agrees(text: &str) -> bool {
        let Some((result, result_type)) = CallResult::fast_parse(text.as_bytes()) else {
            return false;
        };
        let expected: CallResult = serde_json::from_str(text).expect(text);
        assert_eq!(format!("{result:?}"), format!("{expected:?}"), "{text}");
        let fields: Value = serde_json::from_str(text).expect(text);
        let expected = fields.get("resultType").and_then(Value::as_str);
        assert_eq!(result_type.as_deref(), expected, "{text}");
        true
    }

    #[test]
    fn common_results_are_parsed_as_serde_json_parses_them() {
        for text in [
            "{}",
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a \"b\"\n"}],"isError":false}"#,
            r#"{"isError":true,"content":[{"text":"a","type":"text"},{"type":"text","text":"b","annotations":{"priority":1}}]}"#,
            r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":7},{"type":"new","text":"x"}]}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}},{"type":"resource_link","uri":"a:b","name":"n"}]}"#,
            r#"{"content":[{}],"structuredContent":{"a":[1,2.5,-3,null]},"_meta":{"b":"c"},"resultType":"complete","other":[{}]}"#,
            r#"{"structuredContent":null}"#,
        ] {
            assert!(agrees(text), "{text}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_serde_json() {
        let deep = |depth: usize| format!(r#"{{"structuredContent":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(agrees(&deep(126)));
        for text in [
            "[]",
            "{} x",
            r#"{"content":null}"#,
            r#"{"content":[5]}"#,
            r#"{"content":[],"content":[]}"#,
            r#"{"isError":null}"#,
            r#"{"isError":truey}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[{"type":7,"type":"text","text":"a"}]}"#,
            r#"{"content":[{"type":"text","text":"a"}],"_meta":7}"#,
            r#"{"resultType":"input_required","requestState":"s"}"#,
            &deep(127),
            &deep(100_000),
        ] {
            assert!(!agrees(text), "{text}");
        }
        assert!(CallResult::fast_parse(b"{\"other\":\"\xff\"}").is_none());
        assert!(CallResult::fast_parse(b"{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}").is_none());
    }
}
