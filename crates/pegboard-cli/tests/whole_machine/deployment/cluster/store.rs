//! The stores that replicas share: a folder, and a real Redis.

use std::{
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::home::until;

/// The store in a folder.
pub(super) fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let address = format!("file:{}", folder.path().display());
    (folder, address)
}

/// A Redis that keeps nothing on disk. It is killed when it is dropped.
pub(super) struct RedisServer {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl RedisServer {
    pub(super) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        Self {
            child: spawn(port, folder.path()),
            port,
            folder,
        }
    }

    pub(super) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it, and starts it again without what it had.
    pub(super) fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = spawn(self.port, self.folder.path());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, folder: &Path) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/redis");
    let found = Command::new(script).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let program = String::from_utf8(found.stdout).unwrap();
    let child = Command::new(program.trim())
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("redis listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    child
}
