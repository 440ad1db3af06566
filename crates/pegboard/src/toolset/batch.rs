//! Calls several tools at once.

use std::future::Future;

use futures_util::future::join_all;

use crate::call::ToolCall;
use pegboard_tools::outcome::Reply;

/// Makes the calls that only read concurrently, and the others beside them one after the other. Returns the replies in the order of the calls.
pub(super) async fn write_in_turn<F>(
    calls: Vec<ToolCall>,
    only_reads: impl Fn(&ToolCall) -> bool,
    make: impl Fn(ToolCall) -> F,
) -> Vec<Reply>
where
    F: Future<Output = Reply>,
{
    let numbered = calls.into_iter().enumerate();
    let (reads, writes): (Vec<_>, Vec<_>) = numbered.partition(|(_, call)| only_reads(call));
    let reading = join_all(reads.into_iter().map(|(at, call)| {
        let reply = make(call);
        async move { (at, reply.await) }
    }));
    let writing = async {
        let mut replies = Vec::with_capacity(writes.len());
        for (at, call) in writes {
            replies.push((at, make(call).await));
        }
        replies
    };
    let (mut replies, written) = tokio::join!(reading, writing);
    replies.extend(written);
    replies.sort_by_key(|(at, _)| *at);
    replies.into_iter().map(|(_, reply)| reply).collect()
}
