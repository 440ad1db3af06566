//! Matches tools against the pattern of `pegboard tools`.

use pegboard::{ListedTool, ServerName};

/// A substring of a name, or a glob with `*` for a whole name. Case-insensitive.
#[derive(Debug)]
pub(super) struct Pattern(String);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// Whether it is a glob, which may fit nothing.
    pub(super) fn has_stars(&self) -> bool {
        self.0.contains('*')
    }

    /// Returns `true` if any name of the tool matches.
    pub(super) fn fits(&self, listed: &ListedTool) -> bool {
        let tool = &listed.tool;
        let names = [&tool.dotted_name(), &listed.name, &tool.name];
        names.into_iter().any(|name| self.fits_name(name))
    }

    /// The servers that the pattern names: `server`, `server.tool` or `server__tool`. None if it may match tools of any server.
    pub(super) fn servers<'a>(&self, known: impl Iterator<Item = &'a ServerName>) -> Vec<ServerName> {
        let dot = self.0.split_once('.').or_else(|| self.0.split_once("__"));
        let named = Self(dot.map_or(self.0.as_str(), |(server, _)| server).to_owned());
        let is_named = |name: &&ServerName| match named.0.contains('*') {
            true => dot.is_some() && named.fits_name(name.as_str()),
            false => named.0 == name.as_str().to_lowercase(),
        };
        known.filter(is_named).cloned().collect()
    }

    fn fits_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let Some((first, rest)) = self.0.split_once('*') else {
            return name.contains(&self.0);
        };
        let Some(mut left) = name.strip_prefix(first) else {
            return false;
        };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            match left.split_once(part) {
                Some((_, after)) => left = after,
                None => return false,
            }
        }
        left.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_part_of_a_name_or_a_name_with_stars() {
        for (pattern, name, fits) in [
            ("calc", "demo.calculate", true),
            ("CALC", "demo.calculate", true),
            ("demo.*", "demo.calculate", true),
            ("*.calc", "demo.calculate", false),
            ("*calc*", "demo.calculate", true),
            ("d*o*e", "demo.calculate", true),
            ("d*ate*ate", "demo.calculate", false),
            ("d*x*e", "demo.calculate", false),
            ("*", "demo.calculate", true),
            ("demo.calculate*", "demo.calculate", true),
            ("x*", "demo.calculate", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits_name(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_may_name_servers() {
        let known = ["web", "web2", "Mail"].map(|name| ServerName::parse(name).unwrap());
        for (pattern, expected) in [
            ("web", &["web"][..]),
            ("web.search", &["web"]),
            ("web__search", &["web"]),
            ("web*.search", &["web", "web2"]),
            ("mail.*", &["Mail"]),
            ("search", &[]),
            ("*search*", &[]),
            ("other.search", &[]),
        ] {
            let named = Pattern::new(pattern).servers(known.iter());
            let named: Vec<&str> = named.iter().map(ServerName::as_str).collect();
            assert_eq!(named, expected, "{pattern}");
        }
    }
}
