//! Where each host's file is, by the rules of every system.

use super::{
    folders::{Folders, System},
    table::{HOSTS, find, find_by_file},
};

fn first(host: &str, system: System, variables: &[(&str, &str)]) -> String {
    let folders = Folders::new(system, variables);
    let files = (find(host).unwrap().user)(&folders);
    files[0].display().to_string().replace('\\', "/")
}

#[test]
fn every_system_has_its_own_folders() {
    use System::{Linux, Mac, Windows};
    let roaming = [("APPDATA", "/C/Roaming")];
    for (host, system, want) in [
        (
            "claude-desktop",
            Linux,
            "/home/me/.config/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            Mac,
            "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            Windows,
            "/C/Roaming/Claude/claude_desktop_config.json",
        ),
        ("claude", Windows, "/home/me/.claude.json"),
        ("vscode", Linux, "/home/me/.config/Code/User/mcp.json"),
        ("vscode", Mac, "/home/me/Library/Application Support/Code/User/mcp.json"),
        ("vscode", Windows, "/C/Roaming/Code/User/mcp.json"),
        ("zed", Mac, "/home/me/.config/zed/settings.json"),
        ("zed", Windows, "/C/Roaming/Zed/settings.json"),
        ("goose", Windows, "/C/Roaming/Block/goose/config/config.yaml"),
        ("windsurf", Windows, "/C/Roaming/devin/mcp_config.json"),
        ("opencode", Windows, "/home/me/.config/opencode/opencode.jsonc"),
        ("copilot", Mac, "/home/me/.copilot/mcp-config.json"),
    ] {
        assert_eq!(first(host, system, &roaming), want, "{host} {system:?}");
    }
}

#[test]
fn variables_move_the_files_of_the_hosts_that_follow_them() {
    for (host, variable, want) in [
        ("claude", "CLAUDE_CONFIG_DIR", "/x/.claude.json"),
        ("codex", "CODEX_HOME", "/x/config.toml"),
        ("gemini", "GEMINI_CLI_HOME", "/x/.gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "/x/mcp-config.json"),
        ("copilot", "XDG_CONFIG_HOME", "/home/me/.copilot/mcp-config.json"),
        ("opencode", "XDG_CONFIG_HOME", "/x/opencode/opencode.jsonc"),
        ("goose", "GOOSE_PATH_ROOT", "/x/config/config.yaml"),
        ("cline", "CLINE_DIR", "/x/data/settings/cline_mcp_settings.json"),
        ("mcporter", "MCPORTER_CONFIG", "/x"),
        ("mcporter", "XDG_CONFIG_HOME", "/x/mcporter/mcporter.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "/x/config.yaml"),
        ("qwen", "QWEN_HOME", "/x/settings.json"),
    ] {
        assert_eq!(
            first(host, System::Linux, &[(variable, "/x")]),
            want,
            "{host} {variable}"
        );
    }
}

#[test]
fn every_file_is_known_to_be_its_hosts() {
    let folders = Folders::new(System::Linux, &[]);
    for host in HOSTS {
        for file in (host.user)(&folders) {
            assert_eq!(
                find_by_file(&file, &folders).map(|of| of.id),
                Some(host.id),
                "{}",
                file.display()
            );
        }
    }
}
