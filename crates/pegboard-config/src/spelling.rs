//! Spellings of names: converts between snake, camel and kebab case, and suggests corrections.

/// The one of `names` that is most similar to `wrong`, if any is similar enough.
pub(crate) fn find_nearest(wrong: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // At most a third of the letters may differ. Very long keys are not worth the time.
    if wrong.len() > 64 {
        return None;
    }
    let most = (wrong.chars().count() / 3).max(1);
    names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Converts to snake case: `toolsAllowed`, `tools-allowed` and `ToolsAllowed` to `tools_allowed`; `HTTPUrl` to `http_url`.
pub(super) fn snake(key: &str) -> String {
    // `OAuth` is one word.
    let key = key.replace("OAuth", "Oauth");
    let mut snake = String::with_capacity(key.len() + 4);
    let (mut lower_before, mut upper_before) = (false, false);
    let mut chars = key.chars().peekable();
    while let Some(c) = chars.next() {
        // The last of several capitals starts the next word if a lower-case letter follows it.
        let starts_word = upper_before && chars.peek().is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (lower_before || starts_word) {
            snake.push('_');
        }
        lower_before = c.is_ascii_lowercase() || c.is_ascii_digit();
        upper_before = c.is_ascii_uppercase();
        snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
    }
    snake
}

/// Converts to camel case: `tools_allowed` to `toolsAllowed`.
pub(super) fn camel(key: &str) -> String {
    let mut camel = String::with_capacity(key.len());
    let mut upper = false;
    for c in key.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                camel.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => camel.push(c),
        }
    }
    camel
}
