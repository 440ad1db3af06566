//! How results are limited, formatted and summarised before a model gets them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration_text;
use pegboard_base::secret::{SafeUrl, Secret};

/// How the results of a tool are limited and formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// The largest result that is passed on unchanged, in bytes of its text.
    pub max_bytes: usize,
    /// The same limit in lines.
    pub max_lines: Option<usize>,
    /// The same limit in tokens, counted by the view's tokenizer or estimated as a quarter of the bytes.
    pub max_tokens: Option<usize>,
    /// What happens to a larger result.
    pub mode: TooLong,
    /// The highest value to which a server may raise `max_bytes` for one of its tools or results.
    pub ceiling: usize,
    /// The separator between content blocks in the text of a result.
    pub join: Join,
    /// Which form of a result becomes its text.
    pub structured: Structured,
    /// Whether the text is enclosed in markers that label it as untrusted output.
    pub fence: bool,
    /// Whether control, bidirectional and zero-width characters and Unicode tags are removed from results of a server without
    /// `trust = true`.
    pub clean: bool,
    /// What happens to images and audio.
    pub images: Images,
    /// Whether text is searched for base64-encoded images.
    pub find_images: bool,
}

impl Results {
    /// Whether something is spilled to a handle.
    #[doc(hidden)]
    pub fn spills(self) -> bool {
        matches!(self.mode, TooLong::Spill | TooLong::Summarise) || self.images == Images::Spill
    }

    /// Whether the config or a preset sets `max_bytes`. A written limit also sets the ceiling.
    #[doc(hidden)]
    pub fn sets_max_bytes(self) -> bool {
        self.max_bytes != Self::DEFAULT.max_bytes || self.ceiling != Self::DEFAULT.ceiling
    }

    /// Whether a result under these settings keeps its size, its blocks and its form. What `clean` removes is not considered.
    #[doc(hidden)]
    pub fn is_plain(self) -> bool {
        let plain = Self {
            clean: self.clean,
            mode: self.mode,
            ceiling: self.ceiling,
            ..Self::DEFAULT.whole()
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

impl Results {
    /// The default, also shown by the table of fields.
    pub(crate) const DEFAULT: Self = Self {
        max_bytes: 48 << 10,
        max_lines: None,
        max_tokens: None,
        mode: TooLong::Spill,
        ceiling: 500_000,
        join: Join::Newline,
        structured: Structured::ContentFirst,
        fence: false,
        clean: false,
        images: Images::Keep,
        find_images: false,
    };
}

impl Default for Results {
    /// Limits results to 48 KiB and spills larger ones.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens to a result that exceeds the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TooLong {
    /// Its beginning is kept.
    Head,
    /// Its beginning and its end are kept, half of each.
    HeadTail,
    /// It is spilled to a handle, and an excerpt is shown.
    #[default]
    Spill,
    /// It is spilled to a handle, and a summary is shown.
    Summarise,
    /// The call fails.
    Error,
}

/// The separator between the content blocks of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Join {
    /// A newline.
    #[default]
    Newline,
    /// An empty line.
    EmptyLine,
    /// Nothing.
    Nothing,
    /// Only the first block is used.
    First,
}

/// Which form of a result becomes its text: the content blocks or the structured content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Structured {
    /// The blocks, or the structured content if there are none.
    #[default]
    ContentFirst,
    /// The structured content, or the blocks if there is none.
    StructuredFirst,
    /// Both, unless a block already is the structured content as JSON.
    BothDedup,
    /// Only the blocks.
    ContentOnly,
    /// Only the structured content, but errors are shown in any case.
    StructuredOnly,
}

/// What happens to images, audio and other binary content of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Images {
    /// They stay content blocks of the result.
    #[default]
    Keep,
    /// They are spilled to handles, for models that read only text.
    Spill,
}

/// When long results are summarised, and by which model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Summarise {
    /// The size of a result, in tokens, from which on it is summarised.
    pub threshold_tokens: usize,
    /// The most tokens of a summary.
    pub max_tokens: usize,
    /// The timeout for one summary.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// The model that summarises, unless the view has a summariser of its own.
    pub model: Option<SummaryModel>,
}

impl Summarise {
    /// The default of `threshold_tokens`.
    pub(crate) const THRESHOLD: usize = 5000;
    /// The default of `max_tokens`.
    pub(crate) const LENGTH: usize = 1000;
    /// The default of `timeout`.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
}

impl Default for Summarise {
    fn default() -> Self {
        Self {
            threshold_tokens: Self::THRESHOLD,
            max_tokens: Self::LENGTH,
            timeout: Self::TIMEOUT,
            model: None,
        }
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
