//! Converts settings to the Rust types of their fields.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value as Json};

use super::{
    lifecycle::{IdleStop, RetryClass},
    policy::{Queue, Rate, Scope},
    sandbox::SandboxNetwork,
    server::EraChoice,
    setting::{Setting, Text, Values},
    tree::{Node, Value},
};
use pegboard_base::name::{BadNameStyle, NameStyle};

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

impl<T: FromSetting> FromSetting for Option<T> {
    fn from_setting(setting: &Setting) -> Option<Self> {
        T::from_setting(setting).map(Some)
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

/// A text, or a list of texts.
#[derive(Debug, Clone)]
pub(super) struct OneOrMore(pub(super) Vec<Text>);

impl FromSetting for OneOrMore {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let one = Text::from_setting(setting).map(|text| vec![text]);
        one.or_else(|| Vec::from_setting(setting)).map(Self)
    }
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

/// A rate that does not parse is reported when the config is checked.
impl FromSetting for Rate {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Text(text) => Self::parse(&text.value),
            _ => None,
        }
    }
}

/// A program, or a program and its first arguments.
#[derive(Debug, Clone)]
pub(super) struct Argv(pub(super) Vec<Text>);

impl FromSetting for Argv {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let one = Text::from_setting(setting).map(|text| vec![text]);
        one.or_else(|| Vec::from_setting(setting)).map(Self)
    }
}

/// OAuth scopes: a list, or a text with spaces between them.
#[derive(Debug, Clone)]
pub(super) struct Scopes(pub(super) Vec<String>);

impl FromSetting for Scopes {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let one = String::from_setting(setting).map(|text| vec![text]);
        let texts = one.or_else(|| Vec::from_setting(setting))?;
        let words = texts.iter().flat_map(|text| text.split_whitespace());
        Some(Self(words.map(str::to_owned).collect()))
    }
}

/// A text that other programs write as a list with one element.
#[derive(Debug, Clone)]
pub(super) struct Single(pub(super) Option<String>);

impl FromSetting for Single {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let one = String::from_setting(setting);
        let first = || Vec::from_setting(setting)?.into_iter().next();
        Some(Self(one.or_else(first)))
    }
}

impl FromSetting for EraChoice {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("auto") => Some(Self::Auto),
            Setting::Word("probe") => Some(Self::Probe),
            Setting::Word("modern") => Some(Self::Modern),
            Setting::Word("legacy") => Some(Self::Legacy),
            Setting::Text(text) if is_version(&text.value) => Some(Self::Version(text.value.clone())),
            _ => None,
        }
    }
}

/// `2025-06-18`.
pub(super) fn is_version(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(index, b)| match index {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
}

/// The most connections of one pool.
pub(super) const MAX_POOL: usize = 64;

impl FromSetting for Scope {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("shared") => Some(Self::Shared),
            Setting::Word("session") => Some(Self::Session),
            Setting::Text(text) => pool(&text.value).map(Self::Pool),
            Setting::Table(values) => only_field(values).map(Self::Pool),
            _ => None,
        }
    }
}

/// The value of a table that has a single field.
fn only_field<T: FromSetting>(values: &Values) -> Option<T> {
    let (_, found) = values.iter().next()?;
    T::from_setting(&found.setting)
}

/// A number of calls at once, or a table with that number.
impl FromSetting for Queue {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Table(values) => only_field(values),
            _ => usize::from_setting(setting),
        }
        .map(Self::new)
    }
}

/// Whether calls of one tool may be retried: a word, or a table with the argument that carries an idempotency key.
#[derive(Debug, Clone)]
pub(super) struct ToolRetry(pub(super) RetryClass);

impl FromSetting for ToolRetry {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Table(values) => only_field(values).map(RetryClass::Key),
            _ => RetryClass::from_setting(setting),
        }
        .map(Self)
    }
}

/// `pool(4)`.
pub(super) fn pool(text: &str) -> Option<usize> {
    let size = text.trim().strip_prefix("pool")?.trim_start();
    let size = size.strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()?;
    (1..=MAX_POOL).contains(&size).then_some(size)
}

impl FromSetting for IdleStop {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("auto") => Some(Self::Auto),
            Setting::Word(_) => Some(Self::Never),
            _ => Duration::from_setting(setting).map(Self::After),
        }
    }
}

/// A duration, or `off`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval(pub(super) Option<Duration>);

impl FromSetting for Interval {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word(_) => Some(Self(None)),
            _ => Duration::from_setting(setting).map(|every| Self(Some(every))),
        }
    }
}

/// A limit, or `none`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling(pub(super) Option<u64>);

impl FromSetting for Ceiling {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word(_) => Some(Self(None)),
            _ => u64::from_setting(setting).map(|limit| Self(Some(limit))),
        }
    }
}

impl FromSetting for SandboxNetwork {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Bool(true) => Some(Self::All),
            Setting::Bool(false) => Some(Self::Off),
            _ => Vec::from_setting(setting).map(Self::Ports),
        }
    }
}

/// How long results are cached with `cache = true`.
const CACHE: Duration = Duration::from_secs(300);

/// How long results are cached: a duration, `true` for [`CACHE`], or not at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime(pub(super) Option<Duration>);

impl FromSetting for Lifetime {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Bool(true) => Some(Self(Some(CACHE))),
            Setting::Bool(false) | Setting::Word(_) => Some(Self(None)),
            _ => Duration::from_setting(setting).map(|time| Self(Some(time))),
        }
    }
}

/// `true` for everything, or a list of globs.
#[derive(Debug, Clone)]
pub(super) struct Globs(pub(super) Vec<String>);

impl FromSetting for Globs {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Bool(true) => Some(Self(vec!["*".to_owned()])),
            Setting::Bool(false) => Some(Self(Vec::new())),
            _ => Vec::from_setting(setting).map(Self),
        }
    }
}

/// Whether a server is trusted: true or false, or a word for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust(pub(super) bool);

impl FromSetting for Trust {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word(word) => Some(Self(*word == "trusted")),
            _ => bool::from_setting(setting).map(Self),
        }
    }
}

/// The waits before restarts. A single one doubles up to [`LONGEST_WAIT`].
#[derive(Debug, Clone)]
pub(super) struct Waits(pub(super) Vec<Duration>);

/// How far a single wait is doubled.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl FromSetting for Waits {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let Setting::Duration(first) = setting else {
            return Vec::from_setting(setting).map(Self);
        };
        let doubled = std::iter::successors(Some(*first), |wait| {
            (!wait.is_zero() && *wait < LONGEST_WAIT).then(|| (*wait * 2).min(LONGEST_WAIT))
        });
        Some(Self(doubled.collect()))
    }
}

/// How tools are named: a word or a template.
#[derive(Debug, Clone)]
pub(super) struct Naming(pub(super) Result<NameStyle, BadNameStyle>);

impl FromSetting for Naming {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word(word) => Some(Self(NameStyle::parse(word))),
            _ => String::from_setting(setting).map(|template| Self(NameStyle::parse(&template))),
        }
    }
}
