//! The cause of a failure, as the texts of a chain of errors. Texts can be masked, compared and stored; the errors themselves cannot.

use std::{error::Error, fmt};

use serde::{Deserialize, Serialize};

use pegboard_mask::{Counts, Masker};

/// The most errors of a chain that are kept.
const MAX_DEPTH: usize = 8;
/// The longest text of one error that is kept, in bytes. Longer ones, such as a server's error output, are cut.
const MAX_BYTES: usize = 4096;

/// An error, and the error that caused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Cause {
    message: String,
    source: Option<Box<Self>>,
}

impl Cause {
    /// The texts of an error and of its sources.
    pub(super) fn new(error: &(dyn Error + 'static)) -> Self {
        let (mut texts, mut next) = (Vec::new(), Some(error));
        while let Some(error) = next.filter(|_| texts.len() < MAX_DEPTH) {
            texts.push(cut(error.to_string()));
            next = error.source();
        }
        Self::from_texts(texts).unwrap_or_else(|| Self {
            message: cut(error.to_string()),
            source: None,
        })
    }

    fn from_texts(texts: Vec<String>) -> Option<Self> {
        let causes = texts.into_iter().take(MAX_DEPTH).rev();
        causes.fold(None, |source, message| {
            Some(Self {
                message,
                source: source.map(Box::new),
            })
        })
    }

    /// Masks the secrets in all texts.
    pub(super) fn mask(&mut self, masker: &Masker, counts: &mut Counts) {
        masker.mask(&mut self.message, counts);
        if let Some(source) = &mut self.source {
            source.mask(masker, counts);
        }
    }
}

/// Cuts a text to `MAX_BYTES` at a character boundary.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_BYTES));
    text
}

impl From<Cause> for Vec<String> {
    fn from(cause: Cause) -> Self {
        let chain = std::iter::successors(Some(&cause), |cause| cause.source.as_deref());
        chain.map(|cause| cause.message.clone()).collect()
    }
}

impl TryFrom<Vec<String>> for Cause {
    type Error = &'static str;

    fn try_from(texts: Vec<String>) -> Result<Self, Self::Error> {
        Self::from_texts(texts).ok_or("the list of causes is empty")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
