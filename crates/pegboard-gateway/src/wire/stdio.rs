//! stdio: one message per line on stdin and stdout. Nothing else is written to stdout.

use std::{
    future::{Future, pending},
    io::{self, BufRead, Read, Write},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::{
    door::Caller,
    protocol::{Connection, EarlyEnd, Endpoint, Limits, MAX_MESSAGE, Outgoing, Sealer, Service, Wire},
};

/// The number of lines read ahead. Few, because each may have 4 MiB.
const READ_AHEAD: usize = 4;

/// How long the requests that were read may take after stdin has ended.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// How long requests in flight may take when `stop` completes.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// How long the last responses may take to be written.
const LAST_WRITES: Duration = Duration::from_secs(1);

enum InputLine {
    Text(Bytes),
    TooLong,
}

/// Serves the client on stdin and stdout, until stdin ends, stdout breaks or `stop` completes. A process can do this once.
///
/// After the end of stdin, the requests that were read are still answered, for at most ten seconds; after `stop`, those in flight, for at most
/// five. What is left then is answered with an error.
pub async fn serve_stdio(service: Arc<dyn Service>, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
    let sealer = Arc::new(Sealer::random()?);
    let endpoint = Endpoint::new("stdio", service, sealer, Limits::default());
    let (connection, outbox) = Connection::open(&endpoint, &Caller::default(), Wire::Pipe);
    let mut lines = read_stdin()?;
    let mut written = write_stdout(outbox)?;
    let ended = serve_lines(&connection, &endpoint, &mut lines, &mut written, stop).await;
    match ended {
        StdioEnd::Drained => {}
        StdioEnd::TimeUp => {
            endpoint.halt();
            connection.halt();
        }
        StdioEnd::Broken => return Ok(()),
    }
    connection.close().await;
    // The writer ends with the queue, unless it is blocked because the client does not read.
    let _ = tokio::time::timeout(LAST_WRITES, written).await;
    Ok(())
}

/// How the client was served.
enum StdioEnd {
    /// All requests are answered.
    Drained,
    /// Some requests were not answered in time.
    TimeUp,
    /// Stdout is broken.
    Broken,
}

/// Serves the lines of a client until they end or `stop` completes, and then waits for the requests in flight.
async fn serve_lines(
    connection: &Connection,
    endpoint: &Endpoint,
    lines: &mut mpsc::Receiver<InputLine>,
    mut written: &mut oneshot::Receiver<()>,
    stop: impl Future<Output = ()> + Send,
) -> StdioEnd {
    let read = async {
        while let Some(line) = lines.recv().await {
            match line {
                InputLine::Text(line) => connection.receive(&line).await,
                InputLine::TooLong => connection.refuse_too_long().await,
            }
        }
    };
    let (mut stop, mut read) = (pin!(stop), pin!(read));
    let input_ended = tokio::select! {
        biased;
        () = &mut stop => false,
        _ = &mut written => return StdioEnd::Broken,
        () = &mut read => true,
    };
    // Ends the streams on which the client only listens.
    endpoint.stop();
    let drained = connection.drain(EarlyEnd::Stopping);
    if input_ended {
        return tokio::select! {
            biased;
            () = stop => StdioEnd::TimeUp,
            _ = written => StdioEnd::Broken,
            () = drained => StdioEnd::Drained,
            () = sleep(LAST_REQUESTS) => StdioEnd::TimeUp,
        };
    }
    // Requests in flight may need answers of the client, which are read meanwhile.
    let answers = async {
        read.await;
        pending::<()>().await;
    };
    tokio::select! {
        biased;
        _ = written => StdioEnd::Broken,
        () = drained => StdioEnd::Drained,
        () = answers => StdioEnd::TimeUp,
        () = sleep(DRAIN_TIME) => StdioEnd::TimeUp,
    }
}

/// Reads stdin on a plain thread: unlike the runtime's blocking threads, it does not keep the process alive while it waits for input.
fn read_stdin() -> io::Result<mpsc::Receiver<InputLine>> {
    let (sender, lines) = mpsc::channel(READ_AHEAD);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(Some(line)) = read_line(&mut stdin, MAX_MESSAGE) {
            let is_blank = matches!(&line, InputLine::Text(text) if text.trim_ascii().is_empty());
            if !is_blank && sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}

/// The next line without its newline; `None` at the end of the input.
fn read_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    input.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= limit {
        return Ok(Some(InputLine::Text(line.into())));
    }
    input.skip_until(b'\n')?;
    Ok(Some(InputLine::TooLong))
}

/// Writes stdout on a plain thread, for the same reason. The returned receiver completes when the thread ends.
fn write_stdout(mut outbox: mpsc::Receiver<Outgoing>) -> io::Result<oneshot::Receiver<()>> {
    let (done, written) = oneshot::channel();
    thread::Builder::new().name("stdout".into()).spawn(move || {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        while let Some(message) = outbox.blocking_recv() {
            if write_lines(&mut stdout, message, &mut outbox).is_err() {
                break;
            }
        }
        let _ = done.send(());
    })?;
    Ok(written)
}

/// Writes a message and those queued behind it, then flushes once.
fn write_lines(output: &mut impl Write, first: Outgoing, outbox: &mut mpsc::Receiver<Outgoing>) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(message) = next {
        for part in message.on_one_line().parts() {
            output.write_all(part)?;
        }
        output.write_all(b"\n")?;
        next = outbox.try_recv().ok();
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use crate::protocol::RawResult;

    use super::*;

    #[test]
    fn lines_are_split_and_long_ones_are_dropped() {
        let mut input = io::Cursor::new(b"ab\n\nabcd\nabcde\nabcdef\nlast".to_vec());
        let mut seen = Vec::new();
        while let Some(line) = read_line(&mut input, 4).unwrap() {
            seen.push(match line {
                InputLine::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                InputLine::TooLong => "(too long)".into(),
            });
        }
        assert_eq!(seen, ["ab", "", "abcd", "(too long)", "(too long)", "last"]);
    }

    #[test]
    fn a_result_with_line_breaks_is_one_line() {
        let result = RawResult::from_text(Bytes::from_static(b"{\n  \"a\": 1\n}"), false);
        let (sender, mut outbox) = mpsc::channel(1);
        sender.try_send(Outgoing::result("2", &result, false)).unwrap();
        let mut written = Vec::new();
        write_lines(&mut written, Outgoing::result("1", &result, false), &mut outbox).unwrap();
        let lines: Vec<_> = written.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 3, "two lines and nothing after the last newline");
        assert!(lines[0].starts_with(br#"{"jsonrpc":"2.0","id":1"#) && lines[2].is_empty());
    }
}
