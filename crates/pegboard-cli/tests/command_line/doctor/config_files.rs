//! Findings in config files.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::diagnosis::{Diagnosis, QUICK, fake, mended_by, mends_itself, well};
use crate::home::Home;

fn mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_server_that_works_has_no_finding_and_each_step_is_named() {
    let home = Home::new();
    home.config(&well(&home));
    let found = Diagnosis::of(&home, &[]);
    assert_eq!(
        (found.code, &found.document["ok"]),
        (Some(0), &true.into()),
        "{found:#?}"
    );
    let steps = found.document["servers"][0]["steps"].as_array().unwrap();
    let steps: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    for step in ["config", "program", "start", "handshake", "list", "tools"] {
        assert!(steps.contains(&step), "{step} is not in {steps:?}");
    }
}

#[test]
fn a_file_that_does_not_parse() {
    let home = Home::new();
    let well = well(&home);
    home.config(&format!("{well}\n[servers"));
    let found = Diagnosis::of(&home, &[]);
    assert_eq!(found.problems(), ["config-unreadable"], "{found:#?}");
    assert!(!home.path("well.log").exists(), "a server was started");
    home.config(&well);
    Diagnosis::of(&home, &[]).is_well_without("config-unreadable");
}

#[test]
fn a_file_of_another_encoding_is_to_be_saved_as_utf_8() {
    let home = Home::new();
    let file = home.config("");
    // What `>` of Windows PowerShell writes.
    fs::write(file, b"\xff\xfe[\0s\0]\0").unwrap();
    let found = Diagnosis::of(&home, &[]);
    assert_eq!(
        found.shows("config-unreadable").finding("config-unreadable").unwrap()["fix"],
        "save the file as UTF-8"
    );
}

#[test]
fn a_misspelt_setting() {
    let home = Home::new();
    let well = well(&home);
    mended_by(
        &home,
        "unknown-setting",
        &well.replace("stop_timeout", "stop_timout"),
        &well,
    );
    let mended = mends_itself(
        &home,
        "unknown-setting",
        &well.replace("stop_timeout", "stop_timout"),
        &[],
    );
    assert!(
        mended.contains("stop_timeout = '200ms'") || mended.contains("stop_timeout = \"200ms\""),
        "{mended}"
    );
}

#[test]
fn a_variable_that_is_not_set() {
    let home = Home::new();
    let entry = |value: &str| home.entry("fx", fake(), &format!("env = {{ TOKEN = '{value}' }}\n{QUICK}"));
    mended_by(
        &home,
        "variable-unset",
        &entry("${NOT_SET_HERE}"),
        &entry("${NOT_SET_HERE:-none}"),
    );
}

/// A server that is not used is not checked, and other commands do not warn of it.
#[test]
fn a_disabled_server_has_no_finding() {
    let home = Home::new();
    let off = "[servers.gh]\ncommand = 'no-such-program'\nenv = { TOKEN = '${NOT_SET_HERE}' }\n";
    home.config(&format!("{}{off}", well(&home)));
    assert_eq!(Diagnosis::of(&home, &["gh"]).problems(), ["variable-unset"]);
    home.run(&["disable", "gh"]).ends_with(0);
    for options in [&["gh"][..], &["gh", "--offline"], &[]] {
        let found = Diagnosis::of(&home, options);
        assert_eq!(
            (found.code, &found.document["ok"]),
            (Some(0), &true.into()),
            "{found:#?}"
        );
        assert!(found.document.to_string().contains("disabled by"), "{found:#?}");
        assert!(found.finding("variable-unset").is_none(), "{found:#?}");
    }
    let called = home.run(&["call", "fx.read"]);
    assert!(!called.err.contains("NOT_SET_HERE"), "{called:?}");
    let listed = home.run(&["tools", "-o", "json"]).ends_with(0).json();
    assert_eq!(listed["warnings"], serde_json::json!([]));
}

#[test]
fn a_setting_of_the_wrong_kind() {
    let home = Home::new();
    let entry = |value: &str| home.entry("fx", fake(), &format!("start = '{value}'\n{QUICK}"));
    home.config(&entry("soon"));
    assert_eq!(Diagnosis::of(&home, &[]).problems(), ["config-error"]);
    home.config(&entry("lazy"));
    Diagnosis::of(&home, &[]).is_well_without("config-error");
}

