//! What people do on the pages.

use pegboard_testkit::oauth::AuthFault;
use serde_json::{Value, json};

use crate::sign_in::{
    browser::{Browser, send},
    fixture::Site,
};

#[tokio::test]
async fn two_people_sign_in_in_their_browsers_and_each_call_has_its_own_token() {
    let site = Site::new().await;
    let (mut first, mut second) = (Browser::default(), Browser::default());
    for who in ["ada", "bob"] {
        assert!(site.needs_sign_in(who).await);
    }
    let (of_ada, of_bob) = (site.link("ada").await, site.link("bob").await);
    assert_ne!(of_ada, of_bob);
    let consent = first.open(&of_ada).await;
    for shown in ["<b>ada</b>", "<b>fx</b>", &format!("<b>{}</b>", site.url.authority())] {
        assert!(consent.body.contains(shown), "{shown}: {}", consent.body);
    }
    assert_eq!(
        site.issuer.count("/authorize"),
        0,
        "nothing begins before the person agrees"
    );
    let done = site.sign_in(&mut first, &of_ada, "ada@idp").await;
    assert_eq!(
        (done.status, done.url.path()),
        (200, "/signin/server/fx"),
        "{}",
        done.body
    );
    assert!(done.body.contains("You are signed in to <b>fx</b>"), "{}", done.body);
    assert!(done.url.query().is_none());
    assert!(site.needs_sign_in("bob").await, "a sign-in is for one principal");
    let done = site.sign_in(&mut second, &of_bob, "bob@idp").await;
    assert!(done.body.contains("You are signed in"), "{}", done.body);
    // Without a restart.
    assert_eq!(site.hello("ada").await, "hi");
    assert_eq!(site.hello("bob").await, "hi");
    assert_eq!(site.hello("ada").await, "hi");
    let mut subjects: Vec<String> = site.server.seen().into_iter().filter_map(|seen| seen.subject).collect();
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects, ["ada@idp", "bob@idp"]);
    site.close().await;
}

#[tokio::test]
async fn a_person_signs_out_on_the_page_and_in_again() {
    let site = Site::new().await;
    let mut browser = Browser::default();
    let page = site.sign_in(&mut browser, &site.link("ada").await, "ada").await;
    assert_eq!(site.hello("ada").await, "hi");
    let page = browser.submit(&page, "sign-out").await;
    assert!(page.body.contains("Sign in to fx?"), "{}", page.body);
    assert!(
        page.body
            .contains("signed out of <b>fx</b>, and its tokens are revoked"),
        "{}",
        page.body
    );
    assert!(site.needs_sign_in("ada").await);
    // The visit goes on without another link.
    let leaving = browser.submit(&page, "sign-in").await;
    let page = browser.open(&leaving.refresh()).await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    assert_eq!(site.hello("ada").await, "hi");
    let Site { issuer, board, .. } = site;
    drop(issuer);
    let page = browser.submit(&page, "sign-out").await;
    assert!(
        page.body.contains("They are not revoked, and stay valid"),
        "{}",
        page.body
    );
    board.shutdown().await;
}

#[tokio::test]
async fn the_list_shows_the_servers_of_the_link_and_their_states() {
    let site = Site::new().await;
    let mut browser = Browser::default();
    let (_, document) = site.post("ada", "/api/v1/mcp/signin", "").await;
    let list = browser.open(document["url"].as_str().unwrap()).await;
    assert_eq!((list.status, list.url.path()), (200, "/signin"), "{}", list.body);
    assert!(list.body.contains(">fx</a> <span>not signed in"), "{}", list.body);
    assert!(
        !list.body.contains(">open</a>"),
        "its config has credentials: {}",
        list.body
    );
    site.hello("ada").await;
    let list = browser.open(site.at("/signin").as_str()).await;
    assert!(list.body.contains("<span>sign-in needed"), "{}", list.body);
    let page = browser.open(&list.between("<li><a href=\"", "\"").unwrap()).await;
    let leaving = browser.submit(&page, "sign-in").await;
    let page = browser.open(&leaving.refresh()).await;
    assert!(page.body.contains("All servers"), "{}", page.body);
    let list = browser.open(site.at("/signin").as_str()).await;
    assert!(list.body.contains("<span>signed in"), "{}", list.body);
    // A link for one view shows nothing else.
    let mut browser = Browser::default();
    let (_, document) = site.post("cleo", "/api/v1/mcp/signin", "").await;
    let list = browser.open(document["url"].as_str().unwrap()).await;
    assert!(
        list.body.contains("There is no server that takes a sign-in"),
        "{}",
        list.body
    );
    let page = browser.open(site.at("/signin/server/fx").as_str()).await;
    assert_eq!(page.status, 404);
    site.close().await;
}

#[tokio::test]
async fn without_tokens_the_page_is_for_the_user_of_the_machine() {
    let site = Site::open().await;
    let mut browser = Browser::default();
    let list = browser.open(site.at("/signin").as_str()).await;
    assert_eq!(list.status, 200, "{}", list.body);
    let page = browser.open(site.at("/signin/server/fx").as_str()).await;
    assert!(page.body.contains("the user of this machine"), "{}", page.body);
    let leaving = browser.submit(&page, "sign-in").await;
    let page = browser.open(&leaving.refresh()).await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    let reply = send(
        "POST",
        &site.at("/api/v1/mcp/call"),
        &[("content-type", "application/json")],
        r#"{"name": "fx.hello"}"#,
    )
    .await;
    assert!(reply.body.contains("\"hi\""), "{}", reply.body);
    // Under another name of the same machine the browser stays at that name.
    let mut local = site.url.clone();
    local.set_host(Some("localhost")).unwrap();
    let page = Browser::default()
        .open(local.join("/signin/server/fx").unwrap().as_str())
        .await;
    assert!(
        page.body.contains(&format!("action=\"{local}signin/server/fx\"")),
        "{}",
        page.body
    );
    site.close().await;
}

