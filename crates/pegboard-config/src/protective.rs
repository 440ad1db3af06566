//! Settings that protect. An error in one of them at the top of a file keeps servers from starting without it.

use super::{
    field::Field,
    fields::{SERVER, TOP, server},
    problem::{Problem, Report},
    spelling::{nearest, snake},
};

/// The fields that restrict what servers and models may do or see, or that hide secrets.
static PROTECTIVE: &[&Field] = &[
    &server::APPROVAL.field,
    &server::MASKING.field,
    &server::TRANSPORTS.field,
    &server::ENV_POLICY.field,
    &server::SCOPE.field,
    &server::CAPABILITIES.field,
    &server::CASE_INSENSITIVE.field,
    &server::CALL_ARGUMENTS.field,
    &server::OUTPUT_CHECK.field,
    &server::RESULT.field,
    &server::ALLOW.field,
    &server::DENY.field,
    &server::TOOLS.field,
    &server::CROSSING.field,
    &server::PINS.field,
    &server::SCAN.field,
    &server::TAINT.field,
    &server::RATE.field,
    &server::LOOP_LIMIT.field,
    &server::SANDBOX.field,
    &server::RLIMITS.field,
];

/// Further names of protective fields: those without a typed key, and words that people expect at the top of a file.
const NAMES: &[&str] = &["audit", "mask", "policy", "policies", "permissions"];

/// The errors at the top of a file that leave a protection out: an invalid value, a misspelt name, or a setting that only servers have.
pub(super) fn lost(report: &Report) -> Vec<Problem> {
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
        let is_it = |field: &&'static Field| field.name == found.field.name;
        return PROTECTIVE.iter().any(is_it) || NAMES.contains(&found.field.name);
    }
    let names = PROTECTIVE.iter().flat_map(|field| field.names());
    nearest(&snake(key), names.chain(NAMES.iter().copied())).is_some()
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
