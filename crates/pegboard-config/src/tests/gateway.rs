//! Named views, and the settings and tokens of the gateway.

use super::*;

const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn views_and_the_gateway_are_read_with_all_their_settings() {
    let loaded = toml(&format!(
        "[servers.github]\ncommand = 'a'\n\
         [views.coding]\ndescription = 'For editors.'\nservers = ['github', 'git*']\ntools = ['issues_*']\ndeny = ['*delete*']\n\
         budget = 4000\nnaming = 'dot'\napproval = 'writes'\nresult = {{ max_bytes = '64KiB' }}\n\
         [serve]\nlisten = ['127.0.0.1:8000', '[::1]:8000']\nhosts = ['gateway.example.com']\norigins = ['https://app.example.com']\n\
         max_connections = 10\nmax_in_flight = 20\nmax_body = '1MiB'\nmax_sessions = 5\nsession_idle = '10m'\nallow_new_servers = true\nlinks_in_text = false\ndashboard = false\ndashboard_calls = 'always'\n\
         [serve.tokens.ci]\nhash = 'sha256:{DIGEST}'\nview = 'coding'\nrate = '60/min'\nconcurrent = 4\nexpires = '2900-01-31T12:00:00Z'\nscopes = ['admin', 'read']\n\
         [serve.tls]\ncert = '/etc/gateway.pem'\nkey = '/etc/gateway.key'\n"
    ));
    assert_eq!(loaded.problems, []);
    let view = &loaded.config.views["coding"];
    assert_eq!(view.description.as_deref(), Some("For editors."));
    assert_eq!(view.servers, ["github", "git*"]);
    assert_eq!(
        (view.tools.as_slice(), view.deny.as_slice()),
        (&["issues_*".to_owned()][..], &["*delete*".to_owned()][..])
    );
    assert_eq!((view.budget, view.naming.clone()), (Some(4000), Some(NameStyle::Dot)));
    assert_eq!(view.approval, Approval::Writes);
    assert_eq!(view.result.map(|result| result.max_bytes), Some(64 << 10));
    let serve = &loaded.config.serve;
    let listen: Vec<String> = serve.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["127.0.0.1:8000", "[::1]:8000"]);
    assert_eq!(serve.hosts, ["gateway.example.com"]);
    assert_eq!(serve.origins, ["https://app.example.com"]);
    assert_eq!(
        (serve.max_connections, serve.max_body, serve.max_sessions),
        (10, 1 << 20, 5)
    );
    assert_eq!(serve.max_in_flight, 20);
    assert_eq!(serve.session_idle.as_secs(), 600);
    assert!(serve.allow_new_servers && !serve.links_in_text && !serve.dashboard);
    assert_eq!(serve.dashboard_calls, DashboardCalls::Always);
    let token = &serve.tokens["ci"];
    assert_eq!(token.sha256.to_string(), DIGEST);
    assert_eq!(token.expires.unwrap().to_string(), "2900-01-31T12:00:00Z");
    assert_eq!(
        token.scopes.iter().copied().collect::<Vec<_>>(),
        [TokenScope::Read, TokenScope::Admin]
    );
    assert_eq!(serve.tls, Some(ServeTls::new("/etc/gateway.pem", "/etc/gateway.key")));
    let stored = serde_json::to_string(&loaded.config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&stored).unwrap(), loaded.config);
}

#[test]
fn without_settings_the_gateway_listens_on_loopback_and_has_no_tokens() {
    let serve = toml("[servers.x]\ncommand = 'a'\n").config.serve;
    assert_eq!(serve, ServeConfig::default());
    assert_eq!(serve.listen[0].to_string(), "127.0.0.1:7337");
    assert!(!serve.requires_token());
}

