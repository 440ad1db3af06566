//! What a command is: its arguments and options, and what it does with them. A command is one type that implements [`Run`].

use std::fmt;

use clap::{Args, Subcommand};
use futures_util::future::LocalBoxFuture;

use super::context::Context;
use crate::{cli::Global, exit::Exit, logging::LogUse};

/// A command. The documentation of the type is its help, and its fields are its arguments and options.
pub(crate) trait Run: Args {
    /// What it needs of the log.
    const LOG: LogUse = LogUse::BRIEF;
    /// Whether it interprets `--header`, `--env` and `--cwd` itself. For other commands they are settings of the server that `--server`
    /// adds.
    const OWNS_SERVER_OPTIONS: bool = false;

    /// Changes how one of its options is shown. [`Global`] options are among them.
    fn adjust(arg: clap::Arg) -> clap::Arg {
        arg
    }

    /// Does the work, and prints the report.
    async fn run(self, context: Context<'_>) -> Exit;
}

/// Defines an enum of commands, one per line with its word, and finds the one that was parsed.
macro_rules! commands {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$own:meta])* $word:literal => $command:ident($arguments:ty),)* }) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$own])* #[command(name = $word)] $command($arguments),)*
        }

        impl $name {
            /// Adds the commands to a parser, which defines their arguments when one of them is named. Help that lists them needs
            /// [`Subcommand::augment_subcommands`](clap::Subcommand::augment_subcommands).
            $visibility fn define_lazily(parent: clap::Command) -> clap::Command {
                parent$(.subcommand(
                    clap::Command::new($word).defer(<$arguments as clap::Args>::augment_args),
                ))*
            }
        }

        $crate::commands::command::commands! { @parsed $name $($command)* }
    };
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$own:meta])* $command:ident($arguments:ty),)* }) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$own])* $command($arguments),)*
        }

        $crate::commands::command::commands! { @parsed $name $($command)* }
    };
    (@parsed $name:ident $($command:ident)*) => {
        impl $crate::commands::command::Parsed for $name {
            fn prepare(self, before: $crate::cli::Global) -> $crate::commands::command::Invocation {
                match self {
                    $(Self::$command(parsed) => parsed.prepare(before),)*
                }
            }
        }
    };
}
pub(super) use commands;

/// What the parser makes of a command's part of the command line.
pub(crate) trait Parsed {
    /// The command to run, with the global options `before` its name and those after it.
    fn prepare(self, before: Global) -> Invocation;
}

/// A command whose name global options may follow.
#[derive(Debug, Default, Args)]
#[command(about = about(T::augment_args), mut_args(T::adjust))]
pub(crate) struct With<T: Run> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    global: Global,
}

impl<T: Run + 'static> Parsed for With<T> {
    fn prepare(self, before: Global) -> Invocation {
        Invocation::new(self.own, self.global.merge_over(before))
    }
}

/// A command that takes global options only before its name.
#[derive(Debug, Args)]
#[command(about = about(T::augment_args))]
pub(crate) struct Bare<T: Run> {
    #[command(flatten)]
    own: T,
}

impl<T: Run + 'static> Parsed for Bare<T> {
    fn prepare(self, before: Global) -> Invocation {
        Invocation::new(self.own, before)
    }
}

/// A command with commands of its own, such as `config`.
#[derive(Debug, Args)]
#[command(about = about(T::augment_subcommands), disable_help_subcommand = true)]
pub(crate) struct Group<T: Subcommand> {
    #[command(subcommand)]
    command: T,
    #[command(flatten)]
    global: Global,
}

impl<T: Subcommand + Parsed> Parsed for Group<T> {
    fn prepare(self, before: Global) -> Invocation {
        self.command.prepare(self.global.merge_over(before))
    }
}

/// A command with commands of its own, of which one is the default.
#[derive(Debug, Args)]
#[command(about = about(T::augment_subcommands), disable_help_subcommand = true)]
pub(crate) struct OptionalGroup<T: Subcommand> {
    #[command(subcommand)]
    command: Option<T>,
    #[command(flatten)]
    global: Global,
}

impl<T: Subcommand + Parsed + Default> Parsed for OptionalGroup<T> {
    fn prepare(self, before: Global) -> Invocation {
        self.command.unwrap_or_default().prepare(self.global.merge_over(before))
    }
}

/// The help of a definition. That of a type which contains it, or of other types in there, would replace it.
fn about(define: fn(clap::Command) -> clap::Command) -> clap::builder::StyledStr {
    let definition = define(clap::Command::default());
    definition.get_about().cloned().unwrap_or_default()
}

/// A command that is ready to run.
pub(crate) struct Invocation {
    /// The global options from before and after the command's name.
    pub(crate) global: Global,
    /// What the command needs of the log.
    pub(crate) log: LogUse,
    /// Whether the command interprets the options of an added server itself.
    pub(super) owns_server_options: bool,
    work: Box<dyn Work>,
}

impl Invocation {
    pub(super) fn new<T: Run + 'static>(command: T, global: Global) -> Self {
        Self {
            global,
            log: T::LOG,
            owns_server_options: T::OWNS_SERVER_OPTIONS,
            work: Box::new(command),
        }
    }

    /// The global options, and what does the work.
    pub(super) fn into_parts(self) -> (Global, Box<dyn Work>) {
        (self.global, self.work)
    }
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("global", &self.global)
            .finish_non_exhaustive()
    }
}

/// [`Run`] as a trait object.
pub(super) trait Work {
    fn start<'a>(self: Box<Self>, context: Context<'a>) -> LocalBoxFuture<'a, Exit>
    where
        Self: 'a;
}

impl<T: Run> Work for T {
    fn start<'a>(self: Box<Self>, context: Context<'a>) -> LocalBoxFuture<'a, Exit>
    where
        Self: 'a,
    {
        Box::pin((*self).run(context))
    }
}
