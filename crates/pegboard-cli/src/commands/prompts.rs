//! `pegboard prompts`: lists prompts, or gets one with its arguments filled in.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use clap::Args;
use pegboard::{
    Failure, Kind, ServerName, Toolset,
    catalog::Prompt,
    deadline::Deadline,
    outcome::FilledPrompt,
    toolset::{PromptListing, Unavailable},
};
use serde_json::{Map, Value, json};

use super::{
    command::{Run, With, commands},
    context::Context,
    fetch::{self, Item},
    listing::{self, Listed},
};
use crate::{
    cli::pair,
    exit::Exit,
    output::{self, Table, as_data, one_line},
};

commands! {
    /// List prompts, or get one
    #[command(
        after_help = "Examples:\n  pegboard prompts\n  pegboard prompts get demo.greet name=Ada"
    )]
    pub(crate) enum PromptsCommand {
        List(With<List>),
        Get(With<Get>),
    }
}

impl Default for PromptsCommand {
    fn default() -> Self {
        Self::List(With::default())
    }
}

/// List prompts
#[derive(Debug, Default, Args)]
#[command(after_help = "Example:\n  pegboard prompts list -o json")]
pub(crate) struct List {}

impl Run for List {
    async fn run(self, context: Context<'_>) -> Exit {
        listing::run::<PromptListing>(context).await
    }
}

impl Listed for PromptListing {
    const NOUN: &'static str = "prompt";

    async fn request(toolset: &Toolset, patience: Duration) -> Self {
        toolset.prompts(patience).await
    }

    fn empty(warnings: Vec<String>) -> Value {
        json!({"prompts": [], "unavailable": [], "warnings": warnings})
    }

    fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }

    fn text(&self, name: &dyn Fn(&ServerName) -> String) -> String {
        let prompt = |prompt: &Prompt| {
            let description = prompt.description.as_deref().or(prompt.title.as_deref());
            let first_line = listing::first_line(description.unwrap_or_default());
            [one_line(&dotted_name(prompt)), arguments(prompt), first_line]
        };
        listing::sections(
            &self.prompts,
            Self::NOUN,
            &BTreeMap::new(),
            |prompt| &prompt.server,
            name,
            |prompts| {
                let mut table = Table::with_indent(2);
                prompts.iter().for_each(|one| table.row(prompt(one)));
                table.render(output::width())
            },
        )
    }
}

/// Get one prompt with its arguments filled in
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard prompts get demo.greet name=Ada")]
pub(crate) struct Get {
    /// server.prompt, or only the prompt's name
    name: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pairs: Vec<(String, String)>,
}

impl Run for Get {
    async fn run(self, context: Context<'_>) -> Exit {
        let item = Item {
            what: format!("getting {}", self.name),
            name: self.name.clone(),
            key: "prompt",
            document: json!({"server": null, "name": self.name}),
            out: None,
        };
        let request = async |toolset: Toolset, deadline: Deadline| {
            let prompt = owner(&toolset, &self.name, deadline).await?;
            let arguments: Map<String, Value> = self
                .pairs
                .iter()
                .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
                .collect();
            let filled = toolset.get_prompt(&prompt.server, &prompt.name, &arguments).await?;
            Ok((json!({"server": prompt.server, "name": prompt.name}), filled))
        };
        // Boxed, because the future of a request is large.
        Box::pin(fetch::run(context, item, request, |prompt, report| {
            report.data = show(prompt)
        }))
        .await
    }
}

/// Finds the prompt called `server.prompt`, or by its own name if only one server has it.
async fn owner(toolset: &Toolset, name: &str, deadline: Deadline) -> Result<Prompt, Failure> {
    let found = toolset.prompts(deadline.remaining()).await;
    let mut fitting: Vec<Prompt> = found
        .prompts
        .iter()
        .filter(|prompt| dotted_name(prompt) == name)
        .cloned()
        .collect();
    if fitting.is_empty() {
        fitting = found
            .prompts
            .iter()
            .filter(|prompt| prompt.name == name)
            .cloned()
            .collect();
    }
    let wrong = |message: String| Failure::new(Kind::InvalidArguments, message);
    let absent = || {
        found
            .unavailable
            .iter()
            .filter(|server| !listing::is_misconfigured(server))
    };
    let is_named = |server: &&Unavailable| fetch::is_of(name, server.server.as_str());
    match (fitting.len(), absent().find(is_named).or_else(|| absent().next())) {
        (1, _) => Ok(fitting.remove(0)),
        (0, Some(absent)) => {
            let mut failure = listing::unavailable_failure(absent, deadline.has_passed());
            if !is_named(&absent) {
                failure.message = format!("no server offers the prompt `{name}`, and {}", failure.message);
            }
            Err(failure)
        }
        (0, None) => Err(wrong(format!("there is no prompt `{name}`")).hint("`pegboard prompts` lists what there is")),
        _ => {
            let names: Vec<_> = fitting.iter().map(dotted_name).collect();
            Err(wrong(format!("`{name}` could mean {}", names.join(" or "))).hint("say which one with `server.prompt`"))
        }
    }
}

/// The messages, each after its role.
fn show(filled: &FilledPrompt) -> String {
    let mut shown = String::new();
    for message in &filled.messages {
        let role = message.role.as_str();
        let _ = writeln!(shown, "{role}: {}", as_data(&message.content.to_text()));
    }
    shown
}

fn dotted_name(prompt: &Prompt) -> String {
    format!("{}.{}", prompt.server, prompt.name)
}

/// `city=… [state=…]`: optional arguments are in brackets.
fn arguments(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().filter_map(|argument| {
        let name = one_line(argument.get("name")?.as_str()?);
        let is_required = argument.get("required") == Some(&Value::Bool(true));
        Some(if is_required {
            format!("{name}=…")
        } else {
            format!("[{name}=…]")
        })
    });
    arguments.collect::<Vec<_>>().join(" ")
}
