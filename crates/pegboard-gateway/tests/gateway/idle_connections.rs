//! The memory that idle connections cost. It is measured for the whole process, which nextest gives to this test alone.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use pegboard_gateway::{Answer, Client, Description, Exchange, Gateway, Request, RpcError, Service};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The limit for both ends of a connection, which are in this process.
const BYTES_EACH: usize = 8 * 1024;

struct Silent;

impl Service for Silent {
    fn describe<'a>(&'a self, _: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        async { Ok(Description::default()) }.boxed()
    }

    fn handle(self: Arc<Self>, request: Request, _: Exchange) -> BoxFuture<'static, Answer> {
        async move { Err(RpcError::method_not_found(&request.method)) }.boxed()
    }
}

#[tokio::test]
async fn ten_thousand_idle_connections_cost_little_memory() {
    let gateway = Gateway::for_service(Arc::new(Silent)).unwrap().build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
    // Each connection needs two descriptors.
    let count = 10_000.min(open_files().saturating_sub(200) / 2);
    let before = resident();
    let mut idle = Vec::with_capacity(count);
    for _ in 0..count {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let mut last = TcpStream::connect(address).await.unwrap();
    last.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut response = String::new();
    last.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let each = resident().saturating_sub(before) / count;
    println!("{count} idle connections cost {each} bytes each, with the client's end");
    assert!(each < BYTES_EACH, "{each} bytes for each of {count} connections");
}

fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX)
}

fn resident() -> usize {
    let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
    sizes.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
