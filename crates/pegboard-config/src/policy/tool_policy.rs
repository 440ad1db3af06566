//! Settings of individual tools.

use serde::{Deserialize, Serialize};

use super::{
    call_limits::Rate,
    modes::Approval,
    results::{RESULT_SIZE, Structured, result},
};
use crate::{
    field::{DefaultValue, ValueKind, Via},
    from_setting::{FromSetting as _, only_field},
    key::{
        Nested, either, optional_choice, optional_count, optional_flag, optional_size, table, text, texts, word_kind,
    },
    lifecycle::RetryClass,
    setting::Setting,
    settings::settings,
};

settings! {
    /// Settings of one tool, or of the tools that a glob matches.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ToolPolicy in tool = "tool" {
        /// Whether the tool may be used; `false` hides it as `deny` does.
        enabled: Option<bool> = optional_flag().converted(&[("disabled", Via::Negated)]);
        /// Whether a person must approve its calls; overrides `approval` of the server.
        approval: Option<Approval> = optional_choice().aka(&["approval_mode"]);
        /// Instructions for the model about the tool.
        instructions: Option<String> = text().aka(&["notes"]);
        /// Capabilities that an agent's view must all be granted, in addition to the tool itself.
        requires: Vec<String> = texts().aka(&["required_capabilities"]).shown(DefaultValue::None);
        /// How often one agent may call the tool, such as `10/min`, in addition to `rate` of the server.
        rate: Option<Rate> = text().syntax(Rate::problem, "").aka(&["rate_limit"]);
        /// How often one agent may repeat a call of the tool with the same arguments and the same kind of outcome within ten minutes; overrides
        /// `loop_limit` of the server.
        loop_limit: Option<usize> = optional_count((0, 1_000_000));
    }
    keys {
        /// Whether a call that may have run can be retried: never, safe (the tool only reads), or idempotent.
        retry: Option<RetryClass> = either(&[word_kind::<RetryClass>(), ValueKind::Table(&tool_retry::SECTION)], None, DefaultValue::None)
            .via(read_retry);
        /// The queue that its calls wait in, instead of the server's queue.
        queue: Option<String> = text();
        /// The largest result that is passed on unchanged; short for `result.max_bytes`.
        max_result: Option<usize> = optional_size(RESULT_SIZE).aka(&["max_result_bytes"]);
        /// Which form of a result becomes its text; short for `result.structured`.
        structured: Option<Structured> = optional_choice();
        /// How its results are limited and formatted.
        result: Nested<result::In> = table(ValueKind::Table(&result::SECTION)).aka(&["results"]);
    }
}

settings! {
    tool_retry = "tool_retry" {
        /// The argument that holds an idempotency key, by which the server recognises a retried call.
        key_argument: Option<String> = text();
    }
}

impl ToolPolicy {
    /// Fills the fields that are not set from `other`.
    #[doc(hidden)]
    pub fn or(&mut self, other: &Self) {
        self.enabled = self.enabled.or(other.enabled);
        self.approval = self.approval.or(other.approval);
        self.rate = self.rate.or(other.rate);
        self.loop_limit = self.loop_limit.or(other.loop_limit);
        if self.instructions.is_none() {
            self.instructions.clone_from(&other.instructions);
        }
        // Requirements of all matching rules add up.
        let more = other.requires.iter().filter(|word| !self.requires.contains(word));
        let more: Vec<String> = more.cloned().collect();
        self.requires.extend(more);
    }
}

/// Whether calls of one tool may be retried: a word, or a table with the argument that carries an idempotency key.
fn read_retry<T: From<RetryClass>>(setting: &Setting) -> Option<T> {
    let class = match setting {
        Setting::Table(values) => only_field(values).map(RetryClass::Key),
        _ => RetryClass::from_setting(setting),
    };
    class.map(T::from)
}
