//! The config file that `init` writes where there is none and no host has servers to import.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use pegboard_hosts::{
    HostError,
    document::Format,
    install::{find_program, is_temporary},
    user_file,
};
use serde_json::json;

use crate::settings::Complaint;

/// Writes the file. One that is there meanwhile is kept.
pub(super) fn write(file: &Path) -> Result<(), Complaint> {
    let program = find_program()?.display().to_string();
    let mut document = user_file::open(file)?;
    if document.format() != Format::Toml {
        let entry = json!({"command": program.replace('$', "$$"), "args": ["demo-server"]});
        document
            .set(&["servers", "demo"], &entry)
            .map_err(|error| HostError::refused_edit(&error))?;
        return Ok(user_file::save(&mut document, file)?);
    }
    let failed = |error: std::io::Error| HostError::unwritable(file, error);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut created = options.open(file).map_err(failed)?;
    created.write_all(text(&program).as_bytes()).map_err(failed)?;
    Ok(created.sync_all().map_err(failed)?)
}

/// Why the demo server in it may not work for long.
pub(super) fn warning() -> Option<String> {
    let path = find_program().ok()?.display().to_string();
    is_temporary(&path).then(|| {
        format!(
            "{path} may be removed at any time, and the demo server with it; `pegboard remove demo` removes its entry"
        )
    })
}

/// The file as TOML. A `$` in the path is escaped, because values expand variables.
fn text(program: &str) -> String {
    let program = toml::Value::String(program.replace('$', "$$"));
    format!(
        r#"# The servers that Pegboard runs, for you and for every host that it is entered in.
#
#   pegboard add time -- uvx mcp-server-time   adds a server to this file
#   pegboard import                            adds those of Claude, Cursor and other hosts
#   pegboard doctor                            checks all of them
#   pegboard config schema                     prints all settings that a server can have

# The built-in demo server: try `pegboard call demo.echo text=hello`. `pegboard remove demo` removes it.
[servers.demo]
command = {program}
args = ["demo-server"]

# A program, with a secret that stays in your environment:
#
# [servers.github]
# command = "github-mcp-server"
# args = ["stdio"]
# env = {{ GITHUB_PERSONAL_ACCESS_TOKEN = "${{GITHUB_TOKEN}}" }}

# A server elsewhere. `pegboard login linear` signs in to it:
#
# [servers.linear]
# url = "https://mcp.linear.app/mcp"
"#
    )
}

#[cfg(test)]
mod tests {
    use pegboard::{Config, Env};

    use super::*;

    #[test]
    fn the_file_is_read_without_a_problem_also_with_its_examples() {
        let text = text(r#"/opt/a "b" $c/pegboard"#);
        insta::assert_snapshot!(text);
        let env = Env::from_pairs([("GITHUB_TOKEN", "x")]);
        let whole = text.replace("\n# [", "\n[").replace("\n# url", "\nurl");
        let whole = ["command", "args", "env"].iter().fold(whole, |text, key| {
            text.replace(&format!("\n# {key} ="), &format!("\n{key} ="))
        });
        for (text, names) in [(&text, &["demo"][..]), (&whole, &["demo", "github", "linear"])] {
            let loaded = Config::from_text(text, pegboard::Format::Toml, &env);
            assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
            let found: Vec<&str> = loaded.config.servers.keys().map(pegboard::ServerName::as_str).collect();
            assert_eq!(found, names);
        }
    }
}
