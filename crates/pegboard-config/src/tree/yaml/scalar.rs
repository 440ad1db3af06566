//! [`YamlScalar`]: a scalar of YAML with the type that the core schema of YAML 1.2 gives it.

use std::borrow::Cow;

use saphyr_parser::{ScalarStyle, Tag};

/// A scalar, by the core schema.
#[derive(Debug, Clone, PartialEq)]
pub enum YamlScalar<'t> {
    /// No value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// Everything else.
    Text(Cow<'t, str>),
}

impl<'t> YamlScalar<'t> {
    /// Reads a scalar as a parser found it. A tag of the core schema decides the type, and `None` means that the text does not fit it. Tags of
    /// programs are ignored.
    pub fn new(text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>) -> Option<Self> {
        let core_tag = tag.filter(|tag| tag.is_yaml_core_schema());
        match core_tag.map(|tag| tag.suffix.as_ref()) {
            _ if style != ScalarStyle::Plain => Some(Self::Text(text)),
            None => Some(plain(text)),
            Some("str") => Some(Self::Text(text)),
            Some("null") => matches!(text.as_ref(), "~" | "null").then_some(Self::Null),
            Some("bool") => text.parse().ok().map(Self::Bool),
            Some("int") => text.parse().ok().map(Self::Int),
            Some("float") => float(&text).map(Self::Float),
            Some(_) => None,
        }
    }
}

/// The type of a scalar without a tag and without quotes.
fn plain(text: Cow<'_, str>) -> YamlScalar<'_> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => YamlScalar::Null,
        "true" | "True" | "TRUE" => YamlScalar::Bool(true),
        "false" | "False" | "FALSE" => YamlScalar::Bool(false),
        number => match int(number)
            .map(YamlScalar::Int)
            .or_else(|| float(number).map(YamlScalar::Float))
        {
            Some(number) => number,
            None => YamlScalar::Text(text),
        },
    }
}

fn int(text: &str) -> Option<i64> {
    let of_base = |digits: &str, base| match digits.starts_with(['+', '-']) {
        true => None,
        false => i64::from_str_radix(digits, base).ok(),
    };
    match text.get(..2) {
        Some("0x") => of_base(&text[2..], 16),
        Some("0o") => of_base(&text[2..], 8),
        _ => text.parse().ok(),
    }
}

/// Rust reads the words `inf` and `nan` too, which are texts in YAML.
fn float(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => text
            .parse()
            .ok()
            .filter(|_| text.bytes().any(|byte| byte.is_ascii_digit())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> YamlScalar<'_> {
        plain(Cow::Borrowed(text))
    }

    #[test]
    fn a_plain_scalar_has_the_type_of_the_core_schema() {
        for (text, expected) in [
            ("", YamlScalar::Null),
            ("~", YamlScalar::Null),
            ("NULL", YamlScalar::Null),
            ("True", YamlScalar::Bool(true)),
            ("FALSE", YamlScalar::Bool(false)),
            ("0", YamlScalar::Int(0)),
            ("-17", YamlScalar::Int(-17)),
            ("+8", YamlScalar::Int(8)),
            ("007", YamlScalar::Int(7)),
            ("0x1F", YamlScalar::Int(31)),
            ("0o17", YamlScalar::Int(15)),
            ("1.", YamlScalar::Float(1.0)),
            (".5", YamlScalar::Float(0.5)),
            ("-2e3", YamlScalar::Float(-2000.0)),
            ("9223372036854775808", YamlScalar::Float(9_223_372_036_854_775_808.0)),
            ("-.INF", YamlScalar::Float(f64::NEG_INFINITY)),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert!(matches!(read(".NaN"), YamlScalar::Float(number) if number.is_nan()));
    }

    #[test]
    fn everything_else_is_a_text() {
        for text in [
            "nUll", "None", "yes", "no", "on", "tRue", "inf", "nan", "infinity", "0x", "0x+1", "0o8", "1_000", "1e",
            ".", "-", "12:30", "é1",
        ] {
            assert_eq!(read(text), YamlScalar::Text(Cow::Borrowed(text)), "{text}");
        }
    }

    #[test]
    fn a_tag_of_the_core_schema_decides_and_others_do_not() {
        let tag = |handle: &str, suffix: &str| Tag {
            handle: handle.to_owned(),
            suffix: suffix.to_owned(),
        };
        let core = |suffix| tag("tag:yaml.org,2002:", suffix);
        let read = |text: &'static str, tag: Tag| YamlScalar::new(text.into(), ScalarStyle::Plain, Some(&tag));
        assert_eq!(read("5", core("str")), Some(YamlScalar::Text("5".into())));
        assert_eq!(read("5", core("float")), Some(YamlScalar::Float(5.0)));
        assert_eq!(read("five", core("int")), None);
        assert_eq!(read("5", core("set")), None);
        assert_eq!(read("5", tag("!", "degree")), Some(YamlScalar::Int(5)));
        let quoted = YamlScalar::new("5".into(), ScalarStyle::SingleQuoted, None);
        assert_eq!(quoted, Some(YamlScalar::Text("5".into())));
    }
}
