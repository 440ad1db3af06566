//! A gateway in a service of a program: its own authentication, a view for each user, the credentials of each user, and other routes.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::Request,
    middleware,
    routing::{any_service, get},
};
use pegboard::{
    Config, Credential, Credentials, NativeTool, Pegboard, Principal, Selection, ServerConfig, View,
    approval::{Decision, Question},
    config::Approval,
    credential::credentials,
};
use pegboard_gateway::{AuthError, Gateway, GatewayHost};
use pegboard_testkit::{FakeServer, NetHandle, Tool};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc},
};

use crate::http::client::{BOTH, Http, JSON, initialize, modern_call, modern_headers, modern_meta, request};

/// The principal that a layer of the program has found.
async fn sign_in(mut request: Request, next: middleware::Next) -> axum::response::Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    if let Some(user) = user.map(Principal::new) {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}

/// A service with two users of a remote server: `ada` sees all its tools, others only those that tell who they are.
async fn start() -> (SocketAddr, Arc<NetHandle>, Gateway) {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("whoami").read_only().shows_caller())
        .tool(Tool::new("act").shows_caller());
    let remote = Arc::new(fake.serve_http().await.unwrap());
    let server = ServerConfig::http(remote.url())
        .unwrap()
        .trusted()
        .approval(Approval::Writes);
    let board = Pegboard::builder(Config::new().server("fx", server).unwrap())
        .host(GatewayHost)
        .open();
    let vault: Arc<dyn Credentials> = Arc::new(credentials(|request| {
        let owner = request.principal.map_or("the board", Principal::as_str);
        let token = format!("{owner}.secret-token");
        Box::pin(async move { Ok(Credential::bearer(token)) })
    }));
    let gateway = Gateway::for_board(board)
        .unwrap()
        .authenticate(|head| {
            let user = head.extensions.get::<Principal>().cloned();
            Box::pin(async move {
                match user {
                    Some(user) if user.as_str() == "eve" => Err(AuthError::Forbidden),
                    user => user.ok_or(AuthError::Unauthenticated),
                }
            })
        })
        .view(move |caller| {
            let user = caller.principal().map_or("nobody", Principal::as_str).to_owned();
            let greeted = user.clone();
            let greet = NativeTool::new("greet", "Greets.", json!({"type": "object"}), move |_| {
                let user = greeted.clone();
                async move { Ok(format!("hello {user}")) }
            });
            let view = View::new().tools(greet).credentials(vault.clone());
            match &*user {
                "ada" => view.approver(|_: &Question<'_>| Decision::Once),
                _ => view.selection(Selection::new().tools("fx", ["whoami"])),
            }
        })
        .server_info("acme-agents", "7")
        .build();
    let app = Router::new()
        .route("/about", get(|| async { "acme" }))
        .fallback_service(gateway.router())
        .layer(middleware::from_fn(sign_in));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, remote, gateway)
}

