//! What a client cannot do to others: long bodies, many headers, slow reading, many connections.

use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::http::{
    client::{BOTH, Http, JSON, modern_call, modern_headers},
    service::{start, start_with},
};

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_without_being_read() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: {}\r\ncontent-type: {}\r\ncontent-length: 100000000\r\n\r\n",
        BOTH.1, JSON.1
    );
    http.write(head.as_bytes()).await;
    assert_eq!(http.response().await.status, 413);
    // A chunked body has no length to refuse, but ends at the limit.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = head.replace("content-length: 100000000", "transfer-encoding: chunked");
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let mut sent = 0;
    while sent < 100 && stream.write_all(&chunk).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "all of it was read");
}

#[tokio::test]
async fn the_limit_on_bodies_can_be_set() {
    let server = start_with(|builder| builder.max_body(1000)).await;
    let mut http = Http::connect(server.address).await;
    let body = modern_call(1, "echo");
    let padded = |length: usize| format!("{body}{}", " ".repeat(length - body.len()));
    let headers = modern_headers("echo");
    assert_eq!(http.ask("POST", "/mcp", &headers, &padded(1000)).await.status, 200);
    assert_eq!(http.ask("POST", "/mcp", &headers, &padded(1001)).await.status, 413);
}

#[tokio::test]
async fn header_floods_are_refused() {
    let server = start().await;
    let many: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(1 << 20));
    for flood in [many, long] {
        let mut http = Http::connect(server.address).await;
        // The server may close before it has read all of it.
        let request = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{flood}\r\n");
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        http.write(&request.as_bytes()[..request.len().min(60_000)]).await;
        if request.len() < 60_000 {
            assert_eq!(http.response().await.status, 431);
        }
    }
    let mut http = Http::connect(server.address).await;
    assert_eq!(http.ask("GET", "/livez", &[], "").await.status, 200);
}

#[tokio::test]
async fn a_head_has_64_kib_and_not_a_byte_more() {
    let server = start().await;
    let head = |length: usize| {
        let rest = "GET /livez HTTP/1.1\r\nhost: localhost\r\nx-long: \r\n\r\n".len();
        let long = "y".repeat(length - rest);
        format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n")
    };
    for (length, status) in [
        (60 * 1024, 200),
        (64 * 1024, 200),
        (64 * 1024 + 1, 431),
        (66 * 1024, 431),
    ] {
        let mut http = Http::connect(server.address).await;
        http.write(head(length).as_bytes()).await;
        assert_eq!(http.response().await.status, status, "{length}");
    }
}

/// RFC 9112, section 6.3: `Transfer-Encoding` decides, and the connection ends, because a proxy may have read the request differently.
#[tokio::test]
async fn a_request_with_two_lengths_smuggles_no_second_one() {
    let server = start().await;
    let hidden = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let body = modern_call(1, "echo");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for lengths in [
        ["transfer-encoding: chunked", "content-length: 5"],
        ["content-length: 5", "transfer-encoding: chunked"],
    ] {
        let mut http = Http::connect(server.address).await;
        let mut head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_owned();
        for (name, value) in modern_headers("echo") {
            head += &format!("{name}: {value}\r\n");
        }
        let head = format!("{head}{}\r\n", lengths.map(|line| format!("{line}\r\n")).concat());
        http.write(format!("{head}{chunked}{hidden}").as_bytes()).await;
        let response = http.response().await;
        assert_eq!((response.status, response.header("connection")), (200, "close"));
        assert_eq!(response.text(), "hello");
        assert_eq!(
            http.line().await,
            None,
            "{lengths:?}: the rest is not read as a request"
        );
    }
}

#[tokio::test]
async fn a_slow_reader_does_not_slow_another_client() {
    let server = start().await;
    // Few, so that the calls end long before a client that reads nothing is cut off, on a busy machine too.
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut http = Http::connect(server.address).await;
        http.send("POST", "/mcp", &modern_headers("big"), &modern_call(1, "big"))
            .await;
        slow.push(http);
    }
    let mut http = Http::connect(server.address).await;
    for id in 0..20 {
        let response = http
            .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(id, "echo"))
            .await;
        assert_eq!(response.text(), "hello");
    }
    let response = slow.remove(0).response().await;
    assert_eq!(response.text().len(), 8 * 1024 * 1024);
}

#[tokio::test]
async fn requests_in_flight_are_bounded() {
    let server = start_with(|builder| builder.max_in_flight(2)).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut http = Http::connect(server.address).await;
        http.send("POST", "/mcp", &modern_headers("wait"), &modern_call(1, "wait"))
            .await;
        waiting.push(http);
    }
    server.probe.until_waiting(2).await;
    let mut http = Http::connect(server.address).await;
    // The others wait until they are released below, so this response waited for none of them.
    let response = http
        .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(1, "echo"))
        .await;
    assert_eq!((response.status, response.header("retry-after")), (503, "1"));
    server.probe.release.notify_waiters();
    for mut http in waiting {
        assert_eq!(http.response().await.text(), "released");
    }
    let response = http
        .ask("POST", "/mcp", &modern_headers("echo"), &modern_call(1, "echo"))
        .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = start_with(|builder| builder.max_connections(2)).await;
    let (first, second) = (Http::connect(server.address).await, Http::connect(server.address).await);
    let mut third = Http::connect(server.address).await;
    third.send("GET", "/livez", &[], "").await;
    drop(first);
    assert_eq!(third.response().await.status, 200);
    drop(second);
}