#[test]
fn a_command_line_in_the_command() {
    let home = Home::new();
    let command = home.command_of("fx", fake());
    let (program, rest) = command.split_once(' ').unwrap();
    // A name with a path may contain spaces, so only a bare name can be told.
    fs::create_dir_all(home.path("bin")).unwrap();
    std::os::unix::fs::symlink(program, home.path("bin/fake-server")).unwrap();
    let path = format!(
        "env = {{ PATH = '{}:/usr/bin:/bin' }}\n{QUICK}",
        home.path("bin").display()
    );
    let args: Vec<&str> = rest.split(' ').collect();
    let broken = format!("[servers.fx]\ncommand = 'fake-server {rest}'\n{path}\n");
    mends_itself(&home, "command-line", &broken, &[]);
    mended_by(
        &home,
        "command-line",
        &broken,
        &format!("[servers.fx]\ncommand = 'fake-server'\nargs = {args:?}\n{path}\n"),
    );
}

#[test]
fn a_secret_that_is_written_in_the_file() {
    let home = Home::new();
    let entry = |value: &str| home.entry("fx", fake(), &format!("env = {{ GITHUB_TOKEN = '{value}' }}\n{QUICK}"));
    let (broken, secret) = (entry("ghp_0123456789abcdef0123456789abcdef0123"), "ghp_0123456789");
    let file = home.config(&broken);
    mode(&file, 0o600);
    let ran = home.run(&["doctor", "-o", "json"]);
    Diagnosis::from(&ran).shows("secret-in-clear");
    assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
    home.config(&entry("${GITHUB_TOKEN:-}"));
    Diagnosis::of(&home, &[]).is_well_without("secret-in-clear");
}

#[test]
fn the_fix_of_a_header_keeps_the_scheme_before_the_token() {
    let home = Home::new();
    for (header, fix) in [
        ("Bearer lin_api_0123456789", "Bearer ${AUTHORIZATION}"),
        ("lin_api_0123456789", "${AUTHORIZATION}"),
    ] {
        let written =
            format!("[servers.fx]\nurl = 'http://127.0.0.1:9/mcp'\nheaders = {{ Authorization = '{header}' }}\n");
        mode(&home.config(&written), 0o600);
        let diagnosis = Diagnosis::of(&home, &["--offline"]);
        let found = diagnosis.shows("secret-in-clear").finding("secret-in-clear").unwrap();
        assert_eq!(found["fix"], format!("headers = {{ \"Authorization\" = \"{fix}\" }}"));
    }
}

#[test]
fn a_password_in_the_url_of_a_variable_is_a_secret() {
    let home = Home::new();
    let entry = |url: &str| home.entry("fx", fake(), &format!("env = {{ DATABASE_URL = '{url}' }}\n{QUICK}"));
    let file = home.config(&entry("postgres://ada:canary@db.example/x"));
    mode(&file, 0o600);
    let ran = home.run(&["doctor", "--offline", "-o", "json"]);
    let diagnosis = Diagnosis::from(&ran);
    let found = diagnosis.shows("secret-in-clear").finding("secret-in-clear").unwrap();
    assert_eq!(found["fix"], "env = { \"DATABASE_URL\" = \"${DATABASE_URL}\" }");
    assert!(!ran.out.contains("canary"), "{ran:?}");
    home.config(&entry("postgres://db.example/x"));
    Diagnosis::of(&home, &["--offline"]).is_well_without("secret-in-clear");
}

#[test]
fn the_name_of_a_variable_in_arguments_is_no_secret() {
    let home = Home::new();
    let entry = |args: &str| format!("[servers.fx]\ncommand = 'docker'\nargs = ['run', '-i', {args}, 'image:1.0']\n");
    for args in [
        "'-e', 'GITHUB_TOKEN'",
        "'-eGITHUB_TOKEN'",
        "'--token-env', 'GH_TOKEN'",
        "'--user', '1000:1000000'",
    ] {
        home.config(&entry(args));
        let found = Diagnosis::of(&home, &["--offline"]);
        assert!(found.finding("secret-in-clear").is_none(), "{args}: {found:#?}");
    }
    home.config(&entry("'--token-env', 'GH_TOKEN', '--token', 'abcdefgh-0123'"));
    let found = Diagnosis::of(&home, &["--offline"]);
    assert!(found.finding("secret-in-clear").is_some(), "{found:#?}");
}

