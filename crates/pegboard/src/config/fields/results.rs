//! The tables about results: their size and form, masking, and summaries.

use std::time::Duration;

use crate::{
    config::{
        field::{DefaultValue, Kind, Via},
        key::{
            Nested, choice, count, flag, limit, list, located, located_texts, optional_count, secret, section, size,
            text,
        },
        policy::{Images, Join, Results, Structured, Summarise, TooLong},
        setting::Text,
    },
    mask::MaskStyle,
};

/// The bounds of a result's size in bytes.
pub(super) const RESULT_SIZE: (u64, u64) = (512, 1 << 30);

section! {
    result = "result" {
        MAX_BYTES: usize = size("max_bytes", RESULT_SIZE, Results::DEFAULT.max_bytes, "The largest result that is handed on as it is; 48KiB when not set.")
            .aka(&["max", "limit", "bytes"]);
        MAX_LINES: Option<usize> = optional_count("max_lines", (4, 1 << 40), "The same in lines.").aka(&["lines"]);
        MAX_TOKENS: Option<usize> = optional_count("max_tokens", (128, 1 << 40), "The same in tokens.").aka(&["tokens"]);
        MODE: TooLong = choice(
            "mode",
            "What happens to a longer one: its head or head and tail are kept, it is put aside under a handle, summarised, or an error.",
        )
        .aka(&["too_long"]);
        CEILING: usize = size(
            "ceiling",
            RESULT_SIZE,
            Results::DEFAULT.ceiling,
            "How far a server may raise `max_bytes` itself; `max_bytes` when that is set, else 500000.",
        );
        JOIN: Join = choice("join", "What stands between the blocks of a result in its text.").aka(&["separator"]);
        STRUCTURED: Structured = choice("structured", "Which form of a result is its text.");
        FENCE: bool = flag("fence", Results::DEFAULT.fence, "Whether its text is put between marks that say that it comes from outside.");
        CLEAN: bool = flag(
            "clean",
            Results::DEFAULT.clean,
            "Whether characters that no person sees (control characters, marks of direction, zero width, Unicode tags) are removed, unless the server is trusted.",
        )
        .aka(&["sanitize", "sanitise"]);
        IMAGES: Images = choice("images", "Whether pictures and sounds stay blocks of the result or are put aside under handles.");
        FIND_IMAGES: bool = flag("find_images", Results::DEFAULT.find_images, "Whether pictures that are hidden in text as base64 are looked for.")
            .aka(&["detect_images"]);
    }
}

section! {
    masking = "masking" {
        ENABLED: bool = flag("enabled", true, "Whether anything besides the config's own secrets is hidden.");
        DEFAULTS: bool = flag("defaults", true, "Whether the patterns are looked for that are on by default.");
        GROUPS: Vec<Text> = located_texts("groups", "Names of pattern groups to look for as well.").aka(&["pattern_groups"]);
        PATTERNS: Vec<Text> = located_texts("patterns", "Names of patterns to look for as well.");
        CUSTOM: Vec<Nested<pattern::In>> = list("custom", &Kind::Table(&pattern::SECTION), "Patterns of your own.")
            .aka(&["custom_patterns"])
            .shown(DefaultValue::EmptyList);
        EXCEPT: Vec<Text> = located_texts("except", "Regular expressions of whole values that are no secrets, whatever pattern they fit.")
            .aka(&["allow_list", "allowlist"]);
        STYLE: MaskStyle = choice("style", "Whether the secret alone is replaced, or its name as well.");
    }
}

section! {
    pattern = "pattern" {
        PATTERN: Option<Text> = located("pattern", "A regular expression.").aka(&["regex"]);
        REPLACEMENT: Option<String> = text("replacement", "What stands in for a match.").shown(DefaultValue::Text("[MASKED]"));
        DESCRIPTION: Option<String> = text("description", "What it finds.").aka(&["name"]);
    }
}

section! {
    summarise = "summarise" {
        ENABLED: bool = flag("enabled", true, "Whether long results are summarised.");
        THRESHOLD_TOKENS: usize = count("threshold_tokens", (100, 10_000_000), Summarise::THRESHOLD, "From this size on.")
            .aka(&["size_threshold_tokens", "threshold"]);
        MAX_TOKENS: usize = count("max_tokens", (50, 1_000_000), Summarise::LENGTH, "The size of a summary.")
            .aka(&["summary_max_token_limit", "max_summary_tokens"]);
        TIMEOUT: Duration = limit("timeout", Summarise::TIMEOUT, "How long a summary is waited for.");
        URL: Option<Text> = located(
            "url",
            "Where the model answers: the base of an API in the shape of OpenAI's, such as `https://api.example.com/v1`.",
        )
        .aka(&["base_url", "endpoint"]);
        MODEL: Option<String> = text("model", "The model's name there.");
        API_KEY: Option<Text> = secret("api_key", "Sent to it as a bearer token.")
            .aka(&["key"])
            .converted(&[("api_key_env_var", Via::VariableName)]);
    }
}
