//! Each host's file: what is imported from it, what `install` makes of it, and that `uninstall` leaves it as it was.

use std::{fs, path::PathBuf};

use crate::home::Home;

/// The hosts, and where their files are below the home folder.
const PLACES: &[(&str, &str)] = &[
    ("amazonq", ".aws/amazonq/mcp.json"),
    ("claude", ".claude.json"),
    ("claude-desktop", DESKTOP),
    ("cline", ".cline/data/settings/cline_mcp_settings.json"),
    ("codex", ".codex/config.toml"),
    ("continue", ".continue/config.yaml"),
    ("copilot", ".copilot/mcp-config.json"),
    ("cursor", ".cursor/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("goose", ".config/goose/config.yaml"),
    ("junie", ".junie/mcp/mcp.json"),
    ("kiro", ".kiro/settings/mcp.json"),
    ("lmstudio", ".lmstudio/mcp.json"),
    ("mcphub", ".config/mcphub/servers.json"),
    ("mcporter", ".mcporter/mcporter.json"),
    ("opencode", ".config/opencode/opencode.jsonc"),
    ("qwen", ".qwen/settings.json"),
    ("roo", ROO),
    ("vscode", VSCODE),
    ("warp", ".warp/.mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
];

#[cfg(target_os = "macos")]
const DESKTOP: &str = "Library/Application Support/Claude/claude_desktop_config.json";
#[cfg(not(target_os = "macos"))]
const DESKTOP: &str = ".config/Claude/claude_desktop_config.json";
#[cfg(target_os = "macos")]
const VSCODE: &str = "Library/Application Support/Code/User/mcp.json";
#[cfg(not(target_os = "macos"))]
const VSCODE: &str = ".config/Code/User/mcp.json";
#[cfg(target_os = "macos")]
const ROO: &str =
    "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json";
#[cfg(not(target_os = "macos"))]
const ROO: &str = ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json";

/// A file of the goldens of a host.
fn golden(host: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/host_files/files");
    folder.join(host).join(name)
}

/// Compares with a golden file, or writes it with `PEGBOARD_BLESS=1`.
#[track_caller]
fn assert_golden(host: &str, name: &str, text: &str) {
    let path = golden(host, name);
    if std::env::var_os("PEGBOARD_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text,
        want,
        "{} is not what it was; PEGBOARD_BLESS=1 writes it",
        path.display()
    );
}

/// A home folder with the file of a host, and the path of the file.
fn home_of(host: &str, place: &str) -> (Home, PathBuf, String) {
    let home = Home::new();
    let name = place.rsplit('/').next().unwrap();
    let text = fs::read_to_string(golden(host, name)).unwrap();
    let path = home.write(place, &text);
    (home, path, text)
}

#[test]
fn what_each_host_has_is_imported() {
    for (host, place) in PLACES {
        let (home, path, before) = home_of(host, place);
        let ran = home.run(&["import", host, "--yes", "--all"]);
        ran.ends_with(0);
        let written = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
        assert_golden(host, "imported.toml", &written);
        let root = home.path("").display().to_string();
        assert_golden(host, "import.txt", &ran.out.replace(root.trim_end_matches('/'), "~"));
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            before,
            "{host}: its own file changed"
        );
        // Importing again changes nothing.
        let again = home.run(&["import", host, "--yes", "--all", "-o", "json"]).json();
        let new = again["servers"].as_array().unwrap().iter();
        let new: Vec<_> = new.filter(|one| one["action"] == "add").collect();
        assert!(new.is_empty(), "{host}: {new:?}");
    }
}

#[test]
fn each_host_gets_pegboard_and_gives_it_back() {
    for (host, place) in PLACES.iter().filter(|(host, _)| *host != "roo") {
        let (home, path, before) = home_of(host, place);
        home.run(&["install", host]).ends_with(0);
        let (edited, name) = match *host {
            "continue" => (
                home.path(".continue/mcpServers/pegboard.yaml"),
                "installed.yaml".to_owned(),
            ),
            _ => (
                path.clone(),
                format!("installed.{}", path.extension().unwrap().to_str().unwrap()),
            ),
        };
        let after = fs::read_to_string(&edited).unwrap();
        let program = env!("CARGO_BIN_EXE_pegboard");
        assert!(after.contains(program), "{host}: {after}");
        assert_golden(host, &name, &after.replace(program, "/usr/local/bin/pegboard"));
        let again = home.run(&["install", host, "-o", "json"]).json();
        assert_eq!(again["hosts"][0]["action"], "unchanged", "{host}");
        home.run(&["uninstall", host]).ends_with(0);
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{host}");
        assert!(*host != "continue" || !edited.exists());
        let again = home.run(&["uninstall", host, "-o", "json"]).json();
        assert_eq!(again["hosts"][0]["action"], "absent", "{host}");
    }
}

#[test]
fn a_host_without_a_file_gets_one() {
    for (host, place) in PLACES
        .iter()
        .filter(|(host, _)| !matches!(*host, "roo" | "continue" | "windsurf"))
    {
        let home = Home::new();
        home.run(&["install", host]).ends_with(0);
        let text = fs::read_to_string(home.path(place)).unwrap();
        assert!(text.contains("pegboard"), "{host}: {text}");
    }
}
