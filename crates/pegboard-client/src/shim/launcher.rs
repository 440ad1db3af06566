//! The process that a server starts as: this program, which sets the limits and the sandbox of the server and then executes it.

use std::{
    convert::Infallible,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::{fs::FileExt as _, process::CommandExt as _},
    },
    path::Path,
    process::{Command, Stdio, exit},
};

use nix::sys::signal::SigSet;
use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, WaitOptions, WaitStatus, wait, waitpid},
};

use super::{
    process_role, rlimits,
    sandbox::{Enforcement, SandboxPart, SandboxPlan, namespaces},
    scratch_folder::ScratchFolder,
    self_protection,
    spawn_request::SpawnRequest,
};

/// The exit code if a server could not be executed, as in shells.
const NOT_STARTED: i32 = 127;

/// Why a server was not executed, for its stderr.
type Refusal = String;

/// Restricts this process and executes the server.
pub(super) fn run(request: RawFd, scratch: Option<&Path>) -> ! {
    let Err(refusal) = launch(request, scratch);
    refuse(&refusal)
}

/// Sets up the namespaces that this process is the first one of, spawns the server in them, and exits with it.
pub(super) fn run_init(request: RawFd) -> ! {
    let Err(refusal) = init(request);
    refuse(&refusal)
}

fn launch(request: RawFd, scratch: Option<&Path>) -> Result<Infallible, Refusal> {
    let (request, file) = take(request)?;
    let limits = rlimits::lift().and_then(|()| rlimits::set(None, &request.rlimits));
    limits.map_err(|error| format!("its resource limits could not be set: {error}"))?;
    let Some(plan) = &request.sandbox else {
        return Err(execute(server_command(&request), &request.program));
    };
    let mut enforcement = Enforcement::new(plan);
    if plan.has_namespaces() {
        // A failed attempt cannot be undone, so another process tries first.
        let probed = if plan.require { Ok(()) } else { probe(&file) };
        match probed {
            Ok(()) => {
                namespaces::enter(plan).or_else(|why| enforcement.refuses("namespaces", &why))?;
                return supervise(&file);
            }
            Err(why) => enforcement.lacks(SandboxPart::Namespaces, &why)?,
        }
    }
    // The capabilities of root would reach around the restrictions.
    namespaces::drop_capabilities().map_err(|error| format!("its capabilities could not be dropped: {error}"))?;
    enforcement.restrict(plan, scratch)?;
    write_report(&file, &enforcement)?;
    let mut command = server_command(&request);
    set_scratch(&mut command, scratch);
    Err(execute(command, &request.program))
}

/// Tries in another process whether namespaces can be created.
fn probe(file: &File) -> Result<(), String> {
    let failed = |error: io::Error| format!("they could not be tried: {error}");
    fcntl_setfd(file, FdFlags::empty()).map_err(|error| failed(error.into()))?;
    let output = process_role::probe_command(file.as_raw_fd())
        .stdin(Stdio::null())
        .output();
    fcntl_setfd(file, FdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let output = output.map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

/// Creates the namespaces of a server and exits. Writes to stdout why that fails.
pub(super) fn run_probe(request: RawFd) -> ! {
    let tried = take(request).and_then(|(request, _)| match &request.sandbox {
        Some(plan) => namespaces::enter(plan),
        None => Ok(()),
    });
    if let Err(why) = &tried {
        let _ = io::stdout().write_all(why.as_bytes());
    }
    exit(i32::from(tried.is_err()));
}

/// Spawns the init process of the namespaces that this process has created, and exits as it does.
fn supervise(file: &File) -> Result<Infallible, Refusal> {
    let failed = |error: io::Error| format!("its namespaces could not be used: {error}");
    fcntl_setfd(file, FdFlags::empty()).map_err(|error| failed(error.into()))?;
    let init = process_role::init_command(file.as_raw_fd()).spawn().map_err(failed)?;
    // The guard signals the server itself too. This process must outlive it, to report how it exits.
    SigSet::all().thread_block().map_err(|error| failed(error.into()))?;
    self_protection::protect_this_process();
    close_streams();
    let pid = i32::try_from(init.id()).ok().and_then(Pid::from_raw);
    loop {
        match waitpid(pid, WaitOptions::empty()) {
            Ok(Some((_, status))) => exit(exit_code(status)),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
}

fn init(request: RawFd) -> Result<Infallible, Refusal> {
    let (request, file) = take(request)?;
    let plan = request.sandbox.as_ref().ok_or("its sandbox is unknown")?;
    let mut enforcement = Enforcement::new(plan);
    let scratch = match namespaces::set_up(plan) {
        Ok(()) => {
            let folder = ScratchFolder::create(Path::new(SandboxPlan::STRICT_SCRATCH));
            Some(folder.map_err(|error| format!("its folder for temporary files could not be created: {error}"))?)
        }
        Err(why) => {
            enforcement.lacks(SandboxPart::Namespaces, &why)?;
            None
        }
    };
    let scratch = scratch.as_ref().map(ScratchFolder::path);
    namespaces::drop_capabilities().map_err(|error| format!("its capabilities could not be dropped: {error}"))?;
    enforcement.restrict(plan, scratch)?;
    write_report(&file, &enforcement)?;
    drop(file);
    let mut command = server_command(&request);
    set_scratch(&mut command, scratch);
    let server = command
        .spawn()
        .map_err(|error| exec_refusal(&request.program, &error))?;
    self_protection::protect_this_process();
    close_streams();
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == server.id() => {
                exit(exit_code(status))
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("it was lost: {error}")),
        }
    }
}

/// Reads the spawn request from a file that this process inherited, and closes that file.
fn take(fd: RawFd) -> Result<(SpawnRequest, File), Refusal> {
    let failed = |error: io::Error| format!("its spawn request could not be read: {error}");
    // A raw descriptor cannot be owned safely, but it can be opened again.
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{fd}"));
    let _ = nix::unistd::close(fd);
    let file = opened.map_err(failed)?;
    let request = SpawnRequest::read(&file).map_err(failed)?;
    Ok((request, file))
}

/// Replaces the spawn request in the file, which the program keeps open, by the report.
fn write_report(file: &File, enforcement: &Enforcement) -> Result<(), Refusal> {
    let report = enforcement.report();
    let written = file.set_len(0).and_then(|()| file.write_all_at(report.as_bytes(), 0));
    written.map_err(|error| format!("its sandbox could not be reported: {error}"))
}

fn server_command(request: &SpawnRequest) -> Command {
    let mut command = Command::new(&request.program);
    command.args(&request.args).env_clear();
    command.envs(request.env.iter().map(|(name, value)| (name, value)));
    command
}

fn set_scratch(command: &mut Command, scratch: Option<&Path>) {
    if let Some(scratch) = scratch {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env(name, scratch);
        }
    }
}

fn execute(mut command: Command, program: &Path) -> Refusal {
    exec_refusal(program, &command.exec())
}

fn exec_refusal(program: &Path, error: &io::Error) -> Refusal {
    format!("`{}` could not be started: {error}", program.display())
}

/// Closes this process's ends of the server's streams, so that they end with the server.
fn close_streams() {
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// The exit code that stands for the end of another process, as in shells.
fn exit_code(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or(signal).unwrap_or(NOT_STARTED)
}

/// Writes to the server's own stderr and exits. If the write fails, the exit code still shows the failure.
fn refuse(refusal: &str) -> ! {
    let _ = writeln!(io::stderr(), "pegboard: {refusal}");
    exit(NOT_STARTED);
}
