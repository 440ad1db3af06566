//! What a server may access, worked out before it is spawned: its config, and what every program needs to run.

use std::path::{Path, PathBuf};

use super::program_folders::program_folders;
use crate::shim::sandboxed_servers;
use pegboard_config::{Command, Sandbox, SandboxLevel, SandboxNetwork};

/// Programs, libraries and settings of the system, and what resolvers of names read.
const SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
];

/// Language runtimes and their packages in the home directory. They can be read but not written: a server that could change a package
/// could run code in other servers.
const RUNTIMES: &[&str] = &[
    ".asdf",
    ".bun",
    ".cache/deno",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/puppeteer",
    ".cache/pypoetry/virtualenvs",
    ".cache/uv",
    ".cargo/bin",
    ".deno",
    ".dotnet",
    ".fnm",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/gem",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".m2/repository",
    ".nodenv",
    ".npm",
    ".npm-global",
    ".nvm",
    ".proto",
    ".pyenv",
    ".rbenv",
    ".rustup/toolchains",
    ".sdkman/candidates",
    ".virtualenvs",
    ".volta",
    "anaconda3",
    "go/bin",
    "miniconda3",
    "miniforge3",
];

/// Folders of many owners. They are allowed only by name.
const WIDE: &[&str] = &[
    "/", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var", "/var/tmp",
];

/// A file or folder in `sandbox.read` or `sandbox.write` that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingPath(pub(crate) PathBuf);

/// What a server may access. The launcher enforces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxPlan {
    pub(in crate::shim) level: SandboxLevel,
    pub(in crate::shim) require: bool,
    pub(in crate::shim) network: SandboxNetwork,
    pub(in crate::shim) read: Vec<PathBuf>,
    pub(in crate::shim) write: Vec<PathBuf>,
    /// The home directory, which the strict level hides.
    pub(in crate::shim) home: Option<PathBuf>,
    /// The folder to create a private folder for temporary files in.
    pub(in crate::shim) scratch: Option<PathBuf>,
}

impl SandboxPlan {
    /// The folder in which a strict sandbox, which has a mount of its own there, creates a private folder for temporary files. The folder
    /// itself is not writable, because others that the server may only read can be in it.
    pub(in crate::shim) const STRICT_SCRATCH: &'static str = "/tmp";

    /// The plan for a command that executes these files in `cwd`; `None` if it has no sandbox.
    pub(crate) fn new(
        command: &Command,
        files: &[PathBuf],
        cwd: &Path,
        home: Option<&Path>,
    ) -> Result<Option<Self>, MissingPath> {
        let Sandbox {
            level,
            network,
            require,
            ..
        } = &command.sandbox;
        if *level == SandboxLevel::Off {
            return Ok(None);
        }
        sandboxed_servers::note();
        let home = home.filter(|home| home.is_absolute()).map(resolve);
        let is_wide = |path: &Path| {
            WIDE.iter().any(|wide| path == Path::new(wide))
                || home.as_deref().is_some_and(|home| home.starts_with(path))
        };
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        if *level == SandboxLevel::Basic {
            read.extend(
                home.iter()
                    .flat_map(|home| RUNTIMES.iter().map(|folder| home.join(folder))),
            );
        }
        // A hidden folder in the home directory holds settings and secrets besides programs: `~/.local`, `~/.cargo`.
        // Paths of programs may lead through symbolic links, also to the home directory.
        let is_shared = |path: &Path| {
            let real = resolve(path);
            let is_hidden = |path: &Path| home.as_deref().is_some_and(|home| is_hidden_in(path, home));
            [path, real.as_path()]
                .into_iter()
                .any(|path| is_wide(path) || is_hidden(path))
        };
        // A server must not widen its sandbox by links or first lines of scripts in folders that it may write. Those are readable anyway.
        let write = keep_outer(&check_existing(&command.sandbox.write)?);
        let is_writable = |path: &Path| write.iter().any(|folder| is_in(path, folder));
        let trusted = files.iter().take_while(|file| !is_writable(file));
        for file in trusted.flat_map(|file| [file.clone(), resolve(file)]) {
            read.extend(program_folders(&file, is_shared));
        }
        let trusted = Some(cwd).filter(|cwd| !is_writable(cwd)).map(resolve);
        read.extend(trusted.filter(|cwd| !is_wide(cwd)));
        let named = check_existing(&command.sandbox.read)?;
        read.extend(named.into_iter().filter(|path| !is_writable(path)));
        // A strict sandbox has a mount of its own, unless it may fall back to a basic one.
        let may_be_basic = *level == SandboxLevel::Basic || !*require;
        let is_private = may_be_basic && !command.env.contains_key("TMPDIR");
        Ok(Some(Self {
            level: *level,
            require: *require,
            network: network.clone(),
            read,
            write,
            home,
            scratch: is_private.then(std::env::temp_dir),
        }))
    }

