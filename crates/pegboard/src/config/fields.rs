//! The one table of what a config file may say. The reader checks files against it and the JSON Schema is made from it, so
//! the two cannot drift apart.

mod parts;
mod server;

pub(super) use parts::TOP;
pub(super) use server::{SERVER, TYPES};

/// A table in the file: the fields it may have.
#[derive(Debug)]
pub(super) struct Section {
    /// What its definition is called in the schema.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Its name, in snake case. The same words in camel or kebab case are accepted too.
    pub(super) name: &'static str,
    /// Other programs' names for it.
    pub(super) aliases: &'static [&'static str],
    /// Other names under which the value is written differently.
    pub(super) turned: &'static [(&'static str, Via)],
    pub(super) kind: Kind,
    /// What it is when not set, as JSON.
    pub(super) default: Option<&'static str>,
    /// Whether it does something in this version.
    pub(super) effect: Effect,
    pub(super) doc: &'static str,
}

/// How a value written under another name becomes ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    /// The opposite: `disabled` for `enabled`.
    Negated,
    /// The name of a variable, or a table of them, whose value is meant.
    VariableName,
    /// True for `shared`, false for `session`.
    SharedFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Now,
    /// Accepted and checked, but nothing acts on it yet; the reader warns.
    Later,
    /// Means something to another program only; accepted in silence.
    Foreign,
}

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Text,
    /// A text that is hidden wherever settings are shown.
    Secret,
    Count {
        min: u64,
        max: u64,
    },
    /// `"30s"`, or a number under a name that ends in a unit. The bounds are in milliseconds.
    Duration {
        min: u64,
        max: u64,
    },
    /// `"8MiB"`, or a number of bytes.
    Size {
        min: u64,
        max: u64,
    },
    Word(&'static [Word]),
    List(&'static Self),
    Map(&'static Self),
    Table(&'static Section),
    /// The first that fits the value's shape.
    Either(&'static [Self]),
    /// Whatever another version or program makes of it.
    Any,
}

/// One of the words a setting may be, and other spellings of it.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) name: &'static str,
    pub(super) spellings: &'static [&'static str],
}

const fn word(name: &'static str) -> Word {
    Word { name, spellings: &[] }
}

const fn spelled(name: &'static str, spellings: &'static [&'static str]) -> Word {
    Word { name, spellings }
}

const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field {
        name,
        aliases: &[],
        turned: &[],
        kind,
        default: None,
        effect: Effect::Now,
        doc,
    }
}

impl Field {
    const fn aka(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn turned(mut self, turned: &'static [(&'static str, Via)]) -> Self {
        self.turned = turned;
        self
    }

    const fn default(mut self, json: &'static str) -> Self {
        self.default = Some(json);
        self
    }

    const fn later(mut self) -> Self {
        self.effect = Effect::Later;
        self
    }

    const fn foreign(mut self) -> Self {
        self.effect = Effect::Foreign;
        self
    }

    /// Every name it goes by, in snake case, its own first.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let turned = self.turned.iter().map(|(name, _)| *name);
        std::iter::once(self.name)
            .chain(self.aliases.iter().copied())
            .chain(turned)
    }
}

/// How a key of a section was meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) field: &'static Field,
    pub(super) via: Option<Via>,
    /// The unit that the key ends in, in milliseconds.
    pub(super) unit: Option<u64>,
}

/// Endings of keys that say the unit of a number.
const UNITS: &[(&str, u64)] = &[
    ("_ms", 1),
    ("_millis", 1),
    ("_milliseconds", 1),
    ("_s", 1000),
    ("_sec", 1000),
    ("_secs", 1000),
    ("_seconds", 1000),
];

impl Section {
    /// The field that `key` names, in any spelling.
    pub(super) fn find(&self, key: &str) -> Option<Match> {
        let key = snake(key);
        let whole = self.named(&key);
        whole.or_else(|| {
            UNITS.iter().find_map(|(ending, unit)| {
                let found = self.named(key.strip_suffix(ending)?)?;
                let timed = found.via.is_none() && found.field.takes_duration();
                timed.then_some(Match {
                    unit: Some(*unit),
                    ..found
                })
            })
        })
    }

