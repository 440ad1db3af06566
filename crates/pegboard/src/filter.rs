//! Which tools of a server are shown: globs that allow, globs that deny, and deny wins.

/// Whether `name` is shown under `allow` and `deny`. An empty `allow` allows all.
pub(crate) fn lets_through(allow: &[String], deny: &[String], name: &str) -> bool {
    let any = |globs: &[String]| {
        globs
            .iter()
            .any(|glob| glob == "any" || matches(glob.as_bytes(), name.as_bytes()))
    };
    (allow.is_empty() || any(allow)) && !any(deny)
}

/// Whether `name` fits `glob`, in which `*` stands for any text and `?` for any byte. It takes time proportional to the product of the
/// lengths at worst.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                last_star = Some((g, n));
                g += 1;
            }
            Some(b'?') => (g, n) = (g + 1, n + 1),
            Some(byte) if *byte == name[n] => (g, n) = (g + 1, n + 1),
            _ => match last_star {
                // The last star takes one byte more.
                Some((star, from)) => {
                    last_star = Some((star, from + 1));
                    (g, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allow: &[&str], deny: &[&str], name: &str) -> bool {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        lets_through(&own(allow), &own(deny), name)
    }

    #[test]
    fn an_empty_allow_list_allows_all_and_deny_wins() {
        assert!(check(&[], &[], "a"));
        assert!(check(&["*"], &[], "a"));
        assert!(check(&["any"], &[], "a"));
        assert!(!check(&["b"], &[], "a"));
        assert!(!check(&["a"], &["a"], "a"));
        assert!(!check(&[], &["*delete*"], "issue_delete_all"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (glob, name, expected) in [
            ("issues_*", "issues_list", true),
            ("issues_*", "my_issues_list", false),
            ("*_list", "issues_list", true),
            ("a*b*c", "a__b_b_c", true),
            ("a*b*c", "acb", false),
            ("?x", "ax", true),
            ("?x", "x", false),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(glob.as_bytes(), name.as_bytes()), expected, "{glob} {name}");
        }
    }
}
