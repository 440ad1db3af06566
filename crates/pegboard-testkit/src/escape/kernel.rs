//! Attempts on the kernel: system calls that a server does not need. Perl makes them, because Rust has no safe way to.

use std::process::{Command, Stdio};

use super::{Attempt, EscapeTargets};

/// The number of a system call on x86_64 and on other architectures.
type Call = (u32, u32);

const BPF: Call = (321, 280);
const CHROOT: Call = (161, 51);
const IO_URING_SETUP: Call = (425, 425);
const KEYCTL: Call = (250, 219);
const MKNODAT: Call = (259, 33);
const MOUNT: Call = (165, 40);
const PERF_EVENT_OPEN: Call = (298, 241);
const PERSONALITY: Call = (135, 92);
const PROCESS_VM_READV: Call = (310, 270);
const PTRACE: Call = (101, 117);
const REBOOT: Call = (169, 142);
const SETHOSTNAME: Call = (170, 161);
const SETNS: Call = (308, 268);
const SETPRIORITY: Call = (141, 140);
const SOCKET: Call = (41, 198);
const UNSHARE: Call = (272, 97);
const USERFAULTFD: Call = (323, 282);

pub(super) fn attempt(targets: &EscapeTargets, note: &mut dyn FnMut(&'static str, Attempt)) {
    let sibling = targets.sibling;
    let mut note = |name, setup: &str, number, args: &str| note(name, call(setup, number, args));
    // PTRACE_SEIZE, which does not stop the other process.
    note("trace_sibling", "", PTRACE, &format!("0x4206, {sibling}, 0, 0"));
    // Fails with EFAULT, for the address, if it is allowed to read.
    let vectors = "my $b = 'x' x 8; my $v = pack('P Q', $b, 8); my $w = pack('Q Q', 8, 8);";
    note(
        "read_sibling_memory",
        vectors,
        PROCESS_VM_READV,
        &format!("{sibling}, $v, 1, $w, 1, 0"),
    );
    note("use_io_uring", "my $p = \"\\0\" x 120;", IO_URING_SETUP, "1, $p");
    note("create_user_namespace", "", UNSHARE, "0x10000000");
    note(
        "enter_namespace",
        "open(my $f, '<', '/proc/self/ns/uts') or die;",
        SETNS,
        "fileno($f), 0",
    );
    note(
        "mount",
        "my ($n, $t) = ('none', 'tmpfs'); my $d = '/tmp';",
        MOUNT,
        "$n, $d, $t, 0, 0",
    );
    note("load_bpf", "my $a = \"\\0\" x 120;", BPF, "5, $a, 120");
    note("use_keyring", "", KEYCTL, "0, -3, 0");
    note(
        "measure_kernel",
        "my $a = pack('L L Q', 1, 112, 0) . (\"\\0\" x 96);",
        PERF_EVENT_OPEN,
        "$a, 0, -1, -1, 0",
    );
    note("use_userfaultfd", "", USERFAULTFD, "0");
    note("change_root", "my $d = '/';", CHROOT, "$d");
    note(
        "make_device",
        "my $d = \"/tmp/evil-device-$$\";",
        MKNODAT,
        "-100, $d, 020666, 0x103",
    );
    note("change_personality", "", PERSONALITY, "0x0040000");
    note("set_host_name", "my $n = 'evil';", SETHOSTNAME, "$n, 4");
    // Switches Ctrl-Alt-Del off, the most harmless of its commands.
    note("reboot", "", REBOOT, "0xfee1dead, 672274793, 0, 0");
    note("raise_priority", "", SETPRIORITY, "0, 0, -20");
    note("open_netlink_socket", "", SOCKET, "16, 3, 0");
}

/// Makes one system call in a child. An error about its arguments shows that the call itself is allowed.
fn call(setup: &str, (x86_64, other): Call, args: &str) -> Attempt {
    const EFAULT: &str = "14";
    const EINVAL: &str = "22";
    let number = if cfg!(target_arch = "x86_64") { x86_64 } else { other };
    let script = format!("{setup} my $r = syscall({number}, {args}); print $r == -1 ? $!+0 : 'ok';");
    let output = Command::new("perl").args(["-e", &script]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("perl: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "ok" | EFAULT | EINVAL => Ok(()),
        "" => Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        errno => Err(format!("errno {errno}")),
    }
}
