//! `login` and `logout` against a real authorization server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
};

use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{AuthorizationServer, IssuerHandle, Protected, follow_redirect},
};

use crate::home::{Home, Ran};

/// An authorization server, a server behind it, and a home whose config names only its URL.
struct Site {
    issuer: IssuerHandle,
    _server: Protected,
    home: Home,
}

impl Site {
    async fn new() -> Self {
        let issuer = AuthorizationServer::new().start().await.unwrap();
        let fake = FakeServer::new("fx").tool(Tool::new("hello").read_only().answers_text("hi"));
        let server = issuer.protect(&fake).await.unwrap();
        let home = Home::new();
        home.config(&format!("[servers.fx]\nurl = {:?}\n", server.url()));
        Self {
            issuer,
            _server: server,
            home,
        }
    }

    /// Begins a sign-in without a browser. Returns the command and the address that it prints.
    fn begin(&self) -> (Child, String) {
        let mut command = self.home.pegboard(&["login", "fx", "--no-browser", "--timeout", "60"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut url = String::new();
        while !url.trim().starts_with("http") {
            url.clear();
            assert_ne!(
                messages.read_line(&mut url).unwrap(),
                0,
                "the command printed no address"
            );
        }
        // The rest is read, so that the command never blocks.
        std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
        (child, url.trim().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_in_the_browser_is_used_by_the_next_command() {
    let site = Site::new().await;
    let refused = site.home.run(&["call", "fx.hello"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let status = site.home.run(&["status", "-o", "json"]).json();
    let row = &status["servers"][0];
    assert_eq!(row["state"], "needs_auth", "{status}");
    assert!(row.to_string().contains("sign in with `pegboard login fx`"), "{status}");

    let (child, url) = site.begin();
    let redirected = follow_redirect(&url, Some("alice")).await.unwrap();
    // The browser follows the redirect to the command's listener, whose page is no redirect.
    let page = follow_redirect(&redirected, None).await.unwrap_err().to_string();
    assert!(page.contains("You are signed in"), "{page}");
    assert!(!page.contains("code="), "{page}");
    let ended = Ran::end_of(child);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "signed in to fx\n"));

    let called = site.home.run(&["call", "fx.hello"]);
    assert_eq!((called.code, called.out.as_str()), (Some(0), "hi\n"), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_address_signs_in_and_a_wrong_one_does_not() {
    let site = Site::new().await;
    let (mut child, url) = site.begin();
    let redirected = follow_redirect(&url, None).await.unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "http://127.0.0.1:1/callback?code=x&state=y").unwrap();
    writeln!(stdin, "{redirected}").unwrap();
    assert_eq!(Ran::end_of(child).code, Some(0));
    assert_eq!(site.home.run(&["call", "fx.hello"]).out, "hi\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_revokes_the_tokens_and_the_server_needs_a_sign_in_again() {
    let site = Site::new().await;
    let (child, url) = site.begin();
    let redirected = follow_redirect(&url, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    assert_eq!(Ran::end_of(child).code, Some(0));
    let ended = site.home.run(&["logout", "fx"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("revoked"), "{ended:?}");
    assert!(site.issuer.count("/revoke") > 0);
    assert_eq!(site.home.run(&["call", "fx.hello"]).code, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_this_machine_takes_no_sign_in() {
    let home = Home::new();
    let ran = home.run(&["--server", "x=true", "login", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(home.run(&["login", "nobody"]).code, Some(2));
}
