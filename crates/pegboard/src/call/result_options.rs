//! How a view processes results, besides the config: their size, the tokenizer, the summariser, the spill.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    View,
    summarise::{self, Summariser},
};
use crate::{
    config::{Images, Results, Summarise, SummaryModel, TooLong},
    outcome::truncate::Count,
    spill::{Spill, SpillLimits},
};

/// The most cached clients for summary models. A config names one model, or one for each server.
const MAX_MODELS: usize = 64;

/// How a view processes results.
#[derive(Clone, Default)]
pub(crate) struct ResultOptions {
    size: Size,
    tokenizer: Option<Tokenizer>,
    summariser: Option<Arc<dyn Summariser>>,
    limits: SpillLimits,
    /// Whether `read_output` is listed before there is an output to read.
    pub(crate) always_readable: bool,
    /// Created when the view is opened: toolsets do not share spilled outputs.
    pub(crate) spill: Spill,
    /// The name of `read_output` as models see it. Set by the toolset.
    reader: Arc<Mutex<Arc<str>>>,
    /// Clients for the models that the config names, created on first use.
    models: Arc<Mutex<Vec<Ready>>>,
}

type Tokenizer = Arc<dyn Fn(&str) -> usize + Send + Sync>;
/// A model and the client for it.
type Ready = (SummaryModel, Arc<dyn Summariser>);

/// How much of a result is returned.
#[derive(Debug, Clone, Copy, Default)]
enum Size {
    #[default]
    Configured,
    Whole,
    AtMost(usize),
}

impl View {
    /// Returns results whole, whatever their size: for programs and people. Limits, fences and summaries are for models.
    pub fn whole_results(mut self) -> Self {
        self.outputs.size = Size::Whole;
        self
    }

    /// Truncates results to this many bytes, head and tail, and spills nothing.
    pub fn cut_results(mut self, bytes: usize) -> Self {
        self.outputs.size = Size::AtMost(bytes);
        self
    }

    /// Sets the tokenizer. The default estimates a quarter of the bytes. It must not count more tokens than there are bytes.
    pub fn tokenizer(mut self, count: impl Fn(&str) -> usize + Send + Sync + 'static) -> Self {
        self.outputs.tokenizer = Some(Arc::new(count));
        self
    }

    /// Sets the summariser for long results of the servers whose config enables summaries.
    pub fn summariser(mut self, summariser: impl Summariser) -> Self {
        self.outputs.summariser = Some(Arc::new(summariser));
        self
    }

    /// Sets how much is spilled, where and for how long.
    pub fn spill(mut self, limits: SpillLimits) -> Self {
        self.outputs.limits = limits;
        self
    }

    /// Lists `read_output`, the tool that reads spilled outputs, from the start. By default it is listed once there is something to read,
    /// which does not help a program that lists tools only once.
    pub fn always_list_read_output(mut self) -> Self {
        self.outputs.always_readable = true;
        self
    }
}

impl ResultOptions {
    /// Prepares the options for one toolset.
    pub(crate) fn opened(self) -> Self {
        Self {
            spill: Spill::new(self.limits.clone()),
            reader: Arc::default(),
            ..self
        }
    }

    /// Applies the view's size setting to the limits of the config.
    pub(super) fn limited(&self, results: Results) -> Results {
        match self.size {
            Size::Configured => results,
            Size::Whole => plain(results.whole()),
            Size::AtMost(bytes) => Results {
                max_bytes: bytes,
                ceiling: bytes,
                too_long: TooLong::HeadTail,
                ..plain(results.whole())
            },
        }
    }

    /// The summariser for this policy: the view's own, or the model that the config names.
    pub(super) fn summariser(&self, policy: &Summarise) -> Option<Arc<dyn Summariser>> {
        match self.summariser.clone() {
            Some(ours) => Some(ours),
            None => self.model(policy.model.as_ref()?),
        }
    }

    /// Whether content that a model cannot read is spilled.
    pub(super) fn puts_aside(&self) -> bool {
        matches!(self.size, Size::Configured)
    }

    /// Whether results are summarised at all.
    pub(super) fn summarises(&self) -> bool {
        matches!(self.size, Size::Configured)
    }

    fn model(&self, wanted: &SummaryModel) -> Option<Arc<dyn Summariser>> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = models.iter().find(|(model, _)| model == wanted) {
            return Some(ready.clone());
        }
        let made = match summarise::configured(wanted.clone()) {
            Ok(made) => made,
            Err(problem) => {
                tracing::warn!(%problem, "the model for summaries cannot be used");
                return None;
            }
        };
        models.truncate(MAX_MODELS - 1);
        models.push((wanted.clone(), made.clone()));
        Some(made)
    }

    pub(super) fn count(&self) -> Option<&Count<'_>> {
        self.tokenizer.as_deref().map(|count| count as &Count<'_>)
    }

    pub(crate) fn set_reader(&self, name: &str) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    pub(super) fn reader(&self) -> Arc<str> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Turns off everything that is done for models, and spills nothing.
fn plain(results: Results) -> Results {
    Results {
        fence: false,
        images: Images::Keep,
        find_images: false,
        ..results
    }
}

impl fmt::Debug for ResultOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultOptions")
            .field("size", &self.size)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
