//! HTTP with SSE, as of 2024-11-05.

use std::time::Duration;

use pegboard_testkit::{FakeServer, Fault, NetHandle, Tool};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use crate::wires::{
    lines::{LIMIT, call},
    raw_http::{SHORT, send},
};

/// An open event stream.
struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    async fn open(server: &NetHandle) -> Self {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream
            .write_all(b"GET /sse HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n")
            .await
            .unwrap();
        Self(BufReader::new(stream).lines())
    }

    async fn data(&mut self, patience: Duration) -> Option<String> {
        let next = async {
            loop {
                let line = self.0.next_line().await.ok()??;
                if let Some(data) = line.strip_prefix("data: ") {
                    return Some(data.to_owned());
                }
            }
        };
        timeout(patience, next).await.ok()?
    }
}

fn fake() -> FakeServer {
    FakeServer::new("old").tool(Tool::new("t").answers_text("hi"))
}

#[tokio::test]
async fn answers_come_on_the_stream() {
    let server = fake().serve_sse().await.unwrap();
    assert!(server.url().ends_with("/sse"));
    let mut stream = Stream::open(&server).await;
    let endpoint = stream.data(LIMIT).await.unwrap();
    let line = format!("POST {endpoint}");
    let posted = send(
        server.address(),
        &line,
        &[],
        &call(1, "t", json!({})).to_string(),
        LIMIT,
    )
    .await
    .unwrap();
    assert_eq!(posted.status, 202);
    assert!(stream.data(LIMIT).await.unwrap().contains("hi"));
    assert_eq!(server.requests()[1].tool(), Some("t"));
}

#[tokio::test]
async fn a_post_to_the_stream_or_to_nobody_is_refused() {
    let server = fake().serve_sse().await.unwrap();
    let post = async |line: &str| send(server.address(), line, &[], "{}", LIMIT).await.unwrap().status;
    assert_eq!(post("POST /sse").await, 405);
    assert_eq!(post("POST /messages?session=nobody").await, 404);
}

#[tokio::test]
async fn the_endpoint_is_what_the_script_says() {
    let server = fake().fault(Fault::NoEndpoint).serve_sse().await.unwrap();
    assert_eq!(Stream::open(&server).await.data(SHORT).await, None);
    let elsewhere = Fault::Endpoint {
        url: "http://evil.example/x?s=SESSION".into(),
    };
    let server = fake().fault(elsewhere).serve_sse().await.unwrap();
    let endpoint = Stream::open(&server).await.data(LIMIT).await;
    assert_eq!(endpoint.as_deref(), Some("http://evil.example/x?s=sse-0"));
}

#[tokio::test]
async fn a_refused_post_is_not_carried_out() {
    let fault = Fault::Status {
        status: 503,
        headers: vec![],
        body: String::new(),
    };
    let server = fake().fault(fault).serve_sse().await.unwrap();
    let mut stream = Stream::open(&server).await;
    let line = format!("POST {}", stream.data(LIMIT).await.unwrap());
    let posted = send(
        server.address(),
        &line,
        &[],
        &call(1, "t", json!({})).to_string(),
        LIMIT,
    )
    .await
    .unwrap();
    assert_eq!(posted.status, 503);
    assert_eq!(stream.data(SHORT).await, None);
}
