//! The tables about calls: retries, queues, arguments, and the settings of single tools.

use std::time::Duration;

use super::results::{RESULT_SIZE, result};
use crate::{
    field::{DefaultValue, Kind, Via},
    from_setting::ToolRetry,
    key::{
        LIMIT, Nested, choice, either, flag, list, nested, optional_choice, optional_count, optional_flag,
        optional_size, parsed, plain, section, small, text, texts, words,
    },
    lifecycle::{Retry, RetryClass},
    policy::{Approval, Check, Rate, Reading, Structured},
};

section! {
    retry = "retry" {
        MODE: Option<RetryClass> = optional_choice("mode", "Whether a call that may have run can be retried, for tools without a `retry` of their own: never, safe (the tool only reads), or idempotent.");
        ATTEMPTS: u32 = small("attempts", (0, 100), Retry::ATTEMPTS, "The most retries of one call.").aka(&["max_retries", "max_attempts"]);
        KEY_ARGUMENT: Option<String> = text("key_argument", "The argument that holds an idempotency key, by which the server recognises a retried call.");
        BACKOFF: Vec<Duration> = list("backoff", &LIMIT, "The waits before each retry; the last one repeats.");
        JITTER: u32 = small("jitter", (0, 99), 0, "By how many percent each wait is varied at random, in both directions.");
        UNSAFE: bool = flag("unsafe", false, "Whether calls that may have run are retried too, regardless of `mode`.");
    }
}

section! {
    tool = "tool" {
        RETRY: Option<ToolRetry> = either(
            "retry",
            &[words::<RetryClass>(), Kind::Table(&tool_retry::SECTION)],
            None,
            DefaultValue::None,
            "Whether a call that may have run can be retried: never, safe (the tool only reads), or idempotent.",
        );
        QUEUE: Option<String> = text("queue", "The queue that its calls wait in, instead of the server's queue.");
        ENABLED: Option<bool> = optional_flag("enabled", "Whether the tool may be used; `false` hides it as `deny` does.")
            .converted(&[("disabled", Via::Negated)]);
        APPROVAL: Option<Approval> = optional_choice("approval", "Whether a person must approve its calls; overrides `approval` of the server.")
            .aka(&["approval_mode"]);
        RATE: Option<Rate> = parsed("rate", "How often one agent may call the tool, such as `10/min`, in addition to `rate` of the server.")
            .aka(&["rate_limit"]);
        LOOP_LIMIT: Option<usize> = optional_count("loop_limit", (0, 1_000_000), "How often one agent may repeat a call of the tool with the same arguments and the same kind of outcome within ten minutes; overrides `loop_limit` of the server.");
        INSTRUCTIONS: Option<String> = text("instructions", "Instructions for the model about the tool.").aka(&["notes"]);
        REQUIRES: Vec<String> = texts("requires", "Capabilities that an agent's view must all be granted, in addition to the tool itself.")
            .aka(&["required_capabilities"])
            .shown(DefaultValue::None);
        MAX_RESULT: Option<usize> = optional_size("max_result", RESULT_SIZE, "The largest result that is passed on unchanged; short for `result.max_bytes`.")
            .aka(&["max_result_bytes"]);
        STRUCTURED: Option<Structured> = optional_choice("structured", "Which form of a result becomes its text; short for `result.structured`.");
        RESULT: Nested<result::In> = nested("result", Kind::Table(&result::SECTION), "How its results are limited and formatted.").aka(&["results"]);
    }
}

section! {
    tool_retry = "tool_retry"
    unkeyed {
        plain("key_argument", Kind::Text, "The argument that holds an idempotency key, by which the server recognises a retried call.");
    }
}

section! {
    queue = "queue"
    unkeyed {
        plain("concurrent", Kind::Count { min: 1, max: 65_536 }, "The most calls in flight at once.")
            .aka(&["concurrency", "max_concurrent"]);
    }
}

section! {
    call_arguments = "call_arguments" {
        READ: Reading = choice(
            "read",
            "How text is parsed into arguments: only JSON; JSON with common mistakes repaired; JSON, YAML, `key: value` pairs or plain \
             text; or the same, guided by the tool's schema.",
        )
        .aka(&["reading"]);
        CHECK: Check = choice(
            "check",
            "How arguments are validated against the tool's schema: not at all, only that required ones are present, all but unknown \
             ones, or all. `relaxed` and `coerce` convert types where that makes a value valid.",
        )
        .aka(&["validation"]);
    }
}
