//! `pegboard __complete`: candidates for the shell's completion, from the definitions of commands, the config and pinned tools. No server is started.

mod bash_line;
mod candidate;
mod files;
mod known_tools;

use clap::{Arg, Args, Command};
use pegboard::Loaded;
use pegboard_hosts::hosts::HOSTS;

use super::{command::Run, context::Context};
use crate::{cli::Global, exit::Exit, output::Report, settings::Settings};
use bash_line::BashLine;
use candidate::Candidate;
use known_tools::KnownTools;

/// The most candidates that are printed.
const MAX_CANDIDATES: usize = 1000;

/// Print the candidates for a shell's completion
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Complete {
    /// The word that is typed is empty, and not among the words
    #[arg(long)]
    new_word: bool,
    /// The words are bash's `COMP_WORDBREAKS` and its line up to the cursor; the candidates are what it is to insert
    #[arg(long)]
    bash_line: bool,
    /// The words after the program's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What is typed at the shell.
#[derive(Debug)]
enum Typed {
    /// The words after the program's name, without quotes. The last one is being typed.
    Words(Vec<String>),
    /// The line of bash up to the cursor, and the characters that break its words.
    BashLine { breaks: String, line: String },
}

impl Complete {
    fn into_typed(mut self) -> Typed {
        if self.bash_line {
            let mut words = self.words.into_iter();
            let (breaks, line) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            return Typed::BashLine { breaks, line };
        }
        self.words.extend(self.new_word.then(String::new));
        Typed::Words(self.words)
    }
}

impl Run for Complete {
    /// Prints one candidate per line, with its description after a tab.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let mut report = Report::new(Exit::Done);
        let definition = context.definition;
        report.data = match self.into_typed() {
            Typed::Words(words) => lines(complete_words(definition(), &words)),
            Typed::BashLine { breaks, line } => {
                let line = BashLine::read(&breaks, &line);
                let found = complete_words(definition(), line.words.get(1..).unwrap_or_default());
                lines(found.into_iter().map(|one| Candidate {
                    value: line.text_to_insert(&one.value),
                    ..one
                }))
            }
        };
        context.output.never_page();
        context.print(report).await
    }
}

fn lines(found: impl IntoIterator<Item = Candidate>) -> String {
    let mut text = String::new();
    for candidate in found.into_iter().take(MAX_CANDIDATES) {
        text.push_str(&candidate.value);
        if !candidate.about.is_empty() {
            text.push('\t');
            text.push_str(&candidate.about);
        }
        text.push('\n');
    }
    text
}

/// The candidates for the last word.
fn complete_words(root: Command, words: &[String]) -> Vec<Candidate> {
    match words.split_last() {
        Some((current, before)) => candidates(root, before, current),
        None => candidates(root, &[], ""),
    }
}

/// The place of the word that is typed.
struct CursorPosition<'a> {
    command: &'a Command,
    /// The names of the commands up to this one, without the program.
    path: Vec<&'a str>,
    /// The words that are neither options nor commands.
    positional: Vec<&'a str>,
    /// The option whose value is typed.
    option: Option<&'a Arg>,
    global: Global,
}

fn candidates(mut root: Command, before: &[String], current: &str) -> Vec<Candidate> {
    root.build();
    let place = CursorPosition::find(&root, before);
    let mut found = place.candidates(current);
    found.retain(|candidate| candidate.value.starts_with(current) && is_harmless(&candidate.value));
    found
}

/// Whether a word runs no program even if a shell took it without quotes. Names and values of servers are offered only if they are so, not
/// `$(…)` or `(…)`. Every shell quotes what it inserts.
fn is_harmless(word: &str) -> bool {
    let is_harmless = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | '=' | ':' | '+' | ',' | '@' | '%')
            || matches!(c, ' ' | '[' | ']' | '\'' | '#')
    };
    !word.is_empty() && word.chars().all(is_harmless)
}

