//! How far `--fix` goes, and what it leaves alone: a change that could lose something is made by hand, and what is around a change stays.

use std::fs;

use super::diagnosis::Diagnosis;
use crate::home::{Home, Ran};

/// Asserts that a finding has no automatic fix, and that `--fix` leaves the file as it is. Returns the advice.
#[track_caller]
fn is_left_alone(home: &Home, id: &str, written: &str) -> String {
    let file = home.config(written);
    let found = Diagnosis::of(home, &["--offline"]);
    let finding = found.finding(id).unwrap_or_else(|| panic!("no `{id}` in {found:#?}"));
    assert_eq!(finding["fixable"], false, "{finding}");
    Diagnosis::of(home, &["--offline", "--fix", "--yes"]);
    assert_eq!(fs::read_to_string(file).unwrap(), written);
    finding["fix"].as_str().unwrap().to_owned()
}

#[test]
fn a_misspelt_setting_never_replaces_the_right_one() {
    let home = Home::new();
    let advice = is_left_alone(
        &home,
        "unknown-setting",
        "[servers.a]\ncommand = 'python3'\nargs = ['srv.py']\ncomand = 'false'\n",
    );
    assert_eq!(advice, "remove `comand`: there is a `command` beside it");
    // The same setting in another spelling.
    is_left_alone(
        &home,
        "unknown-setting",
        "[servers.a]\ncommand = 'cat'\ncall_timeout = '3s'\ncalltimeot = '4s'\n",
    );
}

#[test]
fn of_two_misspelt_settings_only_one_becomes_the_right_one() {
    let home = Home::new();
    let file = home.config("[servers.a]\ncomand = 'cat'\ncommnd = 'false'\n");
    Diagnosis::of(&home, &["--offline", "--fix", "--yes"]);
    let mended = fs::read_to_string(file).unwrap();
    assert_eq!(mended, "[servers.a]\ncommand = 'cat'\ncommnd = 'false'\n");
}

