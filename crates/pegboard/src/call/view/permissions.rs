//! Builder methods of a view that restrict what its agent may do.

use std::{sync::Arc, time::Duration};

use super::View;
use crate::call::{approval::Approver, view_rules::Proposed};
use pegboard_config::{Approval, Rate, Taint};
use pegboard_tools::{filter::Selection, grant::Grants};

impl View {
    /// Adds names or globs of servers that may be used; without any, all may. This covers their tools, resources and prompts.
    pub fn servers(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rules.servers.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Adds globs of tools that may be used; without any, all may. A glob with a dot matches `server.tool`, one without matches the tool's
    /// own name. Tools that the servers' own filters hide stay hidden.
    pub fn allow(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rules.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Adds globs of tools that must not be used, even if they are allowed: for `server.tool` or for the tool's own name.
    pub fn deny(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rules.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Restricts the view to these servers and tools. [`Pegboard::check_selection`](crate::Pegboard::check_selection) finds out early whether they exist.
    pub fn selection(mut self, selection: Selection) -> Self {
        self.rules.selection = Some(Arc::new(selection));
        self
    }

    /// Restricts the view to what is granted.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.rules.grants = Some(grants);
        self
    }

    /// Shows tools whatever capabilities they require, for a client that has the same config and checks them for its own agents.
    #[doc(hidden)]
    pub fn trust_client_grants(mut self) -> Self {
        self.rules.trusts_client_grants = true;
        self
    }

    /// Adds a check that may forbid a call because of its arguments, with the reason. It runs before approval is requested, and must be
    /// fast. A call whose check panics is refused.
    pub fn check(mut self, check: impl Fn(&Proposed<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.rules.checks.push(Arc::new(check));
        self
    }

    /// Sets which calls a person must approve. The stricter of this and `approval` of the called server applies, and the server's list of exempt
    /// tools does not lift this one.
    pub fn approval(mut self, mode: Approval) -> Self {
        self.rules.approval = mode;
        self
    }

    /// Whether it has an approver of its own.
    #[doc(hidden)]
    pub fn has_approver(&self) -> bool {
        self.rules.approver.is_some()
    }

    /// Sets the approver of this view, in place of the board's.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.rules.approver = Some(Arc::new(approver));
        self
    }

    /// Sets how long an approver may take; five minutes by default.
    pub fn approval_timeout(mut self, limit: Duration) -> Self {
        self.rules.approval_timeout = Some(limit);
        self
    }

    /// Requests approval for every call of high risk once an untrusted server has answered: its output may steer the model.
    pub fn ask_after_untrusted(self) -> Self {
        self.after_untrusted(Taint::Ask)
    }

    /// Sets what happens to calls of high risk once an untrusted server has answered. The stricter of this and `taint` of the called server
    /// applies. [`Toolset::clear_taint`](crate::Toolset::clear_taint) starts again, for example when the user has written the next message.
    pub fn after_untrusted(mut self, rule: Taint) -> Self {
        self.rules.on_taint = rule;
        self
    }

    /// Sets how often this view may call tools, read resources, get prompts and request completions, all together: a token bucket of
    /// `rate.calls` that fills up once in `rate.per`. `rate` of a server and of a tool in the config limit tool calls too.
    ///
    /// Rates count for the principal of the view, over all its views with an equal rate, so a view per request does not start with a full
    /// bucket; without a principal they count for this view. A call beyond it is refused with
    /// [`Kind::LimitExceeded`](crate::Kind::LimitExceeded), and [`Failure::retry_after`](crate::Failure::retry_after) says when a token returns.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets how many requests of this view may be in flight at once: tool calls, tasks, resource reads, prompts and completions. A call is in
    /// flight from its arrival to its reply, so time in queues and waiting for approval counts; a task until its `TaskHandle`
    /// has its result or is dropped. Built-in tools such as `find_tools` and listings do not count.
    ///
    /// The limit is one on the principal of the view: its requests through all its views with a limit count together. Without a principal,
    /// those of this view count. A request beyond it does not wait: it is refused at once with
    /// [`Kind::LimitExceeded`](crate::Kind::LimitExceeded) and a [`Failure::retry_after`](crate::Failure::retry_after).
    pub fn max_in_flight(mut self, most: usize) -> Self {
        self.max_in_flight = Some(most);
        self
    }
}
