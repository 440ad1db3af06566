//! How a request is passed on for a client of the program, and its params as JSON text.

use serde_json::value::RawValue;

use super::json_rpc::Params;
use pegboard_base::json_scan::Scan;

/// How a request is passed on for a client of the program. The default is a request of the program itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassOn<'a> {
    /// Further params, an object.
    pub params: Option<&'a RawValue>,
    /// The client's capabilities, an object. Without them, those of the caller's host are declared.
    pub capabilities: Option<&'a RawValue>,
    /// Whether a result that asks for input is returned.
    pub returns_input_requests: bool,
    /// Whether a task is returned.
    pub returns_tasks: bool,
    /// Whether a final result stays unparsed.
    pub keeps_raw: bool,
}

/// The fields with which a round answers the requests for input of the one before.
pub(super) const ROUND: &[&str] = &["inputResponses", "requestState"];

impl PassOn<'_> {
    /// The further params without the fields `left_out`.
    pub(super) fn params_without(&self, left_out: &[&[&str]]) -> Params {
        let mut params = Params::default();
        if let Some(more) = self.params {
            each_field(more, |key, value| {
                if !left_out.iter().any(|keys| keys.contains(&key)) {
                    params.push_raw(key, value);
                }
            });
        }
        params
    }

    /// Whether the further params have this field.
    pub(super) fn has_param(&self, name: &str) -> bool {
        let mut is_found = false;
        if let Some(more) = self.params {
            each_field(more, |key, _| is_found |= key == name);
        }
        is_found
    }
}

/// Calls `field` with the key and the JSON text of each field of an object. Does nothing for other values.
pub(super) fn each_field(object: &RawValue, mut field: impl FnMut(&str, &str)) {
    let text = object.get();
    let mut scan = Scan::new(text.as_bytes());
    scan.fields(|scan, key| {
        scan.peek();
        let start = scan.at();
        scan.skip_checked(1)?;
        field(key, &text[start..scan.at()]);
        Some(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_an_object_are_passed_on_as_text() {
        let text = "{ \"task\" : { \"ttl\" :\n 5 } , \"request\\u0053tate\":\"s\\n\", \"name\":\"x\" }";
        let params = RawValue::from_string(text.to_owned()).unwrap();
        let pass_on = PassOn {
            params: Some(&params),
            ..PassOn::default()
        };
        assert!(pass_on.has_param("task") && !pass_on.has_param("ttl"));
        assert_eq!(
            pass_on.params_without(&[&["name"]]).into_text(),
            r#""task":{ "ttl" :  5 },"requestState":"s\n""#
        );
        assert_eq!(pass_on.params_without(&[ROUND, &["name", "task"]]).into_text(), "");
    }
}
