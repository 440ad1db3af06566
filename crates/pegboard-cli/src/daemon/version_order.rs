//! Which of two versions of the program is the newer one.

use std::cmp::Ordering;

/// Compares two versions such as `1.2.10` and `1.3.0-rc.1`. A pre-release comes before its release.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Version::new(one), Version::new(other));
    let releases = one.numbers.cmp(&other.numbers);
    releases.then_with(|| match (one.pre_release, other.pre_release) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        (one, other) => compare_parts(one, other),
    })
}

struct Version<'a> {
    numbers: Vec<u64>,
    pre_release: &'a str,
}

impl<'a> Version<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.split('+').next().unwrap_or_default();
        let (numbers, pre_release) = text.split_once('-').unwrap_or((text, ""));
        Self {
            numbers: numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect(),
            pre_release,
        }
    }
}

fn compare_parts(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let order = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(one), Some(other)) => match (one.parse::<u64>(), other.parse::<u64>()) {
                (Ok(one), Ok(other)) => one.cmp(&other),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => one.cmp(other),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_their_releases() {
        let sorted = [
            "0.1.0-alpha",
            "0.1.0-rc.2",
            "0.1.0-rc.10",
            "0.1.0",
            "0.1.9",
            "0.1.10",
            "0.2.0",
            "1.0.0",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(compare("1.0.0+build.1", "1.0.0"), Ordering::Equal);
    }
}
