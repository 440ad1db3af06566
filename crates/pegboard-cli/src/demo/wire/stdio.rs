//! stdio: one message per line on stdin and stdout. Nothing else is written to stdout.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::demo::connection::Connection;
use crate::demo::message::MAX_MESSAGE;
use crate::demo::protocol::Demo;

/// The number of lines read ahead. Few, because each may have 4 MiB.
const READ_AHEAD: usize = 4;

/// How long the last responses may take to be written.
const LAST_WRITES: Duration = Duration::from_secs(1);

enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Serves until stdin ends, stdout breaks or `stop` is cancelled.
pub(in crate::demo) async fn serve(demo: Arc<Demo>, stop: CancellationToken) -> anyhow::Result<()> {
    let (connection, queue) = Connection::open(demo, &stop);
    let mut lines = read_stdin()?;
    let mut written = write_stdout(queue)?;
    let read = async {
        while let Some(line) = lines.recv().await {
            match line {
                Line::Text(line) => connection.receive(&line).await,
                Line::TooLong => connection.refuse_too_long().await,
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        _ = &mut written => return Ok(()),
        () = read => {}
    }
    connection.close().await;
    // The writer ends with the queue, unless it is blocked because the client does not read.
    let _ = tokio::time::timeout(LAST_WRITES, written).await;
    Ok(())
}

/// Reads stdin on a plain thread: unlike the runtime's blocking threads, it does not keep the process alive while it
/// waits for input.
fn read_stdin() -> io::Result<mpsc::Receiver<Line>> {
    let (sender, lines) = mpsc::channel(READ_AHEAD);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(Some(line)) = read_line(&mut stdin, MAX_MESSAGE) {
            let is_blank = matches!(&line, Line::Text(text) if text.trim_ascii().is_empty());
            if !is_blank && sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}

/// The next line without its newline; `None` at the end of the input.
fn read_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    input.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= limit {
        return Ok(Some(Line::Text(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
}

/// Writes stdout on a plain thread, for the same reason. The returned receiver completes when the thread ends.
fn write_stdout(mut queue: mpsc::Receiver<String>) -> io::Result<oneshot::Receiver<()>> {
    let (done, written) = oneshot::channel();
    thread::Builder::new().name("stdout".into()).spawn(move || {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        while let Some(message) = queue.blocking_recv() {
            if write_line(&mut stdout, message, &mut queue).is_err() {
                break;
            }
        }
        let _ = done.send(());
    })?;
    Ok(written)
}

/// Writes a message and those queued behind it, then flushes once.
fn write_line(output: &mut impl Write, first: String, queue: &mut mpsc::Receiver<String>) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(message) = next {
        output.write_all(message.as_bytes())?;
        output.write_all(b"\n")?;
        next = queue.try_recv().ok();
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_long_ones_are_dropped() {
        let mut input = io::Cursor::new(b"ab\n\nabcd\nabcde\nabcdef\nlast".to_vec());
        let mut seen = Vec::new();
        while let Some(line) = read_line(&mut input, 4).unwrap() {
            seen.push(match line {
                Line::Text(text) => String::from_utf8(text).unwrap(),
                Line::TooLong => "(too long)".into(),
            });
        }
        assert_eq!(seen, ["ab", "", "abcd", "(too long)", "(too long)", "last"]);
    }
}
