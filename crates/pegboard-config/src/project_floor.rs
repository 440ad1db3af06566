//! The floor of protections for the servers of a project file: what other files set for all servers, they cannot weaken.

use super::{
    field::{Field, Kind},
    fields::{ServerTable, server, tool},
    key::{Key, Table},
    policy::{Approval, OnCrossing, Pins, Rate, Scan, Taint},
    problem::{Report, join},
    setting::{Found, Setting, Values},
    transport::EnvPolicy,
};

/// Removes the settings of a project file's server, or of the defaults of its servers, that are weaker than those in `top`.
pub(super) fn keep(written: &mut Values, top: &Values, path: &str, report: &mut Report) {
    let floor = ServerTable::new(top);
    let mut settings = Written { written, path, report };
    settings.keep(&server::APPROVAL, floor.set(&server::APPROVAL), |own, floor| {
        approval_rank(own) < approval_rank(floor)
    });
    // The defaults of these protect as well.
    settings.keep(&server::CROSSING, Some(floor.get(&server::CROSSING)), |own, floor| {
        crossing_rank(own) < crossing_rank(floor)
    });
    settings.keep(&server::PINS, Some(floor.get(&server::PINS)), |own, floor| {
        pins_rank(own) < pins_rank(floor)
    });
    settings.keep(&server::SCAN, Some(floor.get(&server::SCAN)), |own, floor| {
        scan_rank(own) < scan_rank(floor)
    });
    settings.keep(
        &server::ENV_POLICY,
        Some(floor.get(&server::ENV_POLICY)),
        |own, floor| env_rank(own) < env_rank(floor),
    );
    // Annotations of its tools would lift approvals and taint.
    settings.keep(&server::TRUST, Some(floor.get(&server::TRUST)), |own, floor| {
        own.0 && !floor.0
    });
    settings.keep(&server::TAINT, floor.set(&server::TAINT), |own, floor| {
        taint_rank(own) < taint_rank(floor)
    });
    // There is no order among the values of these: the user's stay.
    for field in [
        &server::RESULT.field,
        &server::CALL_ARGUMENTS.field,
        &server::OUTPUT_CHECK.field,
        &server::CAPABILITIES.field,
        &server::SCOPE.field,
        &server::CASE_INSENSITIVE.field,
    ] {
        settings.keep_users(field, top);
    }
    settings.keep(&server::RATE, floor.set(&server::RATE), is_faster);
    settings.keep(&server::LOOP_LIMIT, floor.set(&server::LOOP_LIMIT), allows_more_repeats);
    settings.keep(&server::TRANSPORTS, floor.set(&server::TRANSPORTS), |own, floor| {
        own.is_empty() || own.iter().any(|kind| !floor.contains(kind))
    });
    if let Some(approval) = floor.set(&server::APPROVAL).filter(|mode| *mode != Approval::Auto) {
        settings.keep(&server::APPROVAL_EXEMPT, Some(Vec::new()), |own, _| !own.is_empty());
        settings.keep_of_tools(&tool::APPROVAL, |own| {
            own.is_some_and(|own| approval_rank(own) < approval_rank(approval))
        });
    }
    if let Some(limit) = floor.set(&server::LOOP_LIMIT) {
        settings.keep_of_tools(&tool::LOOP_LIMIT, |own| {
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
    /// Removes a setting that is weaker than the floor, if there is one.
    fn keep<T>(&mut self, key: &Key<server::In, T>, floor: Option<T>, is_weaker: impl FnOnce(T, T) -> bool)
    where
        T: super::from_setting::FromSetting,
    {
        let own = ServerTable::new(self.written).set(key);
        if let (Some(own), Some(floor)) = (own, floor)
            && is_weaker(own, floor)
            && let Some(removed) = self.written.remove(key)
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
        let both = section.fields.iter().filter(|inner| users.find(inner).is_some());
        for inner in both {
            if let Some(removed) = values.remove(inner) {
                leave_out(&removed, &path, self.report);
            }
        }
    }

    /// Removes a setting of single tools where it is weaker.
    fn keep_of_tools<T>(&mut self, key: &Key<tool::In, T>, is_weaker: impl Fn(T) -> bool)
    where
        T: super::from_setting::FromSetting,
    {
        let Some(found) = self.written.find_mut(&server::TOOLS) else {
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

/// How strict a mode is: the higher, the stricter.
pub(super) fn approval_rank(mode: Approval) -> u8 {
    match mode {
        Approval::Auto => 0,
        Approval::Writes => 1,
        Approval::Always => 2,
        Approval::Never => 3,
    }
}

fn crossing_rank(mode: OnCrossing) -> u8 {
    match mode {
        OnCrossing::Allow => 0,
        OnCrossing::Warn => 1,
        OnCrossing::Mask => 2,
        OnCrossing::Block => 3,
    }
}

fn pins_rank(mode: Pins) -> u8 {
    match mode {
        Pins::Off => 0,
        Pins::Warn => 1,
        Pins::Block => 2,
        Pins::Approve => 3,
    }
}

fn scan_rank(mode: Scan) -> u8 {
    match mode {
        Scan::Off => 0,
        Scan::Warn => 1,
        Scan::Block => 2,
    }
}

fn taint_rank(mode: Taint) -> u8 {
    match mode {
        Taint::Off => 0,
        Taint::Ask => 1,
        Taint::Block => 2,
    }
}

fn env_rank(policy: EnvPolicy) -> u8 {
    match policy {
        EnvPolicy::Inherit => 0,
        EnvPolicy::Allowlist => 1,
        EnvPolicy::Explicit => 2,
    }
}

/// Whether a rate allows more calls at once or over time.
fn is_faster(own: Option<Rate>, floor: Option<Rate>) -> bool {
    match (own, floor) {
        (Some(own), Some(floor)) => {
            let at_once = own.calls > floor.calls;
            at_once || u128::from(own.calls) * floor.per.as_nanos() > u128::from(floor.calls) * own.per.as_nanos()
        }
        (None, Some(_)) => true,
        (_, None) => false,
    }
}

/// Whether a limit of repeated calls is higher; zero means no limit.
fn allows_more_repeats(own: usize, floor: usize) -> bool {
    floor != 0 && (own == 0 || own > floor)
}
