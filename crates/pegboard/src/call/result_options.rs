//! The result settings of a view that are not in the config: size, tokenizer, summariser, spill.

use std::{fmt, sync::Arc};

use super::summarise::{self, summariser::Summariser};
use crate::spill::{Spill, SpillLimits};
use pegboard_base::sync::Mutex;
use pegboard_config::{Images, Policy, Results, Summarise, SummaryModel, TooLong};
use pegboard_tools::outcome::truncate::Count;

/// The most cached clients for summary models. A config names one model, or one for each server.
const MAX_MODELS: usize = 64;

/// The result settings of a view that are not in the config.
#[derive(Clone, Default)]
pub(crate) struct ResultOptions {
    pub(super) size: Size,
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) summariser: Option<Arc<dyn Summariser>>,
    pub(super) limits: SpillLimits,
    /// Whether whole and truncated results keep the fence that the config asks for.
    pub(super) keeps_fence: bool,
    /// Whether `read_output` is listed before there is an output to read.
    pub(crate) always_readable: bool,
    /// Set when the view is opened. Only toolsets of a principal share spilled outputs.
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
    /// Whole, except for limits that the config sets.
    WhereSet,
    Whole,
    AtMost(usize),
    /// The view's own limits, instead of those of the config.
    Limits(Results),
}

impl ResultOptions {
    /// Prepares the options for one toolset.
    #[cfg(test)]
    pub(crate) fn prepare(self) -> Self {
        let spill = Spill::new(self.limits.clone());
        self.prepare_with(spill)
    }

    /// Whether `read_output` is listed: once an output was spilled, or always if the view says so. Cheap: it reads only flags.
    pub(crate) fn lists_reader(&self) -> bool {
        self.always_readable || self.spill.is_used()
    }

    /// The limits of the outputs that are spilled.
    pub(crate) fn spill_limits(&self) -> &SpillLimits {
        &self.limits
    }

    /// Prepares the options for a toolset that spills its outputs there.
    pub(super) fn prepare_with(self, spill: Spill) -> Self {
        Self {
            spill,
            reader: Arc::default(),
            ..self
        }
    }

    /// Applies the view's size setting to the limits of the config.
    pub(super) fn apply_size(&self, results: Results) -> Results {
        match self.size {
            Size::Configured => results,
            Size::Limits(limits) => Results {
                fence: limits.fence || results.fence,
                clean: limits.clean || results.clean,
                ..limits
            },
            Size::WhereSet => Results {
                max_bytes: if results.sets_max_bytes() {
                    results.max_bytes
                } else {
                    usize::MAX
                },
                ..results
            },
            Size::Whole => self.without_processing(results.whole()),
            Size::AtMost(bytes) => Results {
                max_bytes: bytes,
                ceiling: bytes,
                mode: TooLong::HeadTail,
                ..self.without_processing(results.whole())
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

    /// Whether a result under these settings is returned exactly as it was received, so that it need not be parsed.
    pub(super) fn leave_unchanged(&self, results: Results, summarise: Option<&Summarise>) -> bool {
        match self.size {
            Size::Whole => !(self.keeps_fence && results.fence),
            Size::WhereSet => self.apply_size(results).is_plain() && !self.summarises(summarise),
            Size::Configured | Size::AtMost(_) | Size::Limits(_) => false,
        }
    }

    /// Whether long results are summarised under this policy. A client's whole result is not truncated because no model is configured.
    pub(super) fn summarises(&self, policy: Option<&Summarise>) -> bool {
        match self.size {
            Size::Configured | Size::Limits(_) => policy.is_some(),
            Size::WhereSet => policy.is_some_and(|policy| policy.model.is_some() || self.summariser.is_some()),
            Size::Whole | Size::AtMost(_) => false,
        }
    }

    /// Whether the config limits results of a server with this policy, so that they may be spilled although the view has no limits of its own.
    pub(crate) fn may_spill(&self, policy: &Policy) -> bool {
        let may_spill = |results: &Results| {
            let is_limited = results.sets_max_bytes() || results.max_lines.is_some() || results.max_tokens.is_some();
            (is_limited && results.spills()) || results.images == Images::Spill
        };
        matches!(self.size, Size::WhereSet)
            && (may_spill(&policy.result)
                || policy.tool_results.values().any(may_spill)
                || self.summarises(policy.summarise.as_ref()))
    }

    /// Turns off everything that is done for models, and spills nothing.
    fn without_processing(&self, results: Results) -> Results {
        Results {
            fence: results.fence && self.keeps_fence,
            images: Images::Keep,
            find_images: false,
            ..results
        }
    }

    fn model(&self, wanted: &SummaryModel) -> Option<Arc<dyn Summariser>> {
        let mut models = self.models.lock();
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
        *self.reader.lock() = name.clone();
    }

    pub(crate) fn reader(&self) -> Arc<str> {
        self.reader.lock().clone()
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
