//! In memory: a duplex pipe within the process, on tokio's clock.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use crate::{
    fault::Fault,
    log::Received,
    play::Stage,
    server::{Frame, Server},
};

/// The capacity of the pipe, like that of an operating system's pipe.
const PIPE: usize = 64 * 1024;
/// The capacity of the output queue.
const QUEUE: usize = 64;

/// Starts a server for one connection and returns the client's end. Ends when `stopped` is cancelled.
pub(crate) fn connect(server: &Arc<Server>, stopped: &CancellationToken) -> DuplexStream {
    let (client, served) = duplex(PIPE);
    server.start();
    let (frames, outgoing) = mpsc::channel(QUEUE);
    let stage = Stage::new(Arc::clone(server), frames, stopped.child_token());
    tokio::spawn(serve(Peer::new(stage), served, outgoing));
    client
}

async fn serve(peer: Peer, stream: DuplexStream, outgoing: mpsc::Receiver<Frame>) {
    let dead = peer.stage.dead.clone();
    let (input, output) = split(stream);
    // Cancelling drops both halves at once, and the client reads the end of file.
    let _ = dead
        .run_until_cancelled(async { tokio::join!(read(&peer, input), write(outgoing, output)) })
        .await;
    peer.end();
}

async fn read(peer: &Peer, input: ReadHalf<DuplexStream>) {
    let mut input = BufReader::new(input);
    let mut reading = peer.stage.reading.subscribe();
    if !peer.open().await {
        return peer.stage.frames.closed().await;
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line).await {
            Ok(1..) => drop(peer.receive(line.trim_ascii_end(), BTreeMap::new())),
            Ok(0) | Err(_) => break,
        }
        if !*reading.borrow_and_update() {
            return peer.stage.frames.closed().await;
        }
    }
    peer.stage.server.receive(Received {
        method: "$eof".into(),
        ..Received::default()
    });
    if !peer
        .stage
        .server
        .script()
        .has(|fault| matches!(fault, Fault::IgnoresEof))
    {
        peer.stage.dead.cancel();
    }
}

async fn write(mut outgoing: mpsc::Receiver<Frame>, mut output: WriteHalf<DuplexStream>) {
    // Frames are still taken after the output is closed, because later acts would block otherwise.
    let mut open = true;
    while let Some(frame) = outgoing.recv().await {
        if !open {
            continue;
        }
        open = match frame {
            Frame::Message { text, .. } => output.write_all(&[&text[..], b"\n"].concat()).await.is_ok(),
            Frame::Raw(bytes) => output.write_all(&bytes).await.is_ok(),
            Frame::Close | Frame::Reset => output.shutdown().await.is_err(),
            Frame::Mark(_) => true,
        };
    }
}
