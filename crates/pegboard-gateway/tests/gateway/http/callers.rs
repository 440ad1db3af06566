//! Callers with access tokens, and the tokens that servers get for them: by exchange of the caller's token, or by a sign-in of the caller.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;
use pegboard::{
    Config, Env, Format, Pegboard, SignInOptions,
    config::{OAuthRule, ServeOAuth},
};
use pegboard_gateway::{Gateway, GatewayHost};
use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{AuthorizationServer, Client, IssuerHandle, Protected, Seen, TokenKind, follow_redirect},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::http::{
    client::{Http, Response, modern_call, modern_headers},
    door::token,
};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const USERS: [&str; 2] = ["ada", "bob"];

/// An authorization server, and a gateway that admits its users to servers behind it.
struct Site {
    issuer: IssuerHandle,
    board: Pegboard,
    address: SocketAddr,
    /// The store of the tokens.
    folder: TempDir,
}

/// A server with a tool for each user, so that a request says whose it is.
fn fake(name: &str) -> FakeServer {
    let tool = |user: &str| Tool::new(user).read_only().answers_text(format!("for {user}"));
    FakeServer::new(name).tool(tool("ada")).tool(tool("bob"))
}

impl Site {
    async fn start(issuer: IssuerHandle, config: &str) -> Self {
        let loaded = Config::from_text(config, Format::Toml, &Env::process());
        assert_eq!(loaded.problems, []);
        let folder = tempfile::tempdir().unwrap();
        let builder = Pegboard::builder(loaded.config).token_store(folder.path());
        let board = builder.host(GatewayHost).open();
        let mut settings = ServeOAuth::new(issuer.url());
        settings.audiences = vec!["api://gateway".to_owned()];
        settings.rules = vec![OAuthRule::for_everyone()];
        let builder = Gateway::for_board(board.clone()).unwrap();
        let gateway = builder.oauth(settings).token(token("script", "pgb_script")).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
        Self {
            issuer,
            board,
            address,
            folder,
        }
    }

    /// Checks that no token for the gateway is in the store.
    fn check_store(&self, inbound: &[String]) {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let files: Vec<_> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(!files.is_empty());
        for (file, token) in files
            .iter()
            .flat_map(|file| inbound.iter().map(move |token| (file, token)))
        {
            assert!(
                !String::from_utf8_lossy(file).contains(token),
                "a token for the gateway is stored"
            );
        }
    }

    /// A token of a user for the gateway.
    fn token(&self, user: &str) -> String {
        self.issuer.sign(&self.issuer.claims(user, "api://gateway"))
    }

    /// Calls a tool at the endpoint of all servers. Returns the response.
    async fn ask(&self, token: &str, (server, tool): (&str, &str)) -> Value {
        let mut answers = self.answers(token, "/mcp", &format!("{server}__{tool}"), 1).await;
        answers.remove(0).json()
    }

    /// Calls a tool so many times on one connection. Returns the results.
    async fn call(&self, token: &str, (server, tool): (&str, &str), times: usize) -> Vec<Value> {
        let answers = self.answers(token, &format!("/mcp/{server}"), tool, times).await;
        let result = |answer: Response| {
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.json()["result"].clone()
        };
        answers.into_iter().map(result).collect()
    }

    async fn answers(&self, token: &str, path: &str, tool: &str, times: usize) -> Vec<Response> {
        let bearer = format!("Bearer {token}");
        let headers = [&modern_headers(tool)[..], &[("authorization", &*bearer)]].concat();
        let mut http = Http::connect(self.address).await;
        let mut answers = Vec::new();
        for _ in 0..times {
            answers.push(http.ask("POST", path, &headers, &modern_call(1, tool)).await);
        }
        answers
    }
}

#[track_caller]
fn assert_for(user: &str, results: &[Value]) {
    for result in results {
        assert_eq!(result["content"][0]["text"], format!("for {user}"), "{result}");
    }
}

/// The table of a server that exchanges its caller's token.
fn exchanging(name: &str, server: &Protected, issuer: &IssuerHandle) -> String {
    format!(
        "[servers.{name}]\nurl = '{}'\n[servers.{name}.oauth]\ngrant = 'token_exchange'\nissuer = '{}'\nclient_id = 'gateway'\n\
         client_secret = 'of-the-gateway'\n",
        server.url(),
        issuer.url()
    )
}

/// Checks every request that reached a server: a call is made with a token for its user and this server, and nothing else is sent.
fn check(issuer: &IssuerHandle, server: &Protected, inbound: &[String]) {
    let issued = issuer.issued();
    let seen: Vec<Seen> = server.seen();
    for request in &seen {
        let Some(token) = &request.token else { continue };
        assert!(
            !inbound.contains(token),
            "a token for the gateway reached a server: {request:?}"
        );
        let token = issued.iter().find(|known| known.value == *token).unwrap();
        assert_eq!(token.kind, TokenKind::Access);
        assert_eq!(
            token.resource.as_deref(),
            Some(&*server.url()),
            "a token of another server"
        );
        if let Some(tool) = &request.tool {
            assert_eq!(*tool, token.subject, "a token of another user");
        }
    }
    let users: BTreeSet<&str> = seen.iter().filter_map(|seen| seen.subject.as_deref()).collect();
    assert_eq!(users, BTreeSet::from(USERS));
}

