//! Hostile files and secrets.

use proptest::prelude::*;

use super::*;

/// Fragments that together make files that get further than random text does.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        Just("servers".to_owned()),
        Just("[servers.x]\n".to_owned()),
        Just("\"mcpServers\": {".to_owned()),
        Just("command = 'a'\n".to_owned()),
        Just("  command: a\n".to_owned()),
        Just("url: ${X:-}\n".to_owned()),
        Just("${".to_owned()),
        Just("{{.".to_owned()),
        Just("&a *a".to_owned()),
        Just("- ".to_owned()),
        Just(": ".to_owned()),
        Just("\n".to_owned()),
        Just("timeout = 1e308\n".to_owned()),
        Just("[]{},\"'".to_owned()),
        ".{0,12}",
    ];
    prop::collection::vec(fragment, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in prop_oneof![fragments(), ".{0,200}"]) {
        for format in [Some(Format::Toml), Some(Format::Yaml), Some(Format::Json), None] {
            let loaded = Config::load(&[Source::text("t", text.clone(), format)], &env());
            let _ = (loaded.show(), format!("{loaded:?}"));
        }
    }

    #[test]
    fn expansion_never_changes_the_number_of_arguments(held in prop::collection::vec(".{0,20}", 1..6)) {
        let names: Vec<String> = (0..held.len()).map(|n| format!("V{n}")).collect();
        let env = Env::from_pairs(names.iter().cloned().zip(held.iter().map(|held| held.replace('\0', ""))));
        let args: Vec<String> = names.iter().map(|name| format!("${{{name}}}")).collect();
        let text = serde_json::json!({"servers": {"x": {"command": "a", "args": args}}}).to_string();
        let from_file = Config::from_text(&text, Format::Json, &env).config.servers.pop_first();
        let line = format!("x=a {}", args.join(" "));
        let from_line = ServerConfig::parse(&line, &env).ok();
        for (_, server) in [from_file, from_line].into_iter().map(|server| server.expect("it loads")) {
            let Transport::Stdio(command) = server.transport else { panic!() };
            let got: Vec<&str> = command.args.iter().map(pegboard_base::secret::Secret::expose).collect();
            let want: Vec<String> = held.iter().map(|held| held.replace('\0', "")).collect();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn no_secret_from_a_variable_is_ever_printed(secret in "[a-z0-9]{16}") {
        let env = Env::from_pairs([("S", secret.as_str())]);
        for settings in [
            "command = 'a'\nargs = ['--token=${S}', '${S}']\nenv = { A = '${S}', B = 'x-${S}' }\n",
            "url = 'https://h/${S}/mcp?key=${S}'\nheaders = { A = 'Bearer ${S}' }\nauth = { bearer = '${S}' }\n",
            "url = 'https://${S}:${S}@h/'\nauth = { user = 'u', password = '${S}' }\nqueue = '${S}'\n",
            "url = 'https://h/'\noauth = { client_secret = '${S}' }\nenv_headers = { A = 'S' }\n",
            "url = '${S}'\nheaders = { 'a b' = '${S}' }\n",
            "command = 'a'\ntimeout = '${S}'\nenabled = '${S}'\ntype = '${S}'\nera = '${S}'\n",
            "command = 'a'\nenv = '${S}'\nbearer_token_env_var = 'S'\n",
        ] {
            let text = format!("[servers.x]\n{settings}");
            let loaded = Config::from_text(&text, Format::Toml, &env);
            let mut server = loaded.config.servers.values().next().cloned();
            if let Some(server) = &mut server {
                // A queue's name is a name; it is not hidden from programs.
                server.policy.queue = None;
            }
            let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
            let told = (loaded.explain(), &loaded.config.misconfigured);
            let printed = format!("{server:?} {} {problems:?} {:?} {told:?}", loaded.show(), loaded.problems);
            prop_assert!(!printed.contains(&secret), "{settings}\n{printed}");
        }
    }
}

#[test]
fn a_secret_written_out_is_not_shown_either() {
    let loaded = toml(
        "[servers.x]\nurl = 'https://u:s3cr3tvalue@h/?token=s3cr3tvalue'\nheaders = { A = 's3cr3tvalue' }\n[servers.y]\ncommand = 'a'\nargs = ['--api-key', 's3cr3tvalue']\nenv = { A = 's3cr3tvalue' }\n",
    );
    assert_eq!(loaded.config.servers.len(), 2);
    let printed = format!(
        "{} {:?} {:?} {loaded:?}",
        loaded.show(),
        loaded.explain(),
        loaded.config
    );
    assert!(!printed.contains("s3cr3tvalue"), "{printed}");
}

#[test]
fn a_large_hostile_file_is_read_in_bounded_time_and_reports_a_bounded_list() {
    let keys: String = (0..20_000).map(|n| format!("\"key{n}\": 1,")).collect();
    let servers: String = (0..10_000)
        .map(|n| format!("\"s{n}\": {{\"command\": \"a\"}},"))
        .collect();
    for text in [
        format!("{{\"servers\": {{\"x\": {{{keys}}}}}}}"),
        format!("{{\"servers\": {{{servers}}}}}"),
        format!("{{{keys}}}"),
    ] {
        let loaded = Config::from_text(&text, Format::Json, &env());
        assert!(loaded.problems.len() <= 1001);
        assert!(loaded.config.servers.len() <= 1000);
    }
}
