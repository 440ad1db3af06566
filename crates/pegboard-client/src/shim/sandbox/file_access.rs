//! Restricts this process with Landlock: to files that it may read or write, to TCP ports, and to its own processes for signals, traces and
//! abstract sockets.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, NetPort, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, Scope, path_beneath_rules,
};

use super::plan::SandboxPlan;
use pegboard_config::SandboxNetwork;

/// The newest version that the rules were tested with. Older kernels enforce what they know.
const TESTED: ABI = ABI::V6;

/// Devices that every server may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What this kernel enforces.
#[derive(Debug)]
pub(super) struct Landlock(ABI);

impl Landlock {
    pub(super) fn restricts_tcp(&self) -> bool {
        self.0 >= ABI::V4
    }

    /// Parts that this kernel does not know, and why.
    pub(super) fn missing_parts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parts = [
            (ABI::V3, "truncation of files", "needs Linux 6.2 or later"),
            (ABI::V6, "signals and abstract sockets", "need Linux 6.12 or later"),
        ];
        let known = self.0;
        let missing = parts.into_iter().filter(move |(needed, ..)| known < *needed);
        missing.map(|(_, name, why)| (name, why))
    }
}

/// Restricts this process and all processes that it spawns. The error says why nothing is restricted.
pub(super) fn restrict(plan: &SandboxPlan, scratch: Option<&Path>) -> Result<Landlock, String> {
    let status = enforce(plan, scratch).map_err(|error| error.to_string())?;
    match status {
        LandlockStatus::Available { effective_abi, .. } => Ok(Landlock(effective_abi)),
        LandlockStatus::NotEnabled => Err("Landlock is not enabled in this kernel".to_owned()),
        LandlockStatus::NotImplemented => Err("this kernel has no Landlock".to_owned()),
    }
}

fn enforce(plan: &SandboxPlan, scratch: Option<&Path>) -> Result<LandlockStatus, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(TESTED))?;
    if plan.network != SandboxNetwork::All {
        ruleset = ruleset.handle_access(AccessNet::from_all(TESTED))?;
    }
    let ports: &[u16] = match &plan.network {
        SandboxNetwork::Ports(ports) => ports,
        SandboxNetwork::All | SandboxNetwork::Off => &[],
    };
    let writable = plan.write.iter().map(|path| path.as_path()).chain(scratch);
    // Paths that do not exist are skipped.
    let created = ruleset
        .scope(Scope::from_all(TESTED))?
        .create()?
        .add_rules(path_beneath_rules(&plan.read, AccessFs::from_read(TESTED)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(TESTED)))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(
            ports
                .iter()
                .map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
        )?;
    Ok(created.restrict_self()?.landlock)
}
