//! Parses the form `tool(a: 1, b: "x")`, as people write calls in code.

use serde_json::{Map, Number, Value};

use super::{given::Given, large_integers, quoting::cut};

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// One argument between the brackets.
#[derive(Debug, PartialEq)]
pub(super) struct Item {
    pub(super) key: Option<String>,
    pub(super) value: Given,
}

/// The tool's name and the text after the opening bracket; `None` if the word has another form.
pub(super) fn split(word: &str) -> Option<(&str, &str)> {
    let (name, rest) = word.split_once('(')?;
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, '=' | ':'));
    is_name.then_some((name, rest))
}

/// Parses the text after the opening bracket.
pub(super) fn parse_after_bracket(rest: &str) -> Result<Vec<Item>, String> {
    if let Some(inner) = rest.trim_end().strip_suffix(')') {
        return parse(inner);
    }
    // A `)` may also be a part of a quoted text that has no end.
    match rest.rsplit_once(')') {
        Some((inner, surplus)) if parse(inner).is_ok() => {
            Err(format!("`{}` follows the closing bracket `)`", cut(surplus.trim())))
        }
        _ => Err("the bracket `(` has no end".to_owned()),
    }
}

/// Parses the text between the brackets.
fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut reader = FunctionParser { text, at: 0 };
    let mut items = Vec::new();
    loop {
        reader.skip_space();
        if reader.peek().is_none() {
            return Ok(items);
        }
        items.push(reader.item()?);
        reader.skip_space();
        match reader.next() {
            None => return Ok(items),
            Some(',') => {}
            Some(c) => return Err(format!("`{c}` where `,` or `)` is expected")),
        }
    }
}

struct FunctionParser<'a> {
    text: &'a str,
    at: usize,
}

impl FunctionParser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next();
        }
    }

    fn item(&mut self) -> Result<Item, String> {
        let key = self.key();
        self.skip_space();
        let value = match self.peek() {
            Some('"' | '\'' | '`' | '[' | '{') => Given::Json(self.value(0)?),
            _ => match self.read_bare() {
                "" => return Err("a value is missing".to_owned()),
                text => Given::Text(text.to_owned()),
            },
        };
        Ok(Item { key, value })
    }

    /// `name:` or `name=`; the position does not change if there is none. A `:` before `//` belongs to a URL.
    fn key(&mut self) -> Option<String> {
        let start = self.at;
        let key = match self.peek() {
            Some('"' | '\'') => self.string().ok(),
            _ => {
                let rest = &self.text[start..];
                let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.at += end;
                (end > 0).then(|| rest[..end].to_owned())
            }
        };
        self.skip_space();
        let is_key =
            key.is_some() && matches!(self.peek(), Some(':' | '=')) && !self.text[self.at..].starts_with("://");
        if is_key {
            self.next();
            return key;
        }
        self.at = start;
        None
    }

    /// The text up to the next `,` or closing bracket.
    fn read_bare(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '}']).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("a value is nested deeper than {MAX_DEPTH} levels"));
        }
        self.skip_space();
        match self.peek() {
            Some('"' | '\'' | '`') => self.string().map(Value::String),
            Some('[') => self.list(depth).map(Value::Array),
            Some('{') => self.object(depth).map(Value::Object),
            _ => match self.read_bare() {
                "" => Err("a value is missing".to_owned()),
                word => scalar(word),
            },
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, String> {
        let mut list = Vec::new();
        self.next();
        loop {
            self.skip_space();
            if self.peek() == Some(']') {
                self.next();
                return Ok(list);
            }
            list.push(self.value(depth + 1)?);
            self.end_of_part(']')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let mut object = Map::new();
        self.next();
        loop {
            self.skip_space();
            if self.peek() == Some('}') {
                self.next();
                return Ok(object);
            }
            let key = self.key().ok_or("a key of an object is missing")?;
            let value = self.value(depth + 1)?;
            object.insert(key, value);
            self.end_of_part('}')?;
        }
    }

    /// Skips a comma. A closing bracket stays for the caller.
    fn end_of_part(&mut self, close: char) -> Result<(), String> {
        self.skip_space();
        match self.peek() {
            Some(',') => {
                self.next();
                Ok(())
            }
            Some(c) if c == close => Ok(()),
            Some(c) => Err(format!("`{c}` where `,` or `{close}` is expected")),
            None => Err(format!("`{close}` is missing")),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err("a quoted text has no end".to_owned()),
                c if c == quote => return Ok(text),
                Some('\\') => text.push(self.parse_escape()?),
                Some(c) => text.push(c),
            }
        }
    }

    fn parse_escape(&mut self) -> Result<char, String> {
        Ok(match self.next() {
            None => return Err("a quoted text has no end".to_owned()),
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('u') => {
                let code = self.text.get(self.at..self.at + 4);
                let c = code
                    .and_then(|code| u32::from_str_radix(code, 16).ok())
                    .and_then(char::from_u32);
                let c = c.ok_or("`\\u` needs four hexadecimal digits of one character")?;
                self.at += 4;
                c
            }
            Some(c) => c,
        })
    }
}

