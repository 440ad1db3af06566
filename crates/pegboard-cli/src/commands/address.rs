//! Addresses without a scheme, such as `localhost:8080/mcp`, which could be taken for programs.

use std::path::Path;

use pegboard::{Config, Env, Format, Problem, config::SafeUrl, diagnosis::Edit};
use serde_json::json;

/// The scheme, with its slashes, that mends a problem with an address that has none.
pub(super) fn missing_scheme(problem: &Problem) -> Option<&str> {
    match &problem.edit {
        Some(Edit::Prefix { text, .. }) => Some(text),
        _ => None,
    }
}

/// The address with its scheme, if a text is an address without one. A path is none, nor a bare name, which may be that of a program.
pub(super) fn without_scheme(text: &str) -> Option<String> {
    let is_path = text.starts_with(['.', '/', '~']) || Path::new(text).exists();
    if is_path || !text.contains([':', '/']) || text.contains(char::is_whitespace) {
        return None;
    }
    let config = json!({"servers": {"x": {"url": text}}}).to_string();
    let loaded = Config::from_text(&config, Format::Json, &Env::new(|_| None));
    let mut problems = loaded.problems.iter();
    let scheme = problems.find_map(missing_scheme)?;
    let whole = format!("{scheme}{text}");
    // It is shown, so secrets in it are hidden.
    let shown = SafeUrl::parse(&whole).ok()?.to_string();
    Some(if shown.contains("***") { shown } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_a_program() {
        for (text, expected) in [
            ("localhost:8080/mcp", Some("http://localhost:8080/mcp")),
            ("localhost:8080", Some("http://localhost:8080")),
            ("127.0.0.1:9/mcp", Some("http://127.0.0.1:9/mcp")),
            ("mcp.example.com/mcp", Some("https://mcp.example.com/mcp")),
            ("mcp.example.com:8443", Some("https://mcp.example.com:8443")),
            ("https://mcp.example.com/mcp", None),
            ("server", None),
            ("server.py", None),
            ("./server.d/run", None),
            ("../server/run", None),
            ("/opt/server.d/run", None),
            ("~/server.d/run", None),
            ("bin/server", None),
            ("@scope/server", None),
            (r"C:\server.exe", None),
            ("C:/server.exe", None),
        ] {
            assert_eq!(without_scheme(text).as_deref(), expected, "{text}");
        }
    }
}
