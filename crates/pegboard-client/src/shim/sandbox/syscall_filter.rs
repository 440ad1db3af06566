//! Restricts the system calls of this process with seccomp.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::plan::SandboxPlan;
use pegboard_config::{SandboxLevel, SandboxNetwork};

/// System calls that no server needs and that widen what it can attack: other processes, the kernel, mounts, keys and namespaces.
const DENIED: &[i64] = &[
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
];

/// They can do what a filter denies, such as opening sockets.
const IO_URING: &[i64] = &[
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
];

/// Flags of `clone` and `unshare` that create namespaces.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Programs for the x32 interface of x86_64 call the same system calls with this bit, or with these other numbers.
#[cfg(target_arch = "x86_64")]
const X32_BIT: i64 = 0x4000_0000;
/// `ptrace`, `kexec_load`, `process_vm_readv` and `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: &[i64] = &[521, 528, 539, 540];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filters that the plan needs. The error says why none or only some are in force.
pub(super) fn apply(plan: &SandboxPlan) -> Result<(), String> {
    let is_strict = plan.level == SandboxLevel::Strict;
    let is_offline = plan.network == SandboxNetwork::Off;
    if !is_strict && !is_offline {
        return Ok(());
    }
    let run = || {
        let mut rules = Rules::new();
        rules.extend(IO_URING.iter().map(|number| (*number, Vec::new())));
        if is_offline {
            rules.insert(libc::SYS_socket, vec![other_than_unix_sockets()?]);
        }
        if is_strict {
            rules.extend(DENIED.iter().map(|number| (*number, Vec::new())));
            for number in [libc::SYS_clone, libc::SYS_unshare] {
                rules.insert(number, new_namespaces()?);
            }
            // Its flags are in memory, where a filter cannot read them. C libraries fall back to `clone`.
            let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
            apply_filter(&compile(clone3, libc::ENOSYS)?)?;
        }
        apply_filter(&compile(rules, libc::EPERM)?)
    };
    run().map_err(|error| error.to_string())
}

/// A filter that lets these system calls fail with `errno`, and kills processes that call those of another architecture.
fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::Error> {
    let arch = std::env::consts::ARCH.try_into()?;
    let rules = with_x32(rules);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        arch,
    )?;
    Ok(filter.try_into()?)
}

#[cfg(target_arch = "x86_64")]
fn with_x32(mut rules: Rules) -> Rules {
    let has_ptrace = rules.contains_key(&libc::SYS_ptrace);
    let x32: Rules = rules
        .iter()
        .map(|(number, rules)| (number | X32_BIT, rules.clone()))
        .collect();
    rules.extend(x32);
    if has_ptrace {
        rules.extend(X32_NUMBERS.iter().map(|number| (number | X32_BIT, Vec::new())));
    }
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: Rules) -> Rules {
    rules
}

fn other_than_unix_sockets() -> Result<SeccompRule, seccompiler::Error> {
    let family = condition(SeccompCmpOp::Ne, libc::AF_UNIX)?;
    Ok(SeccompRule::new(vec![family])?)
}

/// Rules that match if one of the flags is set.
fn new_namespaces() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let rule = |flag: &libc::c_int| {
        let mask = u64::from(flag.cast_unsigned());
        Ok(SeccompRule::new(vec![condition(SeccompCmpOp::MaskedEq(mask), *flag)?])?)
    };
    NAMESPACES.iter().map(rule).collect()
}

/// A condition on the lower half of the first argument, which is all that the kernel uses of it.
fn condition(operator: SeccompCmpOp, value: libc::c_int) -> Result<SeccompCondition, seccompiler::Error> {
    let value = u64::from(value.cast_unsigned());
    Ok(SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_compile_for_this_architecture() {
        let mut rules: Rules = DENIED.iter().map(|number| (*number, Vec::new())).collect();
        rules.insert(libc::SYS_clone, new_namespaces().unwrap());
        rules.insert(libc::SYS_socket, vec![other_than_unix_sockets().unwrap()]);
        assert!(compile(rules, libc::EPERM).unwrap().len() > DENIED.len());
        assert!(compile(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS).is_ok());
    }
}
