//! Whether the person at the terminal agrees to a call.

use std::{
    future::Future,
    io::{self, IsTerminal as _},
    pin::Pin,
};

use pegboard::{Approver, Decision, Question};
use tokio_util::sync::CancellationToken;

use crate::{
    output::{Output, clean, indented},
    terminal::{Keyboard, Lines as _},
};

/// How agreement is had in this run.
pub(super) enum Agreement {
    /// It was given on the command line.
    Given,
    /// The person at the terminal is asked.
    Asked(Output),
    /// There is nobody to ask.
    Nobody,
}

impl Agreement {
    pub(super) fn new(yes: bool, output: &Output) -> Self {
        if yes {
            Self::Given
        } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
            Self::Asked(output.clone())
        } else {
            Self::Nobody
        }
    }
}

impl Approver for Agreement {
    fn decide<'a>(&'a self, question: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(async move {
            match self {
                Self::Given => Decision::Once,
                Self::Nobody => Decision::Refused(
                    "a person must agree to it, and there is no terminal to ask at; `--yes` agrees".to_owned(),
                ),
                Self::Asked(output) => ask(output, &question).await,
            }
        })
    }
}

async fn ask(output: &Output, question: &Question<'_>) -> Decision {
    let given_up = CancellationToken::new();
    let _gives_up = given_up.clone().drop_guard();
    let away = output.step_aside();
    output.say(&words(question));
    // Off the async threads, so that the question can be left with Ctrl-C.
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(given_up).next();
        drop(away);
        line.map(|line| is_yes(&line.unwrap_or_default()))
    });
    match reading.await {
        Ok(Ok(true)) => Decision::Once,
        Ok(Ok(false)) => Decision::Refused("you did not say yes".to_owned()),
        Ok(Err(error)) => Decision::Refused(format!("your answer cannot be read: {error}")),
        Err(error) => Decision::Refused(format!("your answer cannot be read: {error}")),
    }
}

/// The question. Nothing in it can pass for words of ours.
fn words(question: &Question<'_>) -> String {
    let mut words = format!(
        "{} with {}\n",
        clean(&question.tool.dotted_name()),
        indented(question.arguments.as_str())
    );
    if let Some(description) = &question.tool.description {
        words.push_str(&format!("  {}\n", indented(description)));
    }
    if question.has_changed {
        words.push_str("Its definition has changed since you agreed to it.\n");
    }
    words.push_str(&format!("Its risk is {}. Call it? [y/N] ", question.risk.as_str()));
    words
}

/// Whether a line says yes.
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