#[test]
fn every_mistake_is_reported_where_it_is() {
    let found = problems(&format!(
        "[views.'a/b']\n[views.typo]\ndney = ['x']\n[views.style]\nnaming = '{{server}}'\n[views.lost]\nservers = ['nobody', 'no*']\n\
         [serve]\nlisten = ['localhost']\nhosts = ['*']\norigins = ['app']\nstate_key = 'aHVudGVyMg=='\n\
         [serve.tokens.a]\n[serve.tokens.b]\nsha256 = 'pgb_secret'\n[serve.tokens.c]\nsha256 = '{DIGEST}'\nview = 'typo'\n\
         [serve.tokens.d]\nsha256 = '{DIGEST}'\nexpires = 'tomorrow'\nrate = 'often'\n[servers.x]\ncommand = 'a'\n"
    ));
    insta::assert_snapshot!(found.join("\n"), @r#"
    pegboard.toml:1: views.a/b: a name has at most 64 letters, digits, `-` and `_`, and begins with a letter or digit
    pegboard.toml:3: views.typo.dney: there is no such setting (did you mean `deny`?)
    pegboard.toml:5: views.style.naming: `{server}` is no naming style: write dot, dunder, mcp_dunder, mcp_single, bare, or a template such as `{server}_{tool}`
    pegboard.toml:9: serve.listen: must be an IP address and a port (write `127.0.0.1:7337`, `[::1]:7337` or `localhost:7337`)
    pegboard.toml:10: serve.hosts: must be a host name, with or without a port (write `gateway.example.com` or `gateway.example.com:8443`)
    pegboard.toml:11: serve.origins: must be the origin of a web page (write `https://app.example.com`, without a path)
    pegboard.toml:12: serve.state_key: must be 32 bytes in base64, and has 7 (`openssl rand -base64 32` prints one; keep it in a variable, `state_key = "${PEGBOARD_STATE_KEY}"`)
    pegboard.toml:13: serve.tokens.a.sha256: a token needs its digest (`pegboard token new` prints a token and its digest)
    pegboard.toml:15: serve.tokens.b.sha256: must be a SHA-256 digest: 64 hexadecimal digits, with `sha256:` before them if you like (`pegboard token hash` reads a token on stdin and prints its digest; the token itself does not belong here)
    pegboard.toml:21: serve.tokens.d.expires: must be a time such as `2027-01-31T12:00:00Z`
    pegboard.toml:22: serve.tokens.d.rate: must be a number of calls and a period of up to a day, such as `60/min` or `100/10m`
    pegboard.toml:18: serve.tokens.c.view: there is no view `typo` (the views are lost)
    pegboard.toml:7: views.lost.servers: there is no server `nobody` (the servers are x)
    "#);
}

#[test]
fn a_token_may_list_and_call_tools_unless_its_scopes_say_otherwise() {
    let config = toml(&format!("[serve.tokens.a]\nsha256 = '{DIGEST}'\n")).config;
    let scopes: Vec<&str> = config.serve.tokens["a"]
        .scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect();
    assert_eq!(scopes, ["read", "call"]);
}

#[test]
fn a_token_with_an_unknown_scope_or_none_is_unusable() {
    for scopes in ["['read', 'write']", "[]", "'root'", "[7]"] {
        let loaded = toml(&format!("[serve.tokens.a]\nsha256 = '{DIGEST}'\nscopes = {scopes}\n"));
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert!(!errors.is_empty(), "{scopes}");
        assert!(
            errors.iter().all(|error| error.contains("serve.tokens.a.scopes")),
            "{errors:?}"
        );
        assert!(loaded.config.serve.tokens.is_empty(), "{scopes}");
        assert!(loaded.config.serve.requires_token(), "{scopes}");
    }
}

#[test]
fn a_certificate_needs_its_key_and_is_next_to_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pegboard.toml");
    std::fs::write(&file, "[serve.tls]\ncert = 'tls/cert.pem'\nkey = '/k.pem'\n").unwrap();
    let loaded = Config::load(&[Source::file(file.clone())], &env());
    assert_eq!(loaded.problems, []);
    let tls = loaded.config.serve.tls.unwrap();
    assert_eq!(
        (tls.cert, tls.key),
        (folder.path().join("tls/cert.pem"), "/k.pem".into())
    );
    for half in ["cert = 'a'", "key = 'b'", "cert = 'a'\nkey = ''"] {
        std::fs::write(&file, format!("[serve.tls]\n{half}\n")).unwrap();
        let loaded = Config::load(&[Source::file(file.clone())], &env());
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert!(
            errors[0].contains("serve.tls: needs both `cert` and `key`"),
            "{errors:?}"
        );
        assert_eq!(loaded.config.serve.tls, None);
    }
}

