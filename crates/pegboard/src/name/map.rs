//! Gives every tool of a view its name. The name depends on the tool's identity and on who else is there, never on the order.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{NameRules, NameStyle};

/// How many characters of its hash a name gets when it cannot stand as it is, and how many when that does not help. The last is
/// nearly the whole hash, so two tools cannot share it.
const STAMPS: [usize; 4] = [10, 16, 24, 30];

/// The names of these (server, tool) pairs, in the same order. Different pairs have different names, and every name keeps to the rules.
///
/// A name that had to be altered or cut, or that another tool has too, ends in a part of the hash of its pair.
pub(crate) fn expose(pairs: &[(&str, &str)], style: &NameStyle, rules: &NameRules) -> Vec<String> {
    let template = literal(style.template(), rules);
    let prefixed = literal(NameStyle::Dunder.template(), rules);
    let is_shared = shared_tools(pairs, style);
    // A name that is altered or too long is stamped in any case, so that it stays when other tools come and go.
    let mut named: HashMap<(&str, &str), Named> = HashMap::with_capacity(pairs.len());
    for pair in pairs {
        let template = if is_shared(pair.1) { &prefixed } else { &template };
        named.entry(*pair).or_insert_with(|| Named::new(*pair, template, rules));
    }
    for _ in STAMPS {
        let clashing = clashes(&named);
        if clashing.is_empty() {
            break;
        }
        for pair in clashing {
            if let Some(named) = named.get_mut(&pair) {
                named.stamp_more(pair, rules);
            }
        }
    }
    pairs.iter().map(|pair| named[pair].name.clone()).collect()
}

/// Says of a tool's name whether the style must tell its server because several servers use that name.
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

/// The pairs whose names other pairs have too.
fn clashes<'a>(named: &HashMap<(&'a str, &'a str), Named>) -> Vec<(&'a str, &'a str)> {
    let mut holders: HashMap<&str, usize> = HashMap::with_capacity(named.len());
    for named in named.values() {
        *holders.entry(&named.name).or_default() += 1;
    }
    let is_alone = |named: &Named| holders[named.name.as_str()] == 1;
    let clashing = named.iter().filter(|(_, named)| !is_alone(named));
    clashing.map(|(pair, _)| *pair).collect()
}

/// The name of one pair so far.
struct Named {
    /// The name that it would like to have.
    wish: String,
    name: String,
    /// How many of [`STAMPS`] have been tried.
    stamps: usize,
}

impl Named {
    fn new(pair: (&str, &str), template: &str, rules: &NameRules) -> Self {
        let (server, tool) = pair;
        let is_kept = [server, tool].iter().all(|part| part.chars().all(|c| rules.takes(c)));
        let mut wish = template
            .replace("{server}", &cleaned(server, rules))
            .replace("{tool}", &cleaned(tool, rules));
        let starts_well = wish.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_well && (wish.is_empty() || !rules.any_first) {
            wish.insert(0, '_');
        }
        let stands = is_kept && rules.allow(&wish);
        let mut named = Self {
            name: wish.clone(),
            wish,
            stamps: 0,
        };
        if !stands {
            named.stamp_more(pair, rules);
        }
        named
    }

    /// Puts more of its hash at the end of the name.
    fn stamp_more(&mut self, pair: (&str, &str), rules: &NameRules) {
        let length = STAMPS[self.stamps.min(STAMPS.len() - 1)];
        self.stamps += 1;
        let stamp = stamp(&[pair.0, pair.1], length);
        let room = rules.max_len.saturating_sub(stamp.len() + 1);
        self.name = format!("{}_{stamp}", &self.wish[..self.wish.len().min(room)]);
    }
}

/// A text in the characters that the rules take.
fn cleaned(text: &str, rules: &NameRules) -> String {
    text.chars().map(|c| if rules.takes(c) { c } else { '_' }).collect()
}

/// The template with what stands around its parts fitted to the rules: a dot that may not stand becomes `__`.
fn literal(template: &str, rules: &NameRules) -> String {
    let mut fitted = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        let slot = ["{server}", "{tool}"].into_iter().find(|slot| rest.starts_with(slot));
        match slot {
            Some(slot) => fitted.push_str(slot),
            None if rules.takes(c) => fitted.push(c),
            None if c == '.' => fitted.push_str("__"),
            None => fitted.push('_'),
        }
        rest = &rest[slot.map_or(c.len_utf8(), str::len)..];
    }
    fitted
}

/// The first `length` characters of the hash of some texts, in base32 and lower case.
pub(crate) fn stamp(parts: &[&str], length: usize) -> String {
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
