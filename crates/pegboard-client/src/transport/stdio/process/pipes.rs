//! The pipes to stdin, stdout and stderr of a child process.

#[cfg(target_os = "linux")]
pub(super) use linux::{ChildPipes, create};
#[cfg(target_os = "linux")]
pub use linux::{Pipes, StdinPipe};
#[cfg(not(target_os = "linux"))]
pub use other::{Pipes, StdinPipe};

/// On Linux the pipes are created here, because the guard may spawn the child.
#[cfg(target_os = "linux")]
mod linux {
    use std::{io, os::fd::OwnedFd};

    use tokio::net::unix::pipe;

    /// Our end of the pipe to stdin.
    pub type StdinPipe = pipe::Sender;

    /// Our ends of the pipes.
    #[derive(Debug)]
    pub struct Pipes {
        /// Its stdin, which dropping this closes.
        pub stdin: StdinPipe,
        /// Its stdout.
        pub stdout: pipe::Receiver,
        /// Its stderr.
        pub stderr: pipe::Receiver,
    }

    /// The child's ends of the pipes.
    pub(in super::super) struct ChildPipes {
        pub(in super::super) stdin: OwnedFd,
        pub(in super::super) stdout: OwnedFd,
        pub(in super::super) stderr: OwnedFd,
    }

    /// Creates the three pipes.
    pub(in super::super) fn create() -> io::Result<(Pipes, ChildPipes)> {
        let (stdin, our_stdin) = io::pipe()?;
        let (our_stdout, stdout) = io::pipe()?;
        let (our_stderr, stderr) = io::pipe()?;
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(our_stdin.into())?,
            stdout: pipe::Receiver::from_owned_fd(our_stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(our_stderr.into())?,
        };
        let child_pipes = ChildPipes {
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        Ok((pipes, child_pipes))
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

    /// Our end of the pipe to stdin.
    pub type StdinPipe = ChildStdin;

    /// Our ends of the pipes.
    #[derive(Debug)]
    pub struct Pipes {
        /// Its stdin, which dropping this closes.
        pub stdin: StdinPipe,
        /// Its stdout.
        pub stdout: ChildStdout,
        /// Its stderr.
        pub stderr: ChildStderr,
    }
}
