//! Errors of this gateway, and what the data of an error says.

use pegboard_protocol::{RpcError, code, meta};
use serde_json::{Value, json};

/// The error for work that panicked. The panic itself is logged by its hook.
pub(super) fn panic_error(may_have_executed: bool) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "the server failed while it answered this request")
        .data(json!({"may_have_executed": may_have_executed}))
}

/// Whether the data says that the request may have taken effect.
pub(super) fn may_have_executed(error: &RpcError) -> bool {
    let says = |data: &Value, field: &str| data.get(field) == Some(&Value::Bool(true));
    let fields = ["may_have_executed", meta::pegboard::MAY_HAVE_EXECUTED];
    error
        .data
        .as_ref()
        .is_some_and(|data| fields.into_iter().any(|field| says(data, field)))
}
