//! Links, forms and redirects that must not work.

use axum::body::Body;
use http::{Request, StatusCode};
use pegboard_daemon::{Daemon, Reloads};
use pegboard_gateway::Gateway;
use pegboard_testkit::oauth::AuthFault;
use tower_service::Service as _;

use crate::sign_in::{
    browser::{Browser, send},
    fixture::{Site, secret, token},
};

#[tokio::test]
async fn a_link_that_was_used_is_unknown_or_of_another_browser_says_what_to_do() {
    let site = Site::new().await;
    let link = site.link("ada").await;
    // Programs that preview links do not use it up.
    let (mut late, mut quick) = (Browser::default(), Browser::default());
    let consent = late.open(&link).await;
    assert_eq!(consent.status, 200);
    let done = site.sign_in(&mut quick, &link, "ada").await;
    assert!(done.body.contains("You are signed in"), "{}", done.body);
    let refused = late.submit(&consent, "sign-in").await;
    assert_eq!(refused.status, 410, "{}", refused.body);
    for useless in [link.clone(), format!("{link}x"), site.at("/signin?link=").into()] {
        let page = Browser::default().open(&useless).await;
        assert_eq!(page.status, 410, "{useless}");
        assert!(page.body.contains("to get a new link"), "{}", page.body);
    }
    let page = quick.open(&link).await;
    assert!(
        page.body.contains("You are signed in"),
        "the browser that used it: {}",
        page.body
    );
    // The visit of the first browser is for one server, and that of the second for none any more.
    let mut pages = vec![quick.open(site.at("/signin/server/open").as_str()).await];
    for path in ["/signin/server/fx", "/signin"] {
        pages.push(late.open(site.at(path).as_str()).await);
    }
    for page in pages {
        assert_eq!(page.status, 401, "{}: {}", page.url, page.body);
        assert!(
            page.body.contains("the link was used in another browser"),
            "{}",
            page.body
        );
    }
    let page = Browser::default().open(site.at("/signin").as_str()).await;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("needs a sign-in link"), "{}", page.body);
    // A token that is removed takes its links and visits along.
    assert!(site.gateway.set_tokens(vec![token("bob")], true));
    let page = quick.open(site.at("/signin").as_str()).await;
    assert_eq!(page.status, 401);
    site.close().await;
}

#[tokio::test]
async fn only_a_form_of_the_visit_begins_a_sign_in() {
    let site = Site::new().await;
    let (mut ada, mut bob) = (Browser::default(), Browser::default());
    let of_ada = ada.open(&site.link("ada").await).await;
    let of_bob = bob.open(&site.link("bob").await).await;
    let to = site.at("/signin/server/fx");
    let own = site.url.origin().ascii_serialization();
    let good = format!("token={}&action=sign-in", of_ada.form_token());
    let foreign = format!("token={}&action=sign-in", of_bob.form_token());
    for (origin, form, status) in [
        (own.as_str(), foreign.as_str(), 403),
        (own.as_str(), "token=&action=sign-in", 403),
        (own.as_str(), "action=sign-in", 403),
        ("null", &good, 403),
        ("https://evil.example", &good, 403),
        ("http://localhost:3000", &good, 403),
    ] {
        let page = ada.request("POST", &to, &[("origin", origin)], form).await;
        assert_eq!(page.status, status, "{origin} {form}");
    }
    let page = ada
        .request(
            "POST",
            &to,
            &[("origin", &own), ("sec-fetch-site", "cross-site")],
            &good,
        )
        .await;
    assert_eq!(page.status, 403);
    let page = send("POST", &to, &[("origin", &own)], &good).await;
    assert_eq!(page.status, 401, "without the cookie");
    assert_eq!(site.issuer.count("/authorize") + site.issuer.count("/register"), 0);
    assert_eq!(ada.submit(&of_ada, "sign-in").await.status, 200);
    site.close().await;
}

#[tokio::test]
async fn a_visit_is_of_no_use_with_the_token_of_somebody_else() {
    let site = Site::new().await;
    let mut ada = Browser::default();
    let consent = ada.open(&site.link("ada").await).await;
    let (to, own) = (site.at("/signin/server/fx"), site.url.origin().ascii_serialization());
    let form = format!("token={}&action=sign-in", consent.form_token());
    for who in ["bob", "dan"] {
        let authorization = format!("Bearer {}", secret(who));
        let headers = [("origin", own.as_str()), ("authorization", &authorization)];
        let page = ada.request("POST", &to, &headers, &form).await;
        assert_eq!(page.status, 401, "{who}: {}", page.body);
    }
    // A client with the right to call needs no link, and has a visit of its own.
    let bob = format!("Bearer {}", secret("bob"));
    let cookies = ada.cookies().join("");
    let page = ada.request("GET", &to, &[("authorization", &bob)], "").await;
    assert!(
        page.body.contains("<b>bob</b>") && !page.body.contains("<b>ada</b>"),
        "{}",
        page.body
    );
    assert_ne!(ada.cookies().join(""), cookies);
    assert_eq!(site.issuer.count("/register"), 0);
    site.close().await;
}