#[test]
fn a_byte_order_mark() {
    let home = Home::new();
    let well = well(&home);
    let file = home.config(&format!("\u{feff}# A comment.\n{well}"));
    Diagnosis::of(&home, &[]).shows("byte-order-mark");
    Diagnosis::of(&home, &["--fix", "--yes"]).is_well_without("byte-order-mark");
    assert_eq!(fs::read_to_string(file).unwrap(), format!("# A comment.\n{well}"));
}

#[test]
fn a_dry_run_says_what_would_be_changed_and_changes_nothing() {
    let home = Home::new();
    let written = format!("\u{feff}{}", well(&home).replace("stop_timeout", "stop_timout"));
    let file = home.config(&written);
    let shown = file.display();
    let dry_run = |expected: &[String]| {
        let found = Diagnosis::of(&home, &["--fix", "--dry-run", "--offline"]);
        assert_eq!(found.code, Some(1), "{found:#?}");
        assert_eq!(found.document["would_fix"], serde_json::json!(expected));
        assert_eq!(found.document["fixed"], serde_json::json!([]));
    };
    let mark = format!("byte-order-mark: would remove the byte order mark of {shown}");
    dry_run(&[
        format!("unknown-setting: would rename `servers.fx.stop_timout` to `stop_timeout` in {shown}"),
        mark.clone(),
    ]);
    home.run(&["doctor", "--fix", "--dry-run", "--offline"])
        .ends_with(1)
        .prints("would rename `servers.fx.stop_timout`")
        .prints("nothing was changed");
    mode(&file, 0o666);
    // The servers of such a file are not read.
    dry_run(&[
        format!("config-writable: would change the permissions of {shown} from 666 to 644"),
        mark,
    ]);
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    home.run(&["doctor", "--dry-run"]).ends_with(2);
}

#[test]
fn a_token_that_is_written_in_auth() {
    let home = Home::new();
    let entry =
        |token: &str| format!("[servers.fx]\nurl = 'http://127.0.0.1:9/mcp'\nauth = {{ bearer = '{token}' }}\n");
    mode(&home.config(&entry("made-up-token")), 0o600);
    let diagnosis = Diagnosis::of(&home, &["--offline"]);
    let found = diagnosis.shows("secret-in-clear").finding("secret-in-clear").unwrap();
    assert_eq!(found["fix"], "auth = { \"bearer\" = \"${FX_TOKEN}\" }");
    home.config(&entry("${FX_TOKEN:-none}"));
    Diagnosis::of(&home, &["--offline"]).is_well_without("secret-in-clear");
}

