//! The origin of settings, and `pegboard config`.

use pegboard_testkit::{FakeServer, Tool};

use super::home::Home;

#[test]
fn a_file_here_is_added_to_the_one_in_the_users_folder() {
    let home = Home::new();
    let entry = |name: &str| home.entry(name, FakeServer::new(name).tool(Tool::new("t")), "");
    home.write(".config/pegboard/pegboard.toml", &entry("user"));
    home.run(&["tools"]).ends_with(0).prints("user.t");
    home.write("xdg/pegboard/pegboard.toml", &entry("xdg"));
    let mut command = home.pegboard(&["tools"]);
    command.env("XDG_CONFIG_HOME", home.path("xdg"));
    super::home::Ran::of(command).ends_with(0).prints("xdg.t");
    let (program, args) = FakeServer::new("here").tool(Tool::new("t")).command();
    let json = serde_json::json!({"mcpServers": {"here": {"command": program, "args": args}}});
    home.write(".mcp.json", &json.to_string().replace('$', "$$"));
    let both = home.run(&["--trust", "tools"]);
    both.ends_with(0).prints("user.t").prints("here.t");
    home.write("pegboard.toml", &entry("first"));
    let both = home.run(&["tools", "--trust"]);
    both.ends_with(0).prints("user.t").prints("first.t");
    let own = home.run(&["tools"]);
    own.ends_with(0).prints("user.t").says("is not approved");
    assert!(!own.out.contains("first.t"), "{own:?}");
}

#[test]
fn later_files_and_servers_of_the_command_line_are_added() {
    let home = Home::new();
    let fake = || FakeServer::new("fx").tool(Tool::new("t"));
    home.write("a.toml", &home.entry("one", fake(), ""));
    home.write("b.toml", &home.entry("two", fake(), ""));
    let ran = home.run(&["-c", "a.toml", "tools", "-c", "b.toml", &home.server("three", fake())]);
    ran.ends_with(0).prints("one.t").prints("two.t").prints("three.t");
}

#[test]
fn problems_are_shown_with_file_and_line_and_errors_fail_the_command() {
    let home = Home::new();
    home.config("[servers.a]\ncommand = 'x'\n\n[servers.b]\ncommands = 'x'\n");
    let ran = home.run(&["config", "show"]);
    ran.ends_with(2)
        .says(":5: servers.b.commands: there is no such setting (did you mean `command`?)");
    ran.prints("command = \"x\"").prints("pegboard.toml:2\n");
    ran.prints("# [servers.b] cannot be used: `commands`: there is no such setting\n");
    let json = home.run(&["config", "show", "-o", "json"]).ends_with(2).json();
    assert_eq!(json["problems"][0]["line"], 5);
    assert_eq!(json["servers"]["a"]["command"], "x");
}