    /// Lets the server write another folder.
    pub(crate) fn with_write(mut self, folder: &Path) -> Self {
        self.write.push(resolve(folder));
        self
    }

    pub(in crate::shim) fn has_namespaces(&self) -> bool {
        self.level == SandboxLevel::Strict
    }

    /// The folder to create a private folder for temporary files in.
    pub(in crate::shim) fn scratch_base(&self) -> Option<&Path> {
        self.scratch.as_deref()
    }

    /// The existing files and folders that it allows, without symbolic links.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let all = self.named_paths();
        all.filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// The files and folders that it allows, as they are named.
    pub(super) fn named_paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.read.iter().chain(&self.write)
    }
}

/// The paths without those that are in another one.
fn keep_outer(paths: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |path: &PathBuf| paths.iter().any(|other| other != path && is_in(path, other));
    paths.iter().filter(|path| !is_inner(path)).cloned().collect()
}

/// Whether a path is, by its name, in this folder or in the target of this link.
fn is_in(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) || path.starts_with(resolve(folder))
}

fn is_hidden_in(path: &Path, home: &Path) -> bool {
    let name = path.strip_prefix(home).ok().and_then(Path::to_str);
    name.is_some_and(|name| name.starts_with('.') && !name.contains('/'))
}

/// The paths, if all of them exist: Landlock and mounts need that.
fn check_existing(paths: &[PathBuf]) -> Result<Vec<PathBuf>, MissingPath> {
    let exists = |path: &PathBuf| match path.canonicalize() {
        // The server may know it by a path through symbolic links, which a strict sandbox creates again.
        Ok(real) => Ok(std::path::absolute(path).unwrap_or(real)),
        Err(_) => Err(MissingPath(path.clone())),
    };
    paths.iter().map(exists).collect()
}

