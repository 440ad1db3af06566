//! A folder that is a home, with a config of real servers, and a work folder for each client.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// The variable that marks every process that is started in a scratch folder.
pub(crate) const MARK: &str = "PEGBOARD_TEST_SCRATCH";

/// The smallest file that passes for an image by its name.
const DOT: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The scratch folder of one test.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// It is removed when dropped.
    _folder: TempDir,
    home: PathBuf,
}

impl Scratch {
    /// Makes the folder and writes the user's config.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The servers compare canonical paths; the folder for temporary files may be a symlink.
        let home = folder.path().canonicalize().unwrap();
        let scratch = Self { _folder: folder, home };
        fs::create_dir_all(scratch.home.join(".config/pegboard")).unwrap();
        let memory = scratch.home.join("memory.jsonl");
        fs::write(
            scratch.home.join(".config/pegboard/pegboard.toml"),
            scratch.config(&memory),
        )
        .unwrap();
        fs::create_dir(scratch.work()).unwrap();
        // The git server wants its folder to be a repository, and accepts all repositories below it.
        scratch.git(&scratch.work(), &["init", "-q"]);
        scratch.plant(&scratch.home.join("template"));
        scratch
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    fn work(&self) -> PathBuf {
        self.home.join("work")
    }

    /// A work folder for one client: a repository with a commit, a change and an image.
    pub(crate) fn folder(&self, label: &str) -> PathBuf {
        let folder = self.work().join(label);
        copy(&self.home.join("template"), &folder);
        folder
    }

    /// A config file for one client with servers of its own. Its memory server has a file of its own too: two of them
    /// on one file lose each other's changes.
    pub(crate) fn config_file(&self, label: &str) -> PathBuf {
        let file = self.home.join(format!("{label}.toml"));
        let memory = self.home.join(format!("{label}-memory.jsonl"));
        fs::write(&file, self.config(&memory)).unwrap();
        file
    }

    fn plant(&self, folder: &Path) {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("tree.txt"), "oak\n").unwrap();
        fs::write(folder.join("dot.png"), DOT).unwrap();
        let commands: [&[&str]; 5] = [
            &["init", "-q", "-b", "main", "--template="],
            &["config", "user.name", "Ada"],
            &["config", "user.email", "ada@example.com"],
            &["add", "tree.txt"],
            &["commit", "-q", "-m", "Plant a tree"],
        ];
        for words in commands {
            self.git(folder, words);
        }
        fs::write(folder.join("tree.txt"), "oak\nelm\n").unwrap();
    }

    fn git(&self, folder: &Path, words: &[&str]) {
        let mut git = self.command(Path::new("git"));
        assert!(
            git.args(words).current_dir(folder).status().unwrap().success(),
            "git {words:?}"
        );
    }

    /// A command with an environment of its own.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.home)
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.home)
            .env(MARK, &self.home)
            .stdin(Stdio::null());
        command
    }

    /// The five reference servers, and a server on each SDK that asks its user a question.
    fn config(&self, memory: &Path) -> String {
        let work = self.work().display().to_string();
        let reference = |package: &str| {
            peers(&format!(
                "npm/node_modules/@modelcontextprotocol/{package}/dist/index.js"
            ))
        };
        let python = |program: &str| peers(&format!("python-modern/bin/{program}"));
        let (git, time) = (python("mcp-server-git"), python("mcp-server-time"));
        let servers = [
            // A question of a server with a handshake reaches a user only if no call of another one is in flight.
            (
                "everything",
                vec![node(), reference("server-everything")],
                "queue = \"asking\"\n",
            ),
            ("files", vec![node(), reference("server-filesystem"), work.clone()], ""),
            ("git", vec![git, "--repository".to_owned(), work], ""),
            // It loses changes that are made at the same time.
            (
                "memory",
                vec![node(), reference("server-memory")],
                "queue = \"writing\"\n",
            ),
            (
                "time",
                vec![time, "--local-timezone".to_owned(), "Etc/UTC".to_owned()],
                "",
            ),
            (
                "python",
                vec![python("python"), source("python_modern.py")],
                "era = \"modern\"\n",
            ),
            (
                "typescript",
                vec![node(), source("typescript_modern.mjs")],
                "era = \"modern\"\n",
            ),
        ];
        let mut config = "[queues]\nasking = { concurrent = 1 }\nwriting = { concurrent = 1 }\n".to_owned();
        for (name, words, more) in servers {
            let (program, arguments) = words.split_first().unwrap();
            let mut env = format!("{MARK} = {:?}", self.home);
            if name == "memory" {
                env += &format!(", MEMORY_FILE_PATH = {memory:?}");
            }
            config +=
                &format!("\n[servers.{name}]\ncommand = {program:?}\nargs = {arguments:?}\nenv = {{ {env} }}\n{more}");
        }
        config
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A file that `scripts/peers` installs.
pub(crate) fn peers(file: &str) -> String {
    let home = repository().join("target/peers");
    assert!(home.join("npm/.stamp").exists(), "run scripts/peers first");
    home.join(file).display().to_string()
}

/// A file of `tests/peers`.
pub(crate) fn source(file: &str) -> String {
    repository().join("tests/peers").join(file).display().to_string()
}

pub(crate) fn node() -> String {
    peers("npm/node_modules/.bin/node")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}