impl<'a> CursorPosition<'a> {
    fn find(root: &'a Command, before: &'a [String]) -> Self {
        let mut place = Self {
            command: root,
            path: Vec::new(),
            positional: Vec::new(),
            option: None,
            global: Global::default(),
        };
        for word in before {
            if let Some(option) = place.option.take() {
                place.note(option, word);
            } else if let Some(name) = word.strip_prefix("--") {
                let (name, value) = name
                    .split_once('=')
                    .map_or((name, None), |(name, value)| (name, Some(value)));
                let option = place.command.get_arguments().find(|arg| arg.get_long() == Some(name));
                place.begin(option, value);
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                let letter = letters.chars().next_back();
                let option = place.command.get_arguments().find(|arg| arg.get_short() == letter);
                place.begin(option, None);
            } else if let Some(command) = place.subcommand(word) {
                place.path.push(command.get_name());
                place.command = command;
            } else {
                place.positional.push(word);
            }
        }
        place
    }

    fn begin(&mut self, option: Option<&'a Arg>, value: Option<&str>) {
        match (option.filter(|option| takes_value(option)), value) {
            (Some(option), Some(value)) => self.note(option, value),
            (option, None) => self.option = option,
            (None, Some(_)) => {}
        }
    }

    /// Remembers options that say where servers are.
    fn note(&mut self, option: &Arg, value: &str) {
        match option.get_long() {
            Some("config") => self.global.configs.push(value.into()),
            Some("server") => self.global.servers.push(value.to_owned()),
            _ => {}
        }
    }

    fn subcommand(&self, word: &str) -> Option<&'a Command> {
        let commands = self.command.get_subcommands().filter(|_| self.positional.is_empty());
        commands.into_iter().find(|command| command.get_name() == word)
    }

    fn candidates(&self, current: &str) -> Vec<Candidate> {
        if let Some(option) = self.option {
            return self.values(option);
        }
        if let Some((name, _)) = current.strip_prefix("--").and_then(|rest| rest.split_once('=')) {
            let option = self.command.get_arguments().find(|arg| arg.get_long() == Some(name));
            let mut values = option.map_or_else(Vec::new, |option| self.values(option));
            values
                .iter_mut()
                .for_each(|one| one.value = format!("--{name}={}", one.value));
            return values;
        }
        if current.starts_with('-') {
            return self.options();
        }
        let mut found: Vec<Candidate> = match self.positional.is_empty() {
            true => self
                .command
                .get_subcommands()
                .filter(|command| !command.is_hide_set())
                .map(|command| Candidate::new(command.get_name(), &about(command.get_about())))
                .collect(),
            false => Vec::new(),
        };
        found.extend(self.positionals(current));
        found
    }

    fn options(&self) -> Vec<Candidate> {
        let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let mut found: Vec<Candidate> = Vec::new();
        for arg in shown {
            let help = about(arg.get_help());
            found.extend(arg.get_long().map(|long| Candidate::new(format!("--{long}"), &help)));
            found.extend(arg.get_short().map(|short| Candidate::new(format!("-{short}"), &help)));
        }
        found
    }

    fn positionals(&self, current: &str) -> Vec<Candidate> {
        let index = self.positional.len();
        match (self.path.as_slice(), index) {
            (["call"], 0) => self.tools().names(current),
            (["call"], _) => self.call_words(current),
            (["tools"], 0) => {
                let tools = self.tools();
                let servers = tools.servers().map(|server| Candidate::new(server, "a server"));
                servers.chain(tools.names(current)).collect()
            }
            (["config", "explain"], 0) => self.settings(current),
            _ => {
                let mut positionals = self.command.get_positionals();
                match positionals.nth(index).or_else(|| self.command.get_positionals().last()) {
                    Some(arg) => self.values(arg),
                    None => Vec::new(),
                }
            }
        }
    }

    /// `SERVER`, `SERVER.SETTING`, or a setting of the top of a file.
    fn settings(&self, current: &str) -> Vec<Candidate> {
        let servers = self.tools();
        let of_server = current
            .split_once('.')
            .filter(|(name, _)| servers.servers().any(|server| server == *name));
        match of_server {
            Some((server, _)) => Loaded::settings(true)
                .map(|(name, about)| Candidate::new(format!("{server}.{name}"), about))
                .collect(),
            None => {
                let names = servers.servers().map(|server| Candidate::new(server, "a server"));
                let settings = Loaded::settings(false).map(|(name, about)| Candidate::new(name, about));
                names.chain(settings).collect()
            }
        }
    }

    /// The second word after `call`, or an argument.
    fn call_words(&self, current: &str) -> Vec<Candidate> {
        if let Some((before, path)) = file_value(current) {
            return files::beginning_with(before, path);
        }
        let tools = self.tools();
        let (first, rest) = match self.positional.as_slice() {
            [first, rest @ ..] => (*first, rest),
            [] => return Vec::new(),
        };
        let is_server = tools.servers().any(|server| server == first);
        match (is_server, rest) {
            (true, []) => tools.candidates_of_server(first),
            (true, [tool, given @ ..]) => tools.arguments(&format!("{first}.{tool}"), given, current),
            (false, given) => tools.arguments(first, given, current),
        }
    }

    /// The values of an option or a positional argument, as far as they are known. An argument with the id `server` or `hosts` takes the name
    /// of a configured server or of a host.
    fn values(&self, arg: &Arg) -> Vec<Candidate> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            return possible
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| Candidate::new(value.get_name(), &about(value.get_help())))
                .collect();
        }
        let id = arg.get_id().as_str();
        let is_server = matches!(id, "server" | "servers");
        if id == "hosts" {
            return HOSTS.iter().map(|host| Candidate::new(host.id, host.title)).collect();
        }
        match is_server {
            true => self
                .tools()
                .servers()
                .map(|server| Candidate::new(server, "a server"))
                .collect(),
            false => Vec::new(),
        }
    }

    fn tools(&self) -> KnownTools {
        KnownTools::load(&Settings::load_or_hosts(&self.global))
    }
}