/// The path without symbolic links, where it exists.
fn resolve(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(level: SandboxLevel, file: &str, cwd: &str) -> SandboxPlan {
        let mut command = Command::new("x");
        command.sandbox.level = level;
        let home = Some(Path::new("/home/nobody-here"));
        SandboxPlan::new(&command, &[file.into()], Path::new(cwd), home)
            .unwrap()
            .unwrap()
    }

    fn reads(plan: &SandboxPlan, path: &str) -> bool {
        plan.read.iter().any(|allowed| Path::new(path).starts_with(allowed))
    }

    #[test]
    fn a_server_reads_the_system_its_program_and_its_working_directory() {
        let basic = plan(SandboxLevel::Basic, "/srv/app/bin/server", "/srv/work");
        for path in [
            "/usr/lib/x",
            "/srv/app/lib/x",
            "/srv/work/x",
            "/home/nobody-here/.npm/x",
        ] {
            assert!(reads(&basic, path), "{path}");
        }
        for path in [
            "/srv/other",
            "/home/nobody-here/.ssh/id",
            "/root/.kube/config",
            "/tmp/x",
        ] {
            assert!(!reads(&basic, path), "{path}");
        }
        assert!(basic.write.is_empty());
        let strict = plan(SandboxLevel::Strict, "/srv/app/bin/server", "/srv/work");
        assert!(!reads(&strict, "/home/nobody-here/.npm/x"));
        assert!(basic.scratch.is_some() && strict.scratch.is_none());
    }

    #[test]
    fn no_program_or_working_directory_opens_the_home_directory() {
        for (file, cwd) in [
            ("/home/nobody-here/bin/server", "/home/nobody-here"),
            ("/home/nobody-here/server", "/home"),
            ("/tmp/bin/server", "/tmp"),
            ("/server", "/"),
        ] {
            let plan = plan(SandboxLevel::Basic, file, cwd);
            assert!(reads(&plan, file), "{file}");
            for path in ["/home/nobody-here/.ssh/id", "/tmp/x", "/root/x"] {
                assert!(!reads(&plan, path), "{file} {cwd} {path}");
            }
        }
    }

    #[test]
    fn a_program_in_a_folder_of_settings_opens_only_the_folders_of_programs() {
        for level in [SandboxLevel::Basic, SandboxLevel::Strict] {
            for folder in [".local", ".cargo"] {
                let file = format!("/home/nobody-here/{folder}/bin/server");
                let plan = plan(level, &file, "/srv/work");
                assert!(reads(&plan, &file));
                for secret in ["share/keyrings/login", "credentials.toml", "state/x"] {
                    let secret = format!("/home/nobody-here/{folder}/{secret}");
                    assert!(!reads(&plan, &secret), "{secret}");
                }
            }
        }
    }

    #[test]
    fn a_link_to_the_home_directory_does_not_open_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/.local/bin")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("home")).unwrap();
        let mut command = Command::new("x");
        command.sandbox.level = SandboxLevel::Basic;
        let home = root.join("home");
        for file in ["server", ".local/bin/server"] {
            let plan = SandboxPlan::new(&command, &[home.join(file)], Path::new("/usr"), Some(&home));
            let plan = plan.unwrap().unwrap();
            let allowed = plan.paths();
            let opens = |path: &str| allowed.iter().any(|allowed| root.join(path).starts_with(allowed));
            assert!(
                !opens("real/.ssh") && !opens("real/.local/share"),
                "{file}: {allowed:?}"
            );
        }
    }

    #[test]
    fn a_server_cannot_widen_its_sandbox_by_links_in_a_folder_that_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for inner in ["project", "secret/bin", "secret/data"] {
            std::fs::create_dir_all(root.join(inner)).unwrap();
        }
        std::fs::write(root.join("secret/bin/tool"), "").unwrap();
        for (link, target) in [("server", "bin/tool"), ("data", "data"), ("node_modules", "data")] {
            std::os::unix::fs::symlink(root.join("secret").join(target), root.join("project").join(link)).unwrap();
        }
        let mut command = Command::new("x");
        command.sandbox.level = SandboxLevel::Basic;
        let project = |inner: &str| root.join("project").join(inner);
        command.sandbox.read = vec![project("data")];
        command.sandbox.write = vec![project("data"), root.join("project")];
        let files = [project("server"), root.join("secret/bin/tool")];
        let plan = SandboxPlan::new(&command, &files, &project("data"), None);
        let allowed = plan.unwrap().unwrap().paths();
        let is_opened = |path: &PathBuf| path.starts_with(root.join("secret"));
        assert!(!allowed.iter().any(is_opened), "{allowed:?}");
        assert!(allowed.contains(&root.join("project")));
    }

    #[test]
    fn a_strict_sandbox_has_temporary_files_also_if_it_falls_back_to_a_basic_one() {
        let mut command = Command::new("x");
        command.sandbox.level = SandboxLevel::Strict;
        command.sandbox.require = false;
        let plan = SandboxPlan::new(&command, &[], Path::new("/usr"), None);
        assert!(plan.unwrap().unwrap().scratch.is_some());
    }

    #[test]
    fn a_path_that_does_not_exist_is_reported() {
        let mut command = Command::new("x");
        command.sandbox.level = SandboxLevel::Basic;
        command.sandbox.write = vec!["/usr".into(), "/nonexistent/out".into()];
        let (files, cwd) = (["/bin/sh".into()], Path::new("/usr"));
        let missing = SandboxPlan::new(&command, &files, cwd, None).unwrap_err();
        assert_eq!(missing, MissingPath("/nonexistent/out".into()));
        command.sandbox.level = SandboxLevel::Off;
        assert_eq!(SandboxPlan::new(&command, &files, cwd, None), Ok(None));
    }
}
