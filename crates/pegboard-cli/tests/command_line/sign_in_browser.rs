//! `login` with a browser, and at a terminal without one.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use pegboard_testkit::oauth::follow_redirect;

use super::{
    home::{Home, Ran, until},
    pty::{Terminal, left_on_screen},
    sign_in::Site,
};

/// A browser that writes its arguments to a file, and ends with this code.
fn browser(home: &Home, name: &str, code: i32) -> String {
    let seen = home.path(&format!("{name}.args"));
    let text = format!(
        "#!/bin/sh\necho \"$@\" > '{0}.part'\nmv '{0}.part' '{0}'\nexit {code}\n",
        seen.display()
    );
    let path = home.write(name, &text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

/// The address that the browser got.
fn opened(home: &Home, name: &str) -> String {
    let seen = home.path(&format!("{name}.args"));
    until("the browser is opened", || seen.exists());
    fs::read_to_string(seen).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_gets_an_address_that_leads_on_once_and_nothing_else() {
    let site = Site::new().await;
    let mut command = site.home.pegboard(&["login", "fx", "--timeout", "60"]);
    command.env("BROWSER", browser(&site.home, "browser", 0));
    let (child, printed) = Site::printed(command);
    // Other users can read the arguments of processes.
    let first = opened(&site.home, "browser");
    assert!(first.contains("/start/") && !first.contains('?'), "{first}");
    let led = follow_redirect(&first, None).await.unwrap();
    assert_eq!(led, printed);
    let redirected = follow_redirect(&led, Some("alice")).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    Ran::end_of(child).ends_with(0);
    assert_eq!(site.home.run(&["call", "fx.hello"]).out, "hi\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_whose_first_page_two_browsers_open_ends() {
    let site = Site::new().await;
    let mut command = site.home.pegboard(&["login", "fx", "--timeout", "60", "-o", "json"]);
    command.env("BROWSER", browser(&site.home, "browser", 0));
    let (child, _) = Site::printed(command);
    let first = opened(&site.home, "browser");
    let stolen = follow_redirect(&first, None).await.unwrap();
    let refused = follow_redirect(&first, None).await.unwrap_err().to_string();
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let document = Ran::end_of(child).ends_with(4).json();
    assert!(
        document["error"].as_str().unwrap().contains("two browsers"),
        "{document}"
    );
    // Nobody waits for the answer any more.
    let redirected = follow_redirect(&stolen, Some("mallory")).await.unwrap();
    assert!(follow_redirect(&redirected, None).await.is_err());
    assert_eq!(site.home.run(&["call", "fx.hello"]).code, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_fails_is_named_and_the_address_still_works() {
    let site = Site::new().await;
    let mut command = site.home.pegboard(&["login", "fx", "--timeout", "60"]);
    command.env("BROWSER", browser(&site.home, "broken", 3));
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let first = opened(&site.home, "broken");
    let led = follow_redirect(&first, None).await.unwrap();
    let redirected = follow_redirect(&led, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    // It may have been signed in before the browser's end was noticed, so only the exit code is sure here.
    Ran::end_of(child).ends_with(0);

    let mut command = site.home.pegboard(&["login", "fx", "--timeout", "4"]);
    command.env("BROWSER", "/nowhere/browser");
    Ran::of(command)
        .ends_with(124)
        .says("The browser cannot be opened (`/nowhere/browser` cannot be started")
        .says("Open the address above");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_without_a_browser_here_pastes_the_address_at_the_terminal() {
    let site = Site::new().await;
    let mut terminal = Terminal::start(&site.home, &["login", "fx"]);
    terminal.shows("and paste it here: ", 1);
    let shown = terminal.shown();
    let url = shown
        .split_whitespace()
        .find(|word| word.contains("/authorize?"))
        .unwrap();
    // The address to open is not the answer, and does not end the sign-in.
    terminal.types(&format!("{url}\n"));
    terminal.shows("This is the address to open in a browser.", 1);
    terminal.types("nonsense\n");
    terminal.shows("This is not the address that the browser ends at.", 1);
    let redirected = follow_redirect(url, Some("alice")).await.unwrap();
    terminal.types(&format!("{redirected}\n"));
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let left = left_on_screen(&shown);
    assert!(left.contains("signed in to fx"), "{left}");
    assert!(!left.contains("waiting for the sign-in"), "{left}");
    assert_eq!(site.home.run(&["call", "fx.hello"]).out, "hi\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_sign_in_leaves_nothing() {
    let site = Site::new().await;
    let (child, url) = site.begin(&[]);
    let query = url::Url::parse(&url).unwrap();
    let redirect = query.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1;
    let port = url::Url::parse(&redirect).unwrap().port().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    assert!(sent.success());
    Ran::end_of(child).ends_with(130);
    assert_eq!(site.issuer.token_requests("authorization_code"), 0);
    assert_eq!(site.home.run(&["logout", "fx"]).out, "nobody was signed in to fx\n");
    assert_eq!(site.home.run(&["call", "fx.hello"]).code, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_ends_with_its_time_and_needs_its_port() {
    let site = Site::new().await;
    let late = site.home.run(&["login", "fx", "--no-browser", "--timeout", "4"]);
    late.ends_with(124).says("the timeout passed");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let busy = Site::with(&format!("oauth = {{ callback_port = {port} }}")).await;
    busy.home
        .run(&["login", "fx", "--no-browser"])
        .ends_with(3)
        .says(&format!("port {port} of this machine"))
        .says("`oauth.callback_port`");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_addresses_of_localhost_lead_to_the_command() {
    let site = Site::with("oauth = { callback_host = 'localhost' }").await;
    if TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let (child, url) = site.begin(&[]);
    let redirected = follow_redirect(&url, None).await.unwrap();
    assert!(redirected.starts_with("http://localhost:"), "{redirected}");
    let by_ipv6 = redirected.replacen("localhost", "[::1]", 1);
    let page = follow_redirect(&by_ipv6, None).await.unwrap_err().to_string();
    assert!(page.contains("You are signed in"), "{page}");
    Ran::end_of(child).ends_with(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_scope_than_before_is_requested_by_a_client_that_may_have_it() {
    // A client is registered for its redirect address.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = Site::with(&format!("oauth = {{ callback_port = {port} }}")).await;
    site.sign_in(&["--scope", "read"]).await.ends_with(0);
    let registered = site.issuer.count("/register");
    site.sign_in(&["--scope", "write"]).await.ends_with(0);
    assert_eq!(site.issuer.count("/register"), registered + 1);
    site.sign_in(&["--scope", "write"]).await.ends_with(0);
    assert_eq!(site.issuer.count("/register"), registered + 1);
}
