//! Findings about the program of a stdio server, before it is started: where it is, and whether it can run.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use pegboard::config::{Command, EnvPolicy};
use pegboard_hosts::{
    document::Document,
    executable::{is_executable, resolve},
};
use serde_json::json;

use super::{
    finding::{Finding, Remedy, ReportSection},
    fix,
    kinds::{self, ReachStep},
};

/// The PATH of a program that was started from a desktop and not from a shell.
#[cfg(target_os = "macos")]
const DESKTOP_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";
#[cfg(not(target_os = "macos"))]
const DESKTOP_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games:/snap/bin";

/// Programs that run a script which their arguments name, and the extensions of such scripts.
const INTERPRETERS: &[&str] = &[
    "python", "node", "bun", "deno", "tsx", "ts-node", "ruby", "perl", "php", "bash", "sh", "zsh",
];
const SCRIPTS: &[&str] = &["py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "sh"];

/// The longest first line of a script that is read.
const MAX_FIRST_LINE: u64 = 256;

/// A place in a config file where a server is written, for fixes.
pub(super) struct Written<'a> {
    pub(super) server: &'a str,
    pub(super) file: Option<&'a Path>,
}

impl Written<'_> {
    /// Writes the absolute path of a program in place of its name. `None` if the file does not have exactly this name, but a variable or a list.
    fn write_absolute_path(&self, command: &Command, program: &Path) -> Option<Remedy> {
        let file = self.file?;
        let path = ["servers", self.server, "command"].map(str::to_owned);
        let document = Document::open(file).ok()?;
        let found = document.get(&fix::place(&document, &path)?)?;
        // A `$` would begin a variable.
        let wanted = program.to_str()?.replace('$', "$$");
        (found == json!(command.program)).then(|| Remedy::Set {
            file: file.to_owned(),
            values: vec![(path.to_vec(), json!(wanted))],
        })
    }
}

/// Whether the program of a server is not where it would be started from.
pub(crate) fn is_missing(command: &Command) -> bool {
    resolve(&command.program, &path_of(command), command.cwd.as_deref()).is_none()
}

/// Adds what is found about a program.
pub(super) fn check(section: &mut ReportSection, command: &Command, written: &Written<'_>) {
    if let Some(folder) = command.cwd.as_ref().filter(|folder| !folder.is_dir()) {
        section.add_finding(
            Finding::new(
                &kinds::FOLDER_MISSING,
                format!("the folder {} does not exist", folder.display()),
            )
            .fix(format!("mkdir -p {}", folder.display())),
        );
        return;
    }
    let path = path_of(command);
    let Some(program) = resolve(&command.program, &path, command.cwd.as_deref()) else {
        section.add_finding(missing_program_finding(command, &path));
        return;
    };
    if !is_executable(&program) {
        section.add_finding(
            Finding::new(
                &kinds::PROGRAM_NOT_EXECUTABLE,
                format!("{} may not be executed", program.display()),
            )
            .fix(format!("chmod u+x {}", program.display()))
            .remedy(Remedy::Mode {
                path: program,
                add: 0o100,
                remove: 0,
            }),
        );
        return;
    }
    if let Some(interpreter) = missing_interpreter(&program, &path) {
        section.add_finding(
            Finding::new(
                &kinds::INTERPRETER_MISSING,
                format!(
                    "the first line of {} names `{interpreter}`, which is not installed",
                    program.display()
                ),
            )
            .fix(install(&interpreter)),
        );
        return;
    }
    if let Some(script) = missing_script(command) {
        section.add_finding(
            Finding::new(
                &kinds::SCRIPT_MISSING,
                format!("`{}` runs {}, which does not exist", command.program, script.display()),
            )
            .fix(format!("correct the path in `args` of servers.{}", written.server)),
        );
        return;
    }
    let is_bare = !command.program.contains(['/', '\\']);
    if is_bare {
        section.add_fine(
            ReachStep::Program,
            format!("`{}` is {}", command.program, program.display()),
        );
    } else {
        section.add_fine(ReachStep::Program, program.display().to_string());
    }
    let is_own_path = command.env.contains_key("PATH");
    if cfg!(unix) && is_bare && !is_own_path && resolve(&command.program, OsStr::new(DESKTOP_PATH), None).is_none() {
        let remedy = written.write_absolute_path(command, &program);
        let line = match remedy {
            Some(_) => format!("command = {:?}", program.display().to_string()),
            None => format!(
                "write {} where `command` of servers.{} has its program from",
                program.display(),
                written.server
            ),
        };
        let finding = Finding::new(
            &kinds::PATH_DIFFERS,
            format!(
                "a desktop program's PATH does not have {}",
                program.parent().unwrap_or(&program).display()
            ),
        );
        section.add_finding(finding.fix(line).remedy_if_any(remedy));
    }
}