#[tokio::test]
async fn a_redirect_is_taken_once_from_the_browser_that_began_the_sign_in() {
    let site = Site::new().await;
    let (mut ada, mut eve) = (Browser::default(), Browser::default());
    let consent = ada.open(&site.link("ada").await).await;
    let leaving = ada.submit(&consent, "sign-in").await;
    let at_issuer = send("GET", &leaving.refresh().parse().unwrap(), &[], "").await;
    let redirected = at_issuer.header("location").unwrap().to_owned();
    assert!(
        redirected.starts_with(site.at("/signin/callback?").as_str()),
        "{redirected}"
    );
    for browser in [&mut Browser::default(), &mut eve] {
        let page = browser.open(&redirected).await;
        assert_eq!(page.status, 400, "{}", page.body);
        assert!(page.body.contains("began in another browser"), "{}", page.body);
        // The second one has a visit of its own.
        browser.open(&site.link("bob").await).await;
        assert_eq!(browser.open(&redirected).await.status, 400);
    }
    let forged = redirected.replace("state=", "state=x");
    assert_eq!(ada.open(&forged).await.status, 400);
    assert!(site.needs_sign_in("ada").await);
    let page = ada.open(&redirected).await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    assert_eq!(ada.open(&redirected).await.status, 400, "a redirect counts once");
    assert_eq!(site.hello("ada").await, "hi");
    site.close().await;
}

#[tokio::test]
async fn a_sign_in_that_is_refused_or_fails_leads_to_a_page_with_a_way_back() {
    let site = Site::new().await;
    let mut ada = Browser::default();
    let link = site.link("ada").await;
    site.issuer
        .add_fault_times(1, AuthFault::CallbackError("access_denied"));
    let page = site.sign_in(&mut ada, &link, "ada").await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert!(
        page.body.contains("The sign-in was refused") && page.body.contains("Try again"),
        "{}",
        page.body
    );
    site.issuer
        .add_fault_times(1, AuthFault::TokenError("<script>alert(1)</script>"));
    let again = ada.open(site.at("/signin/server/fx").as_str()).await;
    let leaving = ada.submit(&again, "sign-in").await;
    let page = ada.open(&leaving.refresh()).await;
    assert_eq!(page.status, 502, "{}", page.body);
    assert!(!page.body.contains("<script"), "{}", page.body);
    assert!(page.body.contains("Try again"), "{}", page.body);
    site.close().await;
}

#[tokio::test]
async fn other_sites_may_lead_people_to_the_pages_and_nothing_else() {
    let site = Site::open().await;
    let from_elsewhere = |mode: &'static str, dest: &'static str| {
        [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", mode),
            ("sec-fetch-dest", dest),
        ]
    };
    for (method, path, mode, dest, status) in [
        ("GET", "/signin", "navigate", "document", 200),
        ("GET", "/signin", "navigate", "iframe", 403),
        ("GET", "/signin", "no-cors", "image", 403),
        ("GET", "/signin", "cors", "empty", 403),
        ("POST", "/signin/server/fx", "navigate", "document", 403),
        ("GET", "/api/v1/mcp/servers", "navigate", "document", 403),
    ] {
        let page = send(method, &site.at(path), &from_elsewhere(mode, dest), "").await;
        assert_eq!(page.status, status, "{method} {path} {mode} {dest}");
    }
    let page = send("GET", &site.at("/signin"), &[("host", "evil.example")], "").await;
    assert_eq!(page.status, 403);
    site.close().await;
}

#[tokio::test]
async fn over_tls_the_cookie_is_of_this_host_and_without_an_address_there_is_another_way() {
    let site = Site::new().await;
    for public_url in [Some("https://mcp.example.com"), None] {
        let mut builder = Gateway::for_board(site.board.clone()).unwrap().token(token("ada"));
        if let Some(url) = public_url {
            builder = builder.public_url(url);
        }
        let daemon = Daemon::new(site.board.clone(), Reloads::new().0).with_sign_in_links(builder.sign_in_links());
        let mut router = builder.fallback(daemon.router()).build().router();
        let mut ask = async |method: &str, path: &str| {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", "mcp.example.com");
            let request = request
                .header("authorization", "Bearer pgb_ada")
                .body(Body::empty())
                .unwrap();
            let response = router.call(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            (parts, String::from_utf8(body.to_vec()).unwrap())
        };
        let request_link = "/api/v1/mcp/servers/fx/signin";
        if public_url.is_none() {
            let request = Request::builder()
                .method("POST")
                .uri(request_link)
                .header("host", "localhost");
            let request = request
                .header("authorization", "Bearer pgb_ada")
                .body(Body::empty())
                .unwrap();
            let response = router.call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::CONFLICT);
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            assert!(
                String::from_utf8_lossy(&body).contains("run `pegboard login`"),
                "{body:?}"
            );
            continue;
        }
        let (parts, body) = ask("POST", request_link).await;
        assert_eq!(parts.status, StatusCode::OK, "{body}");
        let link = serde_json::from_str::<serde_json::Value>(&body).unwrap()["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = link.strip_prefix("https://mcp.example.com").unwrap();
        let (parts, _) = ask("GET", path).await;
        assert_eq!(parts.headers["location"], "https://mcp.example.com/signin/server/fx");
        let cookie = parts.headers["set-cookie"].to_str().unwrap();
        assert!(cookie.starts_with("__Host-pegboard-signin="), "{cookie}");
        for part in ["; Path=/;", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(!cookie.contains("Domain"));
    }
    site.close().await;
}
