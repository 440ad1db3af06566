//! The tables about calls: retries, queues, arguments, and the settings of single tools.

use std::time::Duration;

use super::results::{RESULT_SIZE, result};
use crate::config::{
    field::{DefaultValue, Kind, Via},
    from_setting::ToolRetry,
    key::{
        LIMIT, Nested, choice, either, flag, list, nested, optional_choice, optional_flag, optional_size, plain,
        section, small, text, texts, words,
    },
    life::{Retry, RetryClass},
    policy::{Approval, Check, Reading, Structured},
};

section! {
    retry = "retry" {
        MODE: Option<RetryClass> = optional_choice("mode", "Which calls may be made again.");
        ATTEMPTS: u32 = small("attempts", (0, 100), Retry::ATTEMPTS, "How often.").aka(&["max_retries", "max_attempts"]);
        KEY_ARGUMENT: Option<String> = text("key_argument", "The argument that makes a repeated call harmless.");
        BACKOFF: Vec<Duration> = list("backoff", &LIMIT, "The waits before each attempt; the last one repeats.");
        JITTER: u32 = small("jitter", (0, 99), 0, "By how many percent these waits are varied, both ways.");
        UNSAFE: bool = flag("unsafe", false, "Also repeat calls that may have run.");
    }
}

section! {
    tool = "tool" {
        RETRY: Option<ToolRetry> = either(
            "retry",
            &[words::<RetryClass>(), Kind::Table(&tool_retry::SECTION)],
            None,
            DefaultValue::None,
            "Whether a call that may have run can be made again: never, safe (it only reads), or idempotent.",
        );
        QUEUE: Option<String> = text("queue", "The queue its calls wait in, instead of the server's.");
        ENABLED: Option<bool> = optional_flag("enabled", "Whether it may be used; false hides it as `deny` does.")
            .converted(&[("disabled", Via::Negated)]);
        APPROVAL: Option<Approval> = optional_choice("approval", "Whether a person must agree to its calls, in place of what is said for the server.")
            .aka(&["approval_mode"]);
        INSTRUCTIONS: Option<String> = text("instructions", "Words for the model about it.").aka(&["notes"]);
        REQUIRES: Vec<String> = texts("requires", "Capabilities that an agent's view must be granted, all of them, besides the grant of the tool itself.")
            .aka(&["required_capabilities"])
            .shown(DefaultValue::None);
        MAX_RESULT: Option<usize> = optional_size("max_result", RESULT_SIZE, "The largest result that is handed on as it is; short for `result.max_bytes`.")
            .aka(&["max_result_bytes"]);
        STRUCTURED: Option<Structured> = optional_choice("structured", "Which form of a result is its text; short for `result.structured`.");
        RESULT: Nested<result::In> = nested("result", Kind::Table(&result::SECTION), "What becomes of its results.").aka(&["results"]);
    }
}

section! {
    tool_retry = "tool_retry"
    unkeyed {
        plain("key_argument", Kind::Text, "The argument by which the server knows a repeated call.");
    }
}

section! {
    queue = "queue"
    unkeyed {
        plain("concurrent", Kind::Count { min: 1, max: 65_536 }, "The most calls under way at once.")
            .aka(&["concurrency", "max_concurrent"]);
    }
}

section! {
    call_arguments = "call_arguments" {
        READ: Reading = choice(
            "read",
            "How a text becomes arguments: only JSON, JSON with slips mended, JSON or YAML or `key: value` pairs or plain text, or the \
             same with a look at the tool's schema.",
        )
        .aka(&["reading"]);
        CHECK: Check = choice(
            "check",
            "How they are compared with the tool's schema: not at all, only what must be given, all but unknown arguments, or all. \
             `relaxed` and `coerce` change types where that makes a value fit.",
        )
        .aka(&["validation"]);
    }
}