#[tokio::test]
async fn each_callers_token_is_exchanged_for_a_token_of_the_server() {
    let settings = AuthorizationServer::new().client(Client::new("gateway").secret("of-the-gateway"));
    let issuer = settings.start().await.unwrap();
    let (wiki, mail) = (
        issuer.protect(&fake("wiki")).await.unwrap(),
        issuer.protect(&fake("mail")).await.unwrap(),
    );
    let config = exchanging("wiki", &wiki, &issuer) + &exchanging("mail", &mail, &issuer);
    let site = Site::start(issuer, &config).await;
    let inbound = USERS.map(|user| site.token(user));
    for server in ["wiki", "mail"] {
        let calls = USERS.iter().zip(&inbound).flat_map(|(user, token)| {
            let site = &site;
            [(); 3].map(|()| async move { assert_for(user, &site.call(token, (server, user), 5).await) })
        });
        join_all(calls).await;
    }
    let stored = std::fs::read_dir(site.folder.path()).unwrap();
    assert_eq!(stored.count(), 0, "exchanged tokens are in memory only");
    for server in [&wiki, &mail] {
        check(&site.issuer, server, &inbound);
    }
    let requests = site.issuer.requests();
    let exchanges: Vec<_> = requests
        .iter()
        .filter(|request| request.parameter("grant_type") == Some(EXCHANGE))
        .collect();
    assert_eq!(exchanges.len(), 4, "one for each user and server");
    for (token, server) in inbound.iter().flat_map(|token| [(token, &wiki), (token, &mail)]) {
        let of_both = exchanges.iter().filter(|request| {
            request.parameter("subject_token") == Some(token) && request.parameter("resource") == Some(&server.url())
        });
        assert_eq!(of_both.count(), 1);
    }
    let elsewhere = requests
        .iter()
        .filter(|request| inbound.iter().any(|token| request.contains(token)));
    assert_eq!(
        elsewhere.count(),
        exchanges.len(),
        "the callers' tokens are sent for the exchange only"
    );
}

#[tokio::test]
async fn clients_of_one_user_with_other_rights_get_tokens_of_their_own() {
    let settings = AuthorizationServer::new().client(Client::new("gateway").secret("of-the-gateway"));
    let issuer = settings.start().await.unwrap();
    let wiki = issuer.protect(&fake("wiki")).await.unwrap();
    let config = exchanging("wiki", &wiki, &issuer);
    let site = Site::start(issuer, &config).await;
    let with_scope = |scope: &str| {
        let mut claims = site.issuer.claims("ada", "api://gateway");
        claims["scope"] = scope.into();
        site.issuer.sign(&claims)
    };
    // Each client calls a tool of its own, so that a request says whose it is.
    let clients = [("ada", with_scope("read")), ("bob", with_scope("read write"))];
    let calls = clients.iter().flat_map(|(tool, token)| {
        let site = &site;
        [(); 3].map(|()| async move { assert_for(tool, &site.call(token, ("wiki", tool), 5).await) })
    });
    join_all(calls).await;
    let requests = site.issuer.requests();
    let exchanges = requests
        .iter()
        .filter(|request| request.parameter("grant_type") == Some(EXCHANGE));
    let mut exchanged: Vec<&str> = exchanges
        .filter_map(|request| request.parameter("subject_token"))
        .collect();
    let mut inbound = [&*clients[0].1, &*clients[1].1];
    inbound.sort_unstable();
    exchanged.sort_unstable();
    assert_eq!(exchanged, inbound, "one for each token");
    let tokens_of = |tool: &str| -> BTreeSet<String> {
        let seen = wiki.seen().into_iter();
        seen.filter(|seen| seen.tool.as_deref() == Some(tool))
            .filter_map(|seen| seen.token)
            .collect()
    };
    let (of_ada, of_bob) = (tokens_of("ada"), tokens_of("bob"));
    assert_eq!((of_ada.len(), of_bob.len()), (1, 1));
    assert_ne!(
        of_ada, of_bob,
        "a client never uses what another one's token was exchanged for"
    );
    // A newer token with the same rights goes on with what the first one was exchanged for.
    let numbered = |number: &str| {
        let mut claims = site.issuer.claims("ada", "api://gateway");
        claims["scope"] = "read".into();
        claims["jti"] = number.into();
        site.issuer.sign(&claims)
    };
    assert_for("ada", &site.call(&numbered("2"), ("wiki", "ada"), 1).await);
    assert_eq!(tokens_of("ada"), of_ada);
    // What was obtained with tokens that ended is not used for those that come later.
    let later = SystemTime::now() + Duration::from_secs(2 * 3600);
    site.board.caller_tokens().expire(later);
    let third = numbered("3");
    assert_for("ada", &site.call(&third, ("wiki", "ada"), 1).await);
    let subjects = site.issuer.requests();
    let last = subjects
        .iter()
        .rfind(|request| request.parameter("grant_type") == Some(EXCHANGE));
    assert_eq!(last.unwrap().parameter("subject_token"), Some(&*third));
}

