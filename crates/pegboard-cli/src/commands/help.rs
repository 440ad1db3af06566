//! `pegboard help`: the same as `--help`, all commands, or one group of them.

mod groups;

use clap::{Args, Command};

use super::{command::Run, context::Context};
use crate::{exit::Exit, output::Report};

/// Options of `pegboard` that the first screen leaves out.
const RARE_OPTIONS: [&str; 5] = ["trust", "no_daemon", "quiet", "log", "trace_wire"];

/// Print the help of a command, of a group of commands, or of all
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Examples:\n  pegboard help --all\n  pegboard help servers\n  pegboard help config show"
)]
pub(crate) struct Help {
    /// A command, such as `call` or `config show`, or a group:
    /// use, servers, hosts, gateway, write, inspect
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// List all commands and options
    #[arg(long, conflicts_with = "command")]
    all: bool,
}

impl Run for Help {
    const OWNS_SERVER_OPTIONS: bool = true;

    async fn run(self, mut context: Context<'_>) -> Exit {
        let mut definition = (context.definition)();
        let screen = match self.command.as_slice() {
            [] if self.all => Some(whole_screen(definition.clone())),
            [word] => groups::find(word).map(|group| {
                let rows = group.rows(&definition, true);
                definition
                    .clone()
                    .help_template(format!("{rows}\nExample:\n  pegboard help {}", group.example()))
            }),
            _ => None,
        };
        if let Some(mut screen) = screen {
            let _ = screen.print_help();
            return Exit::Done;
        }
        definition = first_screen(definition);
        let words = ["pegboard".to_owned()].into_iter().chain(self.command);
        match definition.try_get_matches_from(words.chain(["--help".to_owned()])) {
            // The help is such an error too.
            Err(error) => error.exit(),
            Ok(_) => {
                let report = Report::new(Exit::Usage).error("no such command", None);
                context.print(report).await
            }
        }
    }
}

/// The definition whose own help shows the common commands and options, by groups.
pub(super) fn first_screen(definition: Command) -> Command {
    let table = groups::table(&definition, false);
    let definition = definition.mut_args(|arg| {
        let is_rare = RARE_OPTIONS.contains(&arg.get_id().as_str());
        if is_rare { arg.hide(true) } else { arg }
    });
    let more = "All commands and options: pegboard help --all";
    definition.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{table}\nOptions:\n{{options}}{{after-help}}\n\n{more}"
    ))
}

/// The definition whose own help shows all commands and options.
fn whole_screen(definition: Command) -> Command {
    let table = groups::table(&definition, true);
    definition.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{table}\nOptions:\n{{options}}{{after-help}}"
    ))
}
