//! What a view does with results, besides what the config says: their size, who counts tokens, who summarises, what is put aside.

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

/// The most models of the config that are kept ready. A config names one, or one for each server.
const MAX_MODELS: usize = 64;

/// What a view does with results.
#[derive(Clone, Default)]
pub(crate) struct ResultOptions {
    size: Size,
    tokenizer: Option<Tokenizer>,
    summariser: Option<Arc<dyn Summariser>>,
    limits: SpillLimits,
    /// Whether the tool that reads outputs is listed before there is one.
    pub(crate) always_readable: bool,
    /// Written when a toolset is made of the view: nothing in it is shared with another toolset.
    pub(crate) spill: Spill,
    /// The name under which a model finds the tool that reads outputs. Written by the toolset.
    reader: Arc<Mutex<Arc<str>>>,
    /// The models that the config names, made when they are first needed.
    models: Arc<Mutex<Vec<Ready>>>,
}

type Tokenizer = Arc<dyn Fn(&str) -> usize + Send + Sync>;
/// A model and the client for it.
type Ready = (SummaryModel, Arc<dyn Summariser>);

/// How much of a result is handed on.
#[derive(Debug, Clone, Copy, Default)]
enum Size {
    #[default]
    Configured,
    Whole,
    AtMost(usize),
}

impl View {
    /// Hands results on as they are, whatever their size: for programs and people. Limits, fences and summaries are for models.
    pub fn whole_results(mut self) -> Self {
        self.outputs.size = Size::Whole;
        self
    }

    /// Cuts results to so many bytes, head and tail, and puts nothing aside.
    pub fn cut_results(mut self, bytes: usize) -> Self {
        self.outputs.size = Size::AtMost(bytes);
        self
    }

    /// Sets who counts tokens. Without it they are estimated as a quarter of the bytes. It must not make more tokens than there are bytes.
    pub fn tokenizer(mut self, count: impl Fn(&str) -> usize + Send + Sync + 'static) -> Self {
        self.outputs.tokenizer = Some(Arc::new(count));
        self
    }

    /// Sets who summarises long results of the servers whose config asks for it.
    pub fn summariser(mut self, summariser: impl Summariser) -> Self {
        self.outputs.summariser = Some(Arc::new(summariser));
        self
    }

    /// Sets how much is put aside, where and for how long.
    pub fn spill(mut self, limits: SpillLimits) -> Self {
        self.outputs.limits = limits;
        self
    }

    /// Lists `read_output`, the tool that reads what was put aside, from the start. Without this it is listed once there is something to
    /// read, which is of no use to a program that lists tools only once.
    pub fn always_list_read_output(mut self) -> Self {
        self.outputs.always_readable = true;
        self
    }
}

impl ResultOptions {
    /// The same for one toolset.
    pub(crate) fn opened(self) -> Self {
        Self {
            spill: Spill::new(self.limits.clone()),
            reader: Arc::default(),
            ..self
        }
    }

    /// What the config says about a result, as far as this view lets it.
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

    /// Who summarises under this policy. Nobody does for a view that wants whole results.
    pub(super) fn summariser(&self, policy: &Summarise) -> Option<Arc<dyn Summariser>> {
        match self.summariser.clone() {
            Some(ours) => Some(ours),
            None => self.model(policy.model.as_ref()?),
        }
    }

    /// Whether what a model cannot read is put aside.
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

/// Without what is done for models, and with nothing put aside.
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