#[tokio::test]
async fn a_caller_without_a_token_to_exchange_is_told_so() {
    let settings = AuthorizationServer::new().client(Client::new("gateway").secret("of-the-gateway"));
    let issuer = settings.start().await.unwrap();
    let wiki = issuer.protect(&fake("wiki")).await.unwrap();
    let config = exchanging("wiki", &wiki, &issuer);
    let site = Site::start(issuer, &config).await;
    for _ in 0..2 {
        let refused = site.ask("pgb_script", ("wiki", "ada")).await.to_string();
        assert!(
            refused.contains("in exchange for the access token of the caller"),
            "{refused}"
        );
        assert_eq!(site.issuer.count("/token"), 0);
    }
    assert_for("ada", &site.call(&site.token("ada"), ("wiki", "ada"), 1).await);
    let refused = site.ask("pgb_script", ("wiki", "ada")).await.to_string();
    assert!(
        refused.contains("this caller has none"),
        "ada's token is not for others: {refused}"
    );
}

#[tokio::test]
async fn without_an_exchange_a_callers_token_reaches_nobody() {
    let issuer = AuthorizationServer::new().start().await.unwrap();
    let wiki = issuer.protect(&fake("wiki")).await.unwrap();
    let config = format!("[servers.wiki]\nurl = '{}'\n", wiki.url());
    let site = Site::start(issuer, &config).await;
    let canary = site.token("ada");
    let refused = site.ask(&canary, ("wiki", "ada")).await.to_string();
    assert!(!refused.contains(&canary), "{refused}");
    assert!(!site.board.caller_tokens().is_exchange_enabled());
    wiki.wait_refused(1).await;
    assert!(wiki.seen().iter().all(|seen| seen.token.is_none()), "{:?}", wiki.seen());
    let asked = [site.issuer.requests(), wiki.metadata_requests()].concat();
    assert!(asked.iter().all(|request| !request.contains(&canary)));
}

#[tokio::test]
async fn a_server_that_a_reload_adds_gets_tokens_for_callers_who_are_known_already() {
    let settings = AuthorizationServer::new().client(Client::new("gateway").secret("of-the-gateway"));
    let issuer = settings.start().await.unwrap();
    let wiki = issuer.protect(&fake("wiki")).await.unwrap();
    let config = exchanging("wiki", &wiki, &issuer);
    let site = Site::start(issuer, "").await;
    let token = site.token("ada");
    let mut http = Http::connect(site.address).await;
    let bearer = format!("Bearer {token}");
    let unknown = http.ask("GET", "/mcp/wiki", &[("authorization", &*bearer)], "").await;
    assert_eq!(unknown.status, 404, "the token is known now, and was not kept");
    let loaded = Config::from_text(&config, Format::Toml, &Env::process());
    site.board.apply(loaded.config).await;
    assert_for("ada", &site.call(&token, ("wiki", "ada"), 1).await);
}

#[tokio::test]
async fn two_users_with_sign_ins_of_their_own_call_the_same_servers_at_once() {
    let issuer = AuthorizationServer::new().start().await.unwrap();
    let (wiki, mail) = (
        issuer.protect(&fake("wiki")).await.unwrap(),
        issuer.protect(&fake("mail")).await.unwrap(),
    );
    let config = format!(
        "[servers.wiki]\nurl = '{}'\n[servers.mail]\nurl = '{}'\n",
        wiki.url(),
        mail.url()
    );
    let site = Site::start(issuer, &config).await;
    for (user, server) in USERS.iter().flat_map(|user| [(user, "wiki"), (user, "mail")]) {
        let options = SignInOptions::default().principal(format!("{}#{user}", site.issuer.url()));
        let signing_in = site.board.sign_in(server, options).await.unwrap();
        let redirected = follow_redirect(signing_in.url().as_str(), Some(user)).await.unwrap();
        signing_in.finish(&redirected).await.unwrap();
    }
    let inbound = USERS.map(|user| site.token(user));
    for round in 0..2 {
        let pairs = USERS.iter().zip(&inbound);
        let calls = pairs.flat_map(|(user, token)| [(user, token, "wiki"), (user, token, "mail")]);
        let calls = calls.flat_map(|(user, token, server)| {
            let site = &site;
            [(); 4].map(|()| async move { assert_for(user, &site.call(token, (server, user), 20).await) })
        });
        join_all(calls).await;
        if round == 0 {
            // All tokens are renewed while the users call at once.
            site.issuer.expire_access_tokens();
        }
    }
    site.check_store(&inbound);
    for server in [&wiki, &mail] {
        check(&site.issuer, server, &inbound);
        let calls = server
            .seen()
            .into_iter()
            .filter(|seen| seen.tool.is_some() && seen.refused.is_none());
        assert_eq!(calls.count(), 2 * 2 * 4 * 20);
    }
    let asked = site.issuer.requests();
    assert!(
        asked
            .iter()
            .all(|request| inbound.iter().all(|token| !request.contains(token)))
    );
}
