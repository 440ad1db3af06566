//! Approval of a call: by `--yes`, or by the user at the terminal.

use std::{
    future::Future,
    io::{self, IsTerminal as _},
    pin::Pin,
};

use pegboard::{
    Approver,
    approval::{Decision, Question},
};
use tokio_util::sync::CancellationToken;

use crate::{
    output::{Output, clean, indent},
    terminal::{Keyboard, Lines as _},
};

/// How calls are approved in this run.
pub(super) enum Approval {
    /// `--yes` approves every call.
    Given,
    /// The user at the terminal is asked.
    Asked(Output),
    /// Without a terminal every call is refused.
    NoTerminal,
}

impl Approval {
    pub(super) fn new(yes: bool, output: &Output) -> Self {
        if yes {
            Self::Given
        } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
            Self::Asked(output.clone())
        } else {
            Self::NoTerminal
        }
    }
}

impl Approver for Approval {
    fn decide<'a>(&'a self, question: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(async move {
            match self {
                Self::Given => Decision::Once,
                Self::NoTerminal => Decision::Refused(
                    "a person must agree to it, and there is no terminal to ask at; `--yes` agrees".to_owned(),
                ),
                Self::Asked(output) => ask(output, &question).await,
            }
        })
    }
}

async fn ask(output: &Output, question: &Question<'_>) -> Decision {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    output.say(&prompt(question));
    // On a blocking thread, so that Ctrl-C works while the terminal is read.
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next();
        drop(aside);
        line.map(|line| is_yes(&line.unwrap_or_default()))
    });
    match reading.await {
        Ok(Ok(true)) => Decision::Once,
        Ok(Ok(false)) => Decision::Refused("you did not say yes".to_owned()),
        Ok(Err(error)) => Decision::Refused(format!("your answer cannot be read: {error}")),
        Err(error) => Decision::Refused(format!("your answer cannot be read: {error}")),
    }
}

/// The text of the question. Servers' texts in it are sanitized and indented, so that they cannot forge lines of ours.
fn prompt(question: &Question<'_>) -> String {
    let mut prompt = format!(
        "{} with {}\n",
        clean(&question.tool.dotted_name()),
        indent(question.arguments.as_str())
    );
    if let Some(description) = &question.tool.description {
        prompt.push_str(&format!("  {}\n", indent(description)));
    }
    if question.has_changed {
        prompt.push_str("Its definition has changed since you agreed to it.\n");
    }
    prompt.push_str(&format!("Its risk is {}. Call it? [y/N] ", question.risk.as_str()));
    prompt
}

/// Returns `true` if a line is `y` or `yes`, in any case.
fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for (answer, expected) in [
            ("y\n", true),
            (" YES \r\n", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("yes please\n", false),
            ("no\ny\n", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
