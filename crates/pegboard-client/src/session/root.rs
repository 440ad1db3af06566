//! Roots: the folders and other locations that a server may work in.

use std::path::Path;

use serde::Serialize;

/// A folder or another location that a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Root {
    /// Its URI, usually a `file:` one.
    pub uri: String,
    /// A display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// Creates a root from a URI or a path. A path becomes a `file:` URI.
    pub fn new(location: &str) -> Self {
        let uri = if location.contains("://") {
            location.to_owned()
        } else {
            let path = std::path::absolute(Path::new(location)).ok();
            let url = path.and_then(|path| url::Url::from_file_path(path).ok());
            url.map_or_else(|| location.to_owned(), Into::into)
        };
        Self { uri, name: None }
    }

    /// Sets the display name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_the_address_of_a_file_and_an_address_stays() {
        assert_eq!(Root::new("https://a.b/c").uri, "https://a.b/c");
        if cfg!(unix) {
            assert_eq!(Root::new("/srv/a b").uri, "file:///srv/a%20b");
        }
    }
}
