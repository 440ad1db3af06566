//! The floors of settings: how a declaration says when a project file's setting is weaker than the user's.

use super::{choice::DefaultChoice, field::Floor, from_setting::FromSetting, setting::Setting};

/// A floor at the user's setting, by the order of its values.
pub(super) const fn at_least<T: DefaultChoice + FromSetting + Ord>() -> Floor {
    Floor::Users(is_less::<T>)
}

/// A floor at the user's setting or else the default, which protects as well.
pub(super) const fn at_least_default<T: DefaultChoice + FromSetting + Ord>() -> Floor {
    Floor::Default(is_less::<T>)
}

/// A floor at `true`.
pub(super) const fn never_off() -> Floor {
    Floor::Default(|own, _| bool::from_setting(own) == Some(false))
}

fn is_less<T: DefaultChoice + FromSetting + Ord>(own: &Setting, users: Option<&Setting>) -> bool {
    let users = users.map_or(Some(T::DEFAULT), T::from_setting);
    T::from_setting(own).zip(users).is_some_and(|(own, users)| own < users)
}

/// Whether `is_weaker` returns `true` for a setting and the user's.
pub(super) fn weaker<T: FromSetting>(own: &Setting, users: Option<&Setting>, is_weaker: fn(T, T) -> bool) -> bool {
    let (own, users) = (T::from_setting(own), users.and_then(T::from_setting));
    own.zip(users).is_some_and(|(own, users)| is_weaker(own, users))
}

/// Whether a list has values that the other one lacks. An empty list means all.
pub(super) fn names_others<T: PartialEq>(own: &[T], floor: &[T]) -> bool {
    own.is_empty() || own.iter().any(|value| !floor.contains(value))
}