#[test]
fn the_key_of_replicas_is_masked_in_the_output_of_servers() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";
    let loaded = toml(&format!("[serve]\nstate_key = '{key}'\n[servers.x]\ncommand = 'a'\n"));
    assert_eq!(loaded.problems, []);
    assert!(loaded.config.secrets().iter().any(|secret| secret.expose() == key));
    assert!(!format!("{:?} {}", loaded.config, loaded.show()).contains(key));
}

#[test]
fn a_token_that_has_expired_is_mentioned_and_stays_one() {
    let text = format!(
        "[serve.tokens.old]\nsha256 = '{DIGEST}'\nexpires = '2020-01-31T12:00:00Z'\n[servers.x]\ncommand = 'a'\n"
    );
    let loaded = toml(&text);
    let told = "pegboard.toml:3: serve.tokens.old.expires: has passed: no client can use this token (remove the token, or make another one with \
                `pegboard token new`)";
    assert_eq!(problems(&text), [told]);
    assert_eq!(loaded.errors().count(), 0);
    assert!(loaded.config.serve.tokens["old"].has_expired());
}

/// A view without its `deny` would show more than was meant, and a gateway without its tokens would let everyone in.
#[test]
fn what_has_an_error_is_not_used_at_all() {
    let config = toml(&format!(
        "[views.typo]\ntools = ['a']\ndney = ['x']\n[views.good]\n[serve.tokens.a]\nsha256 = 'x'\n[serve.tokens.b]\nsha256 = '{DIGEST}'\nview = 'typo'\n"
    ))
    .config;
    assert_eq!(config.views.keys().collect::<Vec<_>>(), ["good"]);
    assert!(config.serve.tokens.is_empty());
    assert_eq!(config.serve.unusable_tokens.iter().collect::<Vec<_>>(), ["a", "b"]);
    assert!(config.serve.requires_token());
}

#[test]
fn later_files_add_views_and_tokens_and_replace_those_of_the_same_name() {
    let other = DIGEST.replace('b', "c");
    let first = format!(
        "[views.a]\ntools = ['1']\n[views.b]\ntools = ['1']\n[serve]\nmax_sessions = 7\nhosts = ['one']\n[serve.tokens.t]\nsha256 = '{DIGEST}'\n\
         [serve.tokens.u]\nsha256 = '{DIGEST}'\n"
    );
    let second = format!(
        "[views.b]\ntools = ['2']\n[views.a]\ndney = 1\n[serve]\nhosts = ['two']\n[serve.tokens.u]\nsha256 = '{other}'\n"
    );
    let sources =
        [("first", &first), ("second", &second)].map(|(name, text)| Source::text(name, text, Some(Format::Toml)));
    let config = Config::load(&sources, &env()).config;
    assert_eq!(
        config.views.keys().collect::<Vec<_>>(),
        ["b"],
        "the broken one hides the earlier one"
    );
    assert_eq!(config.views["b"].tools, ["2"]);
    assert_eq!(
        (config.serve.max_sessions, config.serve.hosts.as_slice()),
        (7, &["two".to_owned()][..])
    );
    let digests: Vec<String> = config
        .serve
        .tokens
        .values()
        .map(|token| token.sha256.to_string())
        .collect();
    assert_eq!(digests, [DIGEST.to_owned(), other]);
}

