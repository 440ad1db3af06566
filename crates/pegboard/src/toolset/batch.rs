//! Many calls at once.

use futures_util::future::join_all;

use super::Toolset;
use crate::{call::ToolCall, outcome::Reply};

impl Toolset {
    /// Makes all calls beside each other, as far as queues allow, and gives the replies in the order of the calls.
    ///
    /// With [`View::writes_in_turn`](crate::View::writes_in_turn), calls of tools that do not say they only read run one after the other, in
    /// the order given.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Vec<Reply> {
        if !self.view.writes_in_turn {
            return join_all(calls.into_iter().map(|call| self.call(call))).await;
        }
        let numbered = calls.into_iter().enumerate();
        let (reads, writes): (Vec<_>, Vec<_>) = numbered.partition(|(_, call)| self.only_reads(&call.name));
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

    /// Whether a tool is known and says that it only reads.
    fn only_reads(&self, name: &str) -> bool {
        let crate::call::Routed::To(route) = self.table().find(name) else {
            return false;
        };
        let hints = route.tool.annotations.as_ref();
        hints.is_some_and(|hints| hints.get("readOnlyHint") == Some(&true.into()))
    }
}
