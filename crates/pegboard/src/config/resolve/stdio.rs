//! The command of a stdio server and its environment.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use super::Resolve;
use crate::{
    config::{
        Command, EnvPolicy, Rlimits, env_file, is_loader,
        problem::join,
        setting::{Setting, Text, Values},
        suspect,
        tree::Place,
    },
    secret::Secret,
};

pub(super) fn command(resolve: &mut Resolve<'_>, values: &Values) -> Option<Command> {
    let mut words: Vec<&Text> = match values.get("command") {
        Some(Setting::List(_)) => values.texts("command"),
        _ => values.text("command").into_iter().collect(),
    };
    words.extend(values.texts("args"));
    let (program, args) = words.split_first().or_else(|| {
        let at = values.at("command").unwrap_or(resolve.at);
        resolve.refuse(at, "command", "is empty")
    })?;
    if program.value.trim().is_empty() {
        return resolve.refuse(program.at, "command", "is empty");
    }
    if let Some(word) = words.iter().find(|word| word.value.contains('\0')) {
        return resolve.refuse(word.at, "command", "holds a zero byte");
    }
    hint_at_shell_line(resolve, program, args);
    warn_of_secrets(resolve, args);
    let mut command = Command::new(program_path(resolve, &program.value));
    command.args = args.iter().map(|arg| Secret::new(arg.value.as_str())).collect();
    command.env_policy = match values.word("env_policy") {
        Some("inherit") => EnvPolicy::Inherit,
        Some("explicit") => EnvPolicy::Explicit,
        _ => EnvPolicy::Allowlist,
    };
    command.cwd = values.text("cwd").map(|cwd| resolve.resolve_path(&cwd.value));
    command.rlimits = values.table("rlimits").map(rlimits).unwrap_or_default();
    command.env = environment(resolve, values)?;
    Some(command)
}

/// A path is relative to the config file; a name is looked up on the `PATH`.
fn program_path(resolve: &Resolve<'_>, written: &str) -> String {
    let is_path = written.contains('/') || (cfg!(windows) && written.contains('\\'));
    if !is_path {
        return written.to_owned();
    }
    let path = resolve.resolve_path(written);
    // It comes from two texts, so that it is one.
    path.into_os_string()
        .into_string()
        .unwrap_or_else(|_| written.to_owned())
}

fn rlimits(table: &Values) -> Rlimits {
    let number = |name: &str| table.count(name).map(|count| count as u64);
    Rlimits {
        open_files: number("open_files"),
        data_bytes: number("memory"),
        processes: number("processes"),
        file_bytes: number("file_size"),
    }
}

/// `command = "npx -y server"` names no program; it is a common slip.
fn hint_at_shell_line(resolve: &mut Resolve<'_>, program: &Text, args: &[&Text]) {
    let mut words = program.written.split_whitespace();
    let first = words.next().unwrap_or_default();
    let rest: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    // A path may well have spaces in it.
    if args.is_empty() && !rest.is_empty() && !first.contains(['/', '\\']) {
        // Arguments may be secrets.
        let written: Vec<&str> = program.written.split_whitespace().skip(1).collect();
        let hint = match suspect::secret_args(&written).is_empty() {
            true => format!("write `command = \"{first}\"` and `args = [{}]`", rest.join(", ")),
            false => "put the arguments in `args`".to_owned(),
        };
        resolve.report.warn_with(
            program.at,
            &join(resolve.path, "command"),
            "is taken as one program name with spaces in it",
            &hint,
        );
    }
}

fn warn_of_secrets(resolve: &mut Resolve<'_>, args: &[&Text]) {
    let written: Vec<&str> = args.iter().map(|arg| arg.written.as_str()).collect();
    for index in suspect::secret_args(&written) {
        if let Some(arg) = args.get(index) {
            resolve.report.warn_with(
                arg.at,
                &join(resolve.path, "args"),
                "an argument looks like a secret, and other users of the machine can see arguments",
                "put it in `env` as `${NAME}`",
            );
        }
    }
}

/// The variables set for the process: passed on, then from the file, then from the table.
fn environment(resolve: &mut Resolve<'_>, values: &Values) -> Option<BTreeMap<String, Secret>> {
    let mut env = BTreeMap::new();
    let mut good = true;
    let allowed = values.bool("allow_loader_env").unwrap_or(false);
    for name in values.strings("env_pass") {
        if let Some(value) = resolve.env.get(&name) {
            env.insert(name, Secret::new(value));
        }
    }
    if let Some(file) = values.text("env_file") {
        let path = resolve.resolve_path(&file.value);
        match read_file(&path) {
            Ok(pairs) => env.extend(pairs.into_iter().map(|(name, value)| (name, Secret::new(value)))),
            Err(problem) => {
                good = false;
                resolve.report.error(file.at, &join(resolve.path, "env_file"), problem);
            }
        }
    }
    for (name, value) in values.map("env") {
        if !env_file::is_name(name) || value.value.contains('\0') {
            good = false;
            let path = join(&join(resolve.path, "env"), name);
            resolve.report.error(value.at, &path, "cannot be a variable");
        }
        env.insert(name.clone(), Secret::new(value.value.as_str()));
    }
    for name in env.keys().filter(|name| is_loader(name) && !allowed) {
        good = false;
        let at = values.at("env").unwrap_or(resolve.at);
        refuse_loader(resolve, name, at);
    }
    good.then_some(env)
}

fn refuse_loader(resolve: &mut Resolve<'_>, name: &str, at: Place) {
    resolve.report.error_with(
        at,
        &join(&join(resolve.path, "env"), name),
        "would make the program load code that its command does not name",
        "set `allow_loader_env = true` if that is meant",
    );
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, String> {
    let limit = env_file::MAX_BYTES as u64;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_string(&mut text))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if text.len() as u64 > limit {
        return Err(format!("{} is larger than 1 MiB", path.display()));
    }
    env_file::read(&text).map_err(|line| format!("{}:{line} is not `NAME=value`", path.display()))
}
