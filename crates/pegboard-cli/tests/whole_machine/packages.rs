//! The packages of a release: built by `scripts/package` around the program under test, installed by the tools of users, and run.

mod archive;
mod npm;
mod registry;
mod release;
mod wheel;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// The system of this machine, as Rust names it.
const TARGET: &str = concat_target();
const VERSION: &str = env!("CARGO_PKG_VERSION");

const fn concat_target() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "aarch64-unknown-linux-gnu"
    } else {
        "x86_64-unknown-linux-gnu"
    }
}

/// A folder with packages, and with an empty home for those who install them.
#[derive(Debug)]
struct Packages {
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Packages {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Packages of one kind around the program under test, stripped, because its symbols are most of it.
    fn of_this_program(kind: &str, more: &[&str]) -> Self {
        let packages = Self::new();
        let program = ["--strip", "--level", "1", "--program", env!("CARGO_BIN_EXE_pegboard")];
        packages.make(&[&["--only", kind, TARGET], more, &program].concat());
        packages
    }

    /// Runs `scripts/package` for this folder.
    #[track_caller]
    fn make(&self, args: &[&str]) {
        let mut command = Command::new(root().join("scripts/package"));
        command.arg("--out").arg(self.path("packages")).args(args);
        run(&mut command).succeeds();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of the packages, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("packages")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A program of this machine with an empty home.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null());
        command
    }
}

impl Ended {
    #[track_caller]
    fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.out
    }
}

fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A program that `scripts/peers` has installed.
fn peer(path: &str) -> PathBuf {
    let path = root().join("target/peers").join(path);
    assert!(path.exists(), "{} is missing: run scripts/peers", path.display());
    path
}
