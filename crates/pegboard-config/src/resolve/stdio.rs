//! Resolves the command of a stdio server and its environment.

use std::collections::BTreeMap;

use super::context::Context;
use crate::{
    code_variables::{decides_code, is_loader},
    env_file,
    fields::{ServerTable, sandbox, server},
    key::Table,
    problem::join,
    sandbox::{Sandbox, SandboxLevel, SandboxNetwork},
    secret_detection,
    setting::Text,
    transport::{Command, Rlimits},
    tree::Location,
};
use pegboard_base::{
    diagnosis::{Code, Edit},
    secret::Secret,
};

pub(super) fn command(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Command> {
    let mut words = values.get(&server::command).unwrap_or_default();
    words.extend(values.get(&server::args));
    let (program, args) = words.split_first().or_else(|| {
        let at = values.at(&server::command).unwrap_or(context.at);
        context.refuse(at, "command", "is empty")
    })?;
    if program.value.trim().is_empty() {
        return context.refuse(program.at, "command", "is empty");
    }
    if let Some(word) = words.iter().find(|word| word.value.contains('\0')) {
        return context.refuse(word.at, "command", "holds a zero byte");
    }
    hint_at_shell_line(context, program, args);
    warn_of_secrets(context, args);
    let mut command = with_surroundings(context, values, &program.value)?;
    command.args = args.iter().map(|arg| Secret::new(arg.value.as_str())).collect();
    command.rlimits = values
        .table(&server::rlimits)
        .map(|table| Rlimits::default().overlay(table))
        .unwrap_or_default();
    command.sandbox = values
        .table(&server::sandbox)
        .map(|table| sandbox(context, table))
        .unwrap_or_default();
    Some(command)
}

/// A command with the environment and the working directory of the server's table.
pub(super) fn with_surroundings(context: &mut Context<'_>, values: ServerTable<'_>, program: &str) -> Option<Command> {
    let mut command = Command::new(program_path(context, program));
    command.env_policy = values.get(&server::env_policy);
    command.cwd = values.get(&server::cwd).map(|cwd| context.resolve_path(&cwd));
    command.env = environment(context, values)?;
    Some(command)
}

/// Resolves a path relative to the config file. A bare name stays, to be looked up on the `PATH`.
fn program_path(context: &Context<'_>, written: &str) -> String {
    let is_path = written.contains('/') || (cfg!(windows) && written.contains('\\'));
    if !is_path {
        return written.to_owned();
    }
    let path = context.resolve_path(written);
    // Joined from two strings, so the conversion does not fail.
    path.into_os_string()
        .into_string()
        .unwrap_or_else(|_| written.to_owned())
}

/// A table without a level asks for `basic`.
fn sandbox(context: &Context<'_>, table: Table<'_, sandbox::In>) -> Sandbox {
    let level = table.get(&sandbox::level).unwrap_or(SandboxLevel::Basic);
    let paths = |written: Vec<String>| written.iter().map(|path| context.resolve_path(path)).collect();
    let network = match level {
        SandboxLevel::Strict => SandboxNetwork::Off,
        SandboxLevel::Off | SandboxLevel::Basic => SandboxNetwork::All,
    };
    Sandbox {
        level,
        read: paths(table.get(&sandbox::read)),
        write: paths(table.get(&sandbox::write)),
        network: table.get(&sandbox::network).unwrap_or(network),
        require: table.get(&sandbox::require),
    }
}

/// Warns about a command line in `command`, such as `"npx -y server"`: a common mistake.
fn hint_at_shell_line(context: &mut Context<'_>, program: &Text, args: &[Text]) {
    let mut words = program.written.split_whitespace();
    let first = words.next().unwrap_or_default();
    let rest: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    // A path may contain spaces.
    if args.is_empty() && !rest.is_empty() && !first.contains(['/', '\\']) {
        // The hint must not repeat secrets.
        let written: Vec<&str> = program.written.split_whitespace().skip(1).collect();
        let is_shown = secret_detection::literal_secret_args(&written).is_empty();
        let key = join(context.path, "command");
        let hint = match is_shown {
            true => format!("write `command = \"{first}\"` and `args = [{}]`", rest.join(", ")),
            false => "put the arguments in `args`".to_owned(),
        };
        context.report.warn_with(
            program.at,
            &key,
            "is taken as one program name with spaces in it",
            &hint,
        );
        let split = is_shown.then_some(Edit::SplitCommand { key });
        context.report.name_last(Code::CommandLine, split);
    }
}

fn warn_of_secrets(context: &mut Context<'_>, args: &[Text]) {
    let written: Vec<&str> = args.iter().map(|arg| arg.written.as_str()).collect();
    for index in secret_detection::literal_secret_args(&written) {
        if let Some(arg) = args.get(index) {
            context.report.warn_with(
                arg.at,
                &join(context.path, "args"),
                "an argument looks like a secret, and other users of the machine can see arguments",
                "put it in `env` as `${NAME}`",
            );
            context.report.name_last(Code::SecretInClear, None);
        }
    }
}

/// The variables that are set for the process: from `env_pass`, overridden by `env_file`, overridden by `env`.
fn environment(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut env = BTreeMap::new();
    let mut good = true;
    let allowed = values.get(&server::allow_loader_env);
    for name in values.get(&server::env_pass) {
        if let Some(value) = context.env.get(&name) {
            env.insert(name, Secret::new(value));
        }
    }
    if let Some(file) = values.get(&server::env_file) {
        let path = context.resolve_path(&file.value);
        match env_file::load(&path, context.env_files) {
            Ok(pairs) => env.extend(pairs.into_iter().map(|(name, value)| (name, Secret::new(value)))),
            Err(problem) => {
                good = false;
                context.report.error(file.at, &join(context.path, "env_file"), problem);
            }
        }
    }
    for (name, value) in values.get(&server::env) {
        if !env_file::is_name(&name) || value.value.contains('\0') {
            good = false;
            let path = join(&join(context.path, "env"), &name);
            context.report.error(value.at, &path, "cannot be a variable");
        }
        env.insert(name, Secret::new(value.value));
    }
    let at = values.at(&server::env).unwrap_or(context.at);
    let passed = values.get(&server::env_pass);
    for name in env.keys() {
        // The user's own settings of package managers are inherited anyway.
        let is_set = is_loader(name) || !passed.contains(name);
        if context.is_project() && decides_code(name) && is_set {
            good = false;
            refuse_in_project(context, name, at);
        } else if is_loader(name) && !allowed {
            good = false;
            refuse_loader(context, name, at);
        }
    }
    good.then_some(env)
}

/// A repository could make an ordinary command run any code with such a variable, in a value that few people can read.
fn refuse_in_project(context: &mut Context<'_>, name: &str, at: Location) {
    context.report.error_with(
        at,
        &join(&join(context.path, "env"), name),
        "decides which code the program runs, and a project file cannot set it",
        "set it for a server in a config file of your own, or name this file with `--config`",
    );
}

fn refuse_loader(context: &mut Context<'_>, name: &str, at: Location) {
    context.report.error_with(
        at,
        &join(&join(context.path, "env"), name),
        "would make the program load code that its command does not name",
        "set `allow_loader_env = true` if that is meant",
    );
}
