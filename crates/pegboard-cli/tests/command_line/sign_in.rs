//! `login` and `logout` against a real authorization server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use pegboard_testkit::{
    FakeServer, Tool,
    oauth::{AuthFault, AuthorizationServer, IssuerHandle, Protected, follow_redirect},
    refused_address,
};

use crate::home::{Home, Ran};

/// An authorization server, a server behind it, and a home whose config names only its URL.
pub(crate) struct Site {
    pub(crate) issuer: IssuerHandle,
    pub(crate) server: Protected,
    pub(crate) home: Home,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// With more settings of the server.
    pub(crate) async fn with(more: &str) -> Self {
        let issuer = AuthorizationServer::new().start().await.unwrap();
        let fake = FakeServer::new("fx").tool(Tool::new("hello").read_only().answers_text("hi"));
        let server = issuer.protect(&fake).await.unwrap();
        let home = Home::new();
        home.config(&format!("[servers.fx]\nurl = {:?}\n{more}\n", server.url()));
        Self { issuer, server, home }
    }

    /// Signs in without a browser on this machine, with more options.
    pub(crate) async fn sign_in(&self, options: &[&str]) -> Ran {
        let (child, url) = self.begin(options);
        let redirected = follow_redirect(&url, Some("alice")).await.unwrap();
        // The page is no redirect.
        let _ = follow_redirect(&redirected, None).await;
        Ran::end_of(child)
    }

    /// Begins a sign-in without a browser. Returns the command and the address that it prints.
    pub(crate) fn begin(&self, options: &[&str]) -> (Child, String) {
        let args = ["login", "fx", "--no-browser", "--timeout", "60"];
        Self::printed(self.home.pegboard(&[&args, options].concat()))
    }

    /// Starts a command that prints an address on a line of its own. Returns the command and the address.
    pub(crate) fn printed(command: Command) -> (Child, String) {
        // What it says afterwards is read, so that the command never blocks.
        let (child, url, _) = Self::printed_with_messages(command);
        (child, url)
    }

