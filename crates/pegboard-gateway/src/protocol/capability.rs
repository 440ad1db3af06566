//! Which capability of a client a question needs.

use bytes::Bytes;
use pegboard_protocol::{RpcError, capability, code, method};
use serde_json::{Value, json};

use super::json_fields::fields;

/// Returns an error unless the client declares what a question needs.
pub(crate) fn check(capabilities: &Bytes, method: &str, params: &Value) -> Result<(), RpcError> {
    let path: &[&str] = match method {
        method::ELICITATION_CREATE if params["mode"] == "url" => &[capability::ELICITATION, capability::URL],
        method::ELICITATION_CREATE => &[capability::ELICITATION],
        method::SAMPLING_CREATE_MESSAGE if params.get("tools").is_some() => &[capability::SAMPLING, capability::TOOLS],
        method::SAMPLING_CREATE_MESSAGE => &[capability::SAMPLING],
        method::ROOTS_LIST => &[capability::ROOTS],
        _ => return Err(RpcError::method_not_found(method)),
    };
    if has(capabilities, path) && !lacks_forms(capabilities, path) {
        return Ok(());
    }
    let required = path.iter().rev().fold(json!({}), |inner, key| json!({ *key: inner }));
    let message = format!("the client does not declare the capability `{}`", path.join("."));
    Err(RpcError::new(code::MISSING_CAPABILITY, message).data(json!({"requiredCapabilities": required})))
}

/// A client with `elicitation: {}` shows forms; one that names only `url` does not.
fn lacks_forms(capabilities: &Bytes, path: &[&str]) -> bool {
    path == [capability::ELICITATION]
        && has(capabilities, &[capability::ELICITATION, capability::URL])
        && !has(capabilities, &[capability::ELICITATION, capability::FORM])
}

fn has(capabilities: &Bytes, path: &[&str]) -> bool {
    let mut object = capabilities.clone();
    for key in path {
        let Some(value) = fields(&object).find(|field| field.is(key)).map(|field| field.value) else {
            return false;
        };
        object = object.slice(value);
    }
    object.starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_needs_its_capability() {
        let form = json!({"message": "?"});
        let url = json!({"mode": "url"});
        let tools = json!({"tools": []});
        for (capabilities, method, params, allowed) in [
            (r#"{"elicitation":{}}"#, "elicitation/create", &form, true),
            (r#"{"elicitation":{"form":{}}}"#, "elicitation/create", &form, true),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", &form, false),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", &url, true),
            (r#"{"elicitation":{}}"#, "elicitation/create", &url, false),
            (r#"{"elicitation":null}"#, "elicitation/create", &form, false),
            (r#"{"sampling":{}}"#, "sampling/createMessage", &form, true),
            (r#"{"sampling":{}}"#, "sampling/createMessage", &tools, false),
            (r#"{"sampling":{"tools":{}}}"#, "sampling/createMessage", &tools, true),
            (r#"{"roots":{"listChanged":true}}"#, "roots/list", &form, true),
            ("{}", "roots/list", &form, false),
        ] {
            let outcome = check(&Bytes::from_static(capabilities.as_bytes()), method, params);
            assert_eq!(outcome.is_ok(), allowed, "{capabilities} {method} {params}");
        }
        let missing = check(&Bytes::from_static(b"{}"), "sampling/createMessage", &tools).unwrap_err();
        assert_eq!(missing.code, code::MISSING_CAPABILITY);
        assert_eq!(
            missing.data,
            Some(json!({"requiredCapabilities": {"sampling": {"tools": {}}}}))
        );
        let unknown = check(&Bytes::from_static(b"{}"), "tools/call", &form).unwrap_err();
        assert_eq!(unknown.code, code::METHOD_NOT_FOUND);
    }
}
