//! What `login` and `logout` report: names, scopes and the causes of failures, for people and for programs.

use std::net::TcpListener;

use pegboard_testkit::oauth::follow_redirect;

use super::{
    home::{Home, Ran},
    sign_in::Site,
};

/// A setting for a redirect port that nothing else uses: a client is registered for its redirect address.
fn own_port() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("oauth = {{ callback_port = {port} }}")
}

#[test]
fn a_name_or_scope_that_means_nothing_is_wrong_usage() {
    let home = Home::new();
    home.config("[servers.fx]\nurl = 'http://127.0.0.1:1/mcp'\n");
    for args in [
        ["login", "fx", "--principal", ""],
        ["login", "fx", "--principal", " bob"],
        ["logout", "fx", "--principal", ""],
        ["login", "fx", "--scope", " "],
        ["login", "fx", "--scope", "a\"b"],
    ] {
        home.run(&args).ends_with(2).says("invalid value");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_in_one_option_are_all_requested_and_only_granted_ones_are_reported() {
    let site = Site::new().await;
    let (child, url) = site.begin(&["-o", "json", "--scope", "read other", "--scope", "write"]);
    assert!(url.contains("scope=read+other+write"), "{url}");
    let redirected = follow_redirect(&url, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    let document = Ran::end_of(child).ends_with(0).json();
    assert_eq!(document["scopes"], serde_json::json!(["read", "write"]), "{document}");
    assert_eq!(document["not_granted"], serde_json::json!(["other"]), "{document}");

    // Nothing but unknown scopes: the authorization server grants none of them.
    let command = site
        .home
        .pegboard(&["login", "fx", "--no-browser", "--timeout", "60", "--scope", "other"]);
    let (child, url, said) = Site::printed_with_messages(command);
    let redirected = follow_redirect(&url, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    Ran::end_of(child).ends_with(0);
    let said = said.join().unwrap();
    assert!(said.contains("did not grant these scopes: other"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_an_error_a_hint_and_a_code_in_json() {
    let site = Site::new().await;
    for verb in ["login", "logout"] {
        let document = site.home.run(&[verb, "nosuch", "-o", "json"]).ends_with(2).json();
        assert!(document["error"].as_str().unwrap().contains("`nosuch`"), "{document}");
        assert_eq!(document["code"], "usage", "{document}");
    }
    let late = site
        .home
        .run(&["login", "fx", "--no-browser", "--timeout", "4", "-o", "json"]);
    let document = late.ends_with(124).json();
    assert_eq!(document["code"], "timeout", "{document}");
    let hint = document["hint"].as_str().unwrap();
    assert!(
        hint.contains("`pegboard login fx`") && hint.contains("--new-client"),
        "{document}"
    );
    let document = site.home.run(&["logout", "fx", "-o", "json"]).ends_with(0).json();
    assert!(document["error"].is_null() && document["code"].is_null(), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_config_that_is_refused_names_its_settings() {
    let site = Site::new().await;
    site.home.config(&format!(
        "[servers.fx]\nurl = {:?}\n[servers.fx.oauth]\ngrant = 'client_credentials'\nissuer = {:?}\nclient_id = 'mine'\nclient_secret = 'wrong'\n",
        site.server.url(),
        site.issuer.url()
    ));
    let refused = site.home.run(&["call", "fx.hello"]);
    refused
        .ends_with(4)
        .says("refused the client of the config: invalid_client")
        .says("check `client_id` and `client_secret` in `oauth` or `auth` of server `fx`");
    site.home.run(&["status"]).says("`client_secret`");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_bound_although_that_is_required_name_the_setting() {
    let site = Site::with("oauth = { dpop = 'required' }").await;
    let refused = site.sign_in(&["-o", "json"]).await;
    let document = refused.ends_with(2).json();
    let (error, hint) = (document["error"].as_str().unwrap(), document["hint"].as_str().unwrap());
    assert!(error.contains("not bound to this program's key (DPoP)"), "{document}");
    assert!(hint.contains("dpop = \"auto\""), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_setting_of_dpop_says_that_it_needs_a_new_sign_in() {
    let site = Site::new().await;
    site.sign_in(&[]).await.ends_with(0);
    let url = site.server.url();
    site.home.config(&format!(
        "[servers.fx]\nurl = {url:?}\noauth = {{ dpop = 'required' }}\n"
    ));
    site.home
        .run(&["call", "fx.hello"])
        .ends_with(4)
        .says("`oauth.dpop` of the server was changed after the sign-in, so a new one is needed")
        .says("sign in with `pegboard login fx`");
    let status = site.home.run(&["status", "-o", "json"]).json();
    let row = status["servers"][0].to_string();
    assert!(
        row.contains("`oauth.dpop`") && row.contains("pegboard login fx"),
        "{status}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_a_sign_in_says_nothing_of_time_or_retries() {
    let site = Site::new().await;
    let refused = site.home.run(&["call", "fx.hello"]);
    refused.ends_with(4);
    assert!(
        !refused.err.contains("tried again") && !refused.err.contains("down for"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_only_the_browser_knows_to_be_gone_is_registered_anew_on_request() {
    let site = Site::with(&own_port()).await;
    site.sign_in(&[]).await.ends_with(0);
    let registered = site.issuer.count("/register");
    site.sign_in(&[]).await.ends_with(0);
    assert_eq!(site.issuer.count("/register"), registered);
    site.sign_in(&["--new-client"]).await.ends_with(0);
    assert_eq!(site.issuer.count("/register"), registered + 1);
    assert_eq!(site.home.run(&["call", "fx.hello"]).ends_with(0).out, "hi\n");

    let named = Site::with("oauth = { client_id = 'mine' }").await;
    named
        .home
        .run(&["login", "fx", "--new-client"])
        .ends_with(2)
        .says("the config names the client of `fx`")
        .says("`oauth.client_id`");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_texts_name_the_principal() {
    let site = Site::new().await;
    site.sign_in(&["--principal", "bob"])
        .await
        .ends_with(0)
        .prints("signed in to fx as bob\n");
    let late = site
        .home
        .run(&["login", "fx", "--no-browser", "--timeout", "4", "--principal", "b o"]);
    late.ends_with(124)
        .says("To sign in to fx as b o, open")
        .says("`pegboard login fx --principal 'b o'`");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sign_ins_are_listed_and_logout_all_ends_those_of_principals_too() {
    let site = Site::new().await;
    site.home
        .run(&["login", "--list"])
        .ends_with(0)
        .prints("nobody is signed in to any server\n");
    site.sign_in(&[]).await.ends_with(0);
    site.sign_in(&["--principal", "bob", "--scope", "read"])
        .await
        .ends_with(0);

    let listed = site.home.run(&["login", "--list", "-o", "json"]).ends_with(0).json();
    let rows = listed["sign_ins"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{listed}");
    let bob = rows.iter().find(|row| row["principal"] == "bob").unwrap();
    assert_eq!(bob["server"], "fx", "{bob}");
    assert_eq!(bob["issuer"], site.issuer.url());
    assert_eq!(bob["scopes"], serde_json::json!(["read"]));
    assert_eq!(bob["encrypted"], false);
    assert!(bob["expires_at"].as_str().unwrap().ends_with('Z'), "{bob}");
    let shown = site.home.run(&["login", "--list", "--principal", "bob"]);
    shown.ends_with(0).prints("fx").prints("bob").prints("read\n");
    assert_eq!(shown.out.lines().count(), 2, "{shown:?}");
    for token in site.issuer.issued() {
        assert!(!shown.out.contains(&token.value) && !listed.to_string().contains(&token.value));
    }

    // A name that nobody has signs nobody out, and the names that there are are said.
    site.home
        .run(&["logout", "fx", "--principal", "bbo"])
        .ends_with(0)
        .prints("nobody was signed in to fx as bbo\n")
        .says("these principals are signed in: bob");

    // The config does not name the server any more, and its sign-ins can still be ended.
    site.home.config("[servers.other]\nurl = 'http://127.0.0.1:1/mcp'\n");
    let listed = site.home.run(&["login", "--list", "-o", "json"]).json();
    assert!(listed["sign_ins"][0]["server"].is_null(), "{listed}");
    let ended = site.home.run(&["logout", "--all"]);
    let url = site.server.url();
    ended
        .ends_with(0)
        .prints(&format!("signed out of {url}; its tokens are revoked\n"));
    ended.prints(&format!("signed out of {url} as bob; its tokens are revoked\n"));
    site.home
        .run(&["logout", "--all"])
        .ends_with(0)
        .prints("nobody was signed in to any server\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_with_one_sign_in_are_named_together() {
    let site = Site::new().await;
    let url = site.server.url();
    site.home
        .config(&format!("[servers.fx]\nurl = {url:?}\n[servers.fy]\nurl = {url:?}\n"));
    let signed_in = site.sign_in(&[]).await;
    signed_in
        .ends_with(0)
        .prints("signed in to fx\n")
        .prints("fy uses this sign-in too: it has the same URL and settings\n");
    assert_eq!(site.home.run(&["call", "fy.hello"]).ends_with(0).out, "hi\n");
    let ended = site.home.run(&["logout", "--all"]);
    assert_eq!(
        ended.ends_with(0).out,
        "signed out of fx and of fy, which had the same sign-in; its tokens are revoked\n"
    );
}