#[test]
fn what_a_fix_uncovers_is_mended_in_the_same_run() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let program = home.write("bin/my-server", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // The mode hides the misspelt setting, which hides that a desktop would not find the program.
    let file = home.config("[servers.a]\ncomand = 'my-server'\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let mut command = home.pegboard(&["doctor", "--offline", "--fix", "--yes", "-o", "json"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
    let mended = Diagnosis::from(&Ran::of(command));
    mended.is_well_without("path-differs");
    let fixed = mended.document["fixed"].as_array().unwrap();
    let ids: Vec<&str> = fixed
        .iter()
        .map(|done| done.as_str().unwrap().split(':').next().unwrap())
        .collect();
    assert_eq!(
        ids,
        ["config-writable", "unknown-setting", "path-differs"],
        "{fixed:#?}"
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        format!("[servers.a]\ncommand = {:?}\n", program.display().to_string())
    );
}

#[test]
fn a_fix_that_fails_is_tried_once() {
    let home = Home::new();
    home.config("[servers.a]\ncomand = 'cat'\ncommnd = 'false'\n");
    let ran = home.run(&["doctor", "--offline", "--fix", "--yes"]);
    let warnings = ran.err.matches("there is a `command` beside").count();
    assert_eq!(warnings, 1, "{ran:?}");
}

#[test]
fn a_setting_that_resembles_none_keeps_its_name() {
    is_left_alone(
        &Home::new(),
        "unknown-setting",
        "[servers.a]\ncommand = 'cat'\nxyzzy = 1\n",
    );
}

#[test]
fn a_renamed_setting_keeps_its_place_and_its_comment() {
    let home = Home::new();
    let file = home.config("[servers.a]\n# why\nstop_timout = '1s' # soon\ncommand = 'cat' # run\n");
    Diagnosis::of(&home, &["--offline", "--fix", "--yes"]);
    assert_eq!(
        fs::read_to_string(file).unwrap(),
        "[servers.a]\n# why\nstop_timeout = '1s' # soon\ncommand = 'cat' # run\n"
    );
}

#[test]
fn a_command_line_that_a_shell_would_read_in_its_own_way_is_not_split() {
    let home = Home::new();
    for line in [
        "sh -c 'exec python3 srv.py'",
        "node $HOME/x.js",
        "cat a.txt | server",
        r#"sh -c \"run it\""#,
    ] {
        let advice = is_left_alone(
            &home,
            "command-line",
            &format!("[servers.a]\ncommand = \"{line}\"\nenv = {{ HOME = '/' }}\n"),
        );
        assert!(!advice.contains("exec"), "{advice}");
    }
}

#[test]
fn a_program_from_a_variable_or_in_a_list_is_not_replaced_by_its_path() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let program = home.write("bin/my-server", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for written in ["\"${PROGX}\"", "\"${PROGX:-other}\"", "[\"my-server\", \"-x\"]"] {
        let config = format!("[servers.a]\ncommand = {written}\n");
        let file = home.config(&config);
        let doctor = |args: &[&str]| {
            let mut command = home.pegboard(&[&["doctor", "--offline", "-o", "json"], args].concat());
            command.env("PROGX", "my-server");
            command.env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
            Diagnosis::from(&Ran::of(command))
        };
        let found = doctor(&[]);
        let finding = found.shows("path-differs").finding("path-differs").unwrap();
        assert_eq!(finding["fixable"], false, "{finding}");
        doctor(&["--fix", "--yes"]);
        assert_eq!(fs::read_to_string(file).unwrap(), config);
    }
}

#[test]
fn only_the_scheme_is_added_to_a_url() {
    let home = Home::new();
    for url in [
        "mcp.example.com/mcp?tenant=42",
        "mcp.example.com/mcp?token=ghp_0123456789abcdef0123456789abcdef0123",
        "mcp.example.com/`x`/mcp",
        "${NOT_SET:-mcp.example.com}/mcp",
    ] {
        let file = home.config(&format!("[servers.a]\nurl = \"{url}\" # mine\n"));
        let ran = home.run(&["doctor", "--offline", "--fix", "--yes"]);
        assert!(!format!("{ran:?}").contains("ghp_0123"), "{ran:?}");
        assert_eq!(
            fs::read_to_string(file).unwrap(),
            format!("[servers.a]\nurl = \"https://{url}\" # mine\n")
        );
    }
    // As other programs spell it.
    let other = home.write(
        "other.json",
        r#"{"mcpServers": {"a": {"httpUrl": "127.0.0.1:9/mcp?a=b"}}}"#,
    );
    Diagnosis::of(&home, &["--offline", "--fix", "--yes", "-c", "other.json"]);
    assert_eq!(
        fs::read_to_string(other).unwrap(),
        r#"{"mcpServers": {"a": {"httpUrl": "http://127.0.0.1:9/mcp?a=b"}}}"#
    );
}

#[test]
fn pinning_a_package_keeps_the_comments_of_its_arguments() {
    let home = Home::new();
    home.write(".npm/_npx/h/node_modules/@x/y/package.json", r#"{"version": "1.2.3"}"#);
    let text = |package: &str| {
        format!("[servers.a]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  # why\n  \"{package}\", # pin\n]\n")
    };
    let file = home.config(&text("@x/y"));
    Diagnosis::of(&home, &["--offline", "--fix", "--yes"]);
    assert_eq!(fs::read_to_string(file).unwrap(), text("@x/y@1.2.3"));
}

#[test]
fn a_package_is_not_pinned_where_another_argument_is_the_same() {
    let home = Home::new();
    home.write(".npm/_npx/h/node_modules/two/package.json", r#"{"version": "1.2.3"}"#);
    let text = "[servers.a]\ncommand = \"npx\"\nargs = [\"--cache\", \"two\", \"-y\", \"two\"]\n";
    let file = home.config(text);
    let found = Diagnosis::of(&home, &["--offline", "--fix", "--yes"]);
    assert!(found.finding("unpinned-package").is_some(), "{found:#?}");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}
