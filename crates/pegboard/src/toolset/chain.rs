//! [`ChainedTools`]: several executors as one.

use pegboard_base::BoxFuture;
use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;

use super::{executor::ToolExecutor, listing::Listing};
use crate::call::ToolCall;
use pegboard_base::{
    diagnosis::Code,
    sync::{Panicked, catch},
};
use pegboard_tools::{
    catalog::ListWarning,
    outcome::{Kind, Outcome, Reply},
    provider::Provider,
};

/// Several executors as one, for example tools of the program before those of a board.
///
/// The first executor that knows a name answers: a call goes to the next one only if it is refused as [`Kind::UnknownTool`], so nothing runs
/// twice. If two executors list a tool of the same name, the first one's is listed. Put a [`Toolset`](crate::Toolset) last: it waits for
/// servers that may have an unknown tool, and it takes a misspelled name for the closest of its own.
///
/// Tools are listed for the provider of the first executor whose listing is for one other than [`Provider::Mcp`].
#[derive(Clone, Default)]
#[must_use]
pub struct ChainedTools {
    executors: Vec<Arc<dyn ToolExecutor>>,
    /// Set by `close`, because an executor may have nothing to close. Clones share it.
    is_closed: Arc<AtomicBool>,
}

impl ChainedTools {
    /// Creates a chain without executors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an executor after the others.
    pub fn and(mut self, executor: impl ToolExecutor + 'static) -> Self {
        self.executors.push(Arc::new(executor));
        self
    }
}

impl fmt::Debug for ChainedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChainedTools").field(&self.executors.len()).finish()
    }
}

impl ToolExecutor for ChainedTools {
    fn list(&self, patience: Duration) -> BoxFuture<'_, Listing> {
        Box::pin(async move {
            if self.is_closed() {
                return Listing::from_tools([]);
            }
            let listings = self.executors.iter().map(|executor| async move {
                let listing = catch(async { executor.list(patience).await }).await;
                listing.unwrap_or_else(|Panicked| {
                    let mut listing = Listing::from_tools([]);
                    let message = "an executor of the program panicked when it listed its tools";
                    listing.warn(ListWarning::new(Code::ListFailed, message));
                    listing
                })
            });
            join(join_all(listings).await)
        })
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            if self.is_closed() {
                return Reply::refused(
                    &call,
                    Kind::Unavailable,
                    "these tools are closed and take no more calls",
                );
            }
            let Some((last, first)) = self.executors.split_last() else {
                return Reply::refused(&call, Kind::UnknownTool, "there are no tools");
            };
            for executor in first {
                let reply = call_catching_panics(executor.as_ref(), call.clone()).await;
                if !is_unknown(&reply) {
                    return reply;
                }
            }
            call_catching_panics(last.as_ref(), call).await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.is_closed.store(true, Ordering::Release);
        Box::pin(async {
            let closing = self
                .executors
                .iter()
                .map(|executor| catch(async { executor.close().await }));
            join_all(closing).await;
        })
    }

    fn is_closed(&self) -> bool {
        let mut executors = self.executors.iter();
        let are_all_closed = !self.executors.is_empty() && executors.all(|executor| executor.is_closed());
        are_all_closed || self.is_closed.load(Ordering::Acquire)
    }
}

/// Calls an executor, which is the program's code. A call that panicked may have run.
async fn call_catching_panics(executor: &dyn ToolExecutor, call: ToolCall) -> Reply {
    let lost = Reply::lost(
        &call,
        Kind::Internal,
        "an executor of the program panicked during the call",
    );
    catch(async { executor.call(call).await })
        .await
        .unwrap_or_else(|Panicked| {
            tracing::error!(id = %lost.id, "an executor of the program panicked during a call");
            lost
        })
}

/// Whether the executor has no such tool. A lost call may have run, so its kind does not count.
fn is_unknown(reply: &Reply) -> bool {
    matches!(&reply.outcome, Outcome::Refused(failure) if failure.kind == Kind::UnknownTool)
}