#[test]
fn a_file_with_a_secret_that_others_can_read() {
    let home = Home::new();
    let file = home.config(&home.entry(
        "fx",
        fake(),
        &format!("env = {{ API_KEY = 'sk-0123456789abcdef0123' }}\n{QUICK}"),
    ));
    mode(&file, 0o644);
    // The secret itself is a finding, too.
    Diagnosis::of(&home, &[]).includes("config-readable");
    let mended = Diagnosis::of(&home, &["--fix", "--yes"]);
    mended.is_well_without("config-readable");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_others_can_change() {
    let home = Home::new();
    let file = home.config(&well(&home));
    mode(&file, 0o666);
    Diagnosis::of(&home, &[]).shows("config-writable");
    Diagnosis::of(&home, &["--fix", "--yes"]).is_well_without("config-writable");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn one_server_under_two_names() {
    let home = Home::new();
    let one = well(&home);
    mended_by(
        &home,
        "duplicate-server",
        &format!("{one}{}", one.replace("servers.fx", "servers.again")),
        &one,
    );
}

#[test]
fn a_certificate_that_is_not_checked() {
    let home = Home::new();
    let entry = |tls: &str| format!("[servers.fx]\nurl = 'https://127.0.0.1:9/mcp'\n{tls}\n");
    home.config(&entry("tls = { insecure = true }"));
    assert!(
        Diagnosis::of(&home, &["--offline"])
            .finding("certificate-unchecked")
            .is_some()
    );
    home.config(&entry(""));
    Diagnosis::of(&home, &["--offline"]).is_well_without("certificate-unchecked");
}

#[test]
fn an_address_without_a_scheme() {
    let home = Home::new();
    home.config("[servers.fx]\nurl = 'localhost:9/mcp'\n");
    Diagnosis::of(&home, &["--offline"]).shows("url-incomplete");
    let mended = mends_itself(
        &home,
        "url-incomplete",
        "[servers.fx]\nurl = 'localhost:9/mcp'\n",
        &["--offline"],
    );
    assert!(mended.contains("http://localhost:9/mcp"), "{mended}");
    home.config("[servers.fx]\nurl = 'http://localhost:9/mcp'\n");
    Diagnosis::of(&home, &["--offline"]).is_well_without("url-incomplete");
}

#[test]
fn a_setting_without_effect() {
    let home = Home::new();
    let entry = |more: &str| home.entry("fx", fake(), &format!("{more}\n{QUICK}"));
    home.config(&entry("headers = { A = 'b' }"));
    assert!(Diagnosis::of(&home, &[]).finding("config-warning").is_some());
    home.config(&entry(""));
    Diagnosis::of(&home, &[]).is_well_without("config-warning");
}

#[test]
fn a_config_without_servers() {
    let home = Home::new();
    mended_by(
        &home,
        "no-servers",
        "naming = 'short'\n".replace("naming = 'short'", "# empty").as_str(),
        &well(&home),
    );
}

#[test]
fn the_server_of_a_host_is_tried_once_it_is_approved() {
    let home = Home::new();
    let command = home.command_of("well", fake());
    let (program, args) = command.split_once(' ').unwrap();
    let args: Vec<&str> = args.split(' ').collect();
    let servers = serde_json::json!({"mcpServers": {"well": {"command": program, "args": args}}});
    home.write(".cursor/mcp.json", &servers.to_string());
    Diagnosis::of(&home, &[]).shows("host-server-unapproved");
    assert!(!home.path("well.log").exists(), "the server was started");
    let mut approved = home.pegboard(&["--trust", "doctor", "-o", "json"]);
    approved.current_dir(home.path(""));
    Diagnosis::from(&crate::home::Ran::of(approved)).is_well_without("host-server-unapproved");
    assert!(home.path("well.log").exists());
}

#[test]
fn a_project_file_that_is_not_approved_is_named_and_its_server_is_never_started() {
    let home = Home::new();
    fs::create_dir_all(home.path("project/.git")).unwrap();
    home.write("project/pegboard.toml", &well(&home));
    let doctor = |args: &[&str]| {
        let mut command = home.pegboard(&[&["doctor", "-o", "json"], args].concat());
        command.current_dir(home.path("project"));
        Diagnosis::from(&crate::home::Ran::of(command))
    };
    doctor(&[]).shows("project-untrusted");
    doctor(&["--fix", "--yes"]).shows("project-untrusted");
    assert!(!home.path("well.log").exists(), "the server was started");
    let mut accept = home.pegboard(&["trust", "accept", "--yes"]);
    accept.current_dir(home.path("project"));
    crate::home::Ran::of(accept).ends_with(0);
    doctor(&[]).is_well_without("project-untrusted");
}

#[test]
fn a_server_that_is_not_there_is_wrong_usage() {
    let home = Home::new();
    home.config(&well(&home));
    home.run(&["doctor", "nobody"])
        .ends_with(2)
        .says("there is no server `nobody`");
    home.run(&["doctor", "--yes"]).ends_with(2);
}

#[test]
fn without_a_terminal_nothing_is_mended_unless_yes_is_said() {
    let home = Home::new();
    let file = home.config(&well(&home));
    mode(&file, 0o666);
    home.run(&["doctor", "--fix"]).ends_with(5).says("--fix --yes");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o666);
}

#[test]
fn a_server_of_a_file_that_cannot_be_read_is_not_said_to_be_missing() {
    let home = Home::new();
    home.config("[servers.good\ncommand = 'x'\n");
    for args in [["doctor", "good"], ["get", "good"]] {
        home.run(&args).ends_with(2).says("unclosed table");
    }
}