#[test]
fn a_project_file_adds_views_and_changes_neither_those_of_others_nor_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let user = folder.join("user.toml");
    std::fs::write(&user, "[views.mine]\ntools = ['1']\n").unwrap();
    let project = folder.join("project.toml");
    let text = format!(
        "[views.mine]\ntools = ['2']\n[views.theirs]\ntools = ['3']\n[views.more]\ngrants = ['operator']\n[serve]\nhosts = ['evil']\n[serve.tokens.t]\nsha256 = '{DIGEST}'\n"
    );
    std::fs::write(&project, text).unwrap();
    let mut store = TrustStore::at(folder.join("state/trust.json"));
    store.accept(&ProjectFile::read(&project, &env()).unwrap()).unwrap();
    let loaded = Config::load(&[Source::file(user), Source::project(project, &store)], &env());
    assert_eq!(loaded.config.views["mine"].tools, ["1"]);
    assert_eq!(loaded.config.views["theirs"].tools, ["3"]);
    assert!(!loaded.config.views.contains_key("more"));
    assert_eq!(loaded.config.serve, ServeConfig::default());
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let problems = problems.join("\n");
    assert!(
        problems.contains("views.more: is left out: a project file cannot grant capabilities"),
        "{problems}"
    );
    assert!(
        problems.contains("views.mine: is left out: another config file has a view of that name"),
        "{problems}"
    );
    assert!(
        problems.contains("serve: is left out: a project file cannot set it"),
        "{problems}"
    );
}

#[test]
fn access_tokens_are_read_with_all_their_settings() {
    let loaded = toml(
        "[views.ops]\n[serve]\npublic_url = 'https://MCP.example.com/'\n\
         [serve.oauth]\nissuer = 'https://login.example.com/realms/a'\naudience = ['api://gateway', 'b']\njwks_url = 'https://login.example.com/keys?app=1'\n\
         algorithms = ['ES256', 'EdDSA']\nclock_skew = '5s'\nrequired_scopes = ['mcp']\nscopes_supported = ['mcp', 'x']\nprincipal = 'email'\nid_tokens = true\n\
         [[serve.oauth.rules]]\nclaim = 'groups'\nhas = 'sre'\nview = 'ops'\nscopes = ['read', 'admin']\n[[serve.oauth.rules]]\nclaim = 'scope'\nhas = ['a', 'b']\n\
         [serve.oauth.introspection]\nurl = 'https://login.example.com/introspect'\nclient_id = 'gateway'\nclient_secret = 'canary-of-the-gateway'\n",
    );
    assert_eq!(loaded.problems, []);
    let serve = &loaded.config.serve;
    assert!(serve.requires_token());
    assert_eq!(serve.public_url.as_deref(), Some("https://mcp.example.com"));
    let oauth = serve.oauth.as_ref().unwrap();
    assert_eq!(oauth.issuers, ["https://login.example.com/realms/a"]);
    assert_eq!(oauth.audiences, ["api://gateway", "b"]);
    assert_eq!(oauth.algorithms, [JwtAlgorithm::Es256, JwtAlgorithm::EdDsa].into());
    assert_eq!((oauth.clock_skew.as_secs(), oauth.principal.as_str()), (5, "email"));
    assert!(oauth.id_tokens);
    assert_eq!(oauth.advertised_scopes(), ["mcp", "x"]);
    let [ops, others] = oauth.rules.as_slice() else {
        panic!("{:?}", oauth.rules)
    };
    assert_eq!(
        (ops.claim.as_deref(), ops.view.as_deref()),
        (Some("groups"), Some("ops"))
    );
    assert_eq!(ops.scopes, [TokenScope::Read, TokenScope::Admin].into());
    assert_eq!(others.has, ["a", "b"]);
    assert_eq!(others.scopes, [TokenScope::Read, TokenScope::Call].into());
    let secret = "canary-of-the-gateway";
    assert!(loaded.config.secrets().iter().any(|known| known.expose() == secret));
    assert!(!format!("{:?} {}", loaded.config, loaded.show()).contains(secret));
}