#[tokio::test]
async fn a_link_needs_the_right_to_call_and_a_server_that_the_token_sees() {
    let site = Site::new().await;
    for (who, path, status) in [
        ("dan", "/api/v1/mcp/servers/fx/signin", 403),
        ("dan", "/api/v1/mcp/signin", 403),
        ("cleo", "/api/v1/mcp/servers/fx/signin", 404),
        ("ada", "/api/v1/mcp/servers/nobody/signin", 404),
        ("ada", "/api/v1/mcp/servers/open/signin", 409),
        ("eve", "/api/v1/mcp/servers/fx/signin", 401),
    ] {
        let (answered, document) = site.post(who, path, "").await;
        assert_eq!(answered, status, "{who} {path}: {document}");
    }
    site.close().await;
}

#[tokio::test]
async fn an_operator_sees_who_has_signed_in_and_no_token() {
    let site = Site::new().await;
    for who in ["ada", "bob"] {
        let done = site.sign_in(&mut Browser::default(), &site.link(who).await, who).await;
        assert!(done.body.contains("You are signed in"), "{}", done.body);
    }
    let (status, document) = site.get("olga", "/api/v1/mcp/sign-ins").await;
    assert_eq!(status, 200, "{document}");
    let rows = document["sign_ins"].as_array().unwrap();
    let whose: Vec<_> = rows.iter().map(|row| (&row["server"], &row["principal"])).collect();
    assert_eq!(whose, [(&json!("fx"), &json!("ada")), (&json!("fx"), &json!("bob"))]);
    for row in rows {
        assert_eq!(row["issuer"], site.issuer.url());
        assert_eq!(row["renewable"], true);
        assert!(row["since"].as_str() < row["expires_at"].as_str(), "{row}");
    }
    for token in site.issuer.issued() {
        assert!(!document.to_string().contains(&token.value));
    }
    let (status, _) = site.get("ada", "/api/v1/mcp/sign-ins").await;
    assert_eq!(status, 403, "it needs the scope admin");
    site.close().await;
}

#[tokio::test]
async fn sign_ins_and_sign_outs_are_in_the_audit_log_with_whose_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let site = Site::with_settings(&format!("[audit]\nfile = {log:?}\n")).await;
    let mut browser = Browser::default();
    let link = site.link("ada").await;
    site.issuer
        .add_fault_times(1, AuthFault::CallbackError("access_denied"));
    site.sign_in(&mut browser, &link, "ada").await;
    let again = browser.open(site.at("/signin/server/fx").as_str()).await;
    let leaving = browser.submit(&again, "sign-in").await;
    let page = browser.open(&leaving.refresh()).await;
    browser.submit(&page, "sign-out").await;
    // Nobody is signed in any more, so nothing changes.
    browser.submit(&page, "sign-out").await;
    let (status, _) = site.post("bob", "/api/v1/mcp/signin", "").await;
    assert_eq!(status, 200);
    site.close().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let told: Vec<String> = records
        .iter()
        .filter(|record| record["event"] == "change")
        .map(|record| {
            ["principal", "action", "server", "outcome"]
                .map(|field| word(&record[field]))
                .join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "ada sign_in_link fx done",
            "ada sign_in fx refused",
            "ada sign_in fx done",
            "ada sign_out fx done",
            "bob sign_in_link - done",
        ]
    );
    let code = link.split_once("link=").unwrap().1;
    assert!(!text.contains(code));
}

#[tokio::test]
async fn a_server_without_sign_in_says_why_and_what_to_do() {
    let site = Site::new().await;
    let (status, problem) = site.post("ada", "/api/v1/mcp/servers/open/signin", "").await;
    assert_eq!(status, 409);
    assert_eq!(
        problem["detail"],
        "nobody can sign in to `open`: its config has other credentials for it"
    );
    assert!(problem["hint"].as_str().unwrap().contains("`auth`"), "{problem}");
    site.close().await;
}

#[tokio::test]
async fn a_person_registers_anew_where_the_authorization_server_has_forgotten_the_client() {
    let site = Site::new().await;
    let mut browser = Browser::default();
    let done = site.sign_in(&mut browser, &site.link("bob").await, "bob").await;
    assert!(done.body.contains("You are signed in"), "{}", done.body);
    let client = site.issuer.issued().pop().unwrap().client;
    site.issuer.forget_client(&client);
    let mut browser = Browser::default();
    let link = site.link("ada").await;
    let page = browser.open(&link).await;
    assert!(!page.body.contains("new registration"), "{}", page.body);
    // A form that the page does not have registers nothing.
    let leaving = browser.submit(&page, "sign-in-anew").await;
    assert!(leaving.refresh().contains(&client), "{}", leaving.body);
    let stuck = browser.open(&leaving.refresh()).await;
    assert_eq!(stuck.status, 400, "{}", stuck.body);
    assert_eq!(site.issuer.count("/register"), 1);
    // The person opens the link once more.
    let page = browser.open(&link).await;
    assert!(page.body.contains("Sign in with a new registration"), "{}", page.body);
    let leaving = browser.submit(&page, "sign-in-anew").await;
    let page = browser.open(&leaving.refresh()).await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    assert!(!page.body.contains("new registration"), "{}", page.body);
    assert_eq!(site.issuer.count("/register"), 2);
    assert_eq!(site.hello("ada").await, "hi");
    site.close().await;
}
