//! Clients of both eras on every transport, which make one call and read its answer.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpStream, UnixStream},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

use crate::{
    call_fates::world::{Address, within},
    http_client::{BOTH, Event, Http, JSON, Response, modern_meta, request},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
    WebSocket,
    /// One message per line on the socket of the user.
    Lines,
    /// The HTTP API, with the reply as a document.
    Api,
    /// The HTTP API, with the reply as an event.
    ApiEvents,
}

/// The clients that there are. The API has no era.
pub(crate) const KINDS: [(Era, Transport); 9] = [
    (Era::Legacy, Transport::Http),
    (Era::Modern, Transport::Http),
    (Era::Legacy, Transport::Sse),
    (Era::Legacy, Transport::WebSocket),
    (Era::Modern, Transport::WebSocket),
    (Era::Legacy, Transport::Lines),
    (Era::Modern, Transport::Lines),
    (Era::Modern, Transport::Api),
    (Era::Modern, Transport::ApiEvents),
];

/// What a client reads.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status, if the answer is a response of HTTP.
    pub(crate) status: Option<u16>,
    has_retry_after: bool,
    body: Value,
}

impl Answer {
    /// Whether the call may have run, as the answer says; `None` if it has the result.
    pub(crate) fn may_have_executed(&self) -> Option<bool> {
        let body = &self.body;
        let meta = &body["result"]["_meta"]["pegboard/may_have_executed"];
        let said = [
            &body["error"]["data"]["may_have_executed"],
            meta,
            &body["may_have_executed"],
        ];
        if let Some(said) = said.into_iter().find_map(Value::as_bool) {
            return Some(said);
        }
        match body["status"].as_str()? {
            "done" => None,
            "refused" => Some(false),
            _ => body["outcome"]["may_have_executed"].as_bool(),
        }
    }

    pub(crate) fn is_result(&self) -> bool {
        self.body["result"]["content"][0]["text"] == "done" || self.body["text"] == "done"
    }

    /// Asserts that a reply of the API says which tool was called, and how far the call came.
    pub(crate) fn assert_complete(&self) {
        let body = &self.body;
        if body["outcome"].is_object() {
            assert_eq!(
                (body["server"].as_str(), body["tool"].as_str()),
                (Some("fx"), Some("act")),
                "{body}"
            );
            let was_sent = body["outcome"]["attempts"].as_u64().unwrap() > 0;
            assert_eq!(body["outcome"]["may_have_executed"], was_sent, "{body}");
            assert!(
                was_sent || body["outcome"]["queued_ms"].as_f64().unwrap() > 0.0,
                "{body}"
            );
            assert!(body.get("id_given").is_none(), "{body}");
        }
    }

    /// Whether a client would send the call again on its own.
    pub(crate) fn invites(&self) -> bool {
        self.has_retry_after
            || matches!(self.status, Some(401 | 404 | 429 | 503))
            || self.body["error"]["data"]["retry_after"].is_u64()
    }

    fn message(body: Value) -> Self {
        Self {
            status: None,
            has_retry_after: false,
            body,
        }
    }
}

pub(crate) struct Client {
    era: Era,
    token: String,
    wire: Wire,
}

enum Wire {
    Http {
        http: Http,
        address: std::net::SocketAddr,
        session: Option<String>,
        /// The id of the last event, if the response is a stream.
        last_event: Option<String>,
    },
    Sse {
        stream: Http,
        posts: Http,
        path: String,
    },
    WebSocket(Box<WebSocketStream<TcpStream>>),
    Lines(BufReader<UnixStream>),
    Api {
        http: Http,
        accept: &'static str,
    },
}

/// The id of the call.
const CALL: u64 = 7;

fn hello(version: &str) -> String {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    request(0, "initialize", &params)
}

impl Client {
    pub(crate) async fn connect(place: &impl Address, era: Era, transport: Transport) -> Self {
        let (address, token) = (place.address(), format!("Bearer {}", place.token()));
        let wire = match transport {
            Transport::Http => Wire::Http {
                http: Http::connect(address).await,
                address,
                session: match era {
                    Era::Legacy => Some(initialized(address, &token).await),
                    Era::Modern => None,
                },
                last_event: None,
            },
            Transport::Sse => {
                let (mut stream, mut posts) = (Http::connect(address).await, Http::connect(address).await);
                stream.ask("GET", "/sse", &[("authorization", &*token)], "").await;
                let path = stream.event().await.unwrap().data;
                let headers = [JSON, ("authorization", &*token)];
                posts.ask("POST", &path, &headers, &hello("2024-11-05")).await;
                stream.event().await.unwrap();
                Wire::Sse { stream, posts, path }
            }
            Transport::WebSocket => {
                let mut request = format!("ws://{address}/mcp").into_client_request().unwrap();
                request.headers_mut().insert("authorization", token.parse().unwrap());
                let stream = TcpStream::connect(address).await.unwrap();
                Wire::WebSocket(Box::new(client_async(request, stream).await.unwrap().0))
            }
            Transport::Lines => Wire::Lines(lines(place).await),
            Transport::Api => Wire::Api {
                http: Http::connect(address).await,
                accept: "application/json",
            },
            Transport::ApiEvents => Wire::Api {
                http: Http::connect(address).await,
                accept: "text/event-stream",
            },
        };
        let mut client = Self { era, token, wire };
        if era == Era::Legacy && matches!(client.wire, Wire::WebSocket(_) | Wire::Lines(_)) {
            client.send(&hello("2025-11-25")).await;
            assert!(client.message().await["result"].is_object());
        }
        client
    }

