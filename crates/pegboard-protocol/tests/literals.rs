//! No other crate writes a word of the protocol as a literal: they all import it from this one.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pegboard_protocol::{Version, code, header, meta, method};

/// Literals that only look like words of the protocol: the end of the file's path, the literal, and what it is.
const OTHER_WORDS: &[(&str, &str, &str)] = &[
    ("lifecycle.rs", "ping", "a value of the setting `probe`"),
    ("cases/jsonrpc.rs", "ping", "the id of a case"),
    ("cases/handshake.rs", "server/discover", "a page of the specification"),
];

#[test]
fn the_words_of_the_protocol_are_written_in_this_crate_only() {
    let mut found = BTreeSet::new();
    let mut excused = BTreeSet::new();
    for file in source_files() {
        let text = fs::read_to_string(&file).expect("a source file");
        let file = file
            .strip_prefix(crates())
            .expect("below the crates")
            .display()
            .to_string();
        for (line, word) in words_of_protocol(&text) {
            match OTHER_WORDS
                .iter()
                .position(|(end, other, _)| file.ends_with(end) && *other == word)
            {
                Some(excuse) => drop(excused.insert(excuse)),
                None => drop(found.insert(format!("{file}:{line}: {word}"))),
            }
        }
    }
    let found: Vec<String> = found.into_iter().collect();
    assert!(
        found.is_empty(),
        "import these from pegboard-protocol:\n{}",
        found.join("\n")
    );
    let unused: Vec<_> = (0..OTHER_WORDS.len())
        .filter(|excuse| !excused.contains(excuse))
        .collect();
    assert!(unused.is_empty(), "excuses without a literal: {unused:?}");
}

#[test]
fn literals_are_found_in_code_and_not_in_comments_tests_or_sentences() {
    let text = r##"
        //! `tools/call` and "tools/call"
        /* "tools/list" */
        fn check<'a>(code: i64) -> bool { code == -32602 || code == -32_601 || name == 'a' }
        const TEXTS: [&str; 4] = ["tools/call", "call `tools/call`", r#"Mcp-Session-Id"#, "a\"ping"];
        const KEY: &[u8] = br#","io.modelcontextprotocol/logLevel":"#;
        #[cfg(test)]
        mod tests { fn of() { "ping"; { -32600 } } }
        #[cfg(not(test))]
        fn version() -> &str { "2025-06-18" }
        #[cfg(test)]
        const PING: &str = "ping";
    "##;
    let found: Vec<(usize, String)> = words_of_protocol(text);
    let expected = [
        (4, "-32602"),
        (4, "-32601"),
        (5, "tools/call"),
        (5, "Mcp-Session-Id"),
        (6, ",\"io.modelcontextprotocol/logLevel\":"),
        (10, "2025-06-18"),
    ];
    assert_eq!(found, expected.map(|(line, word)| (line, word.to_owned())));
}

/// The words of the protocol that are literals in a source text outside of its tests, with their lines.
fn words_of_protocol(text: &str) -> Vec<(usize, String)> {
    let tokens = without_tests(tokens(text));
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match &token.kind {
            Kind::Text(text) if is_word_of_protocol(text) => found.push((token.line, text.clone())),
            Kind::Number(digits) if index > 0 && tokens[index - 1].kind == Kind::Mark('-') => {
                let number = format!("-{}", digits.replace('_', ""));
                if number.parse().is_ok_and(|number| code::ALL.contains(&number)) {
                    found.push((token.line, number));
                }
            }
            _ => {}
        }
    }
    found
}

