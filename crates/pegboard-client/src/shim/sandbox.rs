//! The sandbox of a server: a plan that the program makes (`plan`, `program_folders`, `package_cache`), and the parts that the launcher
//! enforces on itself before it executes the server: access to files (`file_access`), namespaces (`namespaces`, `links`) and system calls
//! (`syscall_filter`).

mod file_access;
mod links;
pub(super) mod namespaces;
mod package_cache;
mod plan;
mod program_folders;
mod syscall_filter;

pub(crate) use package_cache::PackageCache;
pub(crate) use plan::{MissingPath, SandboxPlan};

use std::{fs::File, os::unix::fs::FileExt as _, path::Path, sync::Arc};

use crate::shim::SandboxStatus;
use pegboard_config::{SandboxLevel, SandboxNetwork};

/// The first line of a report.
const TITLE: &str = "sandbox";
/// The longest report that is read.
const MAX_REPORT: usize = 8 << 10;

/// Which parts of a sandbox are in force.
#[derive(Debug)]
pub(super) struct Enforcement {
    is_required: bool,
    requested: SandboxLevel,
    in_force: SandboxLevel,
    missing: Vec<String>,
}

impl Enforcement {
    pub(super) fn new(plan: &SandboxPlan) -> Self {
        Self {
            is_required: plan.require,
            requested: plan.level,
            in_force: plan.level,
            missing: Vec::new(),
        }
    }

    /// Records that a part is not in force. Fails if the server must not run without it.
    pub(super) fn lacks(&mut self, part: SandboxPart, why: &str) -> Result<(), String> {
        let (name, level) = match part {
            SandboxPart::Files => ("access to files", SandboxLevel::Off),
            SandboxPart::Namespaces => ("namespaces", SandboxLevel::Basic),
            SandboxPart::SystemCalls => ("system calls", SandboxLevel::Basic),
            SandboxPart::Network => ("network", self.in_force),
        };
        if self.is_required {
            return self.refuses(name, why);
        }
        self.in_force = self.in_force.min(level);
        self.notes(name, why);
        Ok(())
    }

    /// The refusal of a server that must not run without a part.
    pub(super) fn refuses(&self, name: &str, why: &str) -> Result<(), String> {
        let requested = self.requested.as_str();
        Err(format!(
            "its sandbox `{requested}` is not in force, so it was not started: {name}: {why}"
        ))
    }

    /// Records that a part is not in force which only some kernels have.
    fn notes(&mut self, name: &str, why: &str) {
        self.missing.push(format!("{name}: {why}"));
    }

    /// Restricts this process: its files, signals, network and system calls. Processes that it spawns or executes keep the restrictions.
    pub(super) fn restrict(&mut self, plan: &SandboxPlan, scratch: Option<&Path>) -> Result<(), String> {
        match file_access::restrict(plan, scratch) {
            Ok(landlock) => {
                for (name, why) in landlock.missing_parts() {
                    self.notes(name, why);
                }
                if matches!(plan.network, SandboxNetwork::Ports(_)) && !landlock.restricts_tcp() {
                    self.lacks(SandboxPart::Network, "ports need Linux 6.7 or later")?;
                }
            }
            Err(why) => {
                self.lacks(SandboxPart::Files, &why)?;
                if matches!(plan.network, SandboxNetwork::Ports(_)) {
                    self.lacks(SandboxPart::Network, &why)?;
                }
            }
        }
        // Last, because it denies system calls that the other parts need.
        if let Err(why) = syscall_filter::apply(plan) {
            if plan.level == SandboxLevel::Strict {
                self.lacks(SandboxPart::SystemCalls, &why)?;
            }
            if plan.network == SandboxNetwork::Off {
                self.lacks(SandboxPart::Network, &why)?;
            }
        }
        Ok(())
    }

    /// The report for the program.
    pub(super) fn report(&self) -> String {
        let mut report = format!("{TITLE}\n{}\n", self.in_force.as_str());
        for missing in &self.missing {
            report.push_str(&missing.replace('\n', " "));
            report.push('\n');
        }
        report
    }
}

/// A part that a level of the sandbox consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxPart {
    Files,
    Namespaces,
    SystemCalls,
    Network,
}

/// What a launcher reports about the sandbox of its server.
#[derive(Debug, Clone)]
pub(crate) struct SandboxReport {
    requested: SandboxLevel,
    file: Arc<File>,
}

impl SandboxReport {
    /// A report that is, or will be, in this file.
    pub(super) fn new(requested: SandboxLevel, file: File) -> Self {
        Self {
            requested,
            file: Arc::new(file),
        }
    }

    /// What is in force, once that is known.
    pub(crate) fn status(&self) -> SandboxStatus {
        let mut status = SandboxStatus::from_requested(self.requested.as_str());
        let mut bytes = vec![0; MAX_REPORT];
        let length = self.file.read_at(&mut bytes, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default());
        let mut lines = text.lines();
        if lines.next() == Some(TITLE) {
            let levels = [SandboxLevel::Off, SandboxLevel::Basic, SandboxLevel::Strict].map(SandboxLevel::as_str);
            status.in_force = lines
                .next()
                .and_then(|line| levels.into_iter().find(|level| *level == line));
            status.missing = lines.map(str::to_owned).collect();
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use pegboard_config::Command;

    fn enforcement(level: SandboxLevel, require: bool) -> Enforcement {
        let mut command = Command::new("x");
        command.sandbox.level = level;
        command.sandbox.require = require;
        let plan = SandboxPlan::new(&command, &["/bin/sh".into()], Path::new("/usr"), None);
        Enforcement::new(&plan.unwrap().unwrap())
    }

    fn read(report: &str) -> SandboxStatus {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(report.as_bytes()).unwrap();
        SandboxReport::new(SandboxLevel::Strict, file).status()
    }

    #[test]
    fn a_report_names_what_is_in_force_and_what_is_missing() {
        let mut enforcement = enforcement(SandboxLevel::Strict, false);
        assert_eq!(read(&enforcement.report()).in_force, Some("strict"));
        enforcement
            .lacks(SandboxPart::Namespaces, "user namespaces\nare denied")
            .unwrap();
        let status = read(&enforcement.report());
        assert_eq!((status.requested, status.in_force), ("strict", Some("basic")));
        assert_eq!(status.missing, ["namespaces: user namespaces are denied"]);
        enforcement.lacks(SandboxPart::Files, "no Landlock").unwrap();
        assert_eq!(read(&enforcement.report()).in_force, Some("off"));
    }

    #[test]
    fn before_the_launcher_has_reported_nothing_is_in_force() {
        for text in ["", "sandbox", "sandbox\nothers\n", "\0\0\0\0\0\0\0\0strict"] {
            assert_eq!(read(text).in_force, None, "{text:?}");
        }
    }

    #[test]
    fn a_required_part_that_is_missing_refuses_the_server() {
        let mut enforcement = enforcement(SandboxLevel::Basic, true);
        let refusal = enforcement.lacks(SandboxPart::Files, "no Landlock").unwrap_err();
        assert_eq!(
            refusal,
            "its sandbox `basic` is not in force, so it was not started: access to files: no Landlock"
        );
    }
}
