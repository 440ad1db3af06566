//! The newcomer's home folder, and the program as the package installs it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::newcomer::servers::{self, SignIn};

/// Where the homes are. Paths are on the screens, so that their length must be the same on every machine.
const HOMES: &str = "/tmp";

/// The program, installed from the wheel.
#[derive(Debug)]
pub(crate) struct Installed {
    folder: TempDir,
}

impl Installed {
    pub(crate) fn from_the_wheel() -> Self {
        let folder = home_folder();
        let path = |name: &str| folder.path().join(name);
        let mut package = Command::new(repository().join("scripts/package"));
        package.arg("--out").arg(path("packages"));
        package.args(["--only", "wheel", "--strip", "--level", "1"]);
        package.args(["--program", env!("CARGO_BIN_EXE_pegboard"), TARGET]);
        succeeds(package);
        let mut install = Command::new(peer("python-packaging/bin/uv"));
        install.args([
            "tool",
            "install",
            "--offline",
            "--no-index",
            "--no-config",
            "--find-links",
        ]);
        install.arg(path("packages")).arg("pegboard-mcp");
        install
            .env("UV_CACHE_DIR", path("cache"))
            .env("UV_TOOL_DIR", path("tools"))
            .env("UV_TOOL_BIN_DIR", path("bin"))
            .env("UV_PYTHON_DOWNLOADS", "never");
        succeeds(install);
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("bin/pegboard")
    }
}

/// A home folder with nothing of Pegboard in it.
#[derive(Debug)]
pub(crate) struct Home<'a> {
    folder: TempDir,
    installed: &'a Installed,
}

impl<'a> Home<'a> {
    pub(crate) fn new(installed: &'a Installed) -> Self {
        Self {
            folder: home_folder(),
            installed,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with an environment of only `PATH` and `HOME`.
    pub(crate) fn pegboard(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.installed.program());
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path())
            // The homes are in the usual one, and what is there is said to be in danger.
            .env("TMPDIR", self.folder.path().join(".tmp"));
        command
    }

    /// The newcomer has used Claude so far. Returns the server to sign in to.
    pub(crate) fn writes_the_config_of_claude(&self) -> SignIn {
        let remote = SignIn::start();
        let entries = servers::entries(self, &remote.url);
        let text = serde_json::to_string_pretty(&entries).unwrap();
        let file = self.file_of_claude();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
        remote
    }

    pub(crate) fn file_of_claude(&self) -> PathBuf {
        self.path(".config/Claude/claude_desktop_config.json")
    }

    pub(crate) fn config_of_claude(&self) -> String {
        fs::read_to_string(self.file_of_claude()).unwrap()
    }

    /// Starts the entry `pegboard` of a host's config file, as the host does, and calls a tool. Returns what the Python SDK got.
    #[track_caller]
    pub(crate) fn asks_as_host(&self, file: &Path, tool: &str, arguments: &str) -> String {
        let mut host = Command::new(peer("python-modern/bin/python"));
        host.arg(repository().join("tests/peers/clients/host_client.py"))
            .arg(file)
            .args(["pegboard", tool, arguments])
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.folder.path());
        succeeds(host)
    }

    /// What is shown, with all that differs between runs replaced by text of the same length.
    pub(crate) fn without_accidents(&self, shown: &str) -> String {
        let same_length = |path: &Path, name: &str| {
            let path = path.to_str().unwrap().to_owned();
            let name = format!("/{name:-<width$}", width = path.len() - 1);
            (path, name)
        };
        let mut shown = shown.to_owned();
        for (path, name) in [
            same_length(self.folder.path(), "home/ada"),
            same_length(self.installed.folder.path(), "opt/tools"),
        ] {
            shown = shown.replace(&path, &name);
        }
        for (before, name) in [
            ("127.0.0.1:", "PORT-"),
            (".bak-", "DATE----TIME---"),
            ("(down for ", "N"),
            ("; next try in ", "N"),
            ("it took ", "N"),
            ("it took N.", "N"),
        ] {
            shown = after_each(&shown, before, name);
        }
        shown
    }
}

/// Replaces the digits and hyphens after each `before` by `name`.
fn after_each(text: &str, before: &str, name: &str) -> String {
    let mut parts = text.split(before);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
        text + before + name + rest
    })
}

fn home_folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("newcomer")
        .rand_bytes(8)
        .tempdir_in(HOMES)
        .unwrap()
}

/// The system of this machine, as Rust names it.
const TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

#[track_caller]
fn succeeds(mut command: Command) -> String {
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ended.status.success(), "{command:?}: {}", text(&ended.stderr));
    text(&ended.stdout)
}

fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folder.canonicalize().unwrap()
}

/// A program that `scripts/peers` has installed.
fn peer(path: &str) -> PathBuf {
    let path = repository().join("target/peers").join(path);
    assert!(path.exists(), "{} is missing: run scripts/peers", path.display());
    path
}