fn is_word_of_protocol(text: &str) -> bool {
    let is_header = |name: &&str| {
        text.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    method::RequestMethod::find(text).is_some()
        || method::notification::ALL.contains(&text)
        || meta::pegboard::ALL.contains(&text)
        || text.contains(meta::PREFIX)
        || Version::parse(text).is_some()
        || header::ALL
            .iter()
            .any(|name| text.len() == name.len() && is_header(name))
        || is_header(&header::PARAM_PREFIX)
}

#[derive(Debug, PartialEq)]
enum Kind {
    Word(String),
    Text(String),
    Number(String),
    Mark(char),
}

#[derive(Debug)]
struct Token {
    line: usize,
    kind: Kind,
}

/// The tokens of a source text without comments. Escapes in strings stay as they are.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            '/' if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (None, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '"' => string(rest),
            '\'' => (None, character(rest)),
            'b' | 'r' if raw_string(rest).is_some() => raw_string(rest).expect("just found"),
            'b' if rest.starts_with("b\"") => {
                let (kind, length) = string(&rest[1..]);
                (kind, length + 1)
            }
            _ if first.is_ascii_digit() => {
                let length = length_while(rest, |c| c.is_ascii_alphanumeric() || c == '_');
                (Some(Kind::Number(rest[..length].to_owned())), length)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = length_while(rest, |c| c.is_alphanumeric() || c == '_');
                (Some(Kind::Word(rest[..length].to_owned())), length)
            }
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ => (Some(Kind::Mark(first)), first.len_utf8()),
        };
        tokens.extend(kind.map(|kind| Token { line, kind }));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// A string at the start of the text, and its length with the quotes.
fn string(text: &str) -> (Option<Kind>, usize) {
    let mut is_escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return (Some(Kind::Text(text[1..index].to_owned())), index + 1),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    (None, text.len())
}

/// A raw string at the start of the text, if there is one.
fn raw_string(text: &str) -> Option<(Option<Kind>, usize)> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = length_while(after, |c| c == '#');
    let content = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &after[..hashes]);
    let length = content.find(&end)?;
    let whole = text.len() - content.len() + length + end.len();
    Some((Some(Kind::Text(content[..length].to_owned())), whole))
}

/// The length of a character or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut after = text.char_indices().skip(1);
    match (after.next(), after.next()) {
        (Some((_, '\\')), Some((index, c))) => {
            let rest = index + c.len_utf8();
            text[rest..].find('\'').map_or(text.len(), |end| rest + end + 1)
        }
        (Some(_), Some((index, '\''))) => index + 1,
        _ => 1,
    }
}

/// Leaves out items with `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let starts_attribute =
            token.kind == Kind::Mark('#') && tokens.peek().is_some_and(|next| next.kind == Kind::Mark('['));
        kept.push(token);
        if !starts_attribute {
            continue;
        }
        let start = kept.len() - 1;
        kept.extend(group(&mut tokens));
        let says = |word: &str| {
            kept[start..]
                .iter()
                .any(|token| token.kind == Kind::Word(word.to_owned()))
        };
        if says("cfg") && says("test") && !says("not") {
            kept.truncate(start);
            skip_item(&mut tokens);
        }
    }
    kept
}

/// Takes everything up to the bracket that closes the next one.
fn group(tokens: &mut impl Iterator<Item = Token>) -> Vec<Token> {
    let mut depth = 0;
    let mut group = Vec::new();
    for token in tokens {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        group.push(token);
        if depth == 0 {
            break;
        }
    }
    group
}

/// Skips an item: up to its semicolon, or to the end of its block.
fn skip_item(tokens: &mut std::iter::Peekable<impl Iterator<Item = Token>>) {
    while let Some(next) = tokens.peek() {
        match next.kind {
            Kind::Mark('(' | '[') => drop(group(tokens)),
            Kind::Mark('{') => return drop(group(tokens)),
            Kind::Mark(';' | ',') => return drop(tokens.next()),
            _ => drop(tokens.next()),
        }
    }
}

/// The source files of all other crates, without those of tests.
fn source_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).expect("the folder of crates") {
        let folder = entry.expect("a crate").path();
        if !folder.ends_with("pegboard-protocol") {
            add_files(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 500, "the sources were not found");
    files
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        // Modules of these names are declared with `#[cfg(test)]`.
        let is_test = name == "tests" || name == "explore" || name.ends_with("_tests");
        if path.is_dir() && !is_test {
            add_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