/// Serves a gateway without other routes.
async fn serve(gateway: &Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = gateway.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Makes a call as a user, on a connection of its own.
async fn call(address: SocketAddr, user: &str, tool: &str) -> crate::http::client::Response {
    let headers = [&modern_headers(tool)[..], &[("x-user", user)]].concat();
    let mut http = Http::connect(address).await;
    http.ask("POST", "/mcp", &headers, &modern_call(1, tool)).await
}

#[tokio::test]
async fn each_user_has_the_view_and_the_credentials_of_that_user() {
    let (address, remote, _gateway) = start().await;
    for user in ["ada", "bob", "ada"] {
        assert_eq!(call(address, user, "greet").await.text(), format!("hello {user}"));
        let told = call(address, user, "fx__whoami").await.json();
        assert_ne!(told["result"]["isError"], true, "{told}");
        let calls = remote.requests();
        let last = calls
            .iter()
            .rfind(|received| received.tool() == Some("whoami"))
            .unwrap();
        assert_eq!(
            last.header("authorization"),
            Some(&*format!("Bearer {user}.secret-token"))
        );
    }
    // The approver of the view decides, and nobody else is asked.
    let acted = call(address, "ada", "fx__act").await.json();
    assert_eq!(acted["result"]["structuredContent"]["owner"], "ada", "{acted}");
    let refused = call(address, "bob", "fx__act").await.json();
    assert!(refused["result"]["structuredContent"].is_null(), "{refused}");
    let calls = remote.requests();
    let acts = calls.iter().filter(|received| received.tool() == Some("act"));
    assert_eq!(acts.count(), 1);
}

#[tokio::test]
async fn who_is_not_admitted_gets_nothing_and_other_routes_are_the_program_s() {
    let (address, _remote, _gateway) = start().await;
    let mut http = Http::connect(address).await;
    for (user, status) in [(None, 401), (Some("eve"), 403), (Some("bob"), 200)] {
        let user = user.map(|user| ("x-user", user));
        let headers: Vec<_> = modern_headers("greet").into_iter().chain(user).collect();
        let response = http.ask("POST", "/mcp", &headers, &modern_call(1, "greet")).await;
        assert_eq!(response.status, status, "{user:?}");
    }
    assert_eq!(http.ask("GET", "/about", &[], "").await.body, b"acme");
    // They would show more than the view of the user.
    for path in ["/mcp/fx", "/mcp/view/any", "/approved/mcp/fx"] {
        let headers: Vec<_> = modern_headers("greet").into_iter().chain([("x-user", "bob")]).collect();
        let response = http.ask("POST", path, &headers, &modern_call(1, "greet")).await;
        assert!([401, 404].contains(&response.status), "{path}: {}", response.status);
    }
}

#[tokio::test]
async fn a_session_is_its_user_s_and_the_service_has_its_own_name() {
    let (address, _remote, _gateway) = start().await;
    let mut http = Http::connect(address).await;
    let params = json!({"_meta": modern_meta()});
    let headers = [
        BOTH,
        JSON,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
        ("x-user", "ada"),
    ];
    let discovered = http
        .ask("POST", "/mcp", &headers, &request(1, "server/discover", &params))
        .await
        .json();
    assert!(
        discovered.to_string().contains(r#""name":"acme-agents","version":"7""#),
        "{discovered}"
    );
    let session = initialize(&mut http, "2025-11-25", &[("x-user", "ada")]).await;
    for (user, is_known) in [("ada", true), ("bob", false)] {
        let headers = [BOTH, JSON, ("mcp-session-id", &*session), ("x-user", user)];
        let response = http
            .ask("POST", "/mcp", &headers, &request(2, "tools/list", &json!({})))
            .await;
        assert_eq!(response.status == 200, is_known, "{user}");
    }
}

#[tokio::test]
async fn what_a_user_has_open_ends_when_the_program_says_so() {
    let (address, _remote, gateway) = start().await;
    let mut http = Http::connect(address).await;
    let mut sessions = Vec::new();
    for user in ["ada", "bob"] {
        sessions.push((user, initialize(&mut http, "2025-11-25", &[("x-user", user)]).await));
    }
    gateway.end(&"ada".into());
    for (user, session) in &sessions {
        let headers = [BOTH, JSON, ("mcp-session-id", session), ("x-user", user)];
        let mut http = Http::connect(address).await;
        let response = http
            .ask("POST", "/mcp", &headers, &request(2, "tools/list", &json!({})))
            .await;
        let expected = if *user == "ada" { 404 } else { 200 };
        assert_eq!(response.status, expected, "{user}: {}", response.text());
    }
    assert_eq!(
        call(address, "ada", "greet").await.text(),
        "hello ada",
        "she is admitted again"
    );
}

#[tokio::test]
async fn a_request_that_is_being_authenticated_while_its_user_signs_out_is_asked_about_again() {
    let sessions = Arc::new(Mutex::new(HashMap::from([("c00kie", "ada")])));
    let (asked, mut was_asked) = mpsc::channel(1);
    let go_on = Arc::new(Notify::new());
    let (rows, goes_on) = (sessions.clone(), go_on.clone());
    let gateway = Gateway::for_board(Pegboard::open(Config::new()))
        .unwrap()
        .authenticate(move |_| {
            let user = rows.lock().unwrap().get("c00kie").copied();
            let (asked, goes_on) = (asked.clone(), goes_on.clone());
            Box::pin(async move {
                // The row was read; the answer comes after the sign-out.
                if user.is_some() {
                    asked.send(()).await.unwrap();
                    goes_on.notified().await;
                }
                user.map(Principal::from).ok_or(AuthError::Unauthenticated)
            })
        })
        .build();
    let address = serve(&gateway).await;
    let headers = modern_headers("greet");
    let request = tokio::spawn(async move {
        let mut http = Http::connect(address).await;
        http.ask("POST", "/mcp", &headers, &modern_call(1, "greet"))
            .await
            .status
    });
    was_asked.recv().await.unwrap();
    sessions.lock().unwrap().clear();
    gateway.end(&"ada".into());
    go_on.notify_one();
    assert_eq!(request.await.unwrap(), 401);
}

#[tokio::test]
async fn a_panic_of_the_program_s_authentication_refuses_that_request_only() {
    let gateway = Gateway::for_board(Pegboard::open(Config::new()))
        .unwrap()
        .authenticate(|head| {
            assert!(head.headers.contains_key("x-user"), "a defect of the program");
            Box::pin(async { Ok("ada".into()) })
        })
        .build();
    let mut http = Http::connect(serve(&gateway).await).await;
    for (user, status) in [(None, 503), (Some("ada"), 200)] {
        let user = user.map(|user| ("x-user", user));
        let headers: Vec<_> = modern_headers("greet").into_iter().chain(user).collect();
        let response = http.ask("POST", "/mcp", &headers, &modern_call(1, "greet")).await;
        assert_eq!(response.status, status, "{}", response.text());
    }
}

/// The limit on texts for a model is not for clients, which have limits of their own.
#[tokio::test]
async fn a_view_of_the_program_leaves_results_as_long_as_they_are() {
    let long = "word ".repeat(20_000);
    let text = long.clone();
    let gateway = Gateway::for_board(Pegboard::open(Config::new()))
        .unwrap()
        .authenticate(|_| Box::pin(async { Ok("ada".into()) }))
        .view(move |_| {
            let text = text.clone();
            View::new().tools(NativeTool::new(
                "read",
                "Reads.",
                json!({"type": "object"}),
                move |_| {
                    let text = text.clone();
                    async move { Ok(text) }
                },
            ))
        })
        .build();
    assert_eq!(call(serve(&gateway).await, "ada", "read").await.text(), long);
}

#[tokio::test]
async fn a_server_of_the_program_ends_although_clients_listen() {
    let gateway = Gateway::for_board(Pegboard::open(Config::new())).unwrap().build();
    let app = Router::new().route("/mcp", any_service(gateway.router()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let signal = async { drop(stopped.await) };
        axum::serve(listener, app).with_graceful_shutdown(signal).await
    });
    let mut http = Http::connect(address).await;
    let session = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", &*session)];
    http.send("GET", "/mcp", &headers, "").await;
    assert!(http.response().await.is_events());
    gateway.stop();
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), serving).await;
    ended.expect("it ends").unwrap().unwrap();
}