    fn named(&self, key: &str) -> Option<Match> {
        self.fields.iter().find_map(|field| {
            let via = field.turned.iter().find(|(name, _)| *name == key).map(|(_, via)| *via);
            (via.is_some() || field.name == key || field.aliases.contains(&key)).then_some(Match {
                field,
                via,
                unit: None,
            })
        })
    }

    /// The right name that `key` most likely misspells.
    pub(super) fn nearest(&self, key: &str) -> Option<&'static str> {
        nearest(&snake(key), self.fields.iter().flat_map(Field::names))
    }
}

impl Field {
    pub(super) fn takes_duration(&self) -> bool {
        match self.kind {
            Kind::Duration { .. } => true,
            Kind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, Kind::Duration { .. })),
            _ => false,
        }
    }
}

/// The one of `names` that `wrong` most likely misspells.
pub(super) fn nearest(wrong: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // A third of the letters may be wrong; beyond that a suggestion is a guess. Very long keys are nobody's slip.
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

/// The word that `text` spells, in any case.
pub(super) fn find_word(words: &'static [Word], text: &str) -> Option<&'static str> {
    let text = snake(text.trim());
    let is = |name: &str| snake(name) == text;
    words
        .iter()
        .find(|word| is(word.name) || word.spellings.iter().any(|spelling| is(spelling)))
        .map(|word| word.name)
}

/// `toolsAllowed`, `tools-allowed` and `ToolsAllowed` as `tools_allowed`; `HTTPUrl` as `http_url`.
pub(super) fn snake(key: &str) -> String {
    // One word, though it is written like two.
    let key = key.replace("OAuth", "Oauth");
    let mut snake = String::with_capacity(key.len() + 4);
    let (mut lower_before, mut upper_before) = (false, false);
    let mut chars = key.chars().peekable();
    while let Some(c) = chars.next() {
        // The last capital of several in a row starts the next word, if one follows.
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

/// `tools_allowed` as `toolsAllowed`.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn each_section(kind: &Kind, seen: &mut Vec<&'static Section>) {
        match kind {
            Kind::Table(section) if !seen.iter().any(|known| std::ptr::eq(*known, *section)) => {
                seen.push(section);
                section.fields.iter().for_each(|field| each_section(&field.kind, seen));
            }
            Kind::List(kind) | Kind::Map(kind) => each_section(kind, seen),
            Kind::Either(kinds) => kinds.iter().for_each(|kind| each_section(kind, seen)),
            _ => {}
        }
    }

    #[test]
    fn no_name_means_two_things_in_a_section() {
        let mut sections = Vec::new();
        each_section(&Kind::Table(&TOP), &mut sections);
        each_section(&Kind::Table(&SERVER), &mut sections);
        assert!(sections.len() > 5);
        for section in sections {
            let mut seen = BTreeSet::new();
            for name in section.fields.iter().flat_map(Field::names) {
                assert!(seen.insert(name), "{name} is in `{}` twice", section.name);
                assert_eq!(snake(name), name, "names are kept in snake case");
                assert_eq!(snake(&camel(name)), name, "camel case must find its way back");
            }
        }
    }

    #[test]
    fn keys_are_found_in_every_case_and_with_a_unit() {
        for (key, name, unit) in [
            ("toolsAllowed", "allow", None),
            ("tools-denied", "deny", None),
            ("requestTimeoutMs", "call_timeout", Some(1)),
            ("startup_timeout_sec", "connect_timeout", Some(1000)),
            ("healthProbe", "health_probe", None),
            ("HTTPUrl", "url", None),
            ("URL", "url", None),
            ("OAuth", "oauth", None),
            ("VerifySSL", "insecure", None),
        ] {
            let found = SERVER.find(key).unwrap();
            assert_eq!((found.field.name, found.unit), (name, unit), "{key}");
        }
        assert!(SERVER.find("enabled_ms").is_none());
        assert_eq!(SERVER.nearest("startup_timout"), Some("startup_timeout"));
        assert_eq!(SERVER.nearest("comand"), Some("command"));
        assert_eq!(SERVER.nearest("zzzzzz"), None);
    }
}
