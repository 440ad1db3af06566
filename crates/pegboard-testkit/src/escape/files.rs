//! Attempts on files: of the user, of the system, of other servers.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Attempt, EscapeTargets, outcome, when};

pub(super) fn attempt(targets: &EscapeTargets, note: &mut dyn FnMut(&'static str, Attempt)) {
    let EscapeTargets {
        home,
        foreign_file,
        program,
        guard,
        sibling,
        ..
    } = targets;
    note("read_ssh_key", outcome(fs::read(home.join(".ssh/id_test"))));
    note("read_kube_config", outcome(fs::read(home.join(".kube/config"))));
    note("list_home", outcome(fs::read_dir(home)));
    note("write_home", write(home.join("evil")));
    note("write_working_directory", write("evil".into()));
    note("write_etc", write("/etc/evil".into()));
    note(
        "write_shared_memory",
        write(format!("/dev/shm/evil-{}", std::process::id()).into()),
    );
    note(
        "write_shared_tmp",
        write(format!("/tmp/evil-{}", std::process::id()).into()),
    );
    note("write_own_tmp", write(own_tmp().join("good")));
    note("read_file_of_another_server", outcome(fs::read(foreign_file)));
    note("read_init_environment", read_environment("/proc/1/environ".into()));
    note("read_program_environment", read_environment(proc(*program, "environ")));
    note("read_program_memory", outcome(File::open(proc(*program, "mem"))));
    note("list_program_files", outcome(fs::read_dir(proc(*program, "fd"))));
    note("read_guard_environment", outcome(fs::read(proc(*guard, "environ"))));
    note("read_sibling_environment", read_environment(proc(*sibling, "environ")));
    note("see_sibling", outcome(fs::read(proc(*sibling, "cmdline"))));
    note("make_files_for_others", is_readable_by_others());
    note("inherit_open_files", has_inherited_files());
    note("write_huge_file", write_huge_file());
    note("open_many_files", open_many_files());
}

fn own_tmp() -> PathBuf {
    std::env::temp_dir()
}

fn proc(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// Creates a file and removes it again.
fn write(path: PathBuf) -> Attempt {
    let written = fs::write(&path, "evil");
    let _ = fs::remove_file(path);
    outcome(written)
}

/// An empty environment tells nothing.
fn read_environment(path: PathBuf) -> Attempt {
    match fs::read(path) {
        Ok(environment) => when(!environment.is_empty(), "empty"),
        Err(error) => Err(error.to_string()),
    }
}

fn is_readable_by_others() -> Attempt {
    let path = own_tmp().join(format!("mode-{}", std::process::id()));
    let mode = File::create(&path).and_then(|file| Ok(file.metadata()?.permissions().mode()));
    let _ = fs::remove_file(path);
    let mode = mode.map_err(|error| error.to_string())?;
    when(mode & 0o077 != 0, format!("mode {mode:o}"))
}

/// Files that a child inherits are not close-on-exec, so this server inherited them too. `ls` itself opens one.
fn has_inherited_files() -> Attempt {
    let output = Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let list = String::from_utf8_lossy(&output.stdout).split_whitespace().count();
    when(list > 4, format!("{list} files"))
}

/// In a child, because the kernel kills a process that exceeds the limit.
fn write_huge_file() -> Attempt {
    let path = own_tmp().join(format!("huge-{}", std::process::id()));
    let status = Command::new("truncate")
        .args(["-s", "10G"])
        .arg(&path)
        .stderr(Stdio::null())
        .status();
    let _ = fs::remove_file(path);
    let status = status.map_err(|error| error.to_string())?;
    when(status.success(), status.to_string())
}

fn open_many_files() -> Attempt {
    let null = Path::new("/dev/null");
    let opened: Result<Vec<File>, _> = (0..2000).map(|_| OpenOptions::new().read(true).open(null)).collect();
    outcome(opened)
}