/// Splits an argument such as `key=@path` or `@path` before the path. `@@` stands for one `@`.
fn file_value(word: &str) -> Option<(&str, &str)> {
    let value = word
        .find(['=', ':'])
        .map_or(0, |at| at + 1 + usize::from(word[at..].starts_with(":=")));
    let path = word[value..].strip_prefix('@').filter(|path| !path.starts_with('@'))?;
    Some((&word[..word.len() - path.len()], path))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    fn values(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (current, before) = words.split_last().unwrap();
        candidates(Cli::command(), before, current)
            .into_iter()
            .map(|one| one.value)
            .collect()
    }

    #[test]
    fn commands_options_and_their_values_are_completed() {
        assert_eq!(values("to"), ["tools", "token", "torture"]);
        assert_eq!(values("config s"), ["show", "schema"]);
        assert_eq!(values("call --no-im"), ["--no-images"]);
        assert_eq!(values("tools --provider anth"), ["anthropic"]);
        assert_eq!(values("tools --provider=anth"), ["--provider=anthropic"]);
        assert_eq!(values("-o json completions f"), ["fish"]);
        assert_eq!(values("install cur"), ["cursor"]);
        assert_eq!(values("uninstall claude cur"), ["cursor"]);
        assert_eq!(values("import claude"), ["claude-desktop", "claude"]);
        assert!(!values("").iter().any(|value| value.starts_with('_')));
    }

    #[test]
    fn a_file_is_named_after_an_at_sign() {
        for (word, expected) in [
            ("a=@x/y", Some(("a=@", "x/y"))),
            ("a:=@x", Some(("a:=@", "x"))),
            ("a:@x", Some(("a:@", "x"))),
            ("@", Some(("@", ""))),
            ("a=@@x", None),
            ("a=b@c", None),
            ("a", None),
        ] {
            assert_eq!(file_value(word), expected, "{word}");
        }
    }
}
