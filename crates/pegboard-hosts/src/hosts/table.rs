//! The hosts, with their config files on every system.

use std::path::{Path, PathBuf};

use super::{
    folders::{Folders, System, below},
    host::{Dialect, EntryForm, Host, Unit, Variables},
};

const NONE: Variables = Variables {
    braces: false,
    bare: false,
    percent: false,
    editor: false,
    curly: false,
    double: false,
    dollar_env: false,
};
const BRACES: Variables = Variables { braces: true, ..NONE };
const BARE: Variables = Variables { bare: true, ..BRACES };
const EDITOR: Variables = Variables { editor: true, ..BRACES };

/// The most common meaning of the keys.
const USUAL: Dialect = Dialect {
    timeout: Unit::Millis,
    variables: NONE,
    is_sse_by_default: false,
    splits_command: false,
    passes_empty_env: false,
    keeps_tokens: false,
};

const fn with(variables: Variables) -> Dialect {
    Dialect { variables, ..USUAL }
}

const MCP_SERVERS: &[&[&str]] = &[&["mcpServers"]];
const RESTART: &str = "restart it";
const QUIT: &str = "quit it completely and start it again";
const NEW_SESSION: &str = "begin a new session in it";
const WATCHED: &str = "it reads the file again by itself";

/// All hosts, in the order in which they are shown.
pub const HOSTS: &[Host] = &[
    Host {
        id: "claude-desktop",
        also: &[],
        title: "Claude Desktop",
        user: claude_desktop,
        signs: |f| vec![f.desktop("Claude")],
        project: &[],
        keys: MCP_SERVERS,
        dialect: USUAL,
        form: Some(EntryForm::ProcessOnly),
        reads_several: true,
        reload: QUIT,
    },
    Host {
        id: "claude",
        also: &["claude-code"],
        title: "Claude Code",
        user: |f| match f.variable("CLAUDE_CONFIG_DIR") {
            Some(folder) => vec![folder.join(".claude.json")],
            None => vec![f.home(".claude.json")],
        },
        signs: |f| vec![f.home(".claude")],
        project: &[".mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(BRACES),
        form: Some(EntryForm::ClaudeCode),
        reads_several: false,
        reload: NEW_SESSION,
    },
    Host {
        id: "cursor",
        also: &[],
        title: "Cursor",
        user: |f| vec![f.home(".cursor/mcp.json")],
        signs: |f| vec![f.home(".cursor")],
        project: &[".cursor/mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(EDITOR),
        form: Some(EntryForm::Typed),
        reads_several: false,
        reload: "switch it on under Settings ▸ MCP, or restart Cursor",
    },
    Host {
        id: "vscode",
        also: &["code", "vs-code"],
        title: "VS Code",
        user: |f| {
            let folders = ["Code", "Code - Insiders", "VSCodium"];
            let files = folders.map(|folder| f.desktop(&format!("{folder}/User/mcp.json")));
            let settings = f.desktop("Code/User/settings.json");
            files.into_iter().chain([settings]).collect()
        },
        signs: |f| vec![f.desktop("Code/User")],
        project: &[".vscode/mcp.json"],
        keys: &[&["servers"], &["mcp", "servers"]],
        dialect: with(EDITOR),
        form: Some(EntryForm::Typed),
        reads_several: false,
        reload: "it reads the file again by itself, and asks whether you trust the server",
    },
    Host {
        id: "codex",
        also: &[],
        title: "Codex",
        user: |f| vec![f.variable_or_home("CODEX_HOME", ".codex", "config.toml")],
        signs: |f| vec![f.variable_or_home("CODEX_HOME", ".codex", "")],
        project: &[".codex/config.toml"],
        keys: &[&["mcp_servers"]],
        dialect: Dialect {
            timeout: Unit::Seconds,
            ..USUAL
        },
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: NEW_SESSION,
    },
    Host {
        id: "gemini",
        also: &["gemini-cli"],
        title: "Gemini CLI",
        user: |f| match f.variable("GEMINI_CLI_HOME") {
            Some(folder) => vec![below(&folder, ".gemini/settings.json")],
            None => vec![f.home(".gemini/settings.json")],
        },
        signs: |f| vec![f.home(".gemini")],
        project: &[".gemini/settings.json"],
        keys: MCP_SERVERS,
        dialect: with(Variables { percent: true, ..BARE }),
        form: Some(EntryForm::HttpUrl),
        reads_several: false,
        reload: "restart it, or `/mcp reload`",
    },
    Host {
        id: "windsurf",
        also: &["devin"],
        title: "Windsurf",
        user: |f| {
            let devin = match f.system {
                System::Windows => f.app_data("devin/mcp_config.json"),
                _ => f.xdg("devin/mcp_config.json"),
            };
            vec![
                devin,
                f.home(".codeium/windsurf/mcp_config.json"),
                f.home(".codeium/mcp_config.json"),
            ]
        },
        signs: |f| vec![f.home(".codeium/windsurf")],
        project: &[".devin/mcp_config.json"],
        keys: MCP_SERVERS,
        dialect: with(EDITOR),
        form: Some(EntryForm::Windsurf),
        reads_several: true,
        reload: "refresh its list of servers, or restart it",
    },
    Host {
        id: "zed",
        also: &[],
        title: "Zed",
        user: |f| {
            vec![match (f.system, f.variable("FLATPAK_XDG_CONFIG_HOME")) {
                (System::Windows, _) => f.app_data("Zed/settings.json"),
                (System::Mac, _) => f.home(".config/zed/settings.json"),
                (System::Linux, Some(folder)) => below(&folder, "zed/settings.json"),
                (System::Linux, None) => f.xdg("zed/settings.json"),
            }]
        },
        signs: |f| vec![f.xdg("zed")],
        project: &[".zed/settings.json"],
        keys: &[&["context_servers"]],
        dialect: Dialect {
            timeout: Unit::Seconds,
            ..USUAL
        },
        form: Some(EntryForm::Zed),
        reads_several: false,
        reload: WATCHED,
    },
    Host {
        id: "goose",
        also: &[],
        title: "Goose",
        user: |f| {
            vec![match (f.variable("GOOSE_PATH_ROOT"), f.system) {
                (Some(root), _) => below(&root, "config/config.yaml"),
                (None, System::Windows) => f.app_data("Block/goose/config/config.yaml"),
                (None, _) => f.xdg("goose/config.yaml"),
            }]
        },
        signs: |f| vec![f.xdg("goose")],
        project: &[],
        keys: &[&["extensions"]],
        dialect: Dialect {
            timeout: Unit::Seconds,
            ..with(BARE)
        },
        form: Some(EntryForm::Goose),
        reads_several: false,
        reload: RESTART,
    },
    Host {
        id: "cline",
        also: &[],
        title: "Cline",
        user: cline,
        signs: |f| vec![f.variable_or_home("CLINE_DIR", ".cline", "")],
        project: &[],
        keys: MCP_SERVERS,
        dialect: Dialect {
            timeout: Unit::Seconds,
            is_sse_by_default: true,
            keeps_tokens: true,
            ..USUAL
        },
        form: Some(EntryForm::Cline),
        reads_several: false,
        reload: "the extension reads it by itself; the command needs a new session",
    },
    Host {
        id: "roo",
        also: &["roo-code"],
        title: "Roo Code",
        user: |f| vec![f.desktop("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json")],
        signs: |_| Vec::new(),
        project: &[".roo/mcp.json"],
        keys: MCP_SERVERS,
        dialect: Dialect {
            timeout: Unit::Seconds,
            ..with(EDITOR)
        },
        form: None,
        reads_several: false,
        reload: RESTART,
    },
    Host {
        id: "copilot",
        also: &["copilot-cli"],
        title: "Copilot CLI",
        user: |f| vec![f.variable_or_home("COPILOT_HOME", ".copilot", "mcp-config.json")],
        signs: |f| vec![f.variable_or_home("COPILOT_HOME", ".copilot", "")],
        project: &[".github/mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(BARE),
        form: Some(EntryForm::Copilot),
        reads_several: false,
        reload: "`/mcp reload`, or a new session",
    },
    Host {
        id: "opencode",
        also: &[],
        title: "OpenCode",
        user: |f| {
            let folder = f.variable("OPENCODE_CONFIG_DIR").unwrap_or_else(|| f.xdg("opencode"));
            ["opencode.jsonc", "opencode.json", "config.json"]
                .map(|name| folder.join(name))
                .into()
        },
        signs: |f| vec![f.xdg("opencode")],
        project: &["opencode.jsonc", "opencode.json", ".opencode/opencode.json"],
        keys: &[&["mcp"], &["mcp", "servers"]],
        dialect: with(Variables { curly: true, ..NONE }),
        form: Some(EntryForm::OpenCode),
        reads_several: false,
        reload: RESTART,
    },
    Host {
        id: "continue",
        also: &[],
        title: "Continue",
        user: |f| vec![f.variable_or_home("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml")],
        signs: |f| vec![f.variable_or_home("CONTINUE_GLOBAL_DIR", ".continue", "")],
        project: &[],
        keys: MCP_SERVERS,
        dialect: with(Variables { double: true, ..NONE }),
        form: Some(EntryForm::ContinueBlock),
        reads_several: false,
        reload: "it reads its files again by itself, or restart it",
    },
    Host {
        id: "mcporter",
        also: &[],
        title: "mcporter",
        user: |f| {
            if let Some(file) = f.variable("MCPORTER_CONFIG") {
                return vec![file];
            }
            let xdg = f.variable("XDG_CONFIG_HOME").map(|folder| folder.join("mcporter"));
            let folders = xdg.into_iter().chain([f.home(".mcporter")]);
            folders
                .flat_map(|folder| ["mcporter.json", "mcporter.jsonc"].map(|name| folder.join(name)))
                .collect()
        },
        signs: |f| vec![f.home(".mcporter")],
        project: &["config/mcporter.json"],
        keys: MCP_SERVERS,
        dialect: Dialect {
            splits_command: true,
            ..with(Variables {
                dollar_env: true,
                ..BRACES
            })
        },
        form: Some(EntryForm::Mcporter),
        reads_several: false,
        reload: "`mcporter daemon restart` if its daemon runs",
    },
    Host {
        id: "mcphub",
        also: &["mcp-hub"],
        title: "MCP Hub",
        user: |f| vec![f.home(".config/mcphub/servers.json")],
        signs: |f| vec![f.home(".config/mcphub")],
        project: &[".mcphub/servers.json"],
        keys: &[&["mcpServers"], &["servers"]],
        dialect: Dialect {
            passes_empty_env: true,
            ..with(EDITOR)
        },
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: WATCHED,
    },
    Host {
        id: "lmstudio",
        also: &["lm-studio"],
        title: "LM Studio",
        user: |f| vec![f.home(".lmstudio/mcp.json"), f.home(".cache/lm-studio/mcp.json")],
        signs: |f| vec![f.home(".lmstudio")],
        project: &[],
        keys: MCP_SERVERS,
        dialect: USUAL,
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: RESTART,
    },
    Host {
        id: "amazonq",
        also: &["q", "amazon-q"],
        title: "Amazon Q",
        user: |f| vec![f.home(".aws/amazonq/mcp.json")],
        signs: |f| vec![f.home(".aws/amazonq")],
        project: &[".amazonq/mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(EDITOR),
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: NEW_SESSION,
    },
    Host {
        id: "kiro",
        also: &[],
        title: "Kiro",
        user: |f| vec![f.variable_or_home("KIRO_HOME", ".kiro", "settings/mcp.json")],
        signs: |f| vec![f.home(".kiro")],
        project: &[".kiro/settings/mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(BRACES),
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: WATCHED,
    },
    Host {
        id: "junie",
        also: &[],
        title: "Junie",
        user: |f| vec![f.home(".junie/mcp/mcp.json")],
        signs: |f| vec![f.home(".junie")],
        project: &[".junie/mcp/mcp.json"],
        keys: MCP_SERVERS,
        dialect: with(BRACES),
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: RESTART,
    },
    Host {
        id: "warp",
        also: &[],
        title: "Warp",
        user: |f| vec![f.home(".warp/.mcp.json")],
        signs: |f| vec![f.home(".warp")],
        project: &[".warp/.mcp.json"],
        keys: &[&["mcpServers"], &["mcp_servers"], &["servers"]],
        dialect: with(BRACES),
        form: Some(EntryForm::Plain),
        reads_several: false,
        reload: "start it from its settings page",
    },
    Host {
        id: "qwen",
        also: &["qwen-code"],
        title: "Qwen Code",
        user: |f| vec![f.variable_or_home("QWEN_HOME", ".qwen", "settings.json")],
        signs: |f| vec![f.variable_or_home("QWEN_HOME", ".qwen", "")],
        project: &[".qwen/settings.json"],
        keys: MCP_SERVERS,
        dialect: with(Variables { percent: true, ..BARE }),
        form: Some(EntryForm::HttpUrl),
        reads_several: false,
        reload: RESTART,
    },
];

/// The host with this name.
pub fn find(name: &str) -> Option<&'static Host> {
    let is_it = |host: &&Host| {
        host.id.eq_ignore_ascii_case(name) || host.also.iter().any(|also| also.eq_ignore_ascii_case(name))
    };
    HOSTS.iter().find(is_it)
}

/// The hosts that the user has and that can use Pegboard.
pub fn find_present(folders: &Folders) -> Vec<&'static Host> {
    HOSTS
        .iter()
        .filter(|host| host.is_editable() && host.is_present(folders))
        .collect()
}

/// The host whose file this is, by its place or, for a file elsewhere, by its name.
pub(crate) fn find_by_file(path: &Path, folders: &Folders) -> Option<&'static Host> {
    let is_its = |host: &&Host| {
        let user = (host.user)(folders);
        let project = host.project.iter().map(|name| folders.project(name));
        user.into_iter().chain(project).any(|file| file == path)
    };
    let names = [
        ("claude_desktop_config.json", "claude-desktop"),
        (".claude.json", "claude"),
        (".mcp.json", "claude"),
        ("config.toml", "codex"),
        ("mcp_config.json", "windsurf"),
        ("cline_mcp_settings.json", "cline"),
        ("mcp_settings.json", "roo"),
        ("mcp-config.json", "copilot"),
        ("opencode.json", "opencode"),
        ("opencode.jsonc", "opencode"),
        ("mcporter.json", "mcporter"),
        ("mcporter.jsonc", "mcporter"),
    ];
    let folders_of = [
        (".cursor", "cursor"),
        (".vscode", "vscode"),
        (".gemini", "gemini"),
        (".qwen", "qwen"),
        ("zed", "zed"),
        (".zed", "zed"),
        ("goose", "goose"),
        (".continue", "continue"),
        ("mcphub", "mcphub"),
        (".mcphub", "mcphub"),
        (".codex", "codex"),
    ];
    let by_place = HOSTS.iter().find(is_its);
    let name = path.file_name().and_then(|name| name.to_str())?;
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let by_folder = || folders_of.iter().find(|(of, _)| Some(*of) == folder);
    let by_name = || names.iter().find(|(of, _)| *of == name);
    by_place.or_else(|| by_folder().or_else(by_name).and_then(|(_, id)| find(id)))
}

/// On Windows the program reads the file of its package, which has a folder with a name of its own.
fn claude_desktop(folders: &Folders) -> Vec<PathBuf> {
    const FILE: &str = "claude_desktop_config.json";
    let usual = folders.desktop("Claude").join(FILE);
    if folders.system != System::Windows {
        return vec![usual];
    }
    let packages = folders.variable_or_home("LOCALAPPDATA", "AppData/Local", "Packages");
    let found = std::fs::read_dir(packages).into_iter().flatten().flatten();
    let ours = found.filter(|entry| entry.file_name().to_string_lossy().starts_with("Claude_"));
    let private = ours.map(|entry| below(&entry.path(), "LocalCache/Roaming/Claude").join(FILE));
    private.filter(|path| path.is_file()).chain([usual]).collect()
}

fn cline(folders: &Folders) -> Vec<PathBuf> {
    const FILE: &str = "cline_mcp_settings.json";
    if let Some(file) = folders.variable("CLINE_MCP_SETTINGS_PATH") {
        return vec![file];
    }
    let data = match folders.variable("CLINE_DATA_DIR") {
        Some(folder) => folder,
        None => folders.variable_or_home("CLINE_DIR", ".cline", "data"),
    };
    let extension = folders.desktop("Code/User/globalStorage/saoudrizwan.claude-dev/settings");
    vec![data.join("settings").join(FILE), extension.join(FILE)]
}
