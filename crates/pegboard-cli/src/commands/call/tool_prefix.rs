//! The server's name at the beginning of a tool's name.

/// Returns `true` if the tool's name has this server's prefix, in any naming style.
pub(super) fn is_of(tool: &str, server: &str) -> bool {
    let styles = [("", "."), ("", "__"), ("mcp__", "__"), ("mcp_", "_")];
    styles.iter().any(|(before, after)| {
        let rest = tool.strip_prefix(before).and_then(|rest| rest.strip_prefix(server));
        rest.is_some_and(|rest| rest.starts_with(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_any_style_tells_its_server() {
        for tool in ["git.log", "git__log", "mcp__git__log", "mcp_git_log"] {
            assert!(is_of(tool, "git"), "{tool}");
        }
        for tool in ["log", "github.log", "git_log", "mcp.git.log"] {
            assert!(!is_of(tool, "git"), "{tool}");
        }
    }
}
