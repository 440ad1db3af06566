//! The tables about results: their size and form, masking, and summaries.

use std::time::Duration;

use crate::{
    field::{DefaultValue, Kind, Via},
    key::{
        Nested, choice, count, flag, limit, list, located, located_texts, optional_count, secret, section, size, text,
    },
    policy::{Images, Join, Results, Structured, Summarise, TooLong},
    setting::Text,
};
use pegboard_mask::MaskStyle;

/// The bounds of a result's size in bytes.
pub(super) const RESULT_SIZE: (u64, u64) = (512, 1 << 30);

section! {
    result = "result" {
        MAX_BYTES: usize = size("max_bytes", RESULT_SIZE, Results::DEFAULT.max_bytes, "The largest result that is passed on unchanged, in bytes of text; 48KiB when not set.")
            .aka(&["max", "limit", "bytes"]);
        MAX_LINES: Option<usize> = optional_count("max_lines", (4, 1 << 40), "The most lines of a result that is passed on unchanged.").aka(&["lines"]);
        MAX_TOKENS: Option<usize> = optional_count("max_tokens", (128, 1 << 40), "The most tokens of a result that is passed on unchanged.").aka(&["tokens"]);
        MODE: TooLong = choice(
            "mode",
            "What happens to a larger result: its head, or its head and tail, are kept; it is spilled to a handle; it is summarised; or the call fails.",
        )
        .aka(&["too_long"]);
        CEILING: usize = size(
            "ceiling",
            RESULT_SIZE,
            Results::DEFAULT.ceiling,
            "The highest value to which a server may raise `max_bytes`; equal to `max_bytes` when that is set, else 500000.",
        );
        JOIN: Join = choice("join", "The separator between the content blocks of a result in its text.").aka(&["separator"]);
        STRUCTURED: Structured = choice("structured", "Which form of a result becomes its text: its content blocks, its structured content, or both.");
        FENCE: bool = flag("fence", Results::DEFAULT.fence, "Whether the text is enclosed in markers that label it as untrusted output.");
        CLEAN: bool = flag(
            "clean",
            Results::DEFAULT.clean,
            "Whether invisible characters (control, bidirectional, zero-width, Unicode tags) are removed, unless the server is trusted.",
        )
        .aka(&["sanitize", "sanitise"]);
        IMAGES: Images = choice("images", "Whether images and audio stay content blocks of the result or are spilled to handles.");
        FIND_IMAGES: bool = flag("find_images", Results::DEFAULT.find_images, "Whether text is searched for base64-encoded images.")
            .aka(&["detect_images"]);
    }
}

section! {
    masking = "masking" {
        ENABLED: bool = flag("enabled", true, "Whether anything besides the secrets of the config is masked.");
        DEFAULTS: bool = flag("defaults", true, "Whether the default patterns are masked.");
        GROUPS: Vec<Text> = located_texts("groups", "Names of further pattern groups to mask.").aka(&["pattern_groups"]);
        PATTERNS: Vec<Text> = located_texts("patterns", "Names of further patterns to mask.");
        CUSTOM: Vec<Nested<pattern::In>> = list("custom", &Kind::Table(&pattern::SECTION), "Custom patterns to mask.")
            .aka(&["custom_patterns"])
            .shown(DefaultValue::EmptyList);
        EXCEPT: Vec<Text> = located_texts("except", "Regular expressions for whole values that are never masked, even if a pattern matches them.")
            .aka(&["allow_list", "allowlist"]);
        STYLE: MaskStyle = choice("style", "Whether only the secret is replaced, or its name as well.");
    }
}

section! {
    pattern = "pattern" {
        PATTERN: Option<Text> = located("pattern", "The regular expression to search for.").aka(&["regex"]);
        REPLACEMENT: Option<String> = text("replacement", "The text that replaces a match.").shown(DefaultValue::Text("[MASKED]"));
        DESCRIPTION: Option<String> = text("description", "What the pattern finds.").aka(&["name"]);
    }
}

section! {
    summarise = "summarise" {
        ENABLED: bool = flag("enabled", true, "Whether long results are summarised.");
        THRESHOLD_TOKENS: usize = count("threshold_tokens", (100, 10_000_000), Summarise::THRESHOLD, "The size of a result, in tokens, from which on it is summarised.")
            .aka(&["size_threshold_tokens", "threshold"]);
        MAX_TOKENS: usize = count("max_tokens", (50, 1_000_000), Summarise::LENGTH, "The most tokens of a summary.")
            .aka(&["summary_max_token_limit", "max_summary_tokens"]);
        TIMEOUT: Duration = limit("timeout", Summarise::TIMEOUT, "The timeout for one summary.");
        URL: Option<Text> = located(
            "url",
            "The base URL of an OpenAI-compatible API, such as `https://api.example.com/v1`.",
        )
        .aka(&["base_url", "endpoint"]);
        MODEL: Option<String> = text("model", "The name of the model.");
        API_KEY: Option<Text> = secret("api_key", "The API key, sent as a bearer token.")
            .aka(&["key"])
            .converted(&[("api_key_env_var", Via::VariableName)]);
    }
}