/// A word inside a list or an object: JSON if it is a literal, else a string.
fn scalar(word: &str) -> Result<Value, String> {
    Ok(match word {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        "null" | "None" | "undefined" => Value::Null,
        word => match serde_json::from_str::<Number>(word) {
            Ok(number) => {
                large_integers::check(word)?;
                Value::Number(number)
            }
            Err(_) => Value::String(word.to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(key: Option<&str>, value: &str) -> Item {
        Item {
            key: key.map(str::to_owned),
            value: Given::Text(value.to_owned()),
        }
    }

    fn json(key: Option<&str>, value: Value) -> Item {
        Item {
            key: key.map(str::to_owned),
            value: Given::Json(value),
        }
    }

    #[test]
    fn a_call_is_written_as_in_code() {
        for (written, expected) in [
            ("", vec![]),
            ("2, 3", vec![text(None, "2"), text(None, "3")]),
            ("a: 2, b=3,", vec![text(Some("a"), "2"), text(Some("b"), "3")]),
            (
                r#"a: "x, y", 'b': 'it\'s'"#,
                vec![json(Some("a"), json!("x, y")), json(Some("b"), json!("it's"))],
            ),
            ("https://a.example/b", vec![text(None, "https://a.example/b")]),
            (
                "rows: [{id: 1, 'n': [true, None]}, word], o: {}",
                vec![
                    json(Some("rows"), json!([{"id": 1, "n": [true, null]}, "word"])),
                    json(Some("o"), json!({})),
                ],
            ),
            (r#""\u00e9\n""#, vec![json(None, json!("é\n"))]),
        ] {
            assert_eq!(parse(written), Ok(expected), "{written}");
        }
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for written in ["\"a", "[1", "{a: 1", "{1", "a:", ",", "[1}", "\"\\u12\"", "'\\"] {
            assert!(parse(written).is_err(), "{written}: {:?}", parse(written));
        }
        assert!(parse(&"[".repeat(10_000)).is_err());
    }

    #[test]
    fn only_a_name_before_a_bracket_is_a_call() {
        assert_eq!(split("fx.add(1, 2)"), Some(("fx.add", "1, 2)")));
        assert_eq!(split("fx.add()"), Some(("fx.add", ")")));
        for word in ["fx.add", "a=(1)", "(1)"] {
            assert_eq!(split(word), None, "{word}");
        }
    }

    #[test]
    fn a_bracket_without_an_end_is_refused() {
        assert_eq!(parse_after_bracket("1) "), parse("1"));
        for rest in ["", "1", "z: \"q\", a: 3", "z: \"q) r"] {
            assert_eq!(
                parse_after_bracket(rest),
                Err("the bracket `(` has no end".to_owned()),
                "{rest}"
            );
        }
    }

    #[test]
    fn what_follows_the_closing_bracket_is_named() {
        assert_eq!(
            parse_after_bracket("a: 1) extra"),
            Err("`extra` follows the closing bracket `)`".to_owned())
        );
        let long = parse_after_bracket(&format!("a: 1) {}", "x".repeat(100_000))).unwrap_err();
        assert!(long.chars().count() < 300, "{}", long.len());
    }
}
