//! How results are limited, formatted and summarised before a model gets them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    choice::words,
    duration_text,
    field::Via,
    key::{choice, count, flag, limit, optional_count, secret, size, text, unless},
    setting::Text,
    settings::settings,
};
use pegboard_base::secret::{SafeUrl, Secret};

settings! {
    /// How the results of a tool are limited and formatted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Results in result = "result" {
        /// The largest result that is passed on unchanged, in bytes of text; 48KiB when not set.
        max_bytes: usize = size(RESULT_SIZE, 48 << 10).aka(&["max", "limit", "bytes"]);
        /// The most lines of a result that is passed on unchanged.
        max_lines: Option<usize> = optional_count((4, 1 << 40)).aka(&["lines"]);
        /// The most tokens of a result that is passed on unchanged.
        max_tokens: Option<usize> = optional_count((128, 1 << 40)).aka(&["tokens"]);
        /// What happens to a larger result: its head, or its head and tail, are kept; it is spilled to a handle; it is summarised; or the call fails.
        mode: TooLong = choice().aka(&["too_long"]);
        /// The highest value to which a server may raise `max_bytes`; equal to `max_bytes` when that is set, else 500000.
        ceiling: usize = size(RESULT_SIZE, 500_000).void_if(&["max_bytes"]);
        /// The separator between the content blocks of a result in its text.
        join: Join = choice().aka(&["separator"]).preset_only();
        /// Which form of a result becomes its text: its content blocks, its structured content, or both.
        structured: Structured = choice();
        /// Whether the text is enclosed in markers that label it as untrusted output.
        fence: bool = flag(false);
        /// Whether invisible characters (control, bidirectional, zero-width, Unicode tags) are removed, unless the server is trusted.
        clean: bool = flag(false).aka(&["sanitize", "sanitise"]);
        /// Whether images and audio stay content blocks of the result or are spilled to handles.
        images: Images = choice();
        /// Whether text is searched for base64-encoded images.
        find_images: bool = flag(false).aka(&["detect_images"]);
    }
}

/// The bounds of a result's size in bytes.
pub(crate) const RESULT_SIZE: (u64, u64) = (512, 1 << 30);

impl Results {
    /// Whether something is spilled to a handle.
    #[doc(hidden)]
    pub fn spills(self) -> bool {
        matches!(self.mode, TooLong::Spill | TooLong::Summarise) || self.images == Images::Spill
    }

    /// Whether the config or a preset sets `max_bytes`. A written limit also sets the ceiling.
    #[doc(hidden)]
    pub fn sets_max_bytes(self) -> bool {
        let default = Self::default();
        (self.max_bytes, self.ceiling) != (default.max_bytes, default.ceiling)
    }

    /// Whether a result under these settings keeps its size, its blocks and its form. What `clean` removes is not considered.
    #[doc(hidden)]
    pub fn is_plain(self) -> bool {
        let plain = Self {
            clean: self.clean,
            mode: self.mode,
            ceiling: self.ceiling,
            ..Self::default().whole()
        };
        self == plain
    }

    /// Returns these settings without any limit.
    #[must_use]
    pub fn whole(self) -> Self {
        Self {
            max_bytes: usize::MAX,
            max_lines: None,
            max_tokens: None,
            ..self
        }
    }
}

words! {
    /// What happens to a result that exceeds the limits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TooLong as "mode for long results" default Spill {
        /// Its beginning is kept.
        Head = "head" | "cut" | "truncate",
        /// Its beginning and its end are kept, half of each.
        HeadTail = "head_tail",
        /// It is spilled to a handle, and an excerpt is shown.
        Spill = "spill" | "handle",
        /// It is spilled to a handle, and a summary is shown.
        Summarise = "summarise" | "summarize",
        /// The call fails.
        Error = "error",
    }
}

words! {
    /// The separator between the content blocks of a result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Join as "separator of blocks" default Newline {
        /// A newline.
        Newline = "newline" | "lines",
        /// An empty line.
        EmptyLine = "empty_line",
        /// Nothing.
        Nothing = "nothing" | "none",
        /// Only the first block is used.
        First = "first" | "first_block",
    }
}

words! {
    /// Which form of a result becomes its text: the content blocks or the structured content.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Structured as "preference for structured content" default ContentFirst {
        /// The blocks, or the structured content if there are none.
        ContentFirst = "content_first",
        /// The structured content, or the blocks if there is none.
        StructuredFirst = "structured_first",
        /// Both, unless a block already is the structured content as JSON.
        BothDedup = "both_dedup",
        /// Only the blocks.
        ContentOnly = "content_only",
        /// Only the structured content, but errors are shown in any case.
        StructuredOnly = "structured_only",
    }
}

words! {
    /// What happens to images, audio and other binary content of a result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Images as "mode for images" default Keep {
        /// They stay content blocks of the result.
        Keep = "keep",
        /// They are spilled to handles, for models that read only text.
        Spill = "spill",
    }
}

settings! {
    /// When long results are summarised, and by which model.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct Summarise in summarise = "summarise" {
        /// The size of a result, in tokens, from which on it is summarised.
        threshold_tokens: usize = count((100, 10_000_000), 5000).aka(&["size_threshold_tokens", "threshold"]);
        /// The most tokens of a summary.
        max_tokens: usize = count((50, 1_000_000), 1000).aka(&["summary_max_token_limit", "max_summary_tokens"]);
        /// The timeout for one summary.
        timeout: Duration as "duration_text" = limit(60);
    }
    keys {
        /// Whether long results are summarised.
        enabled: bool = flag(true).void_if_table();
        /// The base URL of an OpenAI-compatible API, such as `https://api.example.com/v1`.
        url: Option<Text> = text().syntax(url_problem, "").aka(&["base_url", "endpoint"]);
        /// The name of the model.
        model: Option<String> = text().void_if(&["url"]);
        /// The API key, sent as a bearer token.
        // It is sent only to the URL of the same layer.
        api_key: Option<Text> = secret().aka(&["key"]).converted(&[("api_key_env_var", Via::VariableName)]).void_if(&["url"]);
    }
    fields {
        /// The model that summarises, unless the view has a summariser of its own.
        model: Option<SummaryModel> = None;
    }
}

fn url_problem(text: &str) -> Option<String> {
    match SafeUrl::parse(text) {
        Ok(url) => unless(
            matches!(url.expose().scheme(), "http" | "https"),
            "must start with https://",
        ),
        Err(_) => Some("is not a URL with a host".to_owned()),
    }
}

/// A model behind an OpenAI-compatible chat completions API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SummaryModel {
    /// The base URL of the API, or the full URL of `chat/completions`.
    pub url: SafeUrl,
    /// The name of the model.
    pub model: String,
    /// The API key, sent as a bearer token.
    #[serde(default)]
    pub api_key: Option<Secret>,
}

impl SummaryModel {
    /// Creates a model without an API key.
    pub fn new(url: SafeUrl, model: impl Into<String>) -> Self {
        Self {
            url,
            model: model.into(),
            api_key: None,
        }
    }

    /// Sets the API key.
    #[must_use]
    pub fn api_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }
}
