//! What people and agents are told to do about a sign-in: each text names the command or the setting that helps.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Stdio,
};

use pegboard_testkit::oauth::{AuthFault, follow_redirect};
use serde_json::json;

use super::{
    gateway::Served,
    home::{Home, Ran},
    mcp::Mcp,
    sign_in::Site,
};

/// What an agent on stdio finds before and after the sign-in of its user.
async fn on_stdio_the_user_is_told_the_command(site: &Site) {
    let (mut mcp, _) = Mcp::start(&site.home, &[]);
    assert_eq!(mcp.ready(), ["fx__sign_in"]);
    let told = mcp.ask("tools/call", &json!({"name": "fx__sign_in", "arguments": {}}));
    let text = told["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Tell the user to run `pegboard login fx`"), "{told}");
    assert!(!text.contains("Go on without it"), "{told}");
    assert_eq!(told["result"]["isError"], false, "{told}");
    let refused = mcp.ask("tools/call", &json!({"name": "fx__hello", "arguments": {}}));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Tell the user to run `pegboard login fx`"), "{refused}");
    assert_eq!(refused["result"]["isError"], true, "{refused}");

    site.sign_in(&[]).await.ends_with(0);
    super::home::until("the server's own tools are listed", || mcp.ready() == ["fx__hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_on_stdio_is_told_which_command_signs_in() {
    on_stdio_the_user_is_told_the_command(&Site::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_on_stdio_is_told_which_command_signs_in_to_a_server_of_the_daemon() {
    let site = Site::new().await;
    let daemon = Served::start(&site.home, &[]);
    on_stdio_the_user_is_told_the_command(&site).await;
    drop(daemon);
}

/// A server that refuses every request to `/mcp` with these headers, and has nothing else.
fn without_authorization_server(headers: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            let is_server = String::from_utf8_lossy(&request[..count])
                .split(' ')
                .nth(1)
                .is_some_and(|path| path == "/mcp");
            let (status, headers) = if is_server { ("401 No", headers) } else { ("404 No", "") };
            let response = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(response.as_bytes());
        }
    });
    url
}

#[test]
fn a_server_that_names_no_authorization_server_needs_other_credentials() {
    for headers in ["", "WWW-Authenticate: Bearer\r\n"] {
        let home = Home::new();
        home.config(&format!(
            "[servers.fx]\nurl = {:?}\n",
            without_authorization_server(headers)
        ));
        home.run(&["login", "fx"])
            .ends_with(2)
            .says("the server names no authorization server")
            .says("give the server's credentials in `auth` or `headers`");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_the_hint_and_programs_no_time_to_retry_at() {
    let site = Site::new().await;
    let refused = site.home.run(&["call", "fx.hello"]);
    refused
        .ends_with(4)
        .says("nobody has signed in")
        .says("`pegboard login fx`");
    assert!(!refused.err.contains("Go on without it"), "{refused:?}");
    let reply = site.home.run(&["call", "fx.hello", "-o", "json"]).json();
    assert!(!reply.to_string().contains("\"retry_after_ms\":1"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_nobody_answers_names_the_client_of_the_config() {
    let site = Site::with("oauth = { client_id = 'mine' }").await;
    let late = site.home.run(&["login", "fx", "--no-browser", "--timeout", "4"]);
    late.ends_with(124).says("check `oauth.client_id`");
    assert!(!late.err.contains("--new-client"), "{late:?}");
    // There was nothing to read.
    late.says("The input has ended, so no address can be pasted");
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_that_are_refused_are_to_be_left_out() {
    let site = Site::new().await;
    site.issuer
        .add_fault_times(1, AuthFault::CallbackError("invalid_scope"));
    let command = ["login", "fx", "--no-browser", "--timeout", "60", "--scope", "admin"];
    let (child, url, said) = Site::printed_with_messages(site.home.pegboard(&command));
    let redirected = follow_redirect(&url, None).await.unwrap();
    let _ = follow_redirect(&redirected, None).await;
    Ran::end_of(child).ends_with(4);
    let said = said.join().unwrap();
    assert!(said.contains("leave out `--scope`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_another_sign_in_is_called_that() {
    let site = Site::new().await;
    let command = ["login", "fx", "--no-browser", "--timeout", "60"];
    let (mut child, url, said) = Site::printed_with_messages(site.home.pegboard(&command));
    let redirected = follow_redirect(&url, None).await.unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "http://127.0.0.1:47471/callback?code=x&state=y").unwrap();
    writeln!(stdin, "{redirected}").unwrap();
    assert_eq!(Ran::end_of(child).code, Some(0));
    let said = said.join().unwrap();
    assert!(
        said.contains("This address belongs to another sign-in. Open the address above again."),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_without_a_terminal_or_a_display_names_the_option_that_reads_its_input() {
    let site = Site::new().await;
    let mut command = site.home.pegboard(&["login", "fx", "--timeout", "4"]);
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ran::end_of(command.spawn().unwrap())
        .ends_with(124)
        .says("Run `pegboard login fx --no-browser`");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_that_the_gateway_does_not_know_is_warned_of() {
    let site = Site::new().await;
    let login = ["login", "fx", "--no-browser", "--timeout", "4", "--principal", "alicee"];
    site.home
        .run(&login)
        .says("no client of `pegboard serve` is called `alicee`");
    let url = site.server.url();
    site.home.config(&format!(
        "[servers.fx]\nurl = {url:?}\n[serve.tokens.alicee]\nsha256 = '{}'\n",
        "ab".repeat(32)
    ));
    let known = site.home.run(&login);
    assert!(!known.err.contains("no client of"), "{known:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_from_before_the_config_had_credentials_is_ended_by_the_name_of_its_server() {
    let site = Site::new().await;
    site.sign_in(&[]).await.ends_with(0);
    let url = site.server.url();
    site.home
        .config(&format!("[servers.fx]\nurl = {url:?}\nauth = {{ bearer = 'fixed' }}\n"));
    site.home
        .run(&["logout", "fx"])
        .ends_with(0)
        .prints("signed out of fx; its tokens are revoked\n");
    site.home.run(&["logout", "fx"]).ends_with(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_is_of_no_more_use_is_listed_as_such() {
    let site = Site::new().await;
    site.issuer.add_fault_times(1, AuthFault::ExpiredAtOnce);
    site.sign_in(&[]).await.ends_with(0);
    site.issuer.add_fault(AuthFault::TokenError("invalid_client"));
    site.home.run(&["call", "fx.hello"]).ends_with(4);
    let listed = site.home.run(&["login", "--list", "-o", "json"]).json();
    let row = &listed["sign_ins"][0];
    assert_eq!(
        (&row["needs_sign_in"], &row["renewable"]),
        (&json!(true), &json!(false)),
        "{listed}"
    );
    site.home.run(&["login", "--list"]).prints("sign-in needed");
}

#[test]
fn a_login_without_a_server_names_the_option_that_needs_none() {
    let home = Home::new();
    home.config("[servers.fx]\nurl = 'http://127.0.0.1:1/mcp'\n");
    home.run(&["login"]).ends_with(2).says("pegboard login --list");
    home.run(&["logout"]).ends_with(2).says("pegboard logout --all");
    home.run(&["login", "nobody"])
        .ends_with(2)
        .says("`--server nobody=URL`");
    home.run(&["login", "fx"])
        .ends_with(3)
        .says("server `fx` cannot be reached: no connection to 127.0.0.1:1")
        .says("start the server, or check its `url`");
}
