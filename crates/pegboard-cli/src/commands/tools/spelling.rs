//! The name that a misspelt one probably means.

/// The most similar of the names, if one is close enough.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let most = (wrong.chars().count() / 3).clamp(1, 3);
    let near = names.map(|name| (distance(&wrong, &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// How many characters must be added, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, c) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for (above, known) in row.windows(2).zip(&other) {
            let [diagonal, above] = above else { continue };
            let replaced = diagonal + usize::from(c != *known);
            left = replaced.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
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
            assert_eq!(nearest(wrong, names.into_iter()), near, "{wrong}");
        }
    }
}
