//! Reads lines from a stream and hands the messages to an inbox.

use std::{sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{line_splitter::LineSplitter, stdout_noise::StdoutNoise};
use crate::transport::{byte_budget, wire::Inbox, wire_end::EndReason};

/// How long the buffers of long lines are kept for reuse while nothing is read.
const KEEP_BUFFERS: Duration = Duration::from_secs(1);

/// Reads lines and hands those that are messages to the inbox, until the stream ends. Reading pauses while a long line waits for its permit
/// of the byte budget.
pub(in crate::transport) async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    inbox: Arc<dyn Inbox>,
    limit: usize,
    stdout_noise: StdoutNoise,
) -> EndReason {
    let mut lines = LineSplitter::new(limit, inbox.budget().quota(limit));
    loop {
        if let Err(end) = lines.reserve().await {
            return end;
        }
        let timeout = match (lines.has_permit(), lines.buffer.last_long) {
            (true, _) => Some(byte_budget::CHECK_INTERVAL),
            (false, 0) => None,
            (false, _) => Some(KEEP_BUFFERS),
        };
        let reading = stream.read_buf(lines.space());
        let read = match timeout {
            None => reading.await,
            Some(timeout) => match tokio::time::timeout(timeout, reading).await {
                Ok(read) => read,
                Err(_) => {
                    if !lines.has_permit() {
                        lines.buffer.shrink();
                    }
                    continue;
                }
            },
        };
        match read {
            Ok(0) => {
                lines.finish(&*inbox);
                return EndReason::Eof;
            }
            Ok(_) => {
                if let Err(end) = lines.drain(&*inbox) {
                    return end;
                }
                if !lines.noise.has_messages {
                    stdout_noise.record(&lines.noise.first_line, &lines.buffer.unread, &*inbox);
                }
            }
            Err(error) => return EndReason::Broken(error.to_string()),
        }
    }
}
