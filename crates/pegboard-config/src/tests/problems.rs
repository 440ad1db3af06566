//! What is said about files that are not right, and what still works in them.

use std::time::Duration;

use super::*;

#[test]
fn a_transport_is_inferred() {
    for (text, want) in [
        ("command = 'a'", "stdio"),
        ("url = 'https://h/mcp'", "auto"),
        ("url = 'https://h/sse'", "sse"),
        ("url = 'https://h/a/sse/'", "sse"),
        ("url = 'https://h/sse?x=1'", "sse"),
        ("url = 'https://h/sse2'", "auto"),
        ("url = 'ws://h/'", "websocket"),
        ("url = 'WSS://h/sse'", "websocket"),
        ("type = 'stdio'\ncommand = 'a'", "stdio"),
        ("type = 'local'\ncommand = 'a'", "stdio"),
        ("type = 'http'\nurl = 'https://h/sse'", "http"),
        ("type = 'streamable-http'\nurl = 'https://h/'", "http"),
        ("type = 'streamable_http'\nurl = 'https://h/'", "http"),
        ("type = 'streamableHttp'\nurl = 'https://h/'", "http"),
        ("transport = 'sse'\nurl = 'https://h/'", "sse"),
        ("transport = 'ws'\nurl = 'ws://h/'", "websocket"),
        ("transport = 'websocket'\nurl = 'wss://h/'", "websocket"),
        ("type = 'remote'\nurl = 'https://h/'", "auto"),
        ("httpUrl = 'https://h/'", "auto"),
    ] {
        let server = server(&format!("[servers.x]\n{text}\n"));
        let kind = match server.transport {
            Transport::Remote {
                kind: RemoteKind::Auto, ..
            } => "auto",
            other => other.kind(),
        };
        assert_eq!(kind, want, "{text}");
    }
}

