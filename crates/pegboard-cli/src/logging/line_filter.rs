//! [`LineFilter`]: which lines the log has.

use pegboard_base::log_event;
use tracing::{Level, Metadata, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::{
    filter::Targets,
    layer::{Context, Filter},
};

/// The lines that a filter of the command line chooses, and those that an operator wants besides them.
#[derive(Debug, Clone)]
pub(super) struct LineFilter {
    chosen: Targets,
    /// Whether lines for information are shown that [`log_event`] names for that.
    has_named: bool,
}

impl LineFilter {
    pub(super) fn new(chosen: Targets, has_named: bool) -> Self {
        Self { chosen, has_named }
    }

    fn passes(&self, metadata: &Metadata<'_>) -> bool {
        let is_chosen = || self.chosen.would_enable(metadata.target(), metadata.level());
        let is_named = || {
            self.has_named
                && metadata.is_event()
                && *metadata.level() == Level::INFO
                && log_event::is_shown(metadata.name())
        };
        is_chosen() || is_named()
    }
}

impl<S> Filter<S> for LineFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.passes(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Only what a line is decides, so each place in the code is asked once.
        match self.passes(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let chosen = Filter::<S>::max_level_hint(&self.chosen)?;
        Some(match self.has_named {
            true => chosen.max(LevelFilter::INFO),
            false => chosen,
        })
    }
}
