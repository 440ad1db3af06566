//! stdio, for the separate process: one message per line. Two threads do the blocking reads and writes.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use crate::{
    fault::Fault,
    log::Received,
    play::Stage,
    process,
    server::{Frame, Server},
};

/// The capacity of the output queue.
const QUEUE: usize = 64;

/// Serves stdin and stdout until the input ends. Returns the exit code.
///
/// # Errors
/// When a signal handler cannot be set or a child cannot be started.
pub(crate) async fn serve(server: Arc<Server>) -> io::Result<i32> {
    let script = server.script();
    if script.has(|fault| matches!(fault, Fault::IgnoresTerm)) {
        process::ignore_term()?;
    }
    if let Some(code) = process::start(&script)? {
        return Ok(code);
    }
    let (frames, outgoing) = mpsc::channel(QUEUE);
    let peer = Peer::new(Stage::new(Arc::clone(&server), frames, CancellationToken::new()));
    thread::spawn(move || write(outgoing));
    if !peer.open().await {
        return wait_for_the_end().await;
    }
    // One line ahead, so that a server that stops reading does so at once.
    let (lines, mut incoming) = mpsc::channel(1);
    thread::spawn(move || read(&lines));
    while let Some(line) = incoming.recv().await {
        drop(peer.receive(line.trim_ascii_end(), BTreeMap::new()));
        if !*peer.stage.reading.borrow() {
            return wait_for_the_end().await;
        }
    }
    server.receive(Received {
        method: "$eof".into(),
        ..Received::default()
    });
    if script.has(|fault| matches!(fault, Fault::IgnoresEof)) {
        return wait_for_the_end().await;
    }
    peer.finish(Duration::from_millis(100)).await;
    peer.stage.flush().await;
    Ok(0)
}

/// Waits forever; the watchdog ends the process.
async fn wait_for_the_end() -> io::Result<i32> {
    loop {
        sleep(Duration::from_secs(60)).await;
    }
}

fn read(lines: &mpsc::Sender<Vec<u8>>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(1..) if lines.blocking_send(line).is_ok() => {}
            _ => return,
        }
    }
}

fn write(mut outgoing: mpsc::Receiver<Frame>) {
    let mut open = true;
    let mut buffer = Vec::new();
    while let Some(frame) = outgoing.blocking_recv() {
        let mut next = Some(frame);
        let mut marks = Vec::new();
        let mut closes = false;
        // All queued output goes into one write.
        while let Some(frame) = next {
            match frame {
                Frame::Message { text, .. } => {
                    buffer.extend_from_slice(&text);
                    buffer.push(b'\n');
                }
                Frame::Raw(bytes) => buffer.extend_from_slice(&bytes),
                Frame::Mark(mark) => marks.push(mark),
                Frame::Close | Frame::Reset => {
                    closes = true;
                    break;
                }
            }
            next = outgoing.try_recv().ok();
        }
        if open {
            let mut output = io::stdout().lock();
            open = output.write_all(&buffer).and_then(|()| output.flush()).is_ok();
        }
        buffer.clear();
        if closes && open {
            open = false;
            close_stdout();
        }
    }
}

/// Replaces stdout with the null device, so that the other end of the pipe reads the end of file.
fn close_stdout() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        // A failure is noticed by the test that waits for the end of file.
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
