//! Protection that a file sets and that cannot be put in force keeps servers from starting.

use super::*;

#[test]
fn a_misspelt_protection_at_the_top_keeps_every_server_from_starting() {
    for top in [
        "aproval = 'always'",
        "approval = 'alwys'",
        "deny = ['*']",
        "disabled_tools = ['x']",
        "sandbox = 'strict'",
        "transports = ['stdoi']",
        "env_policy = 'explict'",
        "masking = { paterns = ['email'] }",
        "masking = { groups = ['kubernets'] }",
        "masking = { custom = [{ pattern = '(' }] }",
        "masking = 'on'",
        "result = { fenc = true }",
        "call_arguments = 'stirct'",
    ] {
        let loaded = toml(&format!(
            "{top}\n[servers.a]\ncommand = 'a'\n[servers.b]\nurl = 'https://h/'\n"
        ));
        assert!(loaded.config.servers.is_empty(), "{top}");
        let error = loaded.errors().next().unwrap();
        for (name, server) in &loaded.config.misconfigured {
            assert_eq!(server.problems[0], error.to_string(), "{top}: {name}");
        }
        assert_eq!(loaded.config.misconfigured.len(), 2, "{top}");
    }
}

#[test]
fn another_mistake_at_the_top_affects_no_server() {
    for top in ["call_timout = '3s'", "xyzzy = 1", "max_servers = 0", "naming = '{tool'"] {
        let loaded = toml(&format!("{top}\n[servers.a]\ncommand = 'a'\n"));
        assert_eq!((loaded.errors().count(), loaded.config.servers.len()), (1, 1), "{top}");
    }
}

#[test]
fn a_protection_that_one_file_lost_is_missing_for_the_servers_of_all_files() {
    let sources = [
        Source::text("1.toml", "[servers.a]\ncommand = 'a'\n", None),
        Source::text("2.toml", "aproval = 'always'\n[servers.b]\ncommand = 'b'\n", None),
        Source::server("c=tool"),
    ];
    let loaded = Config::load(&sources, &env());
    assert!(loaded.config.servers.is_empty());
    assert_eq!(loaded.config.misconfigured.len(), 3);
}

#[test]
fn a_file_with_too_many_errors_starts_nothing() {
    let keys: String = (0..1100).map(|n| format!("key{n}zzz = 1\n")).collect();
    let loaded = toml(&format!("{keys}approval = 'always'\n[servers.a]\ncommand = 'a'\n"));
    assert!(loaded.config.servers.is_empty());
}

#[test]
fn a_shell_sees_nothing_of_what_a_file_or_variable_holds() {
    let env = Env::from_pairs([("V", "$(id) `id`; rm -rf /")]);
    let text = "[servers.x]\ncommand = 'a'\nargs = ['; ls', '$(id)', '`id`', '| cat', '&& x', '> f', '${V}', '*']\n";
    let loaded = Config::from_text(text, Format::Toml, &env);
    let (_, server) = loaded.config.servers.first_key_value().unwrap();
    let Transport::Stdio(command) = &server.transport else {
        panic!()
    };
    let args: Vec<&str> = command.args.iter().map(pegboard_base::secret::Secret::expose).collect();
    let expected = [
        "; ls",
        "$(id)",
        "`id`",
        "| cat",
        "&& x",
        "> f",
        "$(id) `id`; rm -rf /",
        "*",
    ];
    assert_eq!(args, expected);
    assert_eq!(command.program, "a");
}
