//! Matches tools against the pattern of `pegboard tools`.

use pegboard::ListedTool;

/// A substring of a name, or a glob with `*` for a whole name. Case-insensitive.
#[derive(Debug)]
pub(super) struct Pattern(String);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_lowercase())
    }

    /// Returns `true` if any name of the tool matches.
    pub(super) fn fits(&self, listed: &ListedTool) -> bool {
        let tool = &listed.tool;
        let names = [&tool.dotted_name(), &listed.name, &tool.name];
        names.into_iter().any(|name| self.fits_name(name))
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
}
