//! A server's questions, answered at the terminal: on stderr one after the other, from stdin line by line.

use std::{
    future::Future,
    io::{self, IsTerminal as _, Write},
    pin::Pin,
    sync::Arc,
};

use pegboard::{ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, ServerName};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    output::{Output, clean, one_line},
    terminal::{Keyboard, Lines},
};

/// How often a field is asked for before the user is believed not to want it.
const TRIES: usize = 3;

/// Asks whoever sits at the terminal. Without a terminal servers are not told that they may ask.
#[derive(Debug)]
pub(in crate::commands) struct Terminal {
    output: Output,
    is_there: bool,
    /// One question at a time.
    turn: Arc<Mutex<()>>,
}

impl Terminal {
    /// `reads_stdin` when stdin is wanted for something else.
    pub(in crate::commands) fn new(output: &Output, reads_stdin: bool) -> Self {
        Self {
            is_there: !reads_stdin && io::stdin().is_terminal() && io::stderr().is_terminal(),
            output: output.clone(),
            turn: Arc::default(),
        }
    }
}

impl Host for Terminal {
    fn offers_elicitation(&self) -> bool {
        self.is_there
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(async move {
            if !self.is_there {
                let words = one_line(&request.message);
                self.output.note(&format!(
                    "server `{server}` asks: {words}\nnobody is there to answer, so it is told no"
                ));
                return ElicitAnswer::Decline;
            }
            let turn = self.turn.clone().lock_owned().await;
            let mut open = Open::new(&self.output);
            let (given_up, away) = (open.given_up.clone(), self.output.step_aside());
            let server = server.to_string();
            // Reading blocks, and whoever gives up must not wait for it.
            let asking = tokio::task::spawn_blocking(move || {
                let answer = ask(&server, &request, &mut Keyboard::until(given_up), &mut io::stderr());
                drop((away, turn));
                answer
            });
            let answer = asking.await;
            open.is_answered = true;
            match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => ElicitAnswer::Cancel,
            }
        })
    }
}

/// A question that is open. When it is dropped before it was answered, nothing more is read for it, and what is printed next does not
/// stand behind its words.
struct Open {
    output: Output,
    given_up: CancellationToken,
    is_answered: bool,
}

impl Open {
    fn new(output: &Output) -> Self {
        Self {
            output: output.clone(),
            given_up: CancellationToken::new(),
            is_answered: false,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.given_up.cancel();
        if !self.is_answered {
            self.output.leave_question();
        }
    }
}

/// Asks one question. The end of the input is no answer.
fn ask(server: &str, request: &Elicitation, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<ElicitAnswer> {
    writeln!(out, "server `{server}` asks: {}", clean(&request.message))?;
    match (&request.url, &request.form) {
        (Some(url), _) => {
            writeln!(out, "it wants you to visit this page:\n  {}", one_line(url))?;
            write!(
                out,
                "open it yourself and press Enter when you are done, or type n to refuse: "
            )?;
            Ok(match read(lines, out)?.as_deref() {
                None => ElicitAnswer::Cancel,
                Some("n" | "no" | "N") => ElicitAnswer::Decline,
                Some(_) => ElicitAnswer::Finished,
            })
        }
        (None, Some(form)) => fill_in(form, lines, out),
        (None, None) => Ok(ElicitAnswer::Decline),
    }
}

fn fill_in(form: &Form, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<ElicitAnswer> {
    write!(out, "press Enter to answer, or type n to refuse: ")?;
    match read(lines, out)?.as_deref() {
        None => return Ok(ElicitAnswer::Cancel),
        Some("n" | "no" | "N") => return Ok(ElicitAnswer::Decline),
        Some(_) => {}
    }
    let mut content = Map::new();
    for field in &form.fields {
        match ask_field(field, lines, out)? {
            Typed::Value(value) => {
                content.insert(field.name.clone(), value);
            }
            Typed::Nothing => {}
            Typed::GivenUp => return Ok(ElicitAnswer::Cancel),
        }
    }
    Ok(ElicitAnswer::Accept(content))
}

/// What came of asking for one field.
enum Typed {
    Value(Value),
    /// It is left out.
    Nothing,
    GivenUp,
}

fn ask_field(field: &Field, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Typed> {
    if let Some(description) = &field.description {
        writeln!(out, "  {}", one_line(description))?;
    }
    let options = match &field.kind {
        FieldKind::Choice(options) | FieldKind::Choices { options, .. } => options.as_slice(),
        _ => &[],
    };
    for option in options {
        let title = if option.title == option.value {
            String::new()
        } else {
            format!("  {}", one_line(&option.title))
        };
        writeln!(out, "    {}{title}", one_line(&option.value))?;
    }
    for _ in 0..TRIES {
        write!(out, "{}: ", prompt(field))?;
        let typed = if field.secret {
            read_hidden(lines, out)?
        } else {
            read(lines, out)?
        };
        let Some(typed) = typed else {
            return Ok(Typed::GivenUp);
        };
        if typed.is_empty() {
            if !field.required || field.default.is_some() {
                return Ok(Typed::Nothing);
            }
            writeln!(out, "  this must be filled in")?;
            continue;
        }
        match field.parse(&typed) {
            Ok(value) => return Ok(Typed::Value(value)),
            Err(problem) => writeln!(out, "  {}", one_line(&problem))?,
        }
    }
    Ok(Typed::GivenUp)
}

/// The name of a field, and what may be typed.
fn prompt(field: &Field) -> String {
    let kind = match &field.kind {
        _ if field.secret => " (not shown)",
        FieldKind::Boolean => " (yes or no)",
        FieldKind::Number { whole: true, .. } => " (a whole number)",
        FieldKind::Number { .. } => " (a number)",
        FieldKind::Choice(_) => " (one of these)",
        FieldKind::Choices { .. } => " (some of these, with commas)",
        _ => "",
    };
    let empty = match &field.default {
        Some(_) if field.secret => " [what the server knows]".to_owned(),
        Some(Value::String(default)) => format!(" [{}]", one_line(default)),
        Some(default) => format!(" [{}]", one_line(&default.to_string())),
        None if field.required => String::new(),
        None => " [nothing]".to_owned(),
    };
    format!("{}{kind}{empty}", one_line(field.label()))
}

/// The next line; nothing at the end of the input.
fn read(lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Option<String>> {
    out.flush()?;
    ended_line(lines.next()?, out)
}

fn read_hidden(lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Option<String>> {
    out.flush()?;
    ended_line(lines.next_hidden()?, out)
}

/// Whoever ends the input has not ended the line.
fn ended_line(line: Option<String>, out: &mut impl Write) -> io::Result<Option<String>> {
    if line.is_none() {
        writeln!(out)?;
    }
    Ok(line)
}

#[cfg(test)]
mod tests;
