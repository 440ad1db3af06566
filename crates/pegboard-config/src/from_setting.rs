//! Converts settings to the Rust types of their fields.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use pegboard_base::timestamp::Timestamp;
use serde_json::{Map, Value as Json};

use super::{
    setting::{Setting, Text, Values},
    tree::{Node, Value},
};
use pegboard_base::name::NameStyle;

/// A type that a setting can be converted to.
pub(super) trait FromSetting: Sized {
    /// Converts a setting; returns `None` for a setting of another kind.
    fn from_setting(setting: &Setting) -> Option<Self>;
}

impl FromSetting for bool {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromSetting for u64 {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Count(value) | Setting::Size(value) => Some(*value),
            _ => None,
        }
    }
}

/// The bounds of a field keep its numbers within the type.
macro_rules! numbers {
    ($($type:ty)+) => {
        $(
            impl FromSetting for $type {
                fn from_setting(setting: &Setting) -> Option<Self> {
                    u64::from_setting(setting).and_then(|value| Self::try_from(value).ok())
                }
            }
        )+
    };
}

numbers! { u16 u32 usize }

impl FromSetting for Duration {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Duration(value) => Some(*value),
            Setting::Count(millis) => Some(Self::from_millis(*millis)),
            _ => None,
        }
    }
}

impl FromSetting for Text {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Text(text) | Setting::Secret(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromSetting for String {
    fn from_setting(setting: &Setting) -> Option<Self> {
        Text::from_setting(setting).map(|text| text.value)
    }
}

/// A value, or a word such as `off` for none.
impl<T: FromSetting> FromSetting for Option<T> {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match T::from_setting(setting) {
            None if matches!(setting, Setting::Word("off" | "none")) => Some(None),
            value => value.map(Some),
        }
    }
}

impl<T: FromSetting> FromSetting for Vec<T> {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::List(items) => Some(items.iter().filter_map(T::from_setting).collect()),
            _ => None,
        }
    }
}

impl<T: FromSetting + Ord> FromSetting for BTreeSet<T> {
    fn from_setting(setting: &Setting) -> Option<Self> {
        Vec::from_setting(setting).map(Self::from_iter)
    }
}

/// A text, or a list of texts.
pub(super) fn one_or_more<T: FromSetting>(setting: &Setting) -> Option<Vec<T>> {
    let one = T::from_setting(setting).map(|one| vec![one]);
    one.or_else(|| Vec::from_setting(setting))
}

impl<T: FromSetting> FromSetting for BTreeMap<String, T> {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let Setting::Map(entries) = setting else { return None };
        let read = |(name, setting): (&String, &Setting)| Some((name.clone(), T::from_setting(setting)?));
        Some(entries.iter().filter_map(read).collect())
    }
}

/// JSON that is not validated. The parser of the file limits its depth.
impl FromSetting for Json {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Any(unchecked) => Some(json(&unchecked.0)),
            _ => None,
        }
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), json(&entry.value)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// A program, or a program and its first arguments.
pub(super) fn argv<T: From<Vec<Text>>>(setting: &Setting) -> Option<T> {
    one_or_more::<Text>(setting).map(T::from)
}

/// OAuth scopes: a list, or a text with spaces between them.
pub(super) fn scopes(setting: &Setting) -> Option<Vec<String>> {
    let texts: Vec<String> = one_or_more(setting)?;
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    Some(words.map(str::to_owned).collect())
}

/// The first text of a list, or the only one.
pub(super) fn first<T: From<Option<String>>>(setting: &Setting) -> Option<T> {
    one_or_more(setting).map(|texts| texts.into_iter().next().into())
}

/// `2025-06-18`.
pub(super) fn is_version(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(index, b)| match index {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
}

/// The value of a table that has a single field.
pub(super) fn only_field<T: FromSetting>(values: &Values) -> Option<T> {
    let (_, found) = values.iter().next()?;
    T::from_setting(&found.setting)
}

/// How long results are cached with `cache = true`.
const CACHE: Duration = Duration::from_secs(300);

/// How long results are cached: a duration, `true` for [`CACHE`], or not at all.
pub(super) fn lifetime<T: From<Option<Duration>>>(setting: &Setting) -> Option<T> {
    let lifetime = match setting {
        Setting::Bool(true) => Some(CACHE),
        Setting::Bool(false) | Setting::Word(_) => None,
        _ => Some(Duration::from_setting(setting)?),
    };
    Some(lifetime.into())
}

/// The same by name or glob of a tool.
pub(super) fn lifetimes(setting: &Setting) -> Option<BTreeMap<String, Option<Duration>>> {
    let Setting::Map(entries) = setting else { return None };
    let read = |(name, setting): (&String, &Setting)| Some((name.clone(), lifetime(setting)?));
    Some(entries.iter().filter_map(read).collect())
}

/// `true` for everything, or a list of globs.
pub(super) fn globs(setting: &Setting) -> Option<Vec<String>> {
    match setting {
        Setting::Bool(true) => Some(vec!["*".to_owned()]),
        Setting::Bool(false) => Some(Vec::new()),
        _ => Vec::from_setting(setting),
    }
}

/// Whether a server is trusted: true or false, or a word for it.
pub(super) fn trust(setting: &Setting) -> Option<bool> {
    match setting {
        Setting::Word(word) => Some(*word == "trusted"),
        _ => bool::from_setting(setting),
    }
}

/// How far a single wait is doubled.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The waits before restarts. A single one doubles up to [`LONGEST_WAIT`].
pub(super) fn waits(setting: &Setting) -> Option<Vec<Duration>> {
    let Setting::Duration(first) = setting else {
        return Vec::from_setting(setting);
    };
    let doubled = std::iter::successors(Some(*first), |wait| {
        (!wait.is_zero() && *wait < LONGEST_WAIT).then(|| (*wait * 2).min(LONGEST_WAIT))
    });
    Some(doubled.collect())
}

/// The JSON objects of a map, by name.
pub(super) fn json_objects(setting: &Setting) -> Option<BTreeMap<String, Json>> {
    let objects = BTreeMap::<String, BTreeMap<String, Json>>::from_setting(setting)?.into_iter();
    Some(
        objects
            .map(|(name, parts)| (name, Json::Object(parts.into_iter().collect())))
            .collect(),
    )
}

/// A style, or a template. One that does not parse is reported when the config is checked.
impl FromSetting for NameStyle {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word(word) => Self::parse(word).ok(),
            _ => Self::parse(&String::from_setting(setting)?).ok(),
        }
    }
}

/// `127.0.0.1:7337`, `[::1]:7337` or `localhost:7337`.
impl FromSetting for SocketAddr {
    fn from_setting(setting: &Setting) -> Option<Self> {
        address(&String::from_setting(setting)?)
    }
}

/// Parses an address with a port. `localhost` is the IPv4 address.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let local = || {
        let (host, port) = text.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        host.eq_ignore_ascii_case("localhost")
            .then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    text.parse().ok().or_else(local)
}

impl FromSetting for Timestamp {
    fn from_setting(setting: &Setting) -> Option<Self> {
        String::from_setting(setting)?.trim().parse().ok()
    }
}
