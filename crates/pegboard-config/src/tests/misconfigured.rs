//! Servers that cannot be used as they are written.

use super::*;

fn misconfigured(sources: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = sources
        .iter()
        .map(|(name, text)| Source::text(*name, *text, Some(Format::Toml)))
        .collect();
    let config = Config::load(&sources, &env()).config;
    let row = |(name, one): (&ServerName, &Misconfigured)| {
        assert!(!config.servers.contains_key(name));
        format!(
            "{name} {:?} required={} {} {:?}",
            one.transport, one.required, one.why, one.problems
        )
    };
    config.misconfigured.iter().map(row).collect()
}

#[test]
fn a_server_that_cannot_be_used_keeps_its_name_and_says_why() {
    let text = "[servers.a]\ncommand = 'a'\n[servers.b]\ncommand = 'b'\nrequired = true\ncomand = 1\nretry = -1\n\
                [servers.c]\nurl = 'wss://h/'\nauth = 'bearer'\n[servers.d]\ntype = 'sse'\n[servers.A]\ncommand = 'a'\n\
                [servers.'a.b']\ncommand = 'a'\n";
    insta::assert_snapshot!(misconfigured(&[("t", text)]).join("\n"), @r#"
    A Some("stdio") required=false the name is too close to `a`: models and providers mix up case, `-` and `_` ["t:13: servers.A: the name is too close to `a`: models and providers mix up case, `-` and `_` (rename one of them)"]
    b Some("stdio") required=true `comand`: there is no such setting; `retry`: must be between 0 and 100 ["t:6: servers.b.comand: there is no such setting (did you mean `command`?)", "t:7: servers.b.retry: must be between 0 and 100"]
    c Some("websocket") required=false `auth`: does not hold what `bearer` needs ["t:10: servers.c.auth: does not hold what `bearer` needs"]
    d Some("sse") required=false `url`: a server of this type needs `url` ["t:11: servers.d.url: a server of this type needs `url`"]
    "#);
}

#[test]
fn a_server_that_is_no_table_is_misconfigured_too() {
    let loaded = Config::from_text("{\"servers\": {\"x\": 7}}", Format::Json, &env());
    let (name, one) = loaded.config.misconfigured.first_key_value().unwrap();
    assert_eq!(
        (name.as_str(), one.why.as_str()),
        ("x", "must be a table, not a whole number")
    );
}

#[test]
fn the_last_layer_that_names_a_server_decides() {
    let (good, bad) = ("[servers.x]\ncommand = 'a'", "[servers.x]\ncommand = 7.5");
    assert_eq!(misconfigured(&[("1", bad), ("2", good)]), Vec::<String>::new());
    assert_eq!(misconfigured(&[("1", good), ("2", bad)]).len(), 1);
    assert_eq!(
        misconfigured(&[("1", bad), ("2", "[servers.y]\ncommand = 'a'")]).len(),
        1
    );
}

#[test]
fn a_sign_in_that_cannot_be_made_is_never_left_out_in_silence() {
    for settings in [
        "auth = 'oauth'",
        "auth_type = 'oauth'",
        "AuthType = 'OAuth2'",
        "auth = { type = 'oauth' }",
        "oauth = true",
        "oauth = { client_id = 'me' }",
        "auth = { oauth = true }",
    ] {
        let loaded = toml(&format!("[servers.x]\nurl = 'https://h/'\n{settings}\n"));
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        if cfg!(feature = "oauth") {
            let server = &loaded.config.servers[&ServerName::parse("x").unwrap()];
            let auth = &server.transport.endpoint().unwrap().auth;
            assert!(matches!(auth, Auth::OAuth(_)), "{settings}: {auth:?} {errors:?}");
        } else {
            assert!(
                errors.iter().any(|error| error.contains("OAuth")),
                "{settings}: {errors:?}"
            );
            assert_eq!(loaded.config.misconfigured.len(), 1, "{settings}");
        }
    }
    for settings in [
        "oauth = false",
        "oauth = { client_id = 'me' }\nbearer_token = 'x'",
        "oauth = {}\nheaders = { Authorization = 'x' }",
    ] {
        server(&format!("[servers.x]\nurl = 'https://h/'\n{settings}\n"));
    }
}

#[test]
fn a_source_that_cannot_be_read_is_named() {
    let sources = [
        Source::file("/no/such/file.toml"),
        Source::text("bad", "[servers", Some(Format::Toml)),
        Source::text("words", "just words", Some(Format::Yaml)),
        Source::server("nothing"),
        Source::text("good", "[servers.x]\ncomand = 'a'", Some(Format::Toml)),
    ];
    let loaded = Config::load(&sources, &env());
    assert_eq!(loaded.unreadable, ["/no/such/file.toml", "bad", "words", "--server"]);
}

#[test]
fn servers_are_required_as_the_top_of_the_file_says_also_those_with_errors() {
    let text = "required = true\n[servers.a]\ncommand = 'a'\n[servers.b]\ncommand = 'b'\nrequired = false\n\
                [servers.c]\ncommand = 'c'\ncomand = 1\n[servers.d]\ncommand = 'd'\ncomand = 1\nrequired = false\n";
    let config = Config::from_text(text, Format::Toml, &env()).config;
    let servers: Vec<_> = config.servers.values().map(|server| server.required).collect();
    let misconfigured: Vec<_> = config.misconfigured.values().map(|server| server.required).collect();
    assert_eq!((servers, misconfigured), (vec![true, false], vec![true, false]));
}
