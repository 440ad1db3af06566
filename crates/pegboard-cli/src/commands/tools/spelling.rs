//! The name that a misspelt one probably means.

/// The most similar of the names, if one is close enough.
pub(in crate::commands) fn find_nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let most = (wrong.chars().count() / 3).clamp(1, 3);
    let near = names.map(|name| (strsim::levenshtein(&wrong, &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let names = ["filesystem", "time", "time.convert_time"];
        for (wrong, near) in [
            ("filesystxm", Some("filesystem")),
            ("Txze", None),
            ("Tim", Some("time")),
            ("time.convert_tim", Some("time.convert_time")),
            ("zzz", None),
        ] {
            assert_eq!(find_nearest(wrong, names.into_iter()), near, "{wrong}");
        }
    }
}
