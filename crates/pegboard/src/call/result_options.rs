//! The result settings of a view that are not in the config: size, tokenizer, summariser, spill.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::summarise::{self, summariser::Summariser};
use crate::{
    config::{Images, Results, Summarise, SummaryModel, TooLong},
    outcome::truncate::Count,
    spill::{Spill, SpillLimits},
};

/// The most cached clients for summary models. A config names one model, or one for each server.
const MAX_MODELS: usize = 64;

/// The result settings of a view that are not in the config.
#[derive(Clone, Default)]
pub(crate) struct ResultOptions {
    pub(super) size: Size,
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) summariser: Option<Arc<dyn Summariser>>,
    pub(super) limits: SpillLimits,
    /// Whether `read_output` is listed before there is an output to read.
    pub(crate) always_readable: bool,
    /// Created when the view is opened: toolsets do not share spilled outputs.
    pub(crate) spill: Spill,
    /// The name of `read_output` as models see it. Set by the toolset.
    reader: Arc<Mutex<Arc<str>>>,
    /// Clients for the models that the config names, created on first use.
    models: Arc<Mutex<Vec<ModelClient>>>,
}

pub(super) type Tokenizer = Arc<dyn Fn(&str) -> usize + Send + Sync>;
/// A model and the client for it.
type ModelClient = (SummaryModel, Arc<dyn Summariser>);

/// How much of a result is returned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Size {
    #[default]
    Configured,
    Whole,
    AtMost(usize),
    /// The view's own limits, instead of those of the config.
    Limits(Results),
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
            Size::Limits(limits) => Results {
                fence: limits.fence || results.fence,
                clean: limits.clean || results.clean,
                ..limits
            },
            Size::Whole => plain(results.whole()),
            Size::AtMost(bytes) => Results {
                max_bytes: bytes,
                ceiling: bytes,
                mode: TooLong::HeadTail,
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
    pub(super) fn spills(&self) -> bool {
        matches!(self.size, Size::Configured | Size::Limits(_))
    }

    /// Whether results are returned whole.
    pub(super) fn are_whole(&self) -> bool {
        matches!(self.size, Size::Whole)
    }

    /// Whether results are summarised at all.
    pub(super) fn summarises(&self) -> bool {
        matches!(self.size, Size::Configured | Size::Limits(_))
    }

    fn model(&self, wanted: &SummaryModel) -> Option<Arc<dyn Summariser>> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = models.iter().find(|(model, _)| model == wanted) {
            return Some(ready.clone());
        }
        let client = match summarise::configured(wanted.clone()) {
            Ok(client) => client,
            Err(problem) => {
                tracing::warn!(%problem, "the model for summaries cannot be used");
                return None;
            }
        };
        models.truncate(MAX_MODELS - 1);
        models.push((wanted.clone(), client.clone()));
        Some(client)
    }

    pub(super) fn count(&self) -> Option<&Count<'_>> {
        self.tokenizer.as_deref().map(|count| count as &Count<'_>)
    }

    pub(crate) fn set_reader(&self, name: &Arc<str>) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = name.clone();
    }

    pub(crate) fn reader(&self) -> Arc<str> {
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
