//! Access tokens at `pegboard serve`: what the rules of the config make of claims, on every route, and after a reload.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

/// An authorization server that only publishes its key.
struct Issuer {
    url: String,
    key: Ed25519KeyPair,
}

impl Issuer {
    fn start() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": encode(key.public_key().as_ref())});
        let keys = json!({"keys": [jwk]}).to_string();
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                let _ = stream.read_line(&mut line);
                let is_keys = line.contains("/keys");
                while line != "\r\n"
                    && stream
                        .read_line({
                            line.clear();
                            &mut line
                        })
                        .unwrap_or(0)
                        > 0
                {}
                let body = if is_keys { &keys } else { &metadata };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { url, key }
    }

    /// The `Authorization` header of a holder with these claims.
    fn bearer(&self, more: &Value) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let mut claims = json!({"iss": self.url, "sub": "ada", "aud": "api://gateway", "exp": now.as_secs() + 600});
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = json!({"alg": "EdDSA", "kid": "k", "typ": "at+jwt"});
        let signed = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = encode(self.key.sign(signed.as_bytes()).as_ref());
        format!("Bearer {signed}.{signature}")
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A home with a server, a view, an audit log, and these rules.
fn home(issuer: &Issuer, rules: &str) -> Home {
    let home = Home::new();
    configure(&home, issuer, rules);
    home
}

fn configure(home: &Home, issuer: &Issuer, rules: &str) {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    let audit = home.path("audit.jsonl");
    home.config(&format!(
        "audit = '{}'\n[serve]\npublic_url = 'https://mcp.example.com'\n[serve.oauth]\nissuer = '{}'\naudience = 'api://gateway'\n{rules}\n\
         [views.coding]\ntools = ['read']\n{entry}",
        audit.display(),
        issuer.url
    ));
}

/// What a route answers to a request that its method and body are right for.
fn status(served: &Served, (method, path): (&str, &str), bearer: &str) -> u16 {
    let headers = [("Authorization", bearer)];
    let modern = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", if path == "/api/v1/mcp/call" { "" } else { "tools/call" }),
        (
            "Mcp-Name",
            if path.starts_with("/mcp/fx") {
                "read"
            } else {
                "fx__read"
            },
        ),
    ];
    if !path.starts_with("/mcp") {
        let body = json!({"name": "fx__read", "arguments": {}}).to_string();
        return served.send(method, path, &headers, &body).status;
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": modern[2].1, "arguments": {}, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    served
        .post(path, &[&headers[..], &modern].concat(), &request.to_string())
        .status
}

/// Calls a tool over the HTTP API, and returns whether the call was refused.
fn is_refused(served: &Served, bearer: &str, tool: &str) -> bool {
    let body = json!({"name": tool, "arguments": {}}).to_string();
    // The status of a stream does not say how the call ended.
    let headers = [("Authorization", bearer), ("Accept", "application/json")];
    let response = served.post("/api/v1/mcp/call", &headers, &body);
    assert!(matches!(response.status, 200 | 429), "{response:?}");
    response.status == 429
}

#[test]
fn each_user_of_an_access_token_has_the_rate_and_the_number_of_calls_of_its_rule() {
    let issuer = Issuer::start();
    let home = Home::new();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").answers_text("read it"))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers);
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    home.config(&format!(
        "[serve]\npublic_url = 'https://mcp.example.com'\n[serve.oauth]\nissuer = '{}'\naudience = 'api://gateway'\n\
         [[serve.oauth.rules]]\nclaim = 'groups'\nhas = 'few'\nrate = '2/h'\n\
         [[serve.oauth.rules]]\nconcurrent = 1\n{entry}",
        issuer.url
    ));
    let served = Served::start(&home, &[]);
    let user = |name: &str, group: &str| issuer.bearer(&json!({"sub": name, "groups": [group]}));
    let ada = user("ada", "few");
    until("the server is ready", || {
        let tools = served.tools_if_admitted("/mcp", &[("Authorization", &ada)]);
        tools.is_some_and(|tools| tools.len() == 2)
    });
    let refused = |bearer: &str| is_refused(&served, bearer, "fx__read");
    assert_eq!([&ada, &ada, &ada].map(|bearer| refused(bearer)), [false, false, true]);
    assert!(!refused(&user("bob", "few")), "another user has a rate of its own");
    // Another rule has no rate, but a number of calls at once.
    let eve = user("eve", "many");
    assert_eq!([&eve, &eve, &eve].map(|bearer| refused(bearer)), [false, false, false]);
    let before = home.log("fx").count("tools/call");
    let mut stream = served.connect();
    let body = json!({"name": "fx__mute", "arguments": {}}).to_string();
    served.write(&mut stream, "/api/v1/mcp/call", &[("Authorization", &eve)], &body);
    until("the call has arrived", || {
        home.log("fx").count("tools/call") == before + 1
    });
    assert!(refused(&eve));
    assert!(!refused(&user("mal", "many")), "another user has calls of its own");
}

