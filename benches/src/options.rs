//! The command-line options that all programs here share.

/// The value after `--name`.
pub fn value(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)
}

/// The number after `--name`, or `default`.
pub fn number(name: &str, default: usize) -> usize {
    value(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}
