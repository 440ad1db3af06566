//! The dashboard as programs and browsers ask for it: who sees what, what forms need, and what every response says of itself.

use std::time::Duration;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, until},
};

/// What a browser says that opens a page.
const PAGE: (&str, &str) = ("Accept", "text/html,application/xhtml+xml");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
/// The user's own browser has no token.
const NO_TOKEN: (&str, &str) = ("Authorization", "");

fn fake(name: &str) -> FakeServer {
    FakeServer::new(name).tool(Tool::new("read").read_only().answers_text("read it"))
}

/// A home with two servers, a view of one of them, and these tokens.
fn home(tokens: &[(&str, &str)], serve: &str) -> Home {
    let home = Home::new();
    let mut config = format!("[serve]\n{serve}\n[views.narrow]\nservers = ['one']\n");
    for (name, more) in tokens {
        let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
        config += &format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n{more}\n");
    }
    home.config(&(config + &home.entry("one", fake("one"), "") + &home.entry("two", fake("two"), "")));
    home
}

fn get(served: &Served, path: &str, headers: &[(&str, &str)]) -> Response {
    served.send("GET", path, &[&[PAGE], headers].concat(), "")
}

/// The cookie that a response sets.
fn cookie(response: &Response) -> String {
    let header = response
        .header("set-cookie")
        .unwrap_or_else(|| panic!("no cookie: {response:?}"));
    assert!(
        header.contains("HttpOnly") && header.contains("SameSite=Strict"),
        "{header}"
    );
    header.split(';').next().unwrap().to_owned()
}

