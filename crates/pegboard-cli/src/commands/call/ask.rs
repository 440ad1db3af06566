//! A server's questions, answered at the terminal: on stderr one after the other, from stdin line by line.

use std::{
    future::Future,
    io::{self, BufRead, IsTerminal as _, Read as _, Write},
    pin::Pin,
    sync::Arc,
};

use pegboard::{ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, ServerName};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::output::{Output, clean, one_line};

/// How often a field is asked for before the user is believed not to want it.
const TRIES: usize = 3;

/// The longest line that is read. A terminal gives whole lines, and nobody types this much.
const MAX_LINE: u64 = 64 << 10;

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
            let (spinner, server) = (self.output.spinner.clone(), server.to_string());
            // Reading blocks, and whoever gives up must not wait for it.
            let asking = tokio::task::spawn_blocking(move || {
                let answer = spinner.suspend(|| ask(&server, &request, &mut io::stdin().lock(), &mut io::stderr()));
                drop(turn);
                answer
            });
            match asking.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => ElicitAnswer::Cancel,
            }
        })
    }
}

/// Asks one question. The end of the input is no answer.
fn ask(
    server: &str,
    request: &Elicitation,
    lines: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<ElicitAnswer> {
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

fn fill_in(form: &Form, lines: &mut impl BufRead, out: &mut impl Write) -> io::Result<ElicitAnswer> {
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

fn ask_field(field: &Field, lines: &mut impl BufRead, out: &mut impl Write) -> io::Result<Typed> {
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
        let Some(typed) = read(lines, out)? else {
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
        FieldKind::Boolean => " (yes or no)",
        FieldKind::Number { whole: true, .. } => " (a whole number)",
        FieldKind::Number { .. } => " (a number)",
        FieldKind::Choice(_) => " (one of these)",
        FieldKind::Choices { .. } => " (some of these, with commas)",
        _ => "",
    };
    let empty = match &field.default {
        Some(Value::String(default)) => format!(" [{}]", one_line(default)),
        Some(default) => format!(" [{}]", one_line(&default.to_string())),
        None if field.required => String::new(),
        None => " [nothing]".to_owned(),
    };
    format!("{}{kind}{empty}", one_line(field.label()))
}

/// The next line; nothing at the end of the input.
fn read(lines: &mut impl BufRead, out: &mut impl Write) -> io::Result<Option<String>> {
    out.flush()?;
    let mut line = String::new();
    if lines.take(MAX_LINE).read_line(&mut line)? == 0 {
        writeln!(out)?;
        return Ok(None);
    }
    Ok(Some(line.trim().to_owned()))
}

#[cfg(test)]
mod tests;
