//! `pegboard token`: tokens and their digests.

use super::home::{Home, Ran};

#[test]
fn a_token_is_printed_once_and_the_lines_for_the_config_beside_it() {
    let home = Home::new();
    home.config("[views.reading]\n[servers.x]\ncommand = 'x'\n");
    let ran = home.run(&["token", "new", "laptop", "--view", "reading"]);
    ran.ends_with(0);
    let token = ran.out.trim_end();
    assert_eq!(ran.out, format!("{token}\n"), "stdout is the token");
    assert!(token.starts_with("pgb_") && token.len() == 47, "{token}");
    assert!(!ran.err.contains(token), "{}", ran.err);
    ran.says("[serve.tokens.laptop]").says("view = \"reading\"");
    // Nothing was written to the config, and what is to be put there is accepted.
    let lines: Vec<&str> = ran.err.lines().skip_while(|line| !line.starts_with('[')).collect();
    let lines = lines.join("\n");
    home.config(&format!("[views.reading]\n[servers.x]\ncommand = 'x'\n{lines}\n"));
    let shown = home.run(&["config", "show", "-o", "json"]);
    let shown = shown.ends_with(0).json();
    assert_eq!(shown["problems"], serde_json::json!([]));
    assert_eq!(shown["serve"]["tokens"]["laptop"]["view"], "reading");
    let other = home.run(&["token", "new", "phone"]);
    assert_ne!(other.ends_with(0).out, ran.out);
}

#[test]
fn a_token_has_the_limits_that_it_is_given() {
    let home = Home::new();
    let entry = "[views.reading]\n[servers.x]\ncommand = 'x'\n";
    home.config(entry);
    let args = [
        "token",
        "new",
        "ci",
        "--view",
        "reading",
        "--rate",
        "60/min",
        "--concurrent",
        "4",
    ];
    let ran = home.run(&[&args[..], &["--expires", "2900-01-31T12:00:00Z", "-o", "json"]].concat());
    let made = ran.ends_with(0).json();
    let lines = made["config"].as_str().unwrap();
    home.config(&format!("{entry}{lines}"));
    let shown = home.run(&["config", "show", "-o", "json"]);
    let shown = shown.ends_with(0).json();
    assert_eq!(shown["problems"], serde_json::json!([]));
    let token = &shown["serve"]["tokens"]["ci"];
    assert_eq!(
        (&token["view"], &token["concurrent"]),
        (&"reading".into(), &4.into()),
        "{token}"
    );
    assert_eq!(token["expires"], "2900-01-31T12:00:00Z");
    home.run(&["token", "new", "soon", "--expires", "90d"])
        .ends_with(0)
        .says("expires = \"20");
    for (option, value, told) in [
        ("--rate", "often", "a number of calls and a period"),
        ("--concurrent", "0", "--concurrent"),
        ("--expires", "2020-01-01T00:00:00Z", "has passed"),
        ("--expires", "tomorrow", "must be a time"),
        ("--expires", "1x", "such as `90d`, `12h` or `30m`"),
        ("--scope", "read,reed", "must be one of read, call, admin"),
        ("--scope", "", "must be one of read, call, admin"),
    ] {
        let ran = home.run(&["token", "new", "bad", option, value]);
        ran.ends_with(2).says(option).says(told);
        assert_eq!(ran.out, "", "{option} {value}");
    }
}

#[test]
fn scopes_are_given_one_by_one_or_as_a_list() {
    for args in [
        &["--scope", "read,admin"][..],
        &["--scope", "read, admin"],
        &["--scope", "read", "--scope", "admin"],
    ] {
        let ran = Home::new().run(&[&["token", "new", "ci"], args].concat());
        ran.ends_with(0).says("scopes = [\"read\",\"admin\"]");
    }
}

/// Otherwise the mistake would be noticed only when the gateway does not start with the lines.
#[test]
fn a_name_in_use_and_an_unknown_view_are_refused() {
    let home = Home::new();
    let digest = "0".repeat(64);
    home.config(&format!(
        "[views.reading]\n[serve.tokens.laptop]\nsha256 = '{digest}'\n[servers.x]\ncommand = 'x'\n"
    ));
    for (args, told) in [
        (
            &["token", "new", "laptop"][..],
            "the config has a token `laptop` already",
        ),
        (
            &["token", "new", "ci", "--view", "writing"],
            "there is no view `writing`",
        ),
    ] {
        let ran = home.run(args);
        ran.ends_with(2).says(told).says("hint: ");
        assert_eq!(ran.out, "", "no token is printed");
    }
    home.run(&["token", "new", "ci", "--view", "writing"])
        .says("the views are reading");
}

#[test]
fn the_digest_of_a_token_is_that_of_its_text_without_the_newline() {
    let home = Home::new();
    let made = home.run(&["token", "new", "ci", "-o", "json"]);
    let made = made.ends_with(0).json();
    let token = made["token"].as_str().unwrap();
    for text in [token.to_owned(), format!("{token}\n"), format!("{token}\r\n")] {
        let ran = Ran::fed(home.pegboard(&["token", "hash"]), &text);
        assert_eq!(ran.ends_with(0).out.trim_end(), made["sha256"]);
    }
    let json = Ran::fed(home.pegboard(&["token", "hash", "-o", "json"]), token);
    assert_eq!(json.ends_with(0).json()["sha256"], made["sha256"]);
    Ran::fed(home.pegboard(&["token", "hash"]), "\n")
        .ends_with(2)
        .says("stdin has no token");
}

#[test]
fn a_name_that_the_config_would_refuse_is_refused() {
    for name in ["a.b", "a b", "", "a]"] {
        let ran = Home::new().run(&["token", "new", name]);
        ran.ends_with(2).says("letters, digits");
        assert_eq!(ran.out, "");
    }
}