#[test]
fn every_mistake_is_named_with_its_line_and_field() {
    let check = |settings: &str| problems(&format!("[servers.x]\n{settings}\n")).join("\n");
    let rows = [
        "# nothing",
        "command = 'a'\nurl = 'https://h/'",
        "type = 'stdio'",
        "type = 'http'",
        "type = 'stdio'\nurl = 'https://h/'",
        "type = 'sse'\ncommand = 'a'",
        "type = 'htpp'\nurl = 'https://h/'",
        "type = 'http'\nurl = 'ws://h/'",
        "type = 'ws'\nurl = 'http://h/'",
        "url = 'not a url'",
        "url = 'localhost:8080/mcp'",
        "url = 'mcp.example.com/mcp'",
        "url = 'ftp://h/'",
        "command = ''",
        "command = 7.5",
        "command = 'npx -y @scope/server'",
        "command = 'a'\nargs = 'b'",
        "command = 'a'\nargs = ['--token=abcdefgh']",
        "command = 'a'\nargs = ['${NO}', '${NEITHER}']",
        "command = 'a'\nenv = { 'A B' = 'x', LD_PRELOAD = 'y' }",
        "command = 'a'\nheaders = { A = 'b' }",
        "command = 'a'\nstartup_timout = '3s'",
        "command = 'a'\nxyzzy = 1",
        "command = 'a'\ntimeout = '3s'\ncall_timeout = '4s'",
        "command = 'a'\ntimeout = 30",
        "command = 'a'\ncall_timeout = 30",
        "command = 'a'\ncall_timeout = '0s'",
        "command = 'a'\ncall_timeout = '2d'",
        "command = 'a'\ncall_timeout = 'soon'",
        "command = 'a'\ncall_timeout = '9m'\ncall_total_timeout = '1m'",
        "command = 'a'\nmax_message = '1B'",
        "command = 'a'\nmax_in_flight = 0",
        "command = 'a'\nenabled = 'yes'",
        "command = 'a'\nera = 'medieval'",
        "command = 'a '",
        "url = 'https://h/'\nsession_cleanup_url = 'h/{{SESSION_ID}}'",
        "url = 'https://h/'\nsession_cleanup_url = 'ftp://h/'",
        "url = 'https://h/'\nsession_cleanup_url = 'https://u{{SESSION_ID}}@h/'",
        "url = 'https://h/'\nsession_cleanup_url = 'https://h/{{two words}}'",
        "command = 'a'\nsandbox = 'tight'",
        "command = 'a'\nsandbox = { network = [0] }",
        "command = 'a'\ncache = [1]",
        "command = 'a'\nmasking = { enbled = true }",
        "url = 'https://u:pw@h/'",
        "url = 'https://h/?api_key=abcdef'",
        "url = 'http://h/'\nbearer_token = 'x'",
        "url = 'https://h/'\nverify_ssl = false",
        "url = 'https://h/'\nauth = { bearer = 'x', user = 'y' }",
        "url = 'https://h/'\nauth = { type = 'basic', bearer = 'x' }",
        "url = 'https://h/'\nbearer_token = 'x'\nheaders = { authorization = 'y' }",
        "url = 'https://h/'\nheaders = { 'a b' = 'y', c = \"d\\ne\" }",
        "url = 'https://h/'\nheaders = { a = '{{TENANT', b = 'x-{{two words}}', c = '{{TENANT}}' }",
        "url = 'https://h/'\ntls = { cert = 'c.pem' }",
        "url = 'https://h/'\nbearer_token = '${input:token}'",
        "url = 'https://h/'\nenv_headers = { A = 'NO' }",
    ];
    let report: Vec<String> = rows
        .iter()
        .map(|row| format!("> {}\n{}", row.replace('\n', " | "), check(row)))
        .collect();
    insta::assert_snapshot!(report.join("\n"), @r#"
    > # nothing
    pegboard.toml:1: servers.x.url: a server needs either `command` or `url`
    > command = 'a' | url = 'https://h/'
    pegboard.toml:3: servers.x.url: a server has either `command` or `url`, not both
    > type = 'stdio'
    pegboard.toml:1: servers.x.command: a stdio server needs `command`
    > type = 'http'
    pegboard.toml:1: servers.x.url: a server of this type needs `url`
    > type = 'stdio' | url = 'https://h/'
    pegboard.toml:3: servers.x.url: a stdio server has `command`, not `url`
    > type = 'sse' | command = 'a'
    pegboard.toml:3: servers.x.command: a server of this type has `url`, not `command`
    > type = 'htpp' | url = 'https://h/'
    pegboard.toml:2: servers.x.type: must be one of stdio, http, sse, websocket, remote (did you mean `http`?)
    > type = 'http' | url = 'ws://h/'
    pegboard.toml:3: servers.x.url: a URL of this type starts with `http://` or `https://`
    > type = 'ws' | url = 'http://h/'
    pegboard.toml:3: servers.x.url: a websocket URL starts with `ws://` or `wss://`
    > url = 'not a url'
    pegboard.toml:2: servers.x.url: `not a url` is not a URL: relative URL without a base
    > url = 'localhost:8080/mcp'
    pegboard.toml:2: servers.x.url: `localhost:8080/mcp` has no scheme; write `http://localhost:8080/mcp`
    > url = 'mcp.example.com/mcp'
    pegboard.toml:2: servers.x.url: `mcp.example.com/mcp` has no scheme; write `https://mcp.example.com/mcp`
    > url = 'ftp://h/'
    pegboard.toml:2: servers.x.url: `ftp://h/` must start with http://, https://, ws:// or wss://
    > command = ''
    pegboard.toml:2: servers.x.command: is empty
    > command = 7.5
    pegboard.toml:2: servers.x.command: must be a text or a list, not a number
    > command = 'npx -y @scope/server'
    pegboard.toml:2: servers.x.command: is taken as one program name with spaces in it (write `command = "npx"` and `args = ["-y", "@scope/server"]`)
    > command = 'a' | args = 'b'
    pegboard.toml:3: servers.x.args: must be a list
    > command = 'a' | args = ['--token=abcdefgh']
    pegboard.toml:3: servers.x.args: an argument looks like a secret, and other users of the machine can see arguments (put it in `env` as `${NAME}`)
    > command = 'a' | args = ['${NO}', '${NEITHER}']
    pegboard.toml:3: servers.x.args[0]: variable `NO` is not set (set it in the environment that Pegboard starts in)
    pegboard.toml:3: servers.x.args[1]: variable `NEITHER` is not set (set it in the environment that Pegboard starts in)
    > command = 'a' | env = { 'A B' = 'x', LD_PRELOAD = 'y' }
    pegboard.toml:3: servers.x.env.A B: cannot be a variable
    pegboard.toml:3: servers.x.env.LD_PRELOAD: would make the program load code that its command does not name (set `allow_loader_env = true` if that is meant)
    > command = 'a' | headers = { A = 'b' }
    pegboard.toml:3: servers.x.headers: has no effect on a stdio server
    > command = 'a' | startup_timout = '3s'
    pegboard.toml:3: servers.x.startup_timout: there is no such setting (did you mean `startup_timeout`?)
    > command = 'a' | xyzzy = 1
    pegboard.toml:3: servers.x.xyzzy: there is no such setting (`pegboard config schema` lists the settings there are)
    > command = 'a' | timeout = '3s' | call_timeout = '4s'
    pegboard.toml:4: servers.x.call_timeout: `timeout` and `call_timeout` are the same setting (keep one of them)
    > command = 'a' | timeout = 30
    pegboard.toml:3: servers.x.timeout: 30 is taken as seconds (write it with a unit, such as `"30s"`)
    > command = 'a' | call_timeout = 30
    pegboard.toml:3: servers.x.call_timeout: the number has no unit (write `"30s"`, `"2m"` or `"500ms"`)
    > command = 'a' | call_timeout = '0s'
    pegboard.toml:3: servers.x.call_timeout: must be between 1ms and 24h
    > command = 'a' | call_timeout = '2d'
    pegboard.toml:3: servers.x.call_timeout: must be between 1ms and 24h
    > command = 'a' | call_timeout = 'soon'
    pegboard.toml:3: servers.x.call_timeout: must be a duration such as `"30s"`
    > command = 'a' | call_timeout = '9m' | call_total_timeout = '1m'
    pegboard.toml:4: servers.x.call_total_timeout: must not be less than `call_timeout`
    > command = 'a' | max_message = '1B'
    pegboard.toml:3: servers.x.max_message: must be between 1KiB and 1GiB
    > command = 'a' | max_in_flight = 0
    pegboard.toml:3: servers.x.max_in_flight: must be between 1 and 65536
    > command = 'a' | enabled = 'yes'
    pegboard.toml:3: servers.x.enabled: must be true or false
    > command = 'a' | era = 'medieval'
    pegboard.toml:3: servers.x.era: must be auto, probe, modern, legacy, or a version such as `2025-06-18`
    > command = 'a '
    pegboard.toml:2: servers.x.command: has spaces at its start or end
    > url = 'https://h/' | session_cleanup_url = 'h/{{SESSION_ID}}'
    pegboard.toml:3: servers.x.session_cleanup_url: `h/{{SESSION_ID}}` is not a URL: relative URL without a base
    > url = 'https://h/' | session_cleanup_url = 'ftp://h/'
    pegboard.toml:3: servers.x.session_cleanup_url: `ftp://h/` must start with http:// or https://
    > url = 'https://h/' | session_cleanup_url = 'https://u{{SESSION_ID}}@h/'
    pegboard.toml:3: servers.x.session_cleanup_url: `https://****@h/` has a `{{…}}` that is not in its path or query
    > url = 'https://h/' | session_cleanup_url = 'https://h/{{two words}}'
    pegboard.toml:3: servers.x.session_cleanup_url: `https://h/{{two words}}` a `{{…}}` does not hold the name of a variable: letters, digits and `_`
    > command = 'a' | sandbox = 'tight'
    pegboard.toml:3: servers.x.sandbox: must be `off` or `basic` or `strict` or true or false or a table
    > command = 'a' | sandbox = { network = [0] }
    pegboard.toml:3: servers.x.sandbox.network[0]: must be between 1 and 65535
    > command = 'a' | cache = [1]
    pegboard.toml:3: servers.x.cache: must be true or false or a duration such as `"30s"` or a whole number or `off`, not a list
    > command = 'a' | masking = { enbled = true }
    pegboard.toml:3: servers.x.masking.enbled: there is no such setting (did you mean `enabled`?)
    > url = 'https://u:pw@h/'
    pegboard.toml:2: servers.x.url: a secret is written in the URL (use `auth` or `headers` with `${NAME}`)
    > url = 'https://h/?api_key=abcdef'
    pegboard.toml:2: servers.x.url: a secret is written in the URL (use `auth` or `headers` with `${NAME}`)
    > url = 'http://h/' | bearer_token = 'x'
    pegboard.toml:2: servers.x.url: credentials are sent without encryption (use https:// or wss://)
    > url = 'https://h/' | verify_ssl = false
    pegboard.toml:3: servers.x.tls.insecure: the server's certificate is not checked
    > url = 'https://h/' | auth = { bearer = 'x', user = 'y' }
    pegboard.toml:3: servers.x.auth: names more than one way to say who we are
    > url = 'https://h/' | auth = { type = 'basic', bearer = 'x' }
    pegboard.toml:3: servers.x.auth: does not hold what `basic` needs
    > url = 'https://h/' | bearer_token = 'x' | headers = { authorization = 'y' }
    pegboard.toml:4: servers.x.headers: `Authorization` is set here and by `auth`; keep one
    > url = 'https://h/' | headers = { 'a b' = 'y', c = "d\ne" }
    pegboard.toml:3: servers.x.headers.a b: is not a header name
    pegboard.toml:3: servers.x.headers.c: its value cannot be sent in a header
    > url = 'https://h/' | headers = { a = '{{TENANT', b = 'x-{{two words}}', c = '{{TENANT}}' }
    pegboard.toml:3: servers.x.headers.a: a `{{` has no closing `}}`
    pegboard.toml:3: servers.x.headers.b: a `{{…}}` does not hold the name of a variable: letters, digits and `_`
    > url = 'https://h/' | tls = { cert = 'c.pem' }
    pegboard.toml:3: servers.x.tls: `cert` and `key` belong together
    > url = 'https://h/' | bearer_token = '${input:token}'
    pegboard.toml:3: servers.x.bearer_token: `${input:token}` asks a person for a value, which is not possible here (put the value in a variable and write `${NAME}`)
    > url = 'https://h/' | env_headers = { A = 'NO' }
    pegboard.toml:3: servers.x.env_headers.A: variable `NO` is not set
    "#);
}

#[test]
fn one_bad_server_does_not_drop_the_others() {
    let loaded = toml("[servers.a]\ncommand = 'a'\n[servers.b]\ncomand = 'b'\n[servers.c]\nurl = 'https://h/'\n");
    let names: Vec<&str> = loaded.config.servers.keys().map(ServerName::as_str).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(loaded.errors().count(), 1);
}

#[test]
fn names_that_would_be_mixed_up_are_refused() {
    let text = "[servers.a-b]\ncommand = 'a'\n[servers.A_B]\ncommand = 'b'\n[servers.'a.c']\ncommand = 'c'\n";
    insta::assert_snapshot!(problems(text).join("\n"), @r#"
    pegboard.toml:3: servers.A_B: the name is too close to `a-b`: models and providers mix up case, `-` and `_` (rename one of them)
    pegboard.toml:5: servers.a.c: `a.c` cannot be a server name: only letters, digits, `_` and `-` may be used
    "#);
}

#[test]
fn a_broken_file_and_a_missing_one_are_reported_beside_the_good_one() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [
        Source::file(folder.path().join("none.toml")),
        Source::text("bad.json", "{\n\"servers\": {,}\n}", Some(Format::Json)),
        Source::text("list.yaml", "just words", None),
        Source::text("good.toml", "[servers.x]\ncommand = 'a'", None),
    ];
    let loaded = Config::load(&sources, &env());
    assert_eq!(loaded.config.servers.len(), 1);
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let problems = problems.join("\n").replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(problems, @r#"
    DIR/none.toml: cannot be read: No such file or directory (os error 2)
    bad.json:2: unexpected token in object
    list.yaml:1: key with no value, expected `=` (read as TOML)
    "#);
}

#[test]
fn yaml_files_may_share_settings_and_carry_notes() {
    let text = "x-defaults: &d\n  call_timeout: 5s\n  command: a\nservers:\n  x:\n    <<: *d\n    command: b\n    _comment: ours\n";
    let loaded = Config::from_text(text, Format::Yaml, &env());
    assert_eq!(loaded.problems, []);
    let (_, server) = loaded.config.servers.first_key_value().unwrap();
    assert_eq!(server.limits.call_timeout, Duration::from_secs(5));
    assert!(matches!(&server.transport, Transport::Stdio(command) if command.program == "b"));
}

#[test]
fn editors_variables_name_folders() {
    let folder = tempfile::tempdir().unwrap();
    let vscode = folder.path().join(".vscode");
    std::fs::create_dir(&vscode).unwrap();
    std::fs::write(folder.path().join(".env"), "A=1\n").unwrap();
    let text = r#"{"servers": {"x": {"command": "a", "cwd": "${userHome}", "envFile": "${workspaceFolder}/.env", "env": {"GONE": null}}}}"#;
    std::fs::write(vscode.join("mcp.json"), text).unwrap();
    let loaded = Config::load(&[Source::file(vscode.join("mcp.json"))], &env());
    assert_eq!(loaded.errors().count(), 0, "{:?}", loaded.problems);
    let (_, server) = loaded.config.servers.first_key_value().unwrap();
    assert_eq!(server.cwd(), Some(&"/home/me".into()));
    assert!(matches!(&server.transport, Transport::Stdio(command) if command.env.len() == 1));
}

#[test]
fn a_file_here_is_added_to_the_users_and_does_not_replace_it() {
    let (here, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = home.path().display().to_string();
    let env = Env::from_pairs([("HOME", folder.clone()), ("APPDATA", format!("{folder}/.config"))]);
    let found = || -> Vec<String> {
        let sources = Source::discover(here.path(), &env, &TrustStore::user(&env));
        sources.iter().map(|source| source.name().to_owned()).collect()
    };
    assert_eq!(found(), Vec::<String>::new());
    let user = home.path().join(".config/pegboard/pegboard.yaml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, "").unwrap();
    assert_eq!(found(), [user.display().to_string()]);
    let project = here.path().join(".mcp.json");
    std::fs::write(&project, "").unwrap();
    assert_eq!(found(), [user.display().to_string(), project.display().to_string()]);
}

#[test]
fn a_server_outside_of_servers_is_recognised() {
    insta::assert_snapshot!(problems("[time]\ncommand = 'uvx'\n[server.x]\ncommand = 'a'").join("\n"), @r#"
    pegboard.toml:1: time: there is no such setting (put it under `servers`, as `servers.time`)
    pegboard.toml:3: server: there is no such setting (did you mean `servers`?)
    "#);
}

#[test]
fn later_sources_replace_whole_servers_and_merge_the_rest() {
    let first = "preset = 'tarsy'\n[servers.x]\ncommand = 'a'\ndeny = ['z']\n[servers.y]\ncommand = 'b'\n[servers.z]\ncommand = 'c'\n[queues]\nq = 5\n";
    let second = "[servers.x]\ncommand = 'new'\n[servers.z]\ncommand = 7.5\n[queues]\nq = { concurrent = 2 }\nr = 1\n";
    let sources = [
        Source::text("1.toml", first, None),
        Source::text("2.toml", second, None),
        Source::server("w=tool --flag"),
    ];
    let loaded = Config::load(&sources, &env());
    let config = &loaded.config;
    let origins: Vec<String> = loaded
        .origins
        .iter()
        .map(|(name, origin)| format!("{name} {}:{}", origin.file, origin.line))
        .collect();
    // The bad entry for `z` does not bring the old one back.
    assert_eq!(origins, ["w --server:1", "x 2.toml:1", "y 1.toml:5"]);
    let x = &config.servers[&ServerName::parse("x").unwrap()];
    assert!(x.deny.is_empty());
    assert_eq!(config.preset, Preset::Tarsy);
    assert_eq!((config.queues["q"].concurrent, config.queues["r"].concurrent), (5, 1));
}

#[test]
fn a_missing_variable_is_let_pass_when_asked_or_when_the_server_is_off() {
    let text = "[servers.x]\ncommand = 'a'\nargs = ['${NO}']\n";
    let loaded = Config::from_text(text, Format::Toml, &Env::from_pairs([("A", "b")]).lenient());
    assert_eq!((loaded.config.servers.len(), loaded.warnings().count()), (1, 1));
    let off = server(&format!("{text}enabled = false\n"));
    assert!(!off.enabled);
}

#[test]
fn paths_are_relative_to_the_file_and_an_env_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.env"), "export A='1 2'\nB=from file\n").unwrap();
    let file = folder.path().join("pegboard.toml");
    let text = "[servers.x]\ncommand = 'a'\ncwd = 'sub'\nenvFile = 'x.env'\nenv = { B = 'from table' }\nenv_vars = ['ZONE', 'NO']\n[servers.y]\ncommand = 'a'\ncwd = '~/w'\n";
    std::fs::write(&file, text).unwrap();
    let loaded = Config::load(&[Source::file(&file)], &env());
    assert_eq!(loaded.errors().count(), 0, "{:?}", loaded.problems);
    let servers = &loaded.config.servers;
    let x = &servers[&ServerName::parse("x").unwrap()];
    assert_eq!(x.cwd(), Some(&folder.path().join("sub")));
    let Transport::Stdio(command) = &x.transport else {
        panic!("{x:?}")
    };
    let vars: Vec<(&str, &str)> = command.env.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
    assert_eq!(vars, [("A", "1 2"), ("B", "from table"), ("ZONE", "UTC")]);
    let y = &servers[&ServerName::parse("y").unwrap()];
    assert_eq!(y.cwd(), Some(&"/home/me/w".into()));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let loaded = Config::load(&[Source::file(file.path())], &env());
    assert_eq!(loaded.problems.len(), 1);
    assert!(loaded.problems[0].is_error());
    assert!(loaded.problems[0].message.starts_with("other users may write to it"));
    assert_eq!(loaded.unreadable.len(), 1);
}

#[test]
fn values_that_are_not_texts_may_come_from_variables() {
    let env = Env::from_pairs([("ON", "false"), ("N", "3"), ("T", "5s"), ("TYPE", "sse"), ("MS", "250")]);
    let text = "[servers.x]\nurl = 'https://h/'\ntype = '${TYPE}'\nenabled = '${ON}'\nmax_in_flight = '${N}'\ncall_timeout = '${T}'\nconnect_timeout_ms = '${MS}'\n";
    let loaded = Config::from_text(text, Format::Toml, &env);
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let (_, server) = loaded.config.servers.first_key_value().unwrap();
    assert_eq!(
        (server.enabled, server.transport.kind(), server.limits.max_in_flight),
        (false, "sse", 3)
    );
    assert_eq!(server.limits.call_timeout, Duration::from_secs(5));
    assert_eq!(server.limits.connect_timeout, Duration::from_millis(250));
}

#[test]
fn what_is_said_about_a_tool_is_found_under_its_name_and_under_globs() {
    let x = server(
        "[servers.x]\ncommand = 'a'\nignoreCase = true\n[servers.x.tools.delete_all]\napproval = 'never'\n[servers.x.tools.'delete_*']\napprovalMode = 'prompt'\ninstructions = 'mind it'\n[servers.x.tools.old]\ndisabled = true\n",
    );
    assert!(x.policy.case_insensitive);
    let fits = |glob: &str, name: &str| glob == "delete_*" && name.starts_with("delete_");
    let said = |tool| {
        let said = x.policy.for_tool(tool, fits);
        (said.enabled, said.approval, said.instructions)
    };
    let mind = Some("mind it".to_owned());
    assert_eq!(said("delete_all"), (None, Some(Approval::Never), mind.clone()));
    assert_eq!(said("delete_one"), (None, Some(Approval::Always), mind));
    assert_eq!(said("old"), (Some(false), None, None));
    assert_eq!(said("other"), (None, None, None));
}

#[test]
fn seeds_and_peers_names_mean_what_they_meant_there() {
    let x = server(
        "[servers.x]\ncommand = 'a'\nshared = false\ndata_masking = { enabled = true, pattern_groups = ['kubernetes'], custom_patterns = [{ pattern = 'x', replacement = 'y' }] }\nsummarization = { size_threshold_tokens = 200 }\nautoApprove = ['t']\ncache = '5m'\ncall_timeout = '20m'\n",
    );
    assert_eq!(x.policy.scope, Scope::Session);
    assert_eq!(x.policy.masking.groups, ["kubernetes"]);
    assert_eq!(x.policy.masking.custom[0].replacement, "y");
    assert_eq!(x.policy.summarise.unwrap().threshold_tokens, 200);
    assert_eq!(x.policy.approval_exempt, ["t"]);
    assert_eq!(x.policy.cache, Some(Duration::from_secs(300)));
    assert_eq!(
        x.limits.call_total_timeout,
        Duration::from_secs(1200),
        "the whole is at least a part"
    );
    let y = server(
        "[servers.x]\nurl = 'https://h/'\nbearer_token_env_var = 'GITHUB_TOKEN'\nverify_ssl = false\nera = '2025-06-18'\n",
    );
    let Transport::Remote {
        kind: RemoteKind::Auto,
        endpoint: to,
    } = y.transport
    else {
        panic!()
    };
    assert_eq!(to.auth, Auth::Bearer(pegboard_base::secret::Secret::new("s3cr3t")));
    assert!(to.tls.insecure);
    assert_eq!(y.era, EraChoice::Version("2025-06-18".into()));
}

#[test]
fn a_naming_is_a_style_or_a_template() {
    for (text, expected) in [
        ("naming = 'mcp-dunder'", NameStyle::McpDunder),
        ("naming = 'double_underscore'", NameStyle::Dunder),
        (
            "naming = '{server}_{tool}'",
            NameStyle::Template("{server}_{tool}".to_owned()),
        ),
        ("", NameStyle::Dunder),
    ] {
        let loaded = toml(text);
        assert_eq!((loaded.config.naming, loaded.problems), (expected, vec![]), "{text}");
    }
    let loaded = toml("naming = 'underline'");
    assert_eq!(loaded.config.naming, NameStyle::Dunder);
    assert_eq!(
        loaded.problems[0].to_string(),
        "pegboard.toml:1: naming: `underline` is no naming style: write dot, dunder, mcp_dunder, mcp_single, bare, or a template such as \
         `{server}_{tool}`"
    );
}

#[test]
fn a_number_below_zero_is_an_error_and_a_limit_of_zero_is_not_set() {
    for settings in [
        "retry = -1",
        "retry = { attempts = -1 }",
        "max_in_flight = -1",
        "max_message = -1",
        "connect_timeout_ms = -5",
        "restart = { wait_ms = -5 }",
        "cache = -1",
        "timeout = -30",
    ] {
        let loaded = toml(&format!("[servers.x]\ncommand = 'a'\n{settings}\n"));
        assert_eq!(loaded.errors().count(), 1, "{settings}: {:?}", loaded.problems);
        assert!(loaded.config.servers.is_empty(), "{settings}");
    }
    for settings in [
        "timeout = 0",
        "call_timeout = 0",
        "requestTimeoutMs = 0",
        "RequestTimeout = 0",
    ] {
        let x = server(&format!("preset = 'tarsy'\n[servers.x]\ncommand = 'a'\n{settings}\n"));
        assert_eq!(x.limits.call_timeout, Duration::from_secs(60), "{settings}");
    }
}
