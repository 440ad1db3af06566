//! Calls several tools at once.

use futures_util::future::join_all;

use super::toolset_handle::Toolset;
use crate::call::{Routed, ToolCall};
use pegboard_tools::outcome::Reply;

impl Toolset {
    /// Makes all calls concurrently, as far as queues allow, and returns the replies in the order of the calls.
    ///
    /// With [`View::writes_in_turn`](crate::View::writes_in_turn), calls of tools that are not known to be read-only run one after the other,
    /// in the given order. A tool of a server without `trust = true` is never known to be read-only.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Vec<Reply> {
        if !self.view.writes_in_turn {
            return join_all(calls.into_iter().map(|call| self.call(call))).await;
        }
        let numbered = calls.into_iter().enumerate();
        let (reads, writes): (Vec<_>, Vec<_>) = numbered.partition(|(_, call)| self.only_reads(call));
        let reading = join_all(reads.into_iter().map(async |(at, call)| (at, self.call(call).await)));
        let writing = async {
            let mut replies = Vec::with_capacity(writes.len());
            for (at, call) in writes {
                replies.push((at, self.call(call).await));
            }
            replies
        };
        let (mut replies, written) = tokio::join!(reading, writing);
        replies.extend(written);
        replies.sort_by_key(|(at, _)| *at);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    /// Whether the called tool is known, declares itself read-only, and its server is trusted.
    fn only_reads(&self, call: &ToolCall) -> bool {
        let table = match &call.selection {
            Some(selection) => self.selecting(selection).table(),
            None => self.table(),
        };
        let Routed::To(route) = table.find(&call.name) else {
            return false;
        };
        route
            .tool
            .is_read_only(route.is_believed(&route.server.config_snapshot().policy))
    }
}