#[test]
fn picked_servers_are_shown_without_the_others() {
    let home = Home::new();
    home.config("[servers.a]\ncommand = 'x'\n\n[servers.b]\ncommands = 'x'\n\n[servers.c]\ncommand = 'y'\n");
    let ran = home.run(&["config", "show", "--server", "a"]);
    ran.ends_with(0).prints("[servers.a]");
    assert!(
        !ran.out.contains("servers.b") && !ran.out.contains("servers.c"),
        "{ran:?}"
    );
    let json = home
        .run(&["config", "show", "--server", "c", "-o", "json"])
        .ends_with(0)
        .json();
    let names: Vec<&String> = json["servers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["c"]);
    assert_eq!(json["misconfigured"], serde_json::json!({}));
    home.run(&["config", "show", "--server", "b"])
        .ends_with(2)
        .prints("# [servers.b] cannot be used");
    home.run(&["config", "show", "--server", "d"])
        .ends_with(2)
        .says("there is no server `d`");
}

#[test]
fn good_servers_are_used_beside_bad_ones() {
    let home = Home::new();
    let good = home.entry(
        "good",
        FakeServer::new("fx").tool(Tool::new("t").answers_text("fine")),
        "",
    );
    home.config(&format!("[servers.bad]\ncommands = 'x'\n{good}"));
    let warning = "warning: ";
    home.run(&["tools"])
        .ends_with(0)
        .says(warning)
        .says("pegboard.toml:2")
        .prints("good.t");
    let json = home.run(&["tools", "-o", "json"]).ends_with(0).json();
    assert!(
        json["warnings"][0].as_str().unwrap().contains("servers.bad.commands"),
        "{json}"
    );
    // Other servers do not concern the call.
    let ran = home.run(&["call", "good.t"]);
    assert_eq!((ran.ends_with(0).out.as_str(), ran.err.as_str()), ("fine\n", ""));
    for args in [
        &["call", "bad.t"][..],
        &["tools", "--server", "bad"],
        &["status", "--server", "bad"],
    ] {
        let ran = home.run(args);
        ran.ends_with(2)
            .says("error: server `bad` cannot be used as it is configured\nhint: ");
        ran.says("pegboard.toml:2: servers.bad.commands");
        home.run(&[args, &["-o", "json"]].concat()).ends_with(2).json();
    }
}

#[test]
fn a_config_that_cannot_be_read_is_no_reason_to_use_the_demo_server() {
    let home = Home::new();
    home.write("broken.toml", "[servers.a\n");
    for file in ["none.toml", "broken.toml"] {
        for command in [&["tools"][..], &["status"], &["call", "x.y"]] {
            let ran = home.run(&[&["-c", file], command].concat());
            ran.ends_with(2).says(&format!(
                "error: {file} cannot be read as a config, so nothing was done\nhint: {file}:"
            ));
            assert_eq!(ran.out, "");
            home.run(&[&["-c", file, "-o", "json"], command].concat())
                .ends_with(2)
                .json();
        }
        home.run(&["-c", file, "config", "show"]).ends_with(2).says(file);
    }
}

#[test]
fn the_schema_and_the_config_without_files_are_json_documents() {
    let home = Home::new();
    let schema = home.run(&["config", "schema"]).ends_with(0).json();
    assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
    let shown = home.run(&["config", "show", "-o", "json"]).ends_with(0).json();
    assert_eq!(shown["servers"]["demo"]["args"], serde_json::json!(["demo-server"]));
}

#[test]
fn nothing_runs_when_one_of_several_files_cannot_be_read() {
    let home = Home::new();
    let good = home.entry("good", FakeServer::new("fx").tool(Tool::new("t")), "");
    home.write("good.toml", &good);
    home.write("broken.toml", "[servers.good\ndeny = ['t']\n");
    for file in ["none.toml", "broken.toml"] {
        for order in [["good.toml", file], [file, "good.toml"]] {
            let files = ["-c", order[0], "-c", order[1]];
            for command in [&["call", "good.t"][..], &["tools"], &["status"], &["mask"]] {
                let ran = home.run(&[&files, command].concat());
                ran.ends_with(2).says(&format!("error: {file} cannot be read"));
                assert_eq!(ran.out, "");
            }
        }
    }
    assert!(!home.path("good.log").exists(), "no server was started");
}

#[test]
fn a_misconfigured_server_is_named_when_its_tool_is_called() {
    let home = Home::new();
    let good = home.entry("good", FakeServer::new("fx").tool(Tool::new("t")), "");
    home.config(&format!("[servers.bad]\nurl = 'https://h/'\nauth = 'bearer'\n{good}"));
    for name in ["bad.t", "bad__t", "mcp__bad__t", "mcp_bad_t"] {
        let ran = home.run(&["call", name]);
        ran.ends_with(2)
            .says("server `bad` cannot be used as it is configured")
            .says("does not hold what `bearer` needs");
    }
    // A tool name without a server.
    let ran = home.run(&["call", "find_it"]);
    ran.ends_with(2).says("does not hold what `bearer` needs");
}

#[test]
fn show_and_explain_tell_where_values_come_from() {
    let home = Home::new();
    home.config(
        "preset = 'tarsy'\nconnect_timeout = '5s'\n[servers.x]\ncommand = 'a'\ntimeout = '90s'\n[servers.bad]\n",
    );
    let shown = home.run(&["config", "show"]);
    shown.ends_with(2).prints("preset = \"tarsy\"");
    for (setting, from) in [
        ("call_timeout = \"90s\"", "/pegboard.toml:5\n"),
        ("connect_timeout = \"5s\"", "/pegboard.toml:2, for all servers\n"),
        ("scope = \"session\"", "# preset tarsy\n"),
        ("max_pages = 100", "# default\n"),
    ] {
        let servers = shown.out.split_once("[servers.x]").unwrap().1;
        let (_, rest) = servers
            .split_once(setting)
            .unwrap_or_else(|| panic!("{setting}: {servers}"));
        let line = rest.split_inclusive('\n').next().unwrap();
        assert!(line.ends_with(from), "{setting}: {line}");
    }
    let json = home.run(&["config", "show", "-o", "json"]).ends_with(2).json();
    assert_eq!(json["servers"]["x"]["preset"], "tarsy");
    assert_eq!(json["servers"]["x"]["origins"]["scope"], "preset tarsy");
    assert!(
        json["misconfigured"]["bad"]["why"].as_str().unwrap().contains("either"),
        "{json}"
    );

    let one = home.run(&["config", "explain", "x.callTimeout"]);
    one.ends_with(0).prints("servers.x.call_timeout = \"90s\"\n  from ");
    one.prints("pegboard.toml:5\n  instead of \"1m\" (preset tarsy)\n  instead of \"1m\" (default)\n");
    let moved = home.run(&["config", "explain", "x.call_total_timeout"]);
    moved
        .ends_with(0)
        .prints("= \"90s\"\n  follows from call_timeout\n  instead of \"1m\" (preset tarsy)\n");
    home.run(&["config", "explain", "x.retry"])
        .prints("servers.x.retry.attempts");
    home.run(&["config", "explain", "connect_timeout"])
        .prints("connect_timeout = \"5s\"");
    home.run(&["config", "explain", "x"]).prints("servers.x.scope");
    let json = home.run(&["config", "explain", "x.scope", "-o", "json"]).json();
    let from = serde_json::json!({"kind": "preset", "preset": "tarsy"});
    assert_eq!(
        (
            json["settings"][0]["from"].clone(),
            json["settings"][0]["value"].as_str()
        ),
        (from, Some("session"))
    );
    for (what, words) in [
        ("nobody", "there is no server `nobody`"),
        ("x.nothing", "there is no setting `nothing`"),
        ("bad", "server `bad` cannot be used as it is configured"),
    ] {
        home.run(&["config", "explain", what]).ends_with(2).says(words);
    }
}

#[test]
fn a_setting_that_nobody_wrote_is_explained_with_its_default() {
    let home = Home::new();
    let config = home.write("c.toml", "[servers.x]\ncommand = 'x'\n");
    let config = config.to_str().unwrap();
    for (what, words) in [
        ("x.call_timeout", "servers.x.call_timeout = \"1m\"\n  from default\n"),
        ("call_timeout", "call_timeout = \"1m\"\n  from default\n"),
        (
            "x.tls.ca",
            "servers.x.tls.ca is not set\n  there is no default\n  A PEM file",
        ),
        (
            "x.description",
            "servers.x.description is not set\n  there is no default\n",
        ),
        ("restart", "restart.wait     default  \"10s\""),
    ] {
        home.run(&["-c", config, "config", "explain", what])
            .ends_with(0)
            .prints(words);
    }
    let json = home
        .run(&["-c", config, "config", "explain", "call_timeout", "-o", "json"])
        .json();
    assert_eq!(json["settings"][0]["value"], "1m");
    assert_eq!(json["settings"][0]["from"]["kind"], "default");
    // A preset has other defaults.
    let config = home.write("p.toml", "preset = 'tarsy'\n[servers.x]\ncommand = 'x'\n");
    let args = ["-c", config.to_str().unwrap(), "config", "explain", "scope"];
    home.run(&args)
        .ends_with(0)
        .prints("scope = \"session\"\n  from preset tarsy\n");
}

#[test]
fn a_text_is_read_as_the_server_is_configured() {
    let home = Home::new();
    let fake = || FakeServer::new("fx").tool(Tool::new("echo").echoes());
    home.write(
        "tarsy.toml",
        &format!("preset = 'tarsy'\n{}", home.entry("fx", fake(), "")),
    );
    home.write("plain.toml", &home.entry("fx", fake(), ""));
    home.write(
        "strict.toml",
        &home.entry("fx", fake(), "call_arguments = { read = 'json' }"),
    );
    let call = |file: &str, text: &str| home.run(&["-c", file, "call", "fx.echo", "--text", text]);
    call("tarsy.toml", "namespace: default")
        .ends_with(0)
        .prints("{\"namespace\":\"default\"}");
    call("tarsy.toml", "\"pods\"")
        .ends_with(0)
        .prints("{\"input\":\"pods\"}");
    call("plain.toml", "{'text': 'a'}")
        .ends_with(0)
        .prints("{\"text\":\"a\"}");
    call("strict.toml", "namespace: default").ends_with(2);
}

#[test]
fn a_config_is_found_above_and_its_paths_do_not_depend_on_where_one_stands() {
    let home = Home::new();
    let (program, args) = home
        .command_of("fx", FakeServer::new("fx").tool(Tool::new("t").answers_text("fine")))
        .split_once(' ')
        .map(|(program, args)| {
            (
                program.to_owned(),
                args.split(' ').map(str::to_owned).collect::<Vec<_>>(),
            )
        })
        .unwrap();
    let text = format!("[servers.fx]\ncommand = './bin/fx'\nargs = {args:?}\ncwd = 'sub'\nenv_file = 'x.env'\n");
    home.write("repo/pegboard.toml", &text);
    home.write("repo/x.env", "A=1\n");
    home.write("repo/.git/HEAD", "");
    home.write("repo/sub/deep/file", "");
    home.write("repo/bin/keep", "");
    std::os::unix::fs::symlink(program, home.path("repo/bin/fx")).unwrap();
    std::os::unix::fs::symlink(home.path("repo/pegboard.toml"), home.path("link.toml")).unwrap();
    for (cwd, options) in [
        ("repo", &["--trust"][..]),
        ("repo/sub/deep", &["--trust"]),
        ("repo", &["-c", "pegboard.toml"]),
        ("repo", &["-c", "./pegboard.toml"]),
        ("repo/sub", &["-c", "../pegboard.toml"]),
        ("", &["-c", "repo/pegboard.toml"]),
        ("", &["-c", "link.toml"]),
    ] {
        let mut command = home.pegboard(&[options, &["call", "fx.t"]].concat());
        command.current_dir(home.path(cwd));
        assert_eq!(
            super::home::Ran::of(command).ends_with(0).out,
            "fine\n",
            "{cwd} {options:?}"
        );
    }
}

#[test]
fn programs_are_told_that_the_demo_server_stands_in() {
    let home = Home::new();
    let note = "no config found, using the built-in demo server";
    let tools = home.run(&["tools", "-o", "json"]).ends_with(0).json();
    assert!(tools["warnings"][0].as_str().unwrap().starts_with(note), "{tools}");
    let status = home.run(&["status", "-o", "json"]).ends_with(0).json();
    assert_eq!(status["warnings"][0]["id"], "config:demo");
    let shown = home.run(&["config", "show", "-o", "json"]).ends_with(0).json();
    assert!(shown["warnings"][0].as_str().unwrap().starts_with(note), "{shown}");
}

#[test]
fn packages_without_a_version_are_warned_of_where_the_config_is_shown() {
    let home = Home::new();
    let text = "[servers.a]\ncommand = 'npx'\nargs = ['-y', 'some-server']\nenabled = false\n\
                [servers.b]\ncommand = 'npx'\nargs = ['-y', 'other-server@1.2.3']\nenabled = false\n";
    home.config(text);
    let told = "server `a` runs the newest version of `some-server` at every start";
    let shown = home.run(&["config", "show"]);
    assert!(shown.code == Some(0) && shown.err.contains(told), "{shown:?}");
    assert!(!shown.err.contains("other-server"), "{shown:?}");
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert!(shown["warnings"][0].as_str().unwrap().starts_with(told), "{shown}");
    assert!(home.run(&["status", "-v"]).err.contains(told));
    assert!(!home.run(&["status"]).err.contains("newest version"));
}
