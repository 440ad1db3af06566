//! Builder methods of a view for the size, the tokens, the summaries and the spill of results.

use std::sync::Arc;

use super::View;
use crate::{
    call::{result_options::Size, summarise::summariser::Summariser},
    spill::SpillLimits,
};
use pegboard_base::sync::{Panicked, catch_now};
use pegboard_config::Results;

impl View {
    /// Returns results whole, without limits, summaries and, unless [kept](Self::keep_fences), fences, for programs and people instead of models. [`Toolset::forward_call`] then
    /// passes them on as bytes.
    ///
    /// [`Toolset::forward_call`]: crate::Toolset::forward_call
    pub fn whole_results(mut self) -> Self {
        self.result_options.size = Size::Whole;
        self
    }

    /// Returns results as the settings of their servers say, but limits their size only where the config or a preset sets a limit: without one
    /// they are whole. For clients that forward results to a model and have limits of their own. Summaries are made if a summariser or a model
    /// for them is configured.
    ///
    /// [`Toolset::forward_call`] passes a result on as bytes if no setting changes it.
    ///
    /// [`Toolset::forward_call`]: crate::Toolset::forward_call
    pub fn configured_limits(mut self) -> Self {
        self.result_options.size = Size::WhereSet;
        self
    }

    /// Like [`View::configured_limits`], unless the view says something about the size of results.
    #[doc(hidden)]
    pub fn configured_limits_unless_set(self) -> Self {
        match self.result_options.size {
            Size::Configured => self.configured_limits(),
            _ => self,
        }
    }

    /// Keeps the fence around the text of servers with `result.fence` in a view with whole or truncated results.
    #[doc(hidden)]
    pub fn keep_fences(mut self) -> Self {
        self.result_options.keeps_fence = true;
        self
    }

    /// Truncates results to this many bytes, head and tail, and spills nothing.
    pub fn cut_results(mut self, bytes: usize) -> Self {
        self.result_options.size = Size::AtMost(bytes);
        self
    }

    /// Limits and formats results as given, regardless of the settings of their servers. Text that a server's settings fence or clean is
    /// fenced or cleaned here too. Larger results are spilled if `limits` says so, and `read_output` is listed from the start.
    pub fn limit_results(mut self, limits: Results) -> Self {
        self.result_options.size = Size::Limits(limits);
        self.result_options.always_readable |= limits.spills();
        self
    }

    /// Sets the tokenizer. The default estimates a quarter of the bytes. It must not count more tokens than there are bytes.
    /// If it panics, every byte counts as a token.
    pub fn tokenizer(mut self, count: impl Fn(&str) -> usize + Send + Sync + 'static) -> Self {
        let counted = move |text: &str| {
            catch_now(|| count(text)).unwrap_or_else(|Panicked| {
                tracing::error!("the tokenizer of the program panicked; every byte counts as a token");
                text.len()
            })
        };
        self.result_options.tokenizer = Some(Arc::new(counted));
        self
    }

    /// Sets the summariser for long results of the servers whose config enables summaries.
    pub fn summariser(mut self, summariser: impl Summariser) -> Self {
        self.result_options.summariser = Some(Arc::new(summariser));
        self
    }

    /// Sets how much is spilled, where and for how long.
    pub fn spill(mut self, limits: SpillLimits) -> Self {
        self.result_options.limits = limits;
        self
    }

    /// Lists `read_output`, the tool that reads spilled outputs, from the start. By default it is listed once there is something to read,
    /// which does not help a program that lists tools only once.
    pub fn always_list_read_output(mut self) -> Self {
        self.result_options.always_readable = true;
        self
    }
}