#[test]
fn wrong_settings_of_access_tokens_are_reported_and_admit_nobody() {
    const GOOD: &str = "[serve.oauth]\nissuer = 'https://login.example.com'\naudience = 'a'\n";
    const RULE: &str = "[[serve.oauth.rules]]\n";
    for (text, field) in [
        (
            format!("[serve.oauth]\naudience = 'a'\n{RULE}"),
            "serve.oauth.issuer: is needed",
        ),
        (
            format!("[serve.oauth]\nissuer = 'https://login.example.com'\n{RULE}"),
            "serve.oauth.audience: is needed",
        ),
        (
            format!("[serve.oauth]\nissuer = 'http://login.example.com'\naudience = 'a'\n{RULE}"),
            "serve.oauth.issuer: must be an https URL",
        ),
        (
            format!("[serve.oauth]\nissuer = 'https://login.example.com?x=1'\naudience = 'a'\n{RULE}"),
            "serve.oauth.issuer: must be an https URL",
        ),
        (
            format!(
                "[serve.oauth]\nissuer = ['https://a.example', 'https://b.example']\naudience = 'a'\njwks_url = 'https://a.example/k'\n{RULE}"
            ),
            "serve.oauth.jwks_url: is for one issuer",
        ),
        (GOOD.to_owned(), "serve.oauth.rules: without a rule"),
        (
            format!("{GOOD}algorithms = ['none']\n{RULE}"),
            "serve.oauth.algorithms[0]: must be one of",
        ),
        (
            format!("{GOOD}algorithms = ['HS256']\n{RULE}"),
            "serve.oauth.algorithms[0]: must be one of",
        ),
        (
            format!("{GOOD}algorithms = []\n{RULE}"),
            "serve.oauth.algorithms: needs at least one",
        ),
        (
            format!("{GOOD}{RULE}has = 'x'\n"),
            "serve.oauth.rules[0].has: needs `claim`",
        ),
        (
            format!("{GOOD}{RULE}scopes = []\n"),
            "serve.oauth.rules[0].scopes: a rule needs",
        ),
        (
            format!("{GOOD}{RULE}rate = 'often'\n"),
            "serve.oauth.rules[0].rate: must be a number of calls and a period",
        ),
        (
            format!("{GOOD}{RULE}look = 'x'\n"),
            "serve.oauth.rules[0].look: there is no such setting",
        ),
        (
            format!("{GOOD}{RULE}view = 'x'\n"),
            "serve.oauth.rules[0].view: there is no view `x`",
        ),
        (
            format!("{GOOD}{RULE}[serve.oauth.introspection]\nurl = 'https://a.example'\n"),
            "serve.oauth.introspection: needs `url`",
        ),
    ] {
        let loaded = toml(&text);
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert!(errors.iter().any(|error| error.contains(field)), "{field}: {errors:?}");
        let serve = loaded.config.serve;
        assert_eq!(serve.oauth, Some(ServeOAuth::default()), "{field}");
        assert!(serve.requires_token(), "{field}");
    }
    let loaded = toml("[serve]\npublic_url = 'ftp://x'\n");
    assert_eq!(loaded.errors().count(), 1);
}

#[test]
fn a_public_url_on_which_nobody_can_sign_in_is_warned_about() {
    for (url, count) in [
        ("http://gw.example.com", 1),
        ("https://gw.example.com", 0),
        ("http://localhost:7337", 0),
        ("http://127.0.0.1:7337", 0),
    ] {
        let loaded = toml(&format!("[serve]\npublic_url = '{url}'\n"));
        assert_eq!(loaded.problems.len(), count, "{url}: {:?}", loaded.problems);
        assert_eq!(loaded.errors().count(), 0, "{url}");
        assert!(loaded.config.serve.public_url.is_some());
    }
}
