//! Writes messages as lines, in batches.

use std::{io, sync::Arc, time::Duration};

use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::transport::{
    delivery::Sent,
    outbox::{MAX_BATCH, Outbox},
    outgoing::Outgoing,
    request_failure::{FailureKind, WireFailure},
    wire_end::EndReason,
};

/// Writes messages as lines until the outbox is closed or the stream fails. Drops the stream on return, which closes it. Returns why it
/// failed, if it did; a write that takes longer than `limit` is a failure.
pub(in crate::transport) async fn write_lines(
    mut stream: impl AsyncWrite + Unpin,
    outbox: Arc<Outbox>,
    limit: Duration,
) -> Option<EndReason> {
    let (mut buffer, mut batch, mut writing) = (Vec::new(), Vec::new(), WriteBatch::default());
    while outbox.next_batch(&mut batch).await {
        buffer.clear();
        for message in batch.drain(..) {
            if message.delivery.begin() {
                buffer.extend_from_slice(&message.body);
                writing.messages.push((buffer.len(), message));
                buffer.push(b'\n');
            }
        }
        let result = tokio::time::timeout(limit, write_all(&mut stream, &buffer, &mut writing.written)).await;
        writing.settle();
        buffer.shrink_to(MAX_BATCH);
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Some(EndReason::Broken(error.to_string())),
            Err(_) => return Some(EndReason::Stalled(limit)),
        }
    }
    None
}

/// The messages of the batch that is being written. Dropping it in the middle of a write, as when the server's process ends, still records
/// which of them were written completely.
#[derive(Default)]
struct WriteBatch {
    /// Each message with the offset of its end in the batch. The newline does not count: a server may take an unterminated last line of
    /// its input for a message.
    messages: Vec<(usize, Outgoing)>,
    /// How many bytes of the batch are written.
    written: usize,
}

impl WriteBatch {
    /// Records which messages were written completely.
    fn settle(&mut self) {
        let written = std::mem::take(&mut self.written);
        for (end, message) in self.messages.drain(..) {
            let is_written = written >= end;
            if is_written {
                message.delivery.mark_sent();
            } else {
                message.delivery.undo();
            }
            if let Some(taken) = message.taken {
                let unwritten = || WireFailure::new(FailureKind::ConnectionLost, Sent::No, "it could not be written");
                let _ = taken.send(if is_written { Ok(()) } else { Err(unwritten()) });
            }
        }
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Writes the whole buffer and counts the bytes in `written`, so that the complete messages are known if a write fails.
async fn write_all(stream: &mut (impl AsyncWrite + Unpin), buffer: &[u8], written: &mut usize) -> io::Result<()> {
    while *written < buffer.len() {
        match stream.write(&buffer[*written..]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => *written += n,
        }
    }
    stream.flush().await
}
