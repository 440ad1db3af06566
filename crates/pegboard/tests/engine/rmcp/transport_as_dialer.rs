//! rmcp's client transports as dialers.

use std::{
    io,
    pin::Pin,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use pegboard::{Config, Kind, Pegboard, Toolset};
use pegboard_testkit::{Block, FakeServer, Fault, MemoryHandle, Tool, When};
use rmcp::{
    RoleClient,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, DuplexStream, ReadBuf, ReadHalf, WriteHalf},
    process::{Child, ChildStdout, Command},
    sync::Notify,
    time::timeout,
};

use crate::support::{PATIENCE, call, name};

fn fake() -> FakeServer {
    let blocks = [
        Block::text("one"),
        Block::image(),
        Block::audio(),
        Block::link("demo:a"),
    ];
    FakeServer::new("far")
        .tool(Tool::new("echo").echoes())
        .tool(Tool::new("blocks").answers_blocks(blocks))
        .tool(Tool::new("stuck").waits_at("gate"))
        .resource("note:a", "the note a")
}

/// A board whose server `far` is reached over what `connect` opens.
fn board_over(dialer: impl pegboard::in_process::Dialer) -> (Pegboard, Toolset) {
    let board = Pegboard::builder(Config::default())
        .in_process(name("far"), dialer)
        .without_jitter()
        .restart_schedule(vec![std::time::Duration::from_millis(10)])
        .unwrap()
        .open();
    let tools = board.toolset();
    (board, tools)
}

/// A transport over the streams of a fake server.
fn over(handle: &MemoryHandle) -> impl pegboard::in_process::Dialer + use<> {
    let handle = handle.clone();
    pegboard::rmcp::transport(move || {
        let stream = handle.connect();
        async move { io::Result::Ok(stream) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_is_listed_called_and_read_over_a_transport() {
    let (_unused, handle) = fake().connect();
    let (board, tools) = board_over(over(&handle));
    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.tools.len(), 3, "{:?}", listing.unavailable);
    let (one, two) = tokio::join!(
        call(&tools, "far.echo", json!({"text": "one"})),
        call(&tools, "far.echo", json!({"text": "two"}))
    );
    assert!(
        one.text().contains("one") && two.text().contains("two"),
        "{one:?} {two:?}"
    );
    let blocks = call(&tools, "far.blocks", json!({})).await;
    assert_eq!(blocks.text().lines().count(), 4, "{}", blocks.text());
    let note = tools.read_resource(&name("far"), "note:a").await.unwrap();
    assert_eq!(note[0].text(), Some("the note a"));
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (_unused, handle) = fake().connect();
    let (_board, tools) = board_over(over(&handle));
    {
        let calling = call(&tools, "far.stuck", json!({}));
        tokio::select! {
            reply = calling => panic!("{reply:?}"),
            () = handle.wait_for("tools/call", 1) => {}
        }
    }
    let told = handle.wait_for("notifications/cancelled", 1);
    timeout(PATIENCE, told).await.expect("the server is told");
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_ends_is_opened_again() {
    let dies = fake().fault_on(When::tool("echo").nth(1), Fault::DiesAfterExecuting { code: 1 });
    let (_unused, handle) = dies.connect();
    let (_board, tools) = board_over(over(&handle));
    let first = call(&tools, "far.echo", json!({"text": "one"})).await;
    assert!(first.is_error() && first.outcome.may_have_executed(), "{first:?}");
    let again = call(&tools, "far.echo", json!({"text": "two"})).await;
    assert!(again.text().contains("two"), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_cannot_be_opened_says_why() {
    let opened = Arc::new(AtomicU32::new(0));
    let count = opened.clone();
    let dialer = pegboard::rmcp::transport(move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { io::Result::<DuplexStream>::Err(io::Error::other("the tunnel is closed")) }
    });
    let (_board, tools) = board_over(dialer);
    let listing = tools.list(PATIENCE).await;
    assert!(
        listing.unavailable[0].error.contains("the tunnel is closed"),
        "{:?}",
        listing.unavailable
    );
    assert!(opened.load(Ordering::SeqCst) >= 1);
}

/// A transport that cannot send calls of tools.
struct Clumsy {
    inner: AsyncRwTransport<RoleClient, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    closed: Arc<Notify>,
}

impl Transport<RoleClient> for Clumsy {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let is_call = match &message {
            JsonRpcMessage::Request(request) => {
                serde_json::to_value(&request.request).unwrap()["method"] == "tools/call"
            }
            _ => false,
        };
        let sending = self.inner.send(message);
        async move {
            match is_call {
                true => Err(io::Error::other("it fell off the table")),
                false => sending.await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.closed.notify_one();
        self.inner.close().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_sent_fails_alone_and_the_transport_is_closed_with_the_board() {
    let (_unused, handle) = fake().connect();
    let closed = Arc::new(Notify::new());
    let (at, told) = (handle.clone(), closed.clone());
    let dialer = pegboard::rmcp::transport(move || {
        let (read, write) = tokio::io::split(at.connect());
        let (inner, closed) = (AsyncRwTransport::new_client(read, write), told.clone());
        async move { io::Result::Ok(Clumsy { inner, closed }) }
    });
    let (board, tools) = board_over(dialer);
    let failed = call(&tools, "far.echo", json!({"text": "one"})).await;
    assert_eq!(failed.outcome.kind(), Kind::ToolError, "{failed:?}");
    assert!(failed.text().contains("it fell off the table"), "{}", failed.text());
    let note = tools.read_resource(&name("far"), "note:a").await.unwrap();
    assert_eq!(note[0].text(), Some("the note a"));
    board.shutdown().await;
    timeout(PATIENCE, closed.notified())
        .await
        .expect("the transport is closed");
}

/// The output of a process, which is killed when it is dropped.
struct Output {
    stdout: ChildStdout,
    _process: Child,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdout).poll_read(context, buffer)
    }
}

#[tokio::test]
async fn a_process_is_a_server_over_its_pipes() {
    let (program, args) = fake().command();
    let dialer = pegboard::rmcp::transport(move || {
        let mut command = Command::new(&program);
        command
            .args(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        async move {
            let mut process = command.spawn()?;
            let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
            let output = Output {
                stdout,
                _process: process,
            };
            io::Result::Ok((output, stdin))
        }
    });
    let (board, tools) = board_over(dialer);
    let reply = call(&tools, "far.echo", json!({"text": "from afar"})).await;
    assert!(reply.text().contains("from afar"), "{reply:?}");
    board.shutdown().await;
}
