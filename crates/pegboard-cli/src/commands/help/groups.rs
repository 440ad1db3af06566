//! The groups of commands, as the first help screen and `pegboard help --all` show them.

use std::fmt::Write as _;

use clap::Command;

/// Commands that belong together.
pub(super) struct Group {
    /// The word for it after `pegboard help`.
    pub(super) word: &'static str,
    title: &'static str,
    /// The commands that the first screen shows.
    common: &'static [&'static str],
    /// Those that only the group itself shows.
    rare: &'static [&'static str],
}

/// All groups. A name that is no command of this program is left out.
pub(super) const GROUPS: &[Group] = &[
    Group {
        word: "use",
        title: "Use",
        common: &["tools", "call", "resources", "prompts", "status"],
        rare: &["run", "skills", "context", "completions"],
    },
    Group {
        word: "servers",
        title: "Servers",
        common: &["add", "list", "remove", "find", "login"],
        rare: &[
            "get", "enable", "disable", "rename", "add-json", "logout", "secret", "trust",
        ],
    },
    Group {
        word: "hosts",
        title: "Hosts",
        common: &["init", "import", "install"],
        rare: &["uninstall"],
    },
    Group {
        word: "gateway",
        title: "Gateway",
        common: &["serve", "mcp"],
        rare: &["daemon", "open", "health", "token"],
    },
    Group {
        word: "write",
        title: "Write servers",
        common: &["generate", "record", "torture"],
        rare: &["replay", "demo-server", "mask"],
    },
    Group {
        word: "inspect",
        title: "Inspect",
        common: &["doctor", "logs", "config"],
        rare: &["pins", "audit"],
    },
];

/// The widths of the columns before what a command does.
const TITLE: usize = 15;
const NAME: usize = 12;

/// The group that is called so after `pegboard help`.
pub(super) fn find(word: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.word == word)
}

/// The common commands of all groups, or with `is_whole` all of them.
pub(super) fn table(definition: &Command, is_whole: bool) -> String {
    GROUPS.iter().map(|group| group.rows(definition, is_whole)).collect()
}

impl Group {
    /// The first command of the group, whose help is an example of more.
    pub(super) fn example(&self) -> &'static str {
        self.common.first().copied().unwrap_or_default()
    }

    /// One line for each command, the first one after the title.
    pub(super) fn rows(&self, definition: &Command, is_whole: bool) -> String {
        let rare = if is_whole { self.rare } else { &[] };
        let commands = self.common.iter().chain(rare);
        let known = commands.filter_map(|name| definition.find_subcommand(name));
        let mut text = String::new();
        for (row, command) in known.enumerate() {
            let title = if row == 0 { self.title } else { "" };
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "{}{title:TITLE$}{}{:NAME$}{about}",
                BOLD,
                PLAIN,
                command.get_name()
            );
        }
        text
    }
}

/// Bold at a terminal; elsewhere clap removes both.
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let names: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.common.iter().chain(group.rare))
            .copied()
            .collect();
        let definition = Cli::command();
        for command in definition.get_subcommands().filter(|command| !command.is_hide_set()) {
            let of_it = names.iter().filter(|name| **name == command.get_name());
            assert_eq!(of_it.count(), 1, "{}", command.get_name());
        }
        for group in GROUPS {
            assert!(definition.find_subcommand(group.word).is_none(), "{}", group.word);
        }
    }
}