    /// Like [`Self::printed`], with what the command says afterwards.
    pub(crate) fn printed_with_messages(mut command: Command) -> (Child, String, JoinHandle<String>) {
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
        let rest = std::thread::spawn(move || std::io::read_to_string(messages).unwrap_or_default());
        (child, url.trim().to_owned(), rest)
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

    let (child, url) = site.begin(&[]);
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
    let (mut child, url) = site.begin(&[]);
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
    // What the server asked for is remembered, which is no sign-in.
    assert_eq!(site.home.run(&["call", "fx.hello"]).code, Some(4));
    let nobody = site.home.run(&["logout", "fx"]);
    assert_eq!(nobody.ends_with(0).out, "nobody was signed in to fx\n");
    assert_eq!(
        site.home.run(&["logout", "--all"]).ends_with(0).out,
        "nobody was signed in to any server\n"
    );

    site.sign_in(&[]).await.ends_with(0);
    let ended = site.home.run(&["logout", "fx"]);
    ended.ends_with(0).prints("signed out of fx; its tokens are revoked\n");
    assert!(site.issuer.count("/revoke") > 0);
    assert_eq!(site.home.run(&["call", "fx.hello"]).code, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_read_who_is_signed_in_for_how_long_and_with_what() {
    let site = Site::new().await;
    let signed_in = site
        .sign_in(&["-o", "json", "--principal", "alice"])
        .await
        .ends_with(0)
        .json();
    assert_eq!(signed_in["server"], "fx");
    assert_eq!(signed_in["principal"], "alice");
    assert_eq!(signed_in["state"], "signed_in");
    assert_eq!(signed_in["signed_in"], true);
    assert_eq!(signed_in["issuer"], site.issuer.url());
    assert!(signed_in["scopes"].is_array(), "{signed_in}");
    assert!(signed_in["expires_at"].as_str().unwrap().ends_with('Z'), "{signed_in}");

    // It is the sign-in of that principal alone.
    let other = site.home.run(&["logout", "fx", "-o", "json"]).ends_with(0).json();
    assert_eq!(other["servers"][0]["state"], "not_signed_in", "{other}");
    let ended = site.home.run(&["logout", "fx", "-o", "json", "--principal", "alice"]);
    let ended = ended.ends_with(0).json();
    let row = &ended["servers"][0];
    assert_eq!(
        (&row["state"], &row["revoked"]),
        (&"signed_out".into(), &true.into()),
        "{ended}"
    );
    assert_eq!(row["principal"], "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_cannot_be_revoked_are_removed_and_the_reason_is_said() {
    let site = Site::new().await;
    site.sign_in(&[]).await.ends_with(0);
    let Site { issuer, home, .. } = site;
    drop(issuer);
    home.run(&["logout", "fx"])
        .ends_with(0)
        .says("are not revoked: ")
        .says("stay valid until they expire");
    home.run(&["logout", "fx"]).ends_with(0).prints("nobody was signed in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_needs_no_sign_in_or_is_down_says_so() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"));
    let open = fake.serve_http().await.unwrap();
    home.config(&format!(
        "[servers.open]\nurl = {:?}\n[servers.down]\nurl = 'http://{}/mcp'\n",
        open.url(),
        refused_address().await.unwrap()
    ));
    home.run(&["login", "open"])
        .ends_with(0)
        .prints("open needs no sign-in: it answers without a token\n");
    let document = home.run(&["login", "open", "-o", "json"]).ends_with(0).json();
    assert_eq!(document["state"], "not_needed", "{document}");
    home.run(&["login", "down"])
        .ends_with(3)
        .says("server `down` cannot be reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_the_person_or_of_the_code_means_that_a_sign_in_is_still_needed() {
    let site = Site::new().await;
    site.issuer
        .add_fault_times(1, AuthFault::CallbackError("access_denied"));
    site.sign_in(&[]).await.ends_with(4);
    site.issuer.add_fault_times(1, AuthFault::TokenError("invalid_grant"));
    let refused = site.sign_in(&["-o", "json"]).await;
    let document = refused.ends_with(4).json();
    assert_eq!(document["state"], "failed", "{document}");
    assert!(
        document["error"].as_str().unwrap().contains("invalid_grant"),
        "{document}"
    );
    // After all that a sign-in is made as usual.
    site.sign_in(&[]).await.ends_with(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_the_authorization_server_forgot_registers_anew() {
    let site = Site::new().await;
    site.issuer.add_fault_times(1, AuthFault::TokenError("invalid_client"));
    let (child, url) = site.begin(&["-o", "json"]);
    let redirected = follow_redirect(&url, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    let document = Ran::end_of(child).ends_with(4).json();
    let (error, hint) = (document["error"].as_str().unwrap(), document["hint"].as_str().unwrap());
    assert!(error.contains("does not know this program any more"), "{document}");
    assert!(hint.contains("registers anew"), "{document}");
    let registrations = site.issuer.count("/register");
    site.sign_in(&[]).await.ends_with(0);
    assert!(site.issuer.count("/register") > registrations);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_this_machine_takes_no_sign_in() {
    let home = Home::new();
    let ran = home.run(&["--server", "x=true", "login", "x"]);
    ran.ends_with(2)
        .says("nobody can sign in to `x`: it is not a remote server");
    assert_eq!(home.run(&["login", "nobody"]).code, Some(2));
    home.config("[servers.none]\nurl = 'http://127.0.0.1:1/mcp'\nauth = 'none'\n[servers.held]\nurl = 'http://127.0.0.1:1/mcp'\nauth = { bearer = 'x' }\n");
    home.run(&["login", "none"])
        .ends_with(2)
        .says("its config says that it needs none")
        .says("remove `auth");
    home.run(&["login", "held"])
        .ends_with(2)
        .says("its config has other credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cause_of_missing_credentials_names_what_helps() {
    let site = Site::new().await;
    let url = site.server.url();
    let server = |name: &str, more: &str| format!("[servers.{name}]\nurl = {url:?}\n{more}\n");
    let missing = site.home.path("no-such-file").display().to_string();
    let written = site.home.write("token", "stale");
    site.home.config(
        &[
            server("person", ""),
            server("bearer", "auth = { bearer = 'wrong' }"),
            server("missing", &format!("auth = {{ bearer_file = {missing:?} }}")),
            server("stale", &format!("auth = {{ bearer_file = {written:?} }}")),
            server("helper", "headers_helper = ['false']"),
            server("key", "auth = { api_key = 'wrong', header = 'X-My-Key' }"),
            server("none", "auth = 'none'"),
        ]
        .concat(),
    );
    for (name, cause, hint) in [
        ("person", "nobody has signed in", "sign in with `pegboard login person`"),
        ("bearer", "HTTP 401", "`auth.bearer`"),
        ("stale", "HTTP 401", "`auth.bearer_file`"),
        ("key", "HTTP 401", "correct the credentials in `auth`"),
        ("none", "HTTP 401", "remove that (`auth = \"none\"`"),
    ] {
        let refused = site.home.run(&["call", &format!("{name}.hello")]);
        refused.ends_with(4).says(cause).says(hint);
        refused.says(&format!("server `{name}` has no valid credentials: "));
        assert!(!refused.err.contains("sign in to it"), "{refused:?}");
        assert!(!refused.err.contains("the program's `Credentials`"), "{refused:?}");
        // Servers that are not meant are not mentioned.
        let listed = site.home.run(&["tools", &format!("{name}.*")]);
        listed.ends_with(4).says(cause);
        assert_eq!(listed.err.matches("error:").count(), 1, "{listed:?}");
    }
    // A file or a program that does not work now may work later: nobody has to sign in.
    for (name, cause, hint) in [
        ("missing", "cannot be used", "`auth.bearer_file`"),
        ("helper", "of `headers_helper` failed", "`headers_helper` of the server"),
    ] {
        let failed = site.home.run(&["call", &format!("{name}.hello")]);
        failed.ends_with(3).says(cause).says(hint);
        assert!(!failed.err.contains("pegboard login"), "{failed:?}");
    }
    let status = site.home.run(&["status", "-o", "json"]).json();
    assert_eq!(status["tokens"]["storage"], "not_encrypted");
}
