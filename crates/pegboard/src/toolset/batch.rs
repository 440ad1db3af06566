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

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_run_one_after_the_other_and_replies_keep_the_order_of_calls() {
        let (reading, writing) = (&Cell::new((0, 0)), &Cell::new((0, 0)));
        let make = |call: ToolCall| async move {
            let running = if call.name.starts_with("read") {
                reading
            } else {
                writing
            };
            let (now, most) = running.get();
            running.set((now + 1, most.max(now + 1)));
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (now, most) = running.get();
            running.set((now - 1, most));
            Reply::done(&call, call.name.clone())
        };
        let names = ["write 1", "read 1", "write 2", "read 2"];
        let calls = names.iter().map(|name| ToolCall::new(*name)).collect();
        let replies = write_in_turn(calls, |call| call.name.starts_with("read"), make).await;
        let texts: Vec<String> = replies.iter().map(Reply::text).collect();
        assert_eq!(texts, names);
        assert_eq!((reading.get().1, writing.get().1), (2, 1));
    }
}
