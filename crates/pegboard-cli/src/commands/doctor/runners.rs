//! The programs that a command runs, as far as its config and the first line of a script tell. They decide what words on stderr mean.

use std::path::Path;

use pegboard::config::Command;
use pegboard_hosts::executable::resolve;

use super::program;

/// Programs that run the program which their arguments name.
const LAUNCHERS: &[&str] = &["sh", "bash", "dash", "zsh", "env", "sudo", "cmd", "wsl"];

/// The names of the programs: that of the command, those in the arguments of a launcher, and the interpreter of a script.
pub(super) fn names(command: &Command) -> Vec<String> {
    let mut names = vec![bare(&command.program)];
    if LAUNCHERS.contains(&names[0].as_str()) {
        let words = command.args.iter().flat_map(|arg| arg.expose().split_whitespace());
        names.extend(words.map(bare));
    }
    let file = resolve(&command.program, &program::path_of(command), command.cwd.as_deref());
    let interpreter = file.and_then(|file| interpreter(&file));
    names.extend(interpreter.as_deref().map(bare));
    names
}

/// The program that the first line of a script names, itself or after `env`.
fn interpreter(file: &Path) -> Option<String> {
    let words = program::first_line(file)?;
    let mut words = words.split_whitespace();
    let first = words.next()?;
    match bare(first) == "env" {
        true => words.find(|word| !word.starts_with('-') && !word.contains('=')),
        false => Some(first),
    }
    .map(str::to_owned)
}

/// A program's name without folder, extension and version number.
fn bare(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = [".exe", ".cmd"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_name_alone() {
        for (program, expected) in [
            ("python3.12", "python"),
            ("/usr/bin/node", "node"),
            (r"C:\nodejs\npx.cmd", "npx"),
            ("docker-compose", "docker-compose"),
        ] {
            assert_eq!(bare(program), expected);
        }
    }

    #[test]
    fn a_script_is_run_by_the_interpreter_of_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        for (line, expected) in [
            ("#!/opt/venv/bin/python3\n", Some("/opt/venv/bin/python3")),
            ("#!/usr/bin/env -S A=b node --quiet\n", Some("node")),
            ("print('no script')\n", None),
        ] {
            let file = folder.path().join("script");
            std::fs::write(&file, line).unwrap();
            assert_eq!(interpreter(&file).as_deref(), expected, "{line}");
        }
    }
}
