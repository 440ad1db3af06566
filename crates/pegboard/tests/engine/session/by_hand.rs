//! Handwritten servers, for bytes that no fake sends.

use pegboard::{Config, Pegboard};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

use crate::support::{halves, name};

/// A board with one server, `fx`, that has a tool `t`. `answer` gives the bytes of the response to every call.
pub(crate) fn answering(answer: impl Fn(u64) -> Vec<u8> + Clone + Send + Sync + 'static) -> Pegboard {
    dialing(move |stream| {
        tokio::spawn(serve(stream, answer.clone()));
    })
}

/// A board with one server, `fx`, whose end of the stream is given to `serve`.
pub(crate) fn dialing(serve: impl Fn(DuplexStream) + Send + Sync + 'static) -> Pegboard {
    let dialer = move || {
        let (ours, theirs) = duplex(64 << 10);
        serve(theirs);
        halves(ours)
    };
    Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer)
        .open()
}

/// The response of a healthy server to this message, unless it is a call.
pub(crate) fn plain_answer(message: &Value) -> Option<String> {
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "by hand", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
        _ => return None,
    };
    Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string() + "\n")
}

async fn serve(stream: DuplexStream, answer: impl Fn(u64) -> Vec<u8>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let bytes = match plain_answer(&message) {
            Some(text) => text.into_bytes(),
            None if message["method"] == "tools/call" => answer(message["id"].as_u64().unwrap()),
            None => continue,
        };
        if write.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
