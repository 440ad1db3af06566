//! A temporary home folder, the program run in it, and fake servers for it.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use pegboard_testkit::{FakeServer, LogFile, is_alive, read_log};
use serde_json::Value;
use tempfile::TempDir;

/// A folder that is the home, the working folder and the config folder.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
}

/// The exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes the user's config file, which needs no approval. It is replaced whole: a program that reads it meanwhile sees the old one or
    /// the new one.
    pub(crate) fn config(&self, text: &str) -> PathBuf {
        let written = self.write(".config/pegboard/written", text);
        let path = self.path(".config/pegboard/pegboard.toml");
        fs::rename(written, &path).unwrap();
        path
    }

    /// The program with an environment of only `PATH` and `HOME`, on a machine where no command starts a daemon in the background.
    pub(crate) fn pegboard(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pegboard"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.pegboard(args))
    }

    /// The command line that starts this fake on stdio, for `--server NAME=…`. [`Self::log`] reads its log.
    pub(crate) fn command_of(&self, name: &str, fake: FakeServer) -> String {
        let fake = fake.log(self.path(&format!("{name}.log")));
        let script = self.path(&format!("{name}.script.json"));
        let (program, args) = fake.command_with_file(&script).unwrap();
        format!("{} {}", program.display(), args.join(" "))
    }

    /// The option that adds this fake as a stdio server.
    pub(crate) fn server(&self, name: &str, fake: FakeServer) -> String {
        format!("--server={name}={}", self.command_of(name, fake))
    }

    /// A server's TOML table that starts this fake on stdio, with more settings after it.
    pub(crate) fn entry(&self, name: &str, fake: FakeServer, more: &str) -> String {
        let command = self.command_of(name, fake);
        let (program, args) = command.split_once(' ').unwrap();
        let args: Vec<&str> = args.split(' ').collect();
        format!("[servers.{name}]\ncommand = {program:?}\nargs = {args:?}\n{more}\n")
    }

    pub(crate) fn log(&self, name: &str) -> LogFile {
        read_log(self.path(&format!("{name}.log"))).unwrap()
    }

    /// Asserts that the fake ran and that no process of it is left. A killed process takes a moment to disappear, so tests for leaked
    /// servers need fakes that do not exit by themselves.
    #[track_caller]
    pub(crate) fn assert_gone(&self, name: &str) {
        let spawned = self.log(name).spawned;
        assert!(!spawned.is_empty(), "`{name}` was never started");
        until(&format!("nothing of `{name}` runs"), || {
            !spawned.iter().any(|pid| is_alive(*pid))
        });
    }
}

impl Ran {
    pub(crate) fn of(mut command: Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Runs a command with `text` on its stdin.
    pub(crate) fn fed(mut command: Command, text: &str) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Self::end_of(child)
    }

    /// Waits for a child with piped output to exit.
    pub(crate) fn end_of(child: Child) -> Self {
        Self::from(child.wait_with_output().unwrap())
    }

    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Parses stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ends_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(self.err.contains(words), "{words:?} is not in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(&self, words: &str) -> &Self {
        assert!(self.out.contains(words), "{words:?} is not in {self:?}");
        self
    }
}

/// Polls a condition about another process for at most 20 seconds.
#[track_caller]
pub(crate) fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came to this: {what}");
}
