//! What this kernel offers to a sandbox, found out without the launcher of the library. A level that is refused although the kernel offers
//! it is a bug, and not a reason to skip a test.

#![allow(
    clippy::allow_attributes,
    dead_code,
    reason = "each test crate uses only some of these needs"
)]

use std::{os::unix::process::CommandExt as _, process::Command};

use landlock::{ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};

/// What a sandbox needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Rules for files.
    Files,
    /// Rules for files and TCP ports.
    Ports,
    /// Rules for files, and namespaces.
    Namespaces,
}

impl Need {
    pub(crate) fn of_level(level: &str) -> Self {
        match level {
            "strict" => Self::Namespaces,
            _ => Self::Files,
        }
    }

    /// Whether the kernel offers it to this user.
    pub(crate) fn is_met(self, user: Option<u32>) -> bool {
        match self {
            Self::Files => has_landlock(ABI::V1),
            Self::Ports => has_landlock(ABI::V4),
            Self::Namespaces => has_landlock(ABI::V1) && has_namespaces(user),
        }
    }
}

/// Prints why a test is skipped. Panics if the kernel offers what was refused.
#[expect(clippy::print_stderr, reason = "what was not checked is reported")]
pub(crate) fn accept_refusal(need: Need, user: Option<u32>, refusal: &str) {
    assert!(!need.is_met(user), "the kernel offers {need:?}, but: {refusal}");
    eprintln!("SKIPPED: this kernel does not offer {need:?}: {refusal}");
}

fn has_landlock(abi: ABI) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = ruleset.handle_access(AccessFs::from_all(abi));
    let ruleset = match abi {
        ABI::V1 => ruleset,
        _ => ruleset.and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi))),
    };
    ruleset.and_then(Ruleset::create).is_ok()
}

fn has_namespaces(user: Option<u32>) -> bool {
    let mut command = Command::new("unshare");
    command.args("--user --map-root-user --pid --ipc --mount --net --fork --mount-proc true".split(' '));
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let tried = command.output().expect("`unshare` of util-linux is installed");
    tried.status.success()
}
