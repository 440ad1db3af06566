//! Runs against a local server that speaks the API.

use std::sync::LazyLock;

use serde_json::Map;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
};

use super::*;
use pegboard_base::{
    caller::Caller,
    secret::{SafeUrl, Secret},
};

/// Answers one request, and returns the request.
async fn answering(answer: String) -> (SummaryModel, oneshot::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, asked) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        loop {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).await.unwrap();
            request.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        tell.send(String::from_utf8(request).unwrap()).unwrap();
        // The client may close the connection early.
        let _ = stream.write_all(answer.as_bytes()).await;
    });
    let model = SummaryModel::new(SafeUrl::parse(&url).unwrap(), "small").api_key(Secret::new("k3y"));
    (model, asked)
}

fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn request() -> SummaryRequest<'static> {
    static META: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let caller = Caller::new("call-1", "view", &META);
    SummaryRequest::new("k8s", "get_pods", "pod-1 crashed", 1000, caller).context("user: why?")
}

#[tokio::test]
async fn a_model_is_asked_in_the_shape_of_chat_completions() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "one pod crashed"}}]});
    let (model, asked) = answering(response("200 OK", &body.to_string())).await;
    let chat = ChatModel::new(model).unwrap();
    assert_eq!(chat.summarise(&request()).await.unwrap(), "one pod crashed");
    let asked = asked.await.unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(head.contains("authorization: Bearer k3y"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("small"), &json!(1000)));
    assert_eq!(
        (&body["messages"][0]["role"], &body["messages"][1]["role"]),
        (&json!("system"), &json!("user"))
    );
    let prompt = body["messages"][1]["content"].as_str().unwrap();
    assert!(
        prompt.contains("pod-1 crashed") && prompt.contains("user: why?"),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_model_that_gives_no_text_is_a_failure_that_names_no_secret() {
    let parts = json!({"choices": [{"message": {"content": [{"type": "text", "text": "in parts"}]}}]});
    let large = format!("{{\"choices\": \"{}\"}}", "x".repeat(2 << 20));
    for (answer, expected) in [
        (response("200 OK", &parts.to_string()), Ok("in parts")),
        (
            response("429 Too Many Requests", "key k3y is over its quota"),
            Err("the model answered with HTTP 429"),
        ),
        (response("302 Found", ""), Err("the model answered with HTTP 302")),
        (response("200 OK", "<html>"), Err("the model's answer is not JSON")),
        (response("200 OK", "{}"), Err("the model's answer has no text")),
        (
            response("200 OK", &large),
            Err("the model's answer is longer than a megabyte"),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_owned(),
            Err("the model did not answer"),
        ),
    ] {
        let (model, _asked) = answering(answer).await;
        let summary = ChatModel::new(model).unwrap().summarise(&request()).await;
        assert_eq!(
            summary.as_deref().map_err(ToString::to_string),
            expected.map_err(str::to_owned)
        );
    }
}

#[tokio::test]
async fn an_unreachable_model_is_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:pw@{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let chat = ChatModel::new(SummaryModel::new(SafeUrl::parse(&url).unwrap(), "small")).unwrap();
    let problem = chat.summarise(&request()).await.unwrap_err();
    assert_eq!(problem.to_string(), "the model could not be reached");
}

#[test]
fn the_address_may_be_the_base_of_the_api_or_the_whole() {
    for (given, expected) in [
        ("https://h/v1", "https://h/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        ("https://h", "https://h/chat/completions"),
        ("https://h/x/chat/completions?v=1", "https://h/x/chat/completions?v=1"),
    ] {
        assert_eq!(completions(&Url::parse(given).unwrap()).as_str(), expected);
    }
}
