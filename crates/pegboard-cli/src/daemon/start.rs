//! [`Starter`]: starts a daemon in the background.

use std::{
    io,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use super::{detached::open_log, identity::Identity};
use crate::{cli::Global, settings};

/// How to start the daemon of a config.
#[derive(Debug, Clone)]
pub(crate) struct Starter {
    program: PathBuf,
    args: Vec<std::ffi::OsString>,
    log: PathBuf,
}

impl Starter {
    /// Prepares the start of the daemon that the options name, which ends after `idle` without a client.
    pub(crate) fn new(global: &Global, identity: &Identity, idle: Duration) -> io::Result<Self> {
        let state = settings::state_folder().ok_or_else(|| io::Error::other("HOME is not set"))?;
        let log = state.join(format!("daemon-{identity}.log"));
        let mut args: Vec<std::ffi::OsString> = ["serve", "--socket-only", "--idle"].map(Into::into).into();
        args.push(format!("{}ms", idle.as_millis()).into());
        args.push("--detached".into());
        args.push(log.clone().into());
        for config in &global.configs {
            args.push("--config".into());
            args.push(std::path::absolute(config)?.into());
        }
        for server in global.servers.iter().filter(|server| server.contains('=')) {
            args.push(format!("--server={server}").into());
        }
        if global.trust {
            args.push("--trust".into());
        }
        Ok(Self {
            program: std::env::current_exe()?,
            args,
            log,
        })
    }

    /// Starts it. It is not waited for: if another daemon is faster, this one ends by itself.
    pub(crate) fn start(&self) -> io::Result<()> {
        if let Some(folder) = self.log.parent() {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let log = open_log(&self.log)?;
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        // Reaps the child, so that a daemon that exits first leaves no zombie.
        std::thread::Builder::new()
            .name("daemon".into())
            .spawn(move || child.wait())?;
        Ok(())
    }

    /// The log file of the daemon.
    pub(crate) fn log(&self) -> &std::path::Path {
        &self.log
    }
}
