//! How and why a wire ended.

use std::{fmt, time::Duration};

use pegboard_base::diagnosis::StderrClue;
use pegboard_mask::ServerMasker;

/// The level that hides files, which then seem not to exist.
const HIDING: &str = "strict";

/// How a wire ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WireEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// The end of the process's stderr.
    pub stderr: Option<String>,
    /// The process's sandbox, if it has one.
    pub(crate) sandbox: Option<EndedSandbox>,
}

/// The sandbox of a process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedSandbox {
    /// It was at this level.
    InForce(&'static str),
    /// It could not be enforced, and the server was not started without it.
    NotInForce,
}

impl WireEnd {
    /// Creates an end without stderr or a sandbox.
    pub fn new(reason: EndReason) -> Self {
        Self {
            reason,
            stderr: None,
            sandbox: None,
        }
    }

    /// What to do if the sandbox was not in force, or if the server's last words suggest that it denied what the server needs.
    pub(crate) fn sandbox_hint(&self) -> Option<&'static str> {
        let level = match self.sandbox? {
            EndedSandbox::InForce(level) => level,
            EndedSandbox::NotInForce => {
                return Some(
                    "see \"What is in force\" in the documentation of `sandbox`, or start the server with less by `sandbox.require = false`",
                );
            }
        };
        let words = self.stderr.as_deref()?;
        let is_hidden = || {
            [StderrClue::FileMissing, StderrClue::ModuleMissing]
                .iter()
                .any(|clue| clue.is_in(words))
        };
        if StderrClue::FileDenied.is_in(words) || level == HIDING && is_hidden() {
            return Some(
                "its sandbox may deny a file that it needs; name the file or its folder in `sandbox.read` or `sandbox.write` of the server",
            );
        }
        StderrClue::NetworkDenied
            .is_in(words)
            .then_some("its sandbox may deny the network that it needs; see `sandbox.network` of the server")
    }

    /// Masks secrets in the server's text.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        masker.hide_in(&mut self.stderr);
        match &mut self.reason {
            EndReason::Exited(Exit::Unknown(text))
            | EndReason::Broken(text)
            | EndReason::Protocol(text)
            | EndReason::Flood { first_line: text, .. }
            | EndReason::Replaced(text) => masker.hide(text),
            EndReason::Closed
            | EndReason::Eof
            | EndReason::Exited(Exit::Code(_) | Exit::Signal(_))
            | EndReason::Stalled(_)
            | EndReason::TooLarge(_) => {}
        }
    }
}

/// Why a wire ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EndReason {
    /// This side closed it.
    #[error("it was closed")]
    Closed,
    /// The server closed its output.
    #[error("the server closed its output")]
    Eof,
    /// The server's process exited with this status.
    #[error("the server's process ended: {0}")]
    Exited(Exit),
    /// The connection failed with this error.
    #[error("the connection failed: {0}")]
    Broken(String),
    /// The server did not read its input for this long.
    #[error("the server did not read its input for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The server broke the protocol in this way.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The server filled its output with text and wrote no message.
    #[error(
        "the server broke the protocol: it printed {lines} lines of text and no message; the first is {first_line:?}"
    )]
    Flood {
        /// The number of lines.
        lines: usize,
        /// The beginning of the first line.
        first_line: String,
    },
    /// A message exceeded the limit so far that it could not be skipped.
    #[error("the server sent a message larger than {0} bytes, the limit that `max_message` sets")]
    TooLarge(usize),
    /// The session has to be replaced by a new one, although the connection is still open.
    #[error("{0}")]
    Replaced(String),
}

/// How a process exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// The system does not tell, for this reason.
    Unknown(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl EndReason {
    /// Whether a server that ended like this during the handshake may accept the other protocol era. It cannot if its program was not found
    /// (shells and wrappers exit with 126 or 127) or prints text instead of messages.
    pub(crate) fn may_speak_other_era(&self) -> bool {
        match self {
            Self::Exited(exit) => !matches!(exit, Exit::Code(126 | 127)),
            Self::Protocol(_) | Self::Flood { .. } => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(sandbox: Option<EndedSandbox>, stderr: &str) -> &'static str {
        let mut end = WireEnd::new(EndReason::Exited(Exit::Code(1)));
        (end.sandbox, end.stderr) = (sandbox, Some(stderr.to_owned()));
        end.sandbox_hint().unwrap_or_default()
    }

    #[test]
    fn a_denial_in_a_sandbox_leads_to_its_settings() {
        let (basic, strict) = (EndedSandbox::InForce("basic"), EndedSandbox::InForce("strict"));
        for (sandbox, stderr, part) in [
            (basic, "npm error code EACCES", "`sandbox.read` or `sandbox.write`"),
            (
                basic,
                "PermissionError: [Errno 13] Permission denied: '/x'",
                "`sandbox.read`",
            ),
            (strict, "Error: Cannot find module '/x'", "`sandbox.read`"),
            (strict, "connect EPERM 1.1.1.1:443", "`sandbox.network`"),
            (
                EndedSandbox::NotInForce,
                "npm error code EACCES",
                "`sandbox.require = false`",
            ),
        ] {
            let told = hint(Some(sandbox), stderr);
            assert!(told.contains(part), "{stderr}: {told}");
        }
    }

    #[test]
    fn other_words_lead_nowhere() {
        assert_eq!(hint(None, "npm error code EACCES"), "");
        for stderr in [
            "usage: server FOLDER",
            "Error: Cannot find module '/x'",
            "its sandbox `strict` is not in force",
        ] {
            assert_eq!(hint(Some(EndedSandbox::InForce("basic")), stderr), "", "{stderr}");
        }
    }
}