/// The token of the forms of a page.
fn form_token(page: &Response) -> String {
    let (_, rest) = page
        .body
        .split_once("name=\"form_token\" value=\"")
        .unwrap_or_else(|| panic!("no form: {page:?}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Sends a form of a page, as a browser with this cookie does.
fn send_form(served: &Served, path: &str, cookie: &str, body: &str, more: &[(&str, &str)]) -> Response {
    let origin = format!("http://{}", served.address);
    let own = [FORM, NO_TOKEN, ("Cookie", cookie), ("Sec-Fetch-Site", "same-origin")];
    let origin = match more.iter().any(|(name, _)| *name == "Origin") {
        true => vec![],
        false => vec![("Origin", origin.as_str())],
    };
    let own = own
        .into_iter()
        .filter(|(name, _)| !more.iter().any(|(given, _)| given == name));
    let headers: Vec<_> = own.chain(origin).chain(more.iter().copied()).collect();
    served.send("POST", path, &headers, body)
}

fn sign_in(served: &Served, token: &str) -> Response {
    send_form(served, "/ui/sign-in", "", &format!("token={token}"), &[])
}

fn states(served: &Served, bearer: &str) -> Value {
    let document = served
        .send("GET", "/api/v1/mcp/servers", &[("Authorization", bearer)], "")
        .message();
    let rows = document["servers"].as_array().unwrap();
    rows.iter()
        .map(|row| (row["name"].as_str().unwrap().to_owned(), row["state"].clone()))
        .collect()
}

#[test]
fn browsers_get_pages_that_load_and_run_nothing_of_others_and_programs_get_json() {
    let home = home(&[], "");
    let served = Served::start(&home, &[]);
    for path in [
        "/",
        "/ui/servers",
        "/ui/servers/one",
        "/ui/tools",
        "/ui/tools/one/read",
        "/ui/calls",
        "/ui/agents",
        "/ui/policy",
        "/ui/config",
        "/ui/sign-in",
    ] {
        let page = get(&served, path, &[NO_TOKEN]);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert!(
            !page.body.contains(" style=") && !page.body.contains("<style") && !page.body.contains(" onclick"),
            "{path}"
        );
    }
    let script = get(&served, "/", &[NO_TOKEN]).body;
    let (_, asset) = script.split_once("<script type=\"module\" src=\"").unwrap();
    let asset = get(&served, asset.split('"').next().unwrap(), &[NO_TOKEN]);
    assert_eq!(asset.status, 200);
    assert!(
        asset.header("cache-control").unwrap().contains("immutable"),
        "{asset:?}"
    );
    let described = served.send("GET", "/", &[("Accept", "application/json")], "");
    assert_eq!(
        (described.status, described.message()["mcp"].clone()),
        (200, json!("/mcp"))
    );
    assert_eq!(get(&served, "/ui/nothing", &[NO_TOKEN]).status, 404);
    assert_eq!(get(&served, "/ui/servers/three", &[NO_TOKEN]).status, 404);
}

#[test]
fn without_the_setting_there_are_no_pages() {
    let home = home(&[], "dashboard = false");
    let served = Served::start(&home, &[]);
    for path in ["/", "/ui/servers", "/ui/sign-in"] {
        assert_eq!(get(&served, path, &[]).status, 404, "{path}");
    }
    let refused = home.run(&["open", "--print"]);
    refused.ends_with(3).says("serve.dashboard = false");
}

#[test]
fn without_a_token_the_user_looks_and_calls_and_changes_nothing() {
    let home = home(&[], "");
    let served = Served::start(&home, &[]);
    let page = get(&served, "/ui/servers", &[NO_TOKEN]);
    assert!(
        page.body.contains("read only") && !page.body.contains("Reconnect"),
        "{}",
        page.body
    );
    let (cookie, token) = (
        cookie(&page),
        form_token(&get(
            &served,
            "/ui/tools/one/read",
            &[NO_TOKEN, ("Cookie", &cookie(&page))],
        )),
    );
    let body = format!("form_token={token}");
    let refused = send_form(&served, "/ui/servers/one/disable", &cookie, &body, &[]);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("scope `admin`"), "{}", refused.body);
    let called = send_form(&served, "/ui/tools/one/read", &cookie, &body, &[]);
    assert_eq!(called.status, 200, "{called:?}");
    assert!(called.body.contains("read it"), "{}", called.body);
}

#[test]
fn the_link_of_open_signs_one_browser_in_as_the_owner() {
    let home = home(&[], "");
    let served = Served::start(&home, &[]);
    let url = home.run(&["open", "--print"]).ends_with(0).out.trim().to_owned();
    let path = url
        .strip_prefix(&format!("http://{}", served.address))
        .unwrap()
        .to_owned();
    let opened = get(&served, &path, &[NO_TOKEN]);
    assert_eq!(
        (opened.status, opened.header("location")),
        (303, Some("/")),
        "{opened:?}"
    );
    let cookie = cookie(&opened);
    let page = get(&served, "/ui/servers", &[NO_TOKEN, ("Cookie", &cookie)]);
    assert!(
        page.body.contains("owner") && page.body.contains("Reconnect"),
        "{}",
        page.body
    );
    assert_eq!(get(&served, &path, &[NO_TOKEN]).status, 410, "it works once");
    let body = format!("form_token={}", form_token(&page));
    let done = send_form(&served, "/ui/servers/one/disable", &cookie, &body, &[]);
    assert_eq!(done.status, 303, "{done:?}");
    assert!(
        get(&served, "/ui/servers", &[NO_TOKEN, ("Cookie", &cookie)])
            .body
            .contains("disabled")
    );
    // The cookie is for the pages only.
    let api = served.send(
        "POST",
        "/api/v1/mcp/servers/one/enable",
        &[NO_TOKEN, ("Cookie", &cookie)],
        "",
    );
    assert_eq!(api.status, 403, "{api:?}");
    let out = send_form(&served, "/ui/sign-out", &cookie, &body, &[]);
    assert_eq!(out.status, 303, "{out:?}");
    let page = get(&served, "/ui/servers", &[NO_TOKEN, ("Cookie", &cookie)]);
    assert!(page.body.contains("read only"), "{}", page.body);
}

#[test]
fn a_form_needs_its_origin_its_token_and_its_session() {
    let home = home(&[("root", "scopes = ['read', 'call', 'admin']")], "");
    let served = Served::start(&home, &[]);
    let cookie = cookie(&sign_in(&served, "pgb_root"));
    let page = get(&served, "/ui/servers", &[("Cookie", &cookie)]);
    let body = format!("form_token={}", form_token(&page));
    let change = |cookie: &str, body: &str, more: &[(&str, &str)]| {
        send_form(&served, "/ui/servers/one/disable", cookie, body, more).status
    };
    let other_port = [("Origin", "http://127.0.0.1:1")];
    for (cookie, body, more) in [
        (cookie.as_str(), "", &[][..]),
        (&cookie, "form_token=made-up", &[]),
        (&cookie, &body, &other_port),
        (&cookie, &body, &[("Origin", "null")]),
        (&cookie, &body, &[("Sec-Fetch-Site", "same-site")]),
        (&cookie, &body, &[("Sec-Fetch-Site", "cross-site")]),
    ] {
        assert_eq!(change(cookie, body, more), 403, "{body} {more:?}");
    }
    assert_eq!(change("", &body, &[]), 401, "without a session");
    assert_ne!(states(&served, "Bearer pgb_root")["one"], "disabled");
    assert_eq!(change(&cookie, &body, &[]), 303);
    assert_eq!(states(&served, "Bearer pgb_root")["one"], "disabled");
}

#[test]
fn a_token_with_a_view_sees_that_view_and_its_session_ends_with_it() {
    let narrow = ("narrow", "view = 'narrow'\nscopes = ['read', 'call']");
    let home = home(&[narrow, ("blind", "scopes = ['call']")], "");
    let served = Served::start(&home, &[]);
    for path in ["/", "/ui/servers", "/ui/config"] {
        let page = get(&served, path, &[]);
        assert_eq!(
            (page.status, page.header("location")),
            (303, Some("/ui/sign-in")),
            "{page:?}"
        );
    }
    assert_eq!(sign_in(&served, "pgb_wrong").status, 401);
    assert_eq!(sign_in(&served, "pgb_blind").status, 403);
    let cookie = cookie(&sign_in(&served, "pgb_narrow"));
    assert!(!cookie.contains("pgb_narrow"), "{cookie}");
    let own = ("Cookie", cookie.as_str());
    let servers = get(&served, "/ui/servers", &[own]);
    assert!(
        servers.body.contains("/ui/servers/one") && !servers.body.contains("/ui/servers/two"),
        "{}",
        servers.body
    );
    assert!(!get(&served, "/ui/tools", &[own]).body.contains("/ui/tools/two"));
    assert!(!get(&served, "/", &[own]).body.contains("/ui/servers/two"));
    assert_eq!(get(&served, "/ui/servers/two", &[own]).status, 404);
    assert_eq!(get(&served, "/ui/config", &[own]).status, 403);
    home.config(
        &std::fs::read_to_string(home.path(".config/pegboard/pegboard.toml"))
            .unwrap()
            .replace("serve.tokens.narrow", "serve.tokens.renamed"),
    );
    served.signal("HUP");
    until("the session ends with its token", || {
        get(&served, "/ui/servers", &[own]).status == 303
    });
}

/// The routes of the pages.
const ROUTES: &str = include_str!("../../../pegboard-dashboard/src/dashboard.rs");
/// What needs no sign-in: the form itself, the files that it loads, and what says that there is nothing.
const OPEN: [&str; 4] = ["/ui", "/ui/sign-in", "/ui/assets/{digest}/{name}", "/ui/{*rest}"];

#[test]
fn every_page_needs_a_sign_in_and_every_form_a_session() {
    let home = home(&[("root", "scopes = ['read', 'call', 'admin']")], "");
    let served = Served::start(&home, &[]);
    let routes = ROUTES
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'));
    let routes: Vec<_> = routes.filter(|(path, _)| !OPEN.contains(path)).collect();
    assert!(routes.len() > 15, "{routes:?}");
    for (path, handlers) in routes {
        let real = path
            .replace("{name}", "one")
            .replace("{server}", "one")
            .replace("{tool}", "read");
        let real = real
            .replace("{change}", "disable")
            .replace("{number}", "1")
            .replace("{answer}", "once")
            .replace("{code}", "made-up");
        if handlers.contains("get(") {
            let status = get(&served, &real, &[]).status;
            let expected = match path {
                // A process of the user may follow a link.
                "/ui/open/{code}" => 410,
                path if path.contains("/live/") => 401,
                _ => 303,
            };
            assert_eq!(status, expected, "GET {path}");
        }
        if handlers.contains("post(") {
            assert_eq!(
                send_form(&served, &real, "pegboard-dashboard=x", "form_token=x", &[]).status,
                401,
                "POST {path}"
            );
        }
    }
    assert_ne!(states(&served, "Bearer pgb_root")["one"], "disabled");
}

#[test]
fn calls_are_recorded_as_the_setting_says() {
    for (setting, before, after) in [("open", false, true), ("always", true, true), ("off", false, false)] {
        let home = home(&[], &format!("dashboard_calls = '{setting}'"));
        let served = Served::start(&home, &[]);
        let call = |id: &str| {
            let body = json!({"name": "one.read", "id": id}).to_string();
            assert_eq!(
                served
                    .post("/api/v1/mcp/call", &[("Accept", "application/json")], &body)
                    .status,
                200
            );
        };
        call("first-call");
        let owner = served.owner.clone().unwrap();
        let page = || get(&served, "/ui/calls", &[("Authorization", owner.as_str())]).body;
        // The first look begins to record.
        page();
        call("second-call");
        // Searches also look at ids, which the list does not show.
        let has = |id: &str| {
            get(
                &served,
                &format!("/ui/calls?q={id}"),
                &[("Authorization", owner.as_str())],
            )
            .body
            .contains("/ui/calls/")
        };
        assert_eq!((has("first-call"), has("second-call")), (before, after), "{setting}");
    }
}

#[test]
fn a_daemon_without_an_address_listens_on_a_port_of_this_machine_for_open() {
    let home = home(&[], "");
    let mut daemon = home
        .pegboard(&["serve", "--socket-only"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut opened = home.run(&["open", "--print"]);
    until("the daemon answers", || {
        opened = home.run(&["open", "--print"]);
        opened.code == Some(0)
    });
    let url = opened.out.trim();
    assert!(
        url.starts_with("http://127.0.0.1:") && url.contains("/ui/open/"),
        "{url}"
    );
    let again = home.run(&["open", "--print"]);
    let port = |url: &str| url::Url::parse(url.trim()).unwrap().port();
    assert_eq!(port(url), port(&again.out), "the same address");
    let address = format!("127.0.0.1:{}", port(url).unwrap());
    let path = url.split_once(&address).unwrap().1;
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    assert_eq!(Response::read(stream).status, 303);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn a_changed_definition_is_accepted_as_it_was_shown() {
    let described = |description: &str| Tool::new("read").description(description).answers_text("read it");
    let entry = |home: &Home, description: &str| {
        home.entry(
            "one",
            FakeServer::new("one").tool(described(description)),
            "pins = 'block'",
        )
    };
    let tokens = ["reader", "root"].map(|name| pegboard::config::TokenDigest::compute(&format!("pgb_{name}")));
    let config = |home: &Home, description: &str| {
        let [reader, root] = &tokens;
        home.config(&format!(
            "[serve.tokens.reader]\nsha256 = '{reader}'\nscopes = ['read']\n[serve.tokens.root]\nsha256 = '{root}'\nscopes = ['read', 'call', 'admin']\n{}",
            entry(home, description)
        ));
    };
    let home = Home::new();
    config(&home, "Reads one file.");
    home.run(&["tools"]).ends_with(0);
    config(&home, "Reads <b>all</b> files.");
    let served = Served::start(&home, &[]);
    let (root, reader) = (
        cookie(&sign_in(&served, "pgb_root")),
        cookie(&sign_in(&served, "pgb_reader")),
    );
    let page = |path: &str, cookie: &str| get(&served, path, &[NO_TOKEN, ("Cookie", cookie)]);
    let link = || {
        let policy = page("/ui/policy", &root).body;
        let (_, link) = policy.split_once("href=\"/ui/definitions/one/")?;
        Some(format!("/ui/definitions/one/{}", link.split('"').next()?))
    };
    until("the definition is held", || link().is_some());
    let held = link().unwrap();
    let shown = page(&held, &root);
    for words in [
        "Reads one file.",
        "Reads &lt;b&gt;all&lt;/b&gt; files.",
        "Accept this definition",
    ] {
        assert!(shown.body.contains(words), "{words}: {}", shown.body);
    }
    assert_eq!(
        page(&held, &reader).status,
        404,
        "definitions are those of all principals and views"
    );
    let read = page("/ui/policy", &reader);
    assert!(
        !read.body.contains("/ui/definitions/") && read.body.contains("with the scope `admin`"),
        "{}",
        read.body
    );
    let form = |page: &Response| format!("form_token={}", form_token(page));
    assert_eq!(send_form(&served, &held, &reader, &form(&read), &[]).status, 403);
    assert_eq!(
        send_form(&served, &held, &root, "", &[]).status,
        403,
        "without the token of the page"
    );
    let other = held.replace(held.rsplit('/').next().unwrap(), &"0".repeat(64));
    assert_eq!(send_form(&served, &other, &root, &form(&shown), &[]).status, 404);
    assert!(
        page("/ui/policy", &root).body.contains(&held),
        "nothing is accepted yet"
    );
    assert_eq!(send_form(&served, &held, &root, &form(&shown), &[]).status, 303);
    assert!(!page("/ui/policy", &root).body.contains("/ui/definitions/"));
    assert_eq!(page(&held, &root).status, 404);
    home.run(&["pins", "diff", "--check"]).ends_with(0);
}

#[test]
fn the_newest_torture_of_a_server_is_on_its_page_until_its_settings_change() {
    let home = home(&[], "");
    let demo = |more: &str| {
        let program = env!("CARGO_BIN_EXE_pegboard");
        home.config(&format!(
            "[servers.one]\ncommand = {program:?}\nargs = ['demo-server']\n{more}"
        ));
    };
    demo("");
    let served = Served::start(&home, &[]);
    let page = || get(&served, "/ui/servers/one", &[NO_TOKEN]).body;
    assert!(page().contains("It was not tried yet."));
    home.run(&["torture", "one", "--era", "modern", "--only", "ping"]);
    assert!(
        page().contains("It was not tried yet."),
        "a part of the cases gives no grade"
    );
    home.run(&["torture", "one", "--era", "modern"]).ends_with(0);
    let tried = page();
    assert!(
        tried.contains("Passed") && !tried.contains("have changed since"),
        "{tried}"
    );
    demo("description = 'another'");
    assert!(page().contains("Its settings have changed since."));
}
