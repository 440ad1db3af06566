//! The floor of protections for the servers of a project file: what other files set for all servers, they cannot weaken.

use super::{
    choice::DefaultChoice,
    field::{Field, Floor, Kind},
    fields::{SERVER, ServerTable, server, tool},
    from_setting::{self, FromSetting},
    key::{Key, Table},
    policy::{Approval, Rate},
    problem::{Report, join},
    setting::{Found, Setting, Values},
};

/// Removes the settings of a project file's server, or of the defaults of its servers, that are weaker than those in `top`.
pub(super) fn keep(written: &mut Values, top: &Values, path: &str, report: &mut Report) {
    let mut settings = Written { written, path, report };
    for field in SERVER.fields() {
        let users = top.find(field).map(|found| &found.setting);
        match field.floor {
            Floor::Users(is_weaker) if users.is_some() => settings.keep(field, |own| is_weaker(own, users)),
            Floor::Default(is_weaker) => settings.keep(field, |own| is_weaker(own, users)),
            Floor::Both => settings.keep_users(field, top),
            Floor::None | Floor::Users(_) => {}
        }
    }
    let floor = ServerTable::new(top);
    if let Some(approval) = floor.set(&server::approval).filter(|mode| *mode != Approval::Auto) {
        settings.keep(&server::approval_exempt, |own| {
            Vec::<String>::from_setting(own).is_some_and(|own| !own.is_empty())
        });
        settings.keep_of_tools(&tool::approval, |own| own.is_some_and(|own| own < approval));
    }
    if let Some(limit) = floor.set(&server::loop_limit) {
        settings.keep_of_tools(&tool::loop_limit, |own| {
            own.is_some_and(|own| allows_more_repeats(own, limit))
        });
    }
}

/// A floor at the user's setting, by the order of its values.
pub(super) const fn at_least<T: DefaultChoice + FromSetting + Ord>() -> Floor {
    Floor::Users(is_less::<T>)
}

/// A floor at the user's setting or else the default, which protects as well.
pub(super) const fn at_least_default<T: DefaultChoice + FromSetting + Ord>() -> Floor {
    Floor::Default(is_less::<T>)
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

/// Annotations of the tools of a trusted server would lift approvals and taint.
pub(super) fn is_more_trusted(own: &Setting, users: Option<&Setting>) -> bool {
    let is_trusted = |setting| from_setting::trust(setting) == Some(true);
    is_trusted(own) && !users.is_some_and(is_trusted)
}

/// Whether a rate allows more calls at once or over time.
pub(super) fn is_faster(own: Rate, floor: Rate) -> bool {
    let at_once = own.calls > floor.calls;
    at_once || u128::from(own.calls) * floor.per.as_nanos() > u128::from(floor.calls) * own.per.as_nanos()
}

/// Whether a limit of repeated calls is higher; zero means no limit.
pub(super) fn allows_more_repeats(own: usize, floor: usize) -> bool {
    floor != 0 && (own == 0 || own > floor)
}

/// Whether a list has values that the other one lacks. An empty list means all.
pub(super) fn names_others<T: PartialEq>(own: Vec<T>, floor: Vec<T>) -> bool {
    own.is_empty() || own.iter().any(|value| !floor.contains(value))
}

/// Settings of a project file.
struct Written<'a> {
    written: &'a mut Values,
    path: &'a str,
    report: &'a mut Report,
}

impl Written<'_> {
    /// Removes a setting that is weaker than the floor.
    fn keep(&mut self, field: &Field, is_weaker: impl FnOnce(&Setting) -> bool) {
        if self.written.find(field).is_some_and(|own| is_weaker(&own.setting))
            && let Some(removed) = self.written.remove(field)
        {
            leave_out(&removed, self.path, self.report);
        }
    }

    /// Removes a setting that `top` has as well; of a table only the keys that both have.
    fn keep_users(&mut self, field: &Field, top: &Values) {
        let (Some(users), Some(own)) = (top.find(field), self.written.find_mut(field)) else {
            return;
        };
        let (Setting::Table(users), Setting::Table(values), Kind::Table(section)) =
            (&users.setting, &mut own.setting, &field.kind)
        else {
            if let Some(removed) = self.written.remove(field) {
                leave_out(&removed, self.path, self.report);
            }
            return;
        };
        let path = join(self.path, &own.key);
        let both = section.fields().filter(|inner| users.find(inner).is_some());
        for inner in both {
            if let Some(removed) = values.remove(inner) {
                leave_out(&removed, &path, self.report);
            }
        }
    }

    /// Removes a setting of single tools where it is weaker.
    fn keep_of_tools<T>(&mut self, key: &Key<tool::In, T>, is_weaker: impl Fn(T) -> bool) {
        let Some(found) = self.written.find_mut(&server::tools) else {
            return;
        };
        let path = join(self.path, &found.key);
        let Setting::Map(tools) = &mut found.setting else {
            return;
        };
        for (name, setting) in tools {
            let Setting::Table(values) = setting else { continue };
            let own = Table::<tool::In>::new(values).set(key);
            if own.is_some_and(&is_weaker)
                && let Some(removed) = values.remove(key)
            {
                leave_out(&removed, &join(&path, name), self.report);
            }
        }
    }
}

fn leave_out(found: &Found, path: &str, report: &mut Report) {
    let message = "is left out: a project file cannot weaken the protections of your own config";
    report.warn(found.at, &join(path, &found.key), message.to_owned());
}
