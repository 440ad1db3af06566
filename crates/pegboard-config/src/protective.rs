//! Settings that protect. An error in one of them at the top of a file keeps servers from starting without it.

use super::{
    field::Field,
    fields::{SERVER, TOP},
    problem::{Problem, Report},
    spelling::{find_nearest, snake},
};

/// Words that people expect at the top of a file.
const NAMES: &[&str] = &["mask", "policy", "policies", "permissions"];

/// The errors at the top of a file that leave a protection out: an invalid value, a misspelt name, or a setting that only servers have.
pub(super) fn find_lost(report: &Report) -> Vec<Problem> {
    let is_lost = |problem: &&Problem| is_protective(&problem.field);
    report.errors_from(0).filter(is_lost).cloned().collect()
}

/// Whether an error of this setting leaves a protection out.
fn is_protective(path: &str) -> bool {
    // Without a setting, the rest of the file was not read.
    let key = path.split(['.', '[']).next().unwrap_or_default();
    if key.is_empty() {
        return true;
    }
    if key == "servers" {
        return false;
    }
    if let Some(found) = TOP.find(key).or_else(|| SERVER.find(key)) {
        return found.field.protects;
    }
    let protective = SERVER.fields().chain(TOP.fields()).filter(|field| field.protects);
    let names = protective.flat_map(Field::names);
    find_nearest(&snake(key), names.chain(NAMES.iter().copied())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_or_misplaced_protection_is_recognised() {
        for path in [
            "aproval",
            "approvl",
            "approval",
            "approval_mod",
            "masking.paterns",
            "masking.groups",
            "data_masking",
            "maskin",
            "deny",
            "denny",
            "disabled_tools",
            "allow",
            "sandbox",
            "sandbx",
            "transports[0]",
            "env_polcy",
            "",
        ] {
            assert!(is_protective(path), "{path}");
        }
        for path in [
            "servers.x.deny",
            "servers[3]",
            "call_timeout",
            "call_timout",
            "naming",
            "queues.a",
            "xyzzy",
        ] {
            assert!(!is_protective(path), "{path}");
        }
    }
}
