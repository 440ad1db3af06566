//! What becomes of a tool's results: how much of them a model is given, and in which form.

use std::time::Duration;

use crate::secret::{SafeUrl, Secret};

/// What becomes of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Results {
    /// The largest result that is handed on as it is, in bytes of its text.
    pub max_bytes: usize,
    /// The same in lines.
    pub max_lines: Option<usize>,
    /// The same in tokens, which are counted by the view's tokenizer or estimated as a quarter of the bytes.
    pub max_tokens: Option<usize>,
    /// What happens to a larger one.
    pub too_long: TooLong,
    /// How far a server may raise `max_bytes` for one of its tools or results.
    pub ceiling: usize,
    /// What stands between blocks in the text of a result.
    pub join: Join,
    /// Which of the two forms of a result is its text.
    pub structured: Structured,
    /// Whether the text is put between marks that say that it comes from outside.
    pub fence: bool,
    /// Whether control characters, marks of direction, zero-width characters and Unicode tags are removed from results of a server without
    /// `trust = true`.
    pub clean: bool,
    /// Where pictures and sounds go.
    pub images: Images,
    /// Whether pictures that a server has hidden in text as base64 are looked for.
    pub find_images: bool,
}

impl Results {
    /// The same without a limit of any kind.
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
    /// The default, which the table of fields shows too.
    pub(in crate::config) const DEFAULT: Self = Self {
        max_bytes: 48 << 10,
        max_lines: None,
        max_tokens: None,
        too_long: TooLong::Spill,
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
    /// 48 KiB, then a handle for the rest.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens to a result that is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TooLong {
    /// Its beginning is kept.
    Head,
    /// Its beginning and its end are kept, half of each.
    HeadTail,
    /// It is put aside under a handle, and a little of it is shown.
    #[default]
    Spill,
    /// It is put aside under a handle, and summarised.
    Summarise,
    /// The call fails.
    Error,
}

/// What stands between the blocks of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Which of the two forms of a result is its text: the blocks, or the structured content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Structured {
    /// The blocks, and the structured form when there are none.
    #[default]
    ContentFirst,
    /// The structured form, and the blocks when there is none.
    StructuredFirst,
    /// Both, unless they say the same.
    BothDedup,
    /// The blocks.
    ContentOnly,
    /// The structured form. Errors are shown all the same.
    StructuredOnly,
}

/// Where pictures, sounds and other bytes of a result go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Images {
    /// They stay blocks of the result.
    #[default]
    Keep,
    /// They are put aside under handles, for models that read only text.
    Spill,
}

/// When long results are summarised, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summarise {
    /// From this size on, in tokens.
    pub threshold_tokens: usize,
    /// The size of a summary, in tokens.
    pub max_tokens: usize,
    /// How long a summary is waited for.
    pub timeout: Duration,
    /// The model that writes it, unless the view brings a summariser of its own.
    pub model: Option<SummaryModel>,
}

impl Summarise {
    /// The default of `threshold_tokens`.
    pub(in crate::config) const THRESHOLD: usize = 5000;
    /// The default of `max_tokens`.
    pub(in crate::config) const LENGTH: usize = 1000;
    /// The default of `timeout`.
    pub(in crate::config) const TIMEOUT: Duration = Duration::from_secs(60);
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

/// A model behind an HTTP API in the shape of OpenAI's chat completions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryModel {
    /// Where it answers: the base of the API, or the whole address of `chat/completions`.
    pub url: SafeUrl,
    /// Its name there.
    pub model: String,
    /// Sent as a bearer token.
    pub api_key: Option<Secret>,
}

impl SummaryModel {
    /// A model that asks for no key.
    pub fn new(url: SafeUrl, model: impl Into<String>) -> Self {
        Self {
            url,
            model: model.into(),
            api_key: None,
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }
}