/// A program as it is shown. One with options is a command line in the wrong place, whose options may be secrets.
pub(super) fn show(program: &str) -> String {
    match program.split_once(" -") {
        Some((program, _)) => format!("{program} …"),
        None => program.to_owned(),
    }
}

fn missing_program_finding(command: &Command, path: &OsStr) -> Finding {
    let program = show(&command.program);
    if program.contains(['/', '\\']) {
        let file = command
            .cwd
            .as_ref()
            .map_or_else(|| PathBuf::from(&program), |cwd| cwd.join(&program));
        if file.is_dir() {
            return Finding::new(&kinds::PROGRAM_NOT_EXECUTABLE, format!("{program} is a folder"))
                .fix("write the path of a program in `command`");
        }
        return Finding::new(&kinds::PROGRAM_MISSING, format!("{program} does not exist"))
            .fix("correct the path in `command`");
    }
    let found = match path.is_empty() {
        true => format!("`{program}` cannot be found, because the server has no PATH"),
        false => format!(
            "`{program}` is in no folder of the server's PATH: {}",
            path.to_string_lossy()
        ),
    };
    Finding::new(&kinds::PROGRAM_MISSING, found).fix(install(&program))
}

/// How a well-known program is installed.
fn install(program: &str) -> String {
    let known = match program.rsplit('/').next().unwrap_or(program) {
        "npx" | "npm" | "node" => "install Node.js: https://nodejs.org/en/download",
        "uvx" | "uv" => "curl -LsSf https://astral.sh/uv/install.sh | sh",
        "bunx" | "bun" => "curl -fsSL https://bun.sh/install | bash",
        "deno" => "curl -fsSL https://deno.land/install.sh | sh",
        "pipx" => "python3 -m pip install --user pipx",
        "docker" => "install Docker: https://docs.docker.com/get-docker/",
        "podman" => "install Podman: https://podman.io/docs/installation",
        "python" => "command = \"python3\"",
        "python3" => "install Python: https://www.python.org/downloads/",
        _ => return format!("install `{program}`, or write its absolute path in `command`"),
    };
    known.to_owned()
}

/// The PATH that the server gets.
pub(super) fn path_of(command: &Command) -> OsString {
    match (command.env.get("PATH"), command.env_policy) {
        (Some(path), _) => path.expose().into(),
        (None, EnvPolicy::Explicit) => OsString::new(),
        (None, _) => env::var_os("PATH").unwrap_or_default(),
    }
}

/// The interpreter in the first line of a script, if it is not installed.
fn missing_interpreter(program: &Path, path: &OsStr) -> Option<String> {
    if cfg!(windows) {
        return None;
    }
    let line = first_line(program)?;
    let mut words = line.split_whitespace();
    let interpreter = words.next()?;
    if !Path::new(interpreter).is_file() {
        return Some(interpreter.to_owned());
    }
    if interpreter.ends_with("/env") {
        let wanted = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return resolve(wanted, path, None).is_none().then(|| wanted.to_owned());
    }
    None
}

/// The first line of a script, after its `#!`.
pub(super) fn first_line(program: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(program)
        .ok()?
        .take(MAX_FIRST_LINE)
        .read_to_end(&mut start)
        .ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    Some(String::from_utf8_lossy(line).trim_end_matches('\r').to_owned())
}

/// The script that an interpreter is to run, if it does not exist.
fn missing_script(command: &Command) -> Option<PathBuf> {
    let name = command.program.rsplit(['/', '\\']).next()?.trim_end_matches(".exe");
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let mut args = command
        .args
        .iter()
        .map(pegboard::Secret::expose)
        .filter(|arg| *arg != "run");
    let first = args.find(|arg| !arg.starts_with('-'))?;
    // `-c` and `-m` take code and modules.
    let takes_code = command
        .args
        .iter()
        .any(|arg| ["-c", "-m", "-e", "--eval"].contains(&arg.expose()));
    let script = Path::new(first);
    let is_script = script
        .extension()
        .is_some_and(|found| SCRIPTS.iter().any(|known| found == *known));
    if takes_code || !is_script || first.contains("://") {
        return None;
    }
    let file = command
        .cwd
        .as_ref()
        .map_or_else(|| script.to_owned(), |cwd| cwd.join(script));
    (!file.exists()).then_some(file)
}