#[test]
fn rules_make_views_and_scopes_of_claims_on_every_route() {
    let issuer = Issuer::start();
    let rules = "
        [[serve.oauth.rules]]
        claim = 'groups'
        has = 'sre'
        scopes = ['read', 'call', 'admin']
        [[serve.oauth.rules]]
        claim = 'groups'
        has = ['dev', 'qa']
        view = 'coding'
        [[serve.oauth.rules]]
        claim = 'scope'
        has = 'mcp:read'
        scopes = ['read']
    ";
    let home = home(&issuer, rules);
    let served = Served::start(&home, &["-v"]);
    let sre = issuer.bearer(&json!({"groups": ["x", "sre"]}));
    until("the server is there", || {
        let tools = served.tools_if_admitted("/mcp", &[("Authorization", &sre)]);
        tools.is_some_and(|tools| tools.len() == 2)
    });
    let qa = issuer.bearer(&json!({"groups": "qa"}));
    let reader = issuer.bearer(&json!({"scope": "openid mcp:read"}));
    let nobody = issuer.bearer(&json!({"groups": ["hr"]}));
    let stranger = issuer.bearer(&json!({"groups": ["sre"], "aud": "api://other"}));
    let routes = [
        ("POST", "/mcp"),
        ("POST", "/mcp/view/coding"),
        ("POST", "/mcp/fx"),
        ("POST", "/api/v1/mcp/call"),
        ("GET", "/api/v1/mcp/servers"),
        ("POST", "/api/v1/mcp/servers/fx/refresh"),
        ("GET", "/metrics"),
        ("GET", "/livez"),
    ];
    for (name, bearer, expected) in [
        ("sre", &sre, [200, 200, 200, 200, 200, 200, 200, 200]),
        ("qa", &qa, [200, 200, 403, 200, 200, 403, 403, 200]),
        ("reader", &reader, [403, 403, 403, 403, 200, 403, 200, 200]),
        ("nobody", &nobody, [403, 403, 403, 403, 403, 403, 403, 200]),
        ("stranger", &stranger, [401, 401, 401, 401, 401, 401, 401, 200]),
    ] {
        let statuses = routes.map(|route| status(&served, route, bearer));
        assert_eq!(statuses, expected, "{name}");
    }
    let tools = served.tools("/mcp", &[("Authorization", &qa)]);
    assert_eq!(tools, ["fx__read"], "the view hides the other tool");
    let anonymous = served.post("/mcp", &[("Host", "mcp.example.com")], "{}");
    let challenge = anonymous.header("www-authenticate").unwrap();
    let metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
    assert_eq!(anonymous.status, 401, "the host of `public_url` is admitted");
    assert!(
        challenge.contains(metadata) && challenge.contains(r#"scope="mcp:read""#),
        "{challenge}"
    );
    // The log says why tokens were refused, the audit log names who called, and no token is anywhere.
    served.says(r#"`aud` is "api://other", expected is "api://gateway""#);
    served.says(r#"the rules ask for groups = "sre", or groups = "dev", "qa", or scope = "mcp:read""#);
    served.signal("TERM");
    let err = served.err();
    assert_eq!(served.code(), Some(0));
    let audit = fs::read_to_string(home.path("audit.jsonl")).unwrap();
    assert!(audit.contains(&format!("{}#ada", issuer.url)), "{audit}");
    let log = fs::read_to_string(home.path("fx.log")).unwrap();
    for token in [&sre, &qa, &reader, &nobody, &stranger] {
        let signature = token.rsplit('.').next().unwrap();
        for text in [&audit, &log, &err] {
            assert!(!text.contains(signature), "{text}");
        }
    }
}

#[test]
fn a_reload_changes_the_rules_of_clients_that_are_connected() {
    let issuer = Issuer::start();
    let home = home(&issuer, "[[serve.oauth.rules]]\nclaim = 'groups'\nhas = 'sre'\n");
    let served = Served::start(&home, &[]);
    let bearer = issuer.bearer(&json!({"groups": ["sre"]}));
    let headers = [("Authorization", bearer.as_str())];
    let (session, _) = served.initialize("/mcp", &headers);
    let listed = |expected: u16| {
        let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}).to_string();
        let headers = [&headers[..], &[("Mcp-Session-Id", session.as_str())]].concat();
        served.post("/mcp", &headers, &body).status == expected
    };
    assert!(listed(200));
    configure(&home, &issuer, "[[serve.oauth.rules]]\nclaim = 'groups'\nhas = 'hr'\n");
    served.signal("HUP");
    until("the session has ended", || listed(403));
    configure(&home, &issuer, "[[serve.oauth.rules]]\nview = 'coding'\n");
    served.signal("HUP");
    until("everyone is admitted to the view", || {
        served
            .tools_if_admitted("/mcp", &headers)
            .is_some_and(|tools| tools == ["fx__read"])
    });
    assert!(listed(404), "the session was another one's");
}

#[test]
fn settings_with_errors_do_not_start_the_gateway() {
    let issuer = Issuer::start();
    for (rules, field) in [
        ("", "serve.oauth.rules"),
        ("[[serve.oauth.rules]]\nview = 'missing'\n", "serve.oauth.rules[0].view"),
        (
            "algorithms = ['HS256']\n[[serve.oauth.rules]]\n",
            "serve.oauth.algorithms",
        ),
        (
            "jwks_url = 'http://keys.example.com'\n[[serve.oauth.rules]]\n",
            "serve.oauth.jwks_url",
        ),
    ] {
        let home = home(&issuer, rules);
        home.run(&["serve", "--listen", "0"]).ends_with(2).says(field);
    }
}
