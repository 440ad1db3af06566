//! Parses environment files: lines of `NAME=value`.

/// The largest environment file.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Parses the lines. Returns the number of the first line that is neither `NAME=value`, nor a comment, nor empty.
///
/// Values are literal: variables are not expanded in them.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        if !is_name(name) {
            return Err(index + 1);
        }
        pairs.push((name.to_owned(), value_of(value.trim()).ok_or(index + 1)?));
    }
    Ok(pairs)
}

/// Whether an environment variable can have this name.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn value_of(written: &str) -> Option<String> {
    if let Some(rest) = written.strip_prefix('\'') {
        let (value, after) = rest.split_once('\'')?;
        return is_blank(after).then(|| value.to_owned());
    }
    if let Some(rest) = written.strip_prefix('"') {
        return double_quoted(rest);
    }
    // A comment starts with a space, so that `#` can be part of a password.
    let value = written.split_once(" #").map_or(written, |(value, _)| value);
    Some(value.trim_end().to_owned())
}

fn double_quoted(rest: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return is_blank(chars.as_str()).then_some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                c @ ('"' | '\\' | '$') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
}

fn is_blank(after: &str) -> bool {
    let after = after.trim_start();
    after.is_empty() || after.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# comment\n\nA=1\nexport B = two words \nC='a # b'\nD=\"x\\ny \\\"q\\\"\" # why\nE=p#ss # note\nF=\nG=${A}\n";
        let want = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b"),
            ("D", "x\ny \"q\""),
            ("E", "p#ss"),
            ("F", ""),
            ("G", "${A}"),
        ];
        let want: Vec<_> = want.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(read(text), Ok(want));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, line) in [
            ("A=1\nB\n", 2),
            ("A='x\n", 1),
            ("A B=1\n", 1),
            ("=1", 1),
            ("A=\"x\" y", 1),
        ] {
            assert_eq!(read(text), Err(line), "{text}");
        }
    }
}
