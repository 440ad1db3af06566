//! Assigns every tool of a view a unique name. It depends on the tool and on the other tools, never on their order.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{rules::NameRules, style::NameStyle};

/// How many characters of its hash are appended to a name, tried in turn until the name is unique. The last has 150 bits, so it does not
/// collide.
const HASH_LENGTHS: [usize; 4] = [10, 16, 24, 30];

/// Returns the names of (server, tool) pairs, in the same order. Different pairs get different names, and every name satisfies the rules.
///
/// A name that was altered or truncated, or that another tool has too, ends in a part of its pair's hash.
pub fn expose(pairs: &[(&str, &str)], style: &NameStyle, rules: &NameRules) -> Vec<String> {
    let template = Template::new(style.template(), rules);
    let prefixed = Template::new(NameStyle::Dunder.template(), rules);
    let is_shared = shared_tools(pairs, style);
    // Fast path: if no name is altered and the names are strictly ascending, they are unique.
    let in_order = |pair: &(&str, &str)| {
        (!is_shared(pair.1))
            .then(|| template.fill_unchanged(*pair, rules))
            .flatten()
    };
    if let Some(names) = pairs.iter().map(in_order).collect::<Option<Vec<_>>>()
        && names.is_sorted_by(|one, two| one < two)
    {
        return names;
    }
    // An altered or truncated name always gets a hash, so that it does not change when other tools come and go.
    let mut named: HashMap<(&str, &str), Named> = HashMap::with_capacity(pairs.len());
    for pair in pairs {
        let template = if is_shared(pair.1) { &prefixed } else { &template };
        named.entry(*pair).or_insert_with(|| Named::new(*pair, template, rules));
    }
    for _ in HASH_LENGTHS {
        let clashing = clashes(&named);
        if clashing.is_empty() {
            break;
        }
        for pair in clashing {
            if let Some(named) = named.get_mut(&pair) {
                named.lengthen_hash(pair, rules);
            }
        }
    }
    pairs.iter().map(|pair| named[pair].name.clone()).collect()
}

/// Returns a predicate for tool names that several servers use; the style `Bare` adds the server to these.
fn shared_tools<'a>(pairs: &[(&'a str, &'a str)], style: &NameStyle) -> impl Fn(&str) -> bool + use<'a> {
    let mut first: HashMap<&str, (&str, bool)> = HashMap::new();
    if *style == NameStyle::Bare {
        for (server, tool) in pairs {
            let (seen, shared) = first.entry(tool).or_insert((server, false));
            *shared |= seen != server;
        }
    }
    move |tool| first.get(tool).is_some_and(|(_, shared)| *shared)
}

/// The pairs whose names are not unique.
fn clashes<'a>(named: &HashMap<(&'a str, &'a str), Named>) -> Vec<(&'a str, &'a str)> {
    let mut holders: HashMap<&str, usize> = HashMap::with_capacity(named.len());
    for named in named.values() {
        *holders.entry(&named.name).or_default() += 1;
    }
    let is_alone = |named: &Named| holders[named.name.as_str()] == 1;
    let clashing = named.iter().filter(|(_, named)| !is_alone(named));
    clashing.map(|(pair, _)| *pair).collect()
}

/// The current name of one pair.
struct Named {
    /// The name before a hash is appended.
    wish: String,
    name: String,
    /// How many of [`HASH_LENGTHS`] have been tried.
    lengths_tried: usize,
}

impl Named {
    fn new(pair: (&str, &str), template: &Template, rules: &NameRules) -> Self {
        let (server, tool) = pair;
        let is_kept = [server, tool].iter().all(|part| part.chars().all(|c| rules.takes(c)));
        let mut wish = template.fill(&clean(server, rules), &clean(tool, rules));
        let starts_well = wish.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_well && (wish.is_empty() || !rules.any_first) {
            wish.insert(0, '_');
        }
        let stands = is_kept && rules.allow(&wish);
        let mut named = Self {
            name: wish.clone(),
            wish,
            lengths_tried: 0,
        };
        if !stands {
            named.lengthen_hash(pair, rules);
        }
        named
    }

    /// Appends the next longer part of its hash to the name.
    fn lengthen_hash(&mut self, pair: (&str, &str), rules: &NameRules) {
        let length = HASH_LENGTHS[self.lengths_tried.min(HASH_LENGTHS.len() - 1)];
        self.lengths_tried += 1;
        let hash = hash_suffix(&[pair.0, pair.1], length);
        let room = rules.max_len.saturating_sub(hash.len() + 1);
        self.name = format!("{}_{hash}", &self.wish[..self.wish.len().min(room)]);
    }
}

/// Replaces the characters that the rules do not allow.
fn clean(text: &str, rules: &NameRules) -> String {
    text.chars().map(|c| if rules.takes(c) { c } else { '_' }).collect()
}

/// A parsed style. Its literal text satisfies the rules: a dot that is not allowed becomes `__`.
struct Template(Vec<NamePart>);

enum NamePart {
    Server,
    Tool,
    Text(String),
}

impl Template {
    fn new(template: &str, rules: &NameRules) -> Self {
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template);
        while let Some(c) = rest.chars().next() {
            let slots = [("{server}", NamePart::Server), ("{tool}", NamePart::Tool)];
            let slot = slots.into_iter().find(|(slot, _)| rest.starts_with(slot));
            let length = slot.as_ref().map_or(c.len_utf8(), |(slot, _)| slot.len());
            match slot {
                Some((_, part)) => parts.extend([NamePart::Text(std::mem::take(&mut text)), part]),
                None if rules.takes(c) => text.push(c),
                None if c == '.' => text.push_str("__"),
                None => text.push('_'),
            }
            rest = &rest[length..];
        }
        parts.push(NamePart::Text(text));
        Self(parts)
    }

    fn fill(&self, server: &str, tool: &str) -> String {
        let words = self.0.iter().map(|part| match part {
            NamePart::Server => server,
            NamePart::Tool => tool,
            NamePart::Text(text) => text,
        });
        let mut name = String::with_capacity(words.clone().map(str::len).sum());
        words.for_each(|word| name.push_str(word));
        name
    }

    /// Returns the name of a pair, if it satisfies the rules without changes.
    fn fill_unchanged(&self, (server, tool): (&str, &str), rules: &NameRules) -> Option<String> {
        let mut bytes = server.bytes().chain(tool.bytes());
        let is_kept = bytes.all(|byte| rules.takes(char::from(byte)));
        is_kept
            .then(|| self.fill(server, tool))
            .filter(|name| rules.allow(name))
    }
}

/// Returns the first `length` characters of the hash of some texts, in lower-case base32.
pub fn hash_suffix(parts: &[&str], length: usize) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = Sha256::new();
    for part in parts {
        // The length before each part keeps `a` + `bc` apart from `ab` + `c`.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let bit = |at: usize| digest[at / 8] >> (7 - at % 8) & 1;
    let five = |group: usize| (0..5).fold(0, |value, at| value << 1 | bit(group * 5 + at));
    (0..length.min(51))
        .map(|group| char::from(ALPHABET[usize::from(five(group))]))
        .collect()
}

#[cfg(test)]
mod tests;