/// Joins listings in their order. The first tool of each name stays.
fn join(listings: Vec<Listing>) -> Listing {
    let mut providers = listings.iter().map(|listing| listing.provider);
    let provider = providers.find(|provider| *provider != Provider::Mcp);
    let (mut all, mut names) = (Listing::from_tools([]), HashSet::new());
    all.provider = provider.unwrap_or_default();
    for listing in listings {
        all.unavailable.extend(listing.unavailable);
        all.warnings.extend(listing.warnings);
        all.problems.extend(listing.problems);
        all.quarantined.extend(listing.quarantined);
        let is_same_provider = listing.provider == all.provider;
        for mut tool in listing.tools {
            if !names.insert(tool.name.clone()) {
                let name = tool.name.escape_debug();
                let message = format!("another tool `{name}` is listed first; this one is left out");
                all.warn(ListWarning::new(Code::ToolDuplicate, message));
                continue;
            }
            tool.definition = tool.definition.filter(|_| is_same_provider);
            all.tools.push(tool);
        }
    }
    all.define_missing();
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::toolset::{ListedTool, StubTools};

    const PATIENCE: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn the_first_executor_that_knows_a_name_answers() {
        let (one, two) = (
            StubTools::new().answers("a.x", "one"),
            StubTools::new().answers("a.x", "two").answers("b.y", "two"),
        );
        let chain = ChainedTools::new().and(one.clone()).and(two.clone());
        assert_eq!(chain.call(ToolCall::new("a.x")).await.text(), "one");
        assert_eq!(chain.call(ToolCall::new("b.y")).await.text(), "two");
        assert_eq!(two.calls().len(), 1);
        let listing = chain.list(PATIENCE).await;
        let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a.x", "b.y"]);
        assert!(listing.warnings[0].contains("`a.x`"), "{:?}", listing.warnings);
        let unknown = chain.call(ToolCall::new("nowhere")).await;
        assert_eq!(unknown.outcome.kind(), Kind::UnknownTool);
        assert!(ChainedTools::new().call(ToolCall::new("x")).await.is_error());
    }

    #[tokio::test]
    async fn an_executor_that_panics_costs_its_own_answers_only() {
        struct Panics;
        impl ToolExecutor for Panics {
            fn list(&self, _: Duration) -> BoxFuture<'_, Listing> {
                panic!("no list")
            }

            fn call(&self, _: ToolCall) -> BoxFuture<'_, Reply> {
                Box::pin(async { panic!("no call") })
            }

            fn close(&self) -> BoxFuture<'_, ()> {
                panic!("no close")
            }
        }
        let chain = ChainedTools::new()
            .and(StubTools::new().answers("a.x", "one"))
            .and(Panics);
        let listing = chain.list(PATIENCE).await;
        assert_eq!(listing.tools.len(), 1);
        assert!(listing.warnings[0].contains("panicked"), "{:?}", listing.warnings);
        assert_eq!(chain.call(ToolCall::new("a.x")).await.text(), "one");
        let lost = chain.call(ToolCall::new("b.y").id("call-7")).await;
        assert_eq!((lost.outcome.kind(), lost.id.as_str()), (Kind::Internal, "call-7"));
        assert!(matches!(&lost.outcome, Outcome::Lost(failure) if failure.may_have_executed));
        chain.close().await;
        assert!(chain.is_closed());
    }

    #[tokio::test]
    async fn a_closed_chain_stays_closed_whatever_its_executors_do() {
        struct NeverCloses;
        impl ToolExecutor for NeverCloses {
            fn list(&self, _: Duration) -> BoxFuture<'_, Listing> {
                let tool = ListedTool::new("dice", "Rolls.", json!({"type": "object"})).unwrap();
                Box::pin(async { Listing::from_tools([tool]) })
            }
            fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
                Box::pin(async move { Reply::done(&call, pegboard_tools::outcome::Answer::from_text("6")) })
            }
        }
        let chain = ChainedTools::new().and(NeverCloses);
        assert_eq!(chain.call(ToolCall::new("dice")).await.text(), "6");
        chain.close().await;
        assert!(chain.is_closed() && chain.list(PATIENCE).await.tools.is_empty());
        assert_eq!(
            chain.call(ToolCall::new("dice")).await.outcome.kind(),
            Kind::Unavailable
        );
    }

    #[tokio::test]
    async fn a_failure_of_a_known_tool_is_not_passed_on() {
        let (one, two) = (
            StubTools::new().fails("a.x", "no"),
            StubTools::new().answers("a.x", "two"),
        );
        let chain = ChainedTools::new().and(one).and(two.clone());
        assert_eq!(chain.call(ToolCall::new("a.x")).await.text(), "no");
        assert!(two.calls().is_empty());
    }

    #[tokio::test]
    async fn all_tools_are_listed_for_one_provider() {
        let plain = StubTools::new().answers("roll", "4");
        let openai = StubTools::new().provider(Provider::OpenAi).answers("a__x", "one");
        let chain = ChainedTools::new().and(plain).and(openai);
        let definitions = chain.list(PATIENCE).await.definitions();
        let names: Vec<_> = definitions.iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, [&json!("roll"), &json!("a__x")]);
    }

    #[tokio::test]
    async fn a_chain_is_closed_when_all_its_executors_are() {
        let (one, two) = (StubTools::new(), StubTools::new());
        let chain = ChainedTools::new().and(one.clone()).and(Arc::new(two));
        one.close().await;
        assert!(!chain.is_closed());
        chain.close().await;
        assert!(chain.is_closed());
        let listed = ListedTool::new("", "Nothing.", json!({"type": "object"}));
        assert!(listed.is_err());
    }
}