    /// Sends a call, and does not wait for its answer.
    pub(crate) async fn call(&mut self, tool: &str) {
        let name = format!("fx__{tool}");
        let mut params = json!({"name": name, "arguments": {}, "_meta": {}});
        if self.era == Era::Modern {
            params["_meta"] = modern_meta();
        }
        if matches!(tool, "report" | "brief") {
            params["_meta"]["progressToken"] = json!(1);
        }
        let body = request(CALL, "tools/call", &params);
        let authorization = ("authorization", &*self.token);
        match &mut self.wire {
            Wire::Http { http, session, .. } => {
                let headers = match session {
                    Some(session) => vec![BOTH, JSON, authorization, ("mcp-session-id", &**session)],
                    None => {
                        let version = ("mcp-protocol-version", "2026-07-28");
                        let method = ("mcp-method", "tools/call");
                        vec![BOTH, JSON, authorization, version, method, ("mcp-name", &name)]
                    }
                };
                http.send("POST", "/mcp", &headers, &body).await;
            }
            Wire::Sse { posts, path, .. } => {
                let response = posts.ask("POST", path, &[JSON, authorization], &body).await;
                assert_eq!(response.status, 202, "{response:?}");
            }
            Wire::WebSocket(_) | Wire::Lines(_) => self.send(&body).await,
            Wire::Api { http, accept } => {
                let body = json!({"name": format!("fx.{tool}")}).to_string();
                let headers = [JSON, authorization, ("accept", *accept)];
                http.send("POST", "/api/v1/mcp/call", &headers, &body).await;
            }
        }
    }

    /// Reads the answer to the call.
    pub(crate) async fn answer(&mut self) -> Answer {
        within("the answer", async {
            match &mut self.wire {
                Wire::Http { http, .. } => of_response(http).await,
                Wire::Api { http, .. } => of_response(http).await,
                Wire::Sse { .. } | Wire::WebSocket(_) | Wire::Lines(_) => Answer::message(self.message().await),
            }
        })
        .await
    }

    /// Reads the first event of the call and closes the connection.
    pub(crate) async fn lose_stream(&mut self) {
        let Wire::Http {
            http,
            address,
            last_event,
            ..
        } = &mut self.wire
        else {
            panic!("only HTTP has streams that can be resumed");
        };
        assert!(http.response().await.is_events());
        while !last_event.as_deref().is_some_and(|id| id.ends_with("-1")) {
            *last_event = http.event().await.unwrap().id;
        }
        *http = Http::connect(*address).await;
    }

    /// Asks for the rest of the stream.
    pub(crate) async fn come_back(&mut self) {
        let Wire::Http {
            http,
            session: Some(session),
            last_event: Some(last),
            ..
        } = &mut self.wire
        else {
            panic!("the client has lost no stream");
        };
        let headers = [
            BOTH,
            ("authorization", &*self.token),
            ("mcp-session-id", &**session),
            ("last-event-id", &**last),
        ];
        http.send("GET", "/mcp", &headers, "").await;
    }

    pub(crate) async fn delete_session(&self) {
        let Wire::Http {
            address,
            session: Some(session),
            ..
        } = &self.wire
        else {
            panic!("only legacy clients of HTTP have sessions");
        };
        let mut http = Http::connect(*address).await;
        let headers = [("authorization", &*self.token), ("mcp-session-id", &**session)];
        assert_eq!(http.ask("DELETE", "/mcp", &headers, "").await.status, 204);
    }

    async fn send(&mut self, message: &str) {
        match &mut self.wire {
            Wire::WebSocket(socket) => socket.send(Message::text(message)).await.unwrap(),
            Wire::Lines(lines) => lines.write_all(format!("{message}\n").as_bytes()).await.unwrap(),
            Wire::Http { .. } | Wire::Sse { .. } | Wire::Api { .. } => panic!("this is no connection"),
        }
    }

    /// The next response on a connection.
    async fn message(&mut self) -> Value {
        loop {
            let text = match &mut self.wire {
                Wire::Sse { stream, .. } => stream.event().await.unwrap().data,
                Wire::WebSocket(socket) => match socket.next().await.unwrap().unwrap() {
                    Message::Text(text) => text.to_string(),
                    Message::Ping(_) => continue,
                    other => panic!("{other:?}"),
                },
                Wire::Lines(lines) => {
                    let mut line = String::new();
                    assert_ne!(lines.read_line(&mut line).await.unwrap(), 0, "the connection has ended");
                    line
                }
                Wire::Http { .. } | Wire::Api { .. } => panic!("this is no connection"),
            };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

/// Opens a session.
async fn initialized(address: std::net::SocketAddr, token: &str) -> String {
    let mut http = Http::connect(address).await;
    crate::http_client::initialize(&mut http, "2025-11-25", &[("authorization", token)]).await
}

async fn lines(place: &impl Address) -> BufReader<UnixStream> {
    let mut stream = BufReader::new(UnixStream::connect(place.socket()).await.unwrap());
    let head = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: mcp-lines\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert_ne!(stream.read_line(&mut line).await.unwrap(), 0, "the upgrade is refused");
    }
    stream
}

async fn of_response(http: &mut Http) -> Answer {
    let response: Response = http.response().await;
    let body = if response.is_events() {
        loop {
            let event: Event = http.event().await.expect("the answer comes before the end");
            // The priming event has no data.
            if event.data.is_empty() {
                continue;
            }
            let message = event.json();
            if message.get("result").is_some() || message.get("error").is_some() || message.get("outcome").is_some() {
                break message;
            }
        }
    } else {
        response.json()
    };
    Answer {
        status: Some(response.status),
        has_retry_after: !response.header("retry-after").is_empty(),
        body,
    }
}
