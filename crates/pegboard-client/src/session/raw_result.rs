//! Finds the few fields of a result that matter to us, and leaves the rest unparsed.

use super::{fault::Fault, response::Response};
use pegboard_base::json_scan::Scan;
use pegboard_tools::outcome::{ForwardedResult, ResultKind};

/// Returns the result of a response unparsed. Checks that it is one JSON object. `as_task` says whether the request asked for a task by itself,
/// which the older era answers without a `resultType`.
pub(super) fn parse(response: &Response, as_task: bool) -> Result<ForwardedResult, Fault> {
    let guess = response.unverified_part();
    if let Some(fields) = ResultFields::read(&guess) {
        return Ok(fields.into_result(guess, as_task));
    }
    // The message was recognised by its ends only, so the guess may have been wrong.
    let verified = response.result()?;
    match ResultFields::read(&verified) {
        Some(fields) => Ok(fields.into_result(verified, as_task)),
        None => Err(Fault::unreadable("the result is no proper object")),
    }
}

#[derive(Debug, Default)]
struct ResultFields {
    kind: ResultKind,
    has_result_type: bool,
    is_error: bool,
    has_task: bool,
    payload: Payload,
}

/// The sizes from which the size of the payload follows.
#[derive(Debug, Default)]
struct Payload {
    content: usize,
    has_content: bool,
    structured: usize,
}

impl ResultFields {
    /// Reads an object in one pass that checks its syntax. Returns `None` if it is malformed, or has one of the fields twice.
    fn read(result: &[u8]) -> Option<Self> {
        str::from_utf8(result).ok()?;
        let (mut fields, mut seen) = (Self::default(), 0_u8);
        let mut scan = Scan::new(result);
        scan.fields(|scan, key| {
            let field = match key {
                "resultType" => {
                    fields.set_type(scan)?;
                    1
                }
                "isError" => {
                    fields.is_error = scan.peek() == Some(b't');
                    scan.skip_checked(1)?;
                    2
                }
                "content" => {
                    fields.payload.read_content(scan)?;
                    8
                }
                "structuredContent" => {
                    let is_null = scan.peek() == Some(b'n');
                    let start = scan.at();
                    scan.skip_checked(1)?;
                    fields.payload.structured = if is_null { 0 } else { scan.at() - start };
                    16
                }
                "task" => {
                    fields.has_task = scan.peek() == Some(b'{');
                    scan.skip_checked(1)?;
                    4
                }
                _ => return scan.skip_checked(1),
            };
            let is_first = seen & field == 0;
            seen |= field;
            is_first.then_some(())
        })?;
        scan.is_at_end().then_some(fields)
    }

    fn set_type(&mut self, scan: &mut Scan<'_>) -> Option<()> {
        // Null counts as absent.
        if scan.peek() == Some(b'n') {
            return scan.skip_checked(1);
        }
        self.has_result_type = true;
        self.kind = match &*scan.text()? {
            "complete" => ResultKind::Complete,
            "input_required" => ResultKind::InputRequired,
            "task" => ResultKind::Task,
            _ => ResultKind::Other,
        };
        Some(())
    }

    fn into_result(self, json: bytes::Bytes, as_task: bool) -> ForwardedResult {
        ForwardedResult {
            json,
            kind: if as_task && self.has_task {
                ResultKind::Task
            } else {
                self.kind
            },
            has_result_type: self.has_result_type,
            is_error: self.is_error,
            payload: if self.payload.has_content {
                self.payload.content
            } else {
                self.payload.structured
            },
        }
    }
}

impl Payload {
    /// Reads the content blocks. What is no block is skipped.
    fn read_content(&mut self, scan: &mut Scan<'_>) -> Option<()> {
        if scan.peek() != Some(b'[') {
            return scan.skip_checked(1);
        }
        scan.items(|scan| {
            self.has_content = true;
            if scan.peek() != Some(b'{') {
                return scan.skip_checked(2);
            }
            let (mut data, mut uri) = (None, 0);
            scan.fields(|scan, key| {
                match key {
                    "text" | "data" => *data.get_or_insert(0) += scan.skip_text(3)?,
                    "uri" => uri = scan.skip_text(3)?,
                    "resource" if scan.peek() == Some(b'{') => {
                        let data = data.get_or_insert(0);
                        scan.fields(|scan, key| {
                            let len = scan.skip_text(4)?;
                            *data += if matches!(key, "text" | "blob") { len } else { 0 };
                            Some(())
                        })?;
                    }
                    _ => scan.skip_checked(3)?,
                }
                Some(())
            })?;
            self.content += data.unwrap_or(uri);
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::session::call_result::CallResult;

    fn parsed(result: &str) -> Result<ForwardedResult, Fault> {
        let message = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        let (_, response) = Response::recognize(&message).expect("a response");
        parse(&response, false)
    }

    #[test]
    fn the_kind_and_the_error_flag_are_found_and_the_bytes_stay() {
        for (text, kind, has_type, is_error) in [
            ("{}", ResultKind::Complete, false, false),
            (
                r#"{"content":[{"type":"text","text":"resultType \" isError"}],"isError":false}"#,
                ResultKind::Complete,
                false,
                false,
            ),
            (
                r#"{"content":[{"type":"text","text":"a\n\u00e9 é"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a:b","text":"four"}},{"type":"resource_link","uri":"a:b","name":"n"}]}"#,
                ResultKind::Complete,
                false,
                false,
            ),
            (
                r#"{ "isError" : true , "resultType":"complete"}"#,
                ResultKind::Complete,
                true,
                true,
            ),
            (
                r#"{"result\u0054ype":"input_required"}"#,
                ResultKind::InputRequired,
                true,
                false,
            ),
            (r#"{"resultType":"task","taskId":"1"}"#, ResultKind::Task, true, false),
            (r#"{"resultType":"stream"}"#, ResultKind::Other, true, false),
            (
                r#"{"resultType":null,"isError":null}"#,
                ResultKind::Complete,
                false,
                false,
            ),
            (
                r#"{"structuredContent":{"resultType":"task","isError":true}}"#,
                ResultKind::Complete,
                false,
                false,
            ),
        ] {
            let result = parsed(text).unwrap();
            assert_eq!(result.json, text, "{text}");
            let typed = serde_json::from_str::<CallResult>(text).unwrap();
            let payload: usize = typed
                .content
                .iter()
                .map(pegboard_tools::outcome::Content::payload_bytes)
                .sum();
            assert!(typed.content.is_empty() || result.payload == payload, "{text}");
            let facts = (result.kind, result.has_result_type, result.is_error);
            assert_eq!(facts, (kind, has_type, is_error), "{text}");
        }
    }

    #[test]
    fn malformed_results_are_rejected() {
        for text in [
            r#"{"a":01}"#,
            r#"{"a":"\x"}"#,
            "{\"a\":\"\n\"}",
            r#"{"resultType":5}"#,
            r#"{"resultType":"task","resultType":"complete"}"#,
            r#"{"isError":true,"isError":false}"#,
            r#"{"a":{}},"b":{"c":1}"#,
        ] {
            let parsed = parsed(text);
            assert!(
                parsed.is_err() || parsed.is_ok_and(|result| result.json == r#"{"a":{}}"#),
                "{text}"
            );
        }
    }
}
