//! Parses the values of options: principals and scopes.

/// The name of a principal.
pub(super) fn principal(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("it is empty; leave the option out for the views without a principal");
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err("it has spaces around it, or control characters");
    }
    Ok(text.to_owned())
}

/// One scope, or several with spaces between them.
pub(super) fn scopes(text: &str) -> Result<String, &'static str> {
    let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    let mut scopes = text.split_ascii_whitespace().peekable();
    if scopes.peek().is_none() {
        return Err("it is empty; leave the option out for the scopes of the config or the server");
    }
    match scopes.all(|scope| scope.chars().all(is_allowed)) {
        true => Ok(text.to_owned()),
        false => Err("a scope has ASCII characters only, and no quote or backslash"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_scopes_that_mean_nothing_are_refused() {
        for name in ["", " ", " alice", "al\nice"] {
            assert!(principal(name).is_err(), "{name:?}");
        }
        assert_eq!(principal("alice b").as_deref(), Ok("alice b"));
        for text in ["", "  ", "a\"b", "a é"] {
            assert!(scopes(text).is_err(), "{text:?}");
        }
        assert_eq!(scopes("read repo:write").as_deref(), Ok("read repo:write"));
    }
}
