//! A home folder with servers of every kind, and the program in it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::first_line::first_line;

/// Servers that work, fail and are switched off. Each failure is the same on every machine.
const CONFIG: &str = r#"[servers.demo]
command = "pegboard"
args = ["demo-server"]

[servers.documents]
command = "pegboard"
args = ["demo-server", "--folder", "/home/ada/documents/letters/2026"]
description = "Letters of this year"
enabled = false

[servers.github]
command = "pegboard"
args = ["demo-server"]
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }

[servers.notes]
command = "notes-mcp"
args = ["--vault", "/home/ada/notes"]

[servers.orders]
command = "orders"
deny = ["*delete*"]
call_timeout = "2m"

[servers.tickets]
url = "http://127.0.0.1:9/mcp"
auth = { bearer = "made-up-token" }
"#;

/// A server that says why it ends.
const ORDERS: &str =
    "#!/bin/sh\necho 'fatal: no database at /var/lib/orders.db, run `orders init` first' >&2\nexit 3\n";

#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    /// The registry that is asked in place of the official one.
    pub(crate) registry: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        // Paths are on the screens, so that their length must be the same on every machine.
        let folder = tempfile::Builder::new()
            .prefix("home-")
            .rand_bytes(6)
            .tempdir_in("/tmp");
        let home = Self {
            folder: folder.unwrap(),
            registry: "http://127.0.0.1:9".to_owned(),
        };
        home.write(".config/pegboard/pegboard.toml", CONFIG);
        home.may(".config/pegboard/pegboard.toml", 0o600);
        home.write("bin/orders", ORDERS);
        home.may("bin/orders", 0o755);
        symlink(env!("CARGO_BIN_EXE_pegboard"), home.path("bin/pegboard")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn may(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The program with an environment of only `PATH` and `HOME`.
    pub(crate) fn pegboard(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/pegboard"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("CI", "1")
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.path(".tmp"))
            .env("PEGBOARD_REGISTRY", &self.registry)
            .stdin(Stdio::null());
        command
    }

    /// A server that is reached over HTTP, so that no process is on the screen. The config gets it in place of `demo`.
    pub(crate) fn with_a_remote_server(&self) -> Remote {
        let mut command = self.pegboard(&["demo-server", "--transport", "http"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut remote = Remote { child };
        let line = first_line(remote.child.stdout.take().unwrap());
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http"))
            .unwrap()
            .to_owned();
        let stdio = "command = \"pegboard\"\nargs = [\"demo-server\"]\n";
        self.write(
            ".config/pegboard/pegboard.toml",
            &CONFIG.replacen(stdio, &format!("url = {url:?}\n"), 1),
        );
        remote
    }

    /// What is shown, with all that differs between runs replaced by text of the same length.
    pub(crate) fn without_accidents(&self, shown: &str) -> String {
        let path = self.folder.path().to_str().unwrap();
        let name = format!("/{:-<width$}", "home/ada", width = path.len() - 1);
        shown.replace(path, &name)
    }
}

/// Ends with the test.
#[derive(Debug)]
pub(crate) struct Remote {
    child: Child,
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
