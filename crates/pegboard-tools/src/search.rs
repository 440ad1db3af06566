//! Ranks tools for a query by the words they share with it: BM25 over several fields, with stemming, synonyms, prefixes and typos.

mod rank_fusion;
mod tokenize;

pub use rank_fusion::{find_nearest, fuse};

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::catalog::Tool;
use tokenize::{Synonyms, terms};

/// BM25's `k1`: how quickly the weight of a repeated word saturates.
const SATURATION: f32 = 1.2;
/// BM25's `b`: how much long texts are penalised.
const LENGTH: f32 = 0.6;
/// The weights of inexact matches; an exact match has the weight 1.
const SYNONYM: f32 = 0.45;
const PREFIX: f32 = 0.6;
const SLIP: f32 = 0.5;
/// The shortest word that is matched as a prefix or with a typo.
const SHORTEST: usize = 4;
/// The most words of a query that are used.
const MAX_WORDS: usize = 64;

/// The weights of a tool's fields.
const FIELDS: [f32; 5] = [4.0, 2.0, 1.5, 0.8, 0.3];
const NAME: usize = 0;
const SERVER: usize = 1;
const DESCRIPTION: usize = 2;
const ARGUMENTS: usize = 3;
const ARGUMENT_TEXTS: usize = 4;

/// An inverted index of tools.
#[derive(Debug, Default)]
pub struct Index {
    /// For each word, the tools that have it and its weight there.
    postings: BTreeMap<String, Vec<(usize, f32)>>,
    tools: usize,
    synonyms: Synonyms,
}

impl Index {
    /// Indexes tools. Results refer to them by their position.
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Self {
        let documents: Vec<_> = tools.into_iter().map(fields).collect();
        let average = averages(&documents);
        let mut index = Self {
            tools: documents.len(),
            ..Self::default()
        };
        for (at, document) in documents.iter().enumerate() {
            for (word, weight) in weights(document, &average) {
                index.postings.entry(word).or_default().push((at, weight));
            }
        }
        index
    }

    /// Returns at most `most` matching tools with their scores, the best first. Tools without a shared word are not included.
    pub fn find(&self, question: &str, most: usize) -> Vec<(usize, f32)> {
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for (at, (word, share)) in self.expand_query(question).into_iter().enumerate() {
            // The first word of a query tends to name the operation.
            let share = if at == 0 { share * 1.1 } else { share };
            let Some(found) = self.postings.get(&word) else {
                continue;
            };
            let rarity = self.rarity(found.len());
            for (tool, weight) in found {
                let fit = weight * (SATURATION + 1.0) / (weight + SATURATION);
                *scores.entry(*tool).or_default() += share * rarity * fit;
            }
        }
        let mut ranked: Vec<_> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(most);
        ranked
    }

    /// The inverse document frequency of a word that occurs in `having` tools.
    #[expect(clippy::cast_precision_loss, reason = "counts of tools are small")]
    fn rarity(&self, having: usize) -> f32 {
        let (all, having) = (self.tools as f32, having as f32);
        ((all - having + 0.5) / (having + 0.5) + 1.0).ln()
    }

    /// Expands a query to words of the index with their weights: the words themselves, synonyms, longer words and corrected typos.
    fn expand_query(&self, question: &str) -> Vec<(String, f32)> {
        let mut wanted: Vec<(String, f32)> = Vec::new();
        let mut want = |word: String, share: f32| match wanted.iter_mut().find(|(known, _)| *known == word) {
            Some((_, known)) => *known = known.max(share),
            None => wanted.push((word, share)),
        };
        for word in terms(question).into_iter().take(MAX_WORDS) {
            let is_known = self.postings.contains_key(&word);
            for synonym in self.synonyms.get(&word) {
                want(synonym.to_owned(), SYNONYM);
            }
            if word.len() >= SHORTEST {
                let longer = self.postings.range(word.clone()..).map(|(known, _)| known);
                for known in longer
                    .take_while(|known| known.starts_with(&word))
                    .filter(|known| **known != word)
                {
                    want(known.clone(), PREFIX);
                }
            }
            if !is_known && word.len() > SHORTEST {
                for known in self.postings.keys().filter(|known| is_slip(&word, known)) {
                    want(known.clone(), SLIP);
                }
            }
            want(word, 1.0);
        }
        wanted
    }
}

/// A tool's name, description and argument names as one text for embeddings, truncated to `most` bytes.
pub fn text_of(tool: &Tool, most: usize) -> String {
    let mut text = tool.dotted_name();
    let words = [&tool.title, &tool.description].into_iter().flatten();
    for words in words {
        text.push('\n');
        text.push_str(words);
    }
    if let Some(Value::Object(properties)) = tool.input_schema.value().get("properties") {
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        text.push_str("\narguments: ");
        text.push_str(&names.join(", "));
    }
    text.truncate(text.floor_char_boundary(most));
    text
}

/// Whether two words differ by one edit: a letter replaced, missing or added, or two swapped.
fn is_slip(written: &str, meant: &str) -> bool {
    written.len().abs_diff(meant.len()) <= 1 && strsim::damerau_levenshtein(written, meant) == 1
}

type Document = [Vec<String>; FIELDS.len()];

/// The words of each field of a tool.
fn fields(tool: &Tool) -> Document {
    let mut document = Document::default();
    document[NAME] = terms(&tool.name);
    // A query may write two words of a name as one.
    let joined: Vec<_> = document[NAME].windows(2).map(|pair| pair.concat()).collect();
    document[NAME].extend(joined);
    document[NAME].extend(tool.title.as_deref().map(terms).unwrap_or_default());
    document[SERVER] = terms(tool.server.as_str());
    document[DESCRIPTION] = tool.description.as_deref().map(terms).unwrap_or_default();
    if let Some(Value::Object(properties)) = tool.input_schema.value().get("properties") {
        for (name, property) in properties {
            document[ARGUMENTS].extend(terms(name));
            let text = property.get("description").and_then(Value::as_str);
            document[ARGUMENT_TEXTS].extend(text.map(terms).unwrap_or_default());
        }
    }
    document
}

/// The average number of words in each field; at least one.
#[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
fn averages(documents: &[Document]) -> [f32; FIELDS.len()] {
    std::array::from_fn(|field| {
        let words: usize = documents.iter().map(|document| document[field].len()).sum();
        (words as f32 / documents.len().max(1) as f32).max(1.0)
    })
}

/// The weight of each word of a tool, over all fields.
#[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
fn weights(document: &Document, average: &[f32; FIELDS.len()]) -> BTreeMap<String, f32> {
    let mut weights = BTreeMap::new();
    for (field, words) in document.iter().enumerate() {
        let length = 1.0 - LENGTH + LENGTH * words.len() as f32 / average[field];
        for word in words {
            *weights.entry(word.clone()).or_default() += FIELDS[field] / length;
        }
    }
    weights
}

#[cfg(test)]
mod tests;
