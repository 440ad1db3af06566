//! Splits texts into normalised words: lower case, stemmed, without stop words.

use std::collections::HashMap;

/// Stop words, in alphabetical order.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "give", "has", "have",
    "how", "i", "if", "in", "into", "is", "it", "its", "let", "me", "my", "need", "not", "of", "on", "or", "our",
    "out", "please", "tell", "that", "the", "their", "them", "then", "there", "these", "this", "to", "tool", "use",
    "used", "using", "want", "was", "we", "what", "when", "where", "which", "who", "will", "with", "would", "you",
    "your",
];

/// Synonyms: the words of a row match each other.
const SYNONYMS: &[&str] = &[
    "create add new make open insert",
    "delete remove destroy drop erase discard trash",
    "list show enumerate browse",
    "get fetch read retrieve view show load",
    "update edit modify change alter rename patch",
    "set configure assign",
    "search find query lookup locate",
    "send post publish write notify",
    "run execute start launch invoke trigger",
    "stop cancel terminate kill halt abort end",
    "close resolve finish complete",
    "upload import push put",
    "download export pull save",
    "copy duplicate clone",
    "repository repo",
    "pull merge",
    "pr pull request",
    "mr merge request",
    "issue ticket bug task",
    "kubernetes k8s kube cluster",
    "database db sql",
    "table relation",
    "row record entry",
    "directory folder dir",
    "file document doc",
    "picture image photo screenshot img",
    "message chat dm text",
    "mail email inbox",
    "meeting event appointment calendar",
    "person user member people account",
    "customer client",
    "money payment charge pay",
    "refund reimburse",
    "bill invoice",
    "web website page url site",
    "log output trace",
    "error exception failure crash",
    "metric measurement statistic stat",
    "alarm alert incident monitor",
    "time clock date now",
    "comment reply note",
    "branch ref",
    "build pipeline workflow job ci",
    "deploy release rollout",
    "scale resize replica",
    "secret credential password token",
    "permission access role grant",
    "bucket storage s3 blob object",
    "server instance machine vm host",
    "container docker pod",
    "dns domain",
    "translate convert",
    "schedule cron plan",
    "weather forecast temperature",
    "map location place address geocode",
    "price cost quote",
    "stock share ticker",
    "history commit revision version",
    "diff compare difference",
];

/// Returns the normalised words of a text.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for piece in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|piece| !piece.is_empty())
    {
        let humps = humps(piece);
        if humps.len() > 1 {
            // A query may write `getPods` as `getpods`.
            words.extend(normalize_word(piece));
        }
        words.extend(humps.into_iter().filter_map(normalize_word));
    }
    words
}

/// Normalises a word. Returns `None` for a stop word.
fn normalize_word(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    let is_stop_word = STOP_WORDS.binary_search(&word.as_str()).is_ok();
    (!is_stop_word).then(|| stem(&word))
}

/// Splits a word at the humps of camel case.
fn humps(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    for (n, (at, letter)) in letters.iter().enumerate().skip(1) {
        let before = letters[n - 1].1;
        let next_is_small = letters.get(n + 1).is_some_and(|(_, next)| next.is_lowercase());
        if letter.is_uppercase() && (before.is_lowercase() || next_is_small) {
            parts.push(&word[from..*at]);
            from = *at;
        }
    }
    parts.push(&word[from..]);
    parts
}

/// Strips common English endings. The stem need not be a word, but must be the same for all forms of a word.
fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let word = match word {
        _ if word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if word.ends_with("sses") || word.ends_with("shes") || word.ends_with("ches") || word.ends_with("xes") => {
            word[..word.len() - 2].to_owned()
        }
        _ if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is") => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    };
    let bare = match word.as_str() {
        long if long.len() > 6 && (long.ends_with("tion") || long.ends_with("sion")) => &long[..long.len() - 3],
        long if long.len() > 5 && long.ends_with("ing") => &long[..long.len() - 3],
        long if long.len() > 5 && long.ends_with("ment") => &long[..long.len() - 4],
        long if long.len() > 4 && long.ends_with("ed") => &long[..long.len() - 2],
        long => long,
    };
    let bare = bare.strip_suffix('e').filter(|bare| bare.len() > 2).unwrap_or(bare);
    let doubled = bare.len() > 3 && {
        let end = &bare.as_bytes()[bare.len() - 2..];
        end[0] == end[1] && !b"aeiousl".contains(&end[0])
    };
    bare[..bare.len() - usize::from(doubled)].to_owned()
}

/// The synonyms of each stem.
#[derive(Debug)]
pub(super) struct Synonyms(HashMap<String, Vec<String>>);

impl Synonyms {
    pub(super) fn get(&self, word: &str) -> impl Iterator<Item = &str> {
        self.0.get(word).into_iter().flatten().map(String::as_str)
    }
}

impl Default for Synonyms {
    fn default() -> Self {
        let mut alike: HashMap<String, Vec<String>> = HashMap::new();
        for row in SYNONYMS {
            let row: Vec<String> = row.split(' ').map(stem).collect();
            for word in &row {
                let others = row.iter().filter(|other| *other != word).cloned();
                alike.entry(word.clone()).or_default().extend(others);
            }
        }
        Self(alike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_are_sorted_so_that_they_are_found() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn texts_are_split_where_people_see_words() {
        for (text, expected) in [
            ("list_pods", vec!["list", "pod"]),
            ("getPodLogs", vec!["getpodlog", "get", "pod", "log"]),
            ("HTTPServer", vec!["httpserver", "http", "server"]),
            ("Please show me all of the repositories!", vec!["show", "repository"]),
            ("k8s-api v2", vec!["k8s", "api", "v2"]),
            ("", vec![]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn all_forms_of_a_word_are_one() {
        for forms in [
            vec!["create", "creates", "created", "creating", "creation"],
            vec!["query", "queries"],
            vec!["branch", "branches"],
            vec![
                "deploy",
                "deploys",
                "deployed",
                "deploying",
                "deployment",
                "deployments",
            ],
            vec!["run", "runs", "running"],
            vec!["message", "messages", "messaging"],
            vec!["issue", "issues"],
            vec!["status"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
    }

    #[test]
    fn any_text_can_be_asked_for() {
        for text in ["é", "日本語のツール", "\u{0}\u{200b}", "---", "ß ẞ", "aß", "İstanbul"] {
            let _ = terms(text);
        }
    }
}
