//! The floor of protections for the servers of a project file: what other files set for all servers, they cannot weaken.

use super::{
    field::{Field, Floor, ValueKind},
    fields::{SERVER, ServerTable, server, tool},
    from_setting::FromSetting as _,
    key::{Key, Table},
    policy::{Approval, call_limits::allows_more_repeats},
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
        let (Setting::Table(users), Setting::Table(values), ValueKind::Table(section)) =
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnCrossing, Pins, Scan, Taint, choice::DefaultChoice, transport::EnvPolicy};

    fn check<T: DefaultChoice + Ord + std::fmt::Debug>(weakest_first: &[T]) {
        assert!(weakest_first.is_sorted_by(|a, b| a < b), "{weakest_first:?}");
        assert_eq!(weakest_first.len(), T::WORDS.len());
    }

    /// The floor of a project file compares them.
    #[test]
    fn modes_are_ordered_from_the_weakest_to_the_strictest() {
        check(&[Approval::Auto, Approval::Writes, Approval::Always, Approval::Never]);
        check(&[OnCrossing::Allow, OnCrossing::Warn, OnCrossing::Mask, OnCrossing::Block]);
        check(&[Pins::Off, Pins::Warn, Pins::Block, Pins::Approve]);
        check(&[Scan::Off, Scan::Warn, Scan::Block]);
        check(&[Taint::Off, Taint::Ask, Taint::Block]);
        check(&[EnvPolicy::Inherit, EnvPolicy::Allowlist, EnvPolicy::Explicit]);
    }
}
