//! Handles as arguments: `{"$handle": "out_…"}` anywhere in a call's arguments is replaced with the spilled output, so that a large text
//! goes from one tool to another without a model repeating it.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use crate::spill::{Output, OutputFormat, Spill, SpillError, select};
use pegboard_tools::{
    args::{Arguments, RawFields},
    outcome::{Failure, Kind},
};

/// The key that marks a handle.
const HANDLE_KEY: &str = "$handle";
/// The most bytes of the outputs that the handles of one call may refer to, even if their paths select only parts.
const MAX_INSERTED: usize = 16 << 20;
/// The deepest nesting of arguments that is searched.
const MAX_DEPTH: usize = 128;

/// Returns whether the arguments may contain handles.
pub(super) fn may_contain_handles(arguments: &Arguments) -> bool {
    let written = arguments.as_raw().get();
    memchr::memmem::find(written.as_bytes(), HANDLE_KEY.as_bytes()).is_some()
}

/// Replaces every handle in the arguments. Arguments without one are returned unchanged.
pub(super) async fn resolve<'a>(arguments: Cow<'a, Arguments>, spill: &Spill) -> Result<Cow<'a, Arguments>, Failure> {
    let written = arguments.as_raw().get();
    if !may_contain_handles(&arguments) {
        return Ok(arguments);
    }
    let mut references = Vec::new();
    collect(arguments.as_raw(), 0, &mut references)?;
    let mut contents = Vec::with_capacity(references.len());
    let mut bytes = 0;
    for reference in references {
        let output = spill
            .fetch(&reference.name)
            .await
            .map_err(|error| spill_failure(&error))?;
        bytes += output.text.len();
        if bytes > MAX_INSERTED {
            let message = format!("the handles in the arguments stand for more than {MAX_INSERTED} bytes");
            return Err(Failure::new(Kind::LimitExceeded, message));
        }
        contents.push(reference.content(&output)?);
    }
    let mut resolved = String::with_capacity(written.len() + bytes + bytes / 8);
    write(arguments.as_raw(), &mut contents.into_iter(), &mut resolved);
    let resolved = Arguments::parse(&resolved).map(Cow::Owned);
    resolved.map_err(|error| Failure::new(Kind::Internal, error.to_string()))
}

/// A reference to a spilled output.
#[derive(Debug, PartialEq, Eq)]
struct HandleReference {
    name: String,
    /// A JSONPath that selects a part of the output.
    path: Option<String>,
    /// Inserts the output as text or as JSON; `None` keeps its own form.
    form: Option<OutputFormat>,
}

impl HandleReference {
    /// Parses an object as a reference, if it has the handle key.
    fn read(fields: &[(String, &RawValue)]) -> Result<Option<Self>, Failure> {
        if !fields.iter().any(|(key, _)| key == HANDLE_KEY) {
            return Ok(None);
        }
        let bad = |what: &str| {
            let hint = "write {\"$handle\": \"out_…\"}, with \"path\": \"$.a.b\" for a part of it and \"as\": \"text\" or \"json\"";
            Failure::new(Kind::InvalidArguments, format!("a handle in the arguments {what}")).hint(hint)
        };
        let mut reference = Self {
            name: String::new(),
            path: None,
            form: None,
        };
        for (key, value) in fields {
            let text: String = serde_json::from_str(value.get()).map_err(|_| bad("has a value that is not a text"))?;
            match (key.as_str(), text.as_str()) {
                (HANDLE_KEY, _) => reference.name = text,
                ("path", _) => reference.path = Some(text),
                ("as", "text") => reference.form = Some(OutputFormat::Text),
                ("as", "json") => reference.form = Some(OutputFormat::Json),
                _ => return Err(bad(&format!("has `{}` beside it", key.escape_debug()))),
            }
        }
        Ok(Some(reference))
    }

    /// The JSON that replaces the reference: a string for text output, a value for structured content.
    fn content(&self, output: &Output) -> Result<String, Failure> {
        let as_json = match (&self.form, &output.format) {
            (Some(OutputFormat::Json), _) | (None, OutputFormat::Json) => true,
            (Some(_), _) | (None, OutputFormat::Text | OutputFormat::Bytes { .. }) => false,
        };
        let invalid = |what: String| Failure::new(Kind::InvalidArguments, format!("the handle `{}` {what}", self.name));
        let picked;
        let text: &str = match &self.path {
            None => &output.text,
            Some(path) => {
                let value =
                    select(&output.text, path).map_err(|problem| invalid(format!("has no such path: {problem}")))?;
                picked = match (as_json || self.form.is_none(), value) {
                    // A string inside JSON stays a string, unless its JSON is requested.
                    (_, Value::String(text)) if self.form != Some(OutputFormat::Json) => return Ok(quote(&text)),
                    (true, value) => return Ok(value.to_string()),
                    (false, value) => value.to_string(),
                };
                &picked
            }
        };
        if !as_json {
            return Ok(quote(text));
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(value) => Ok(value.get().to_owned()),
            Err(_) => Err(invalid("is not JSON".to_owned())),
        }
    }
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Collects the references in a value, in the order in which `write` visits them.
fn collect(value: &RawValue, depth: usize, found: &mut Vec<HandleReference>) -> Result<(), Failure> {
    if !value.get().contains(HANDLE_KEY) {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        let message = format!("the arguments are nested deeper than {MAX_DEPTH}");
        return Err(Failure::new(Kind::InvalidArguments, message));
    }
    match parts(value) {
        Parts::Scalar => {}
        Parts::List(items) => items.iter().try_for_each(|item| collect(item, depth + 1, found))?,
        Parts::Object(fields) => match HandleReference::read(&fields)? {
            Some(reference) => found.push(reference),
            None => fields
                .iter()
                .try_for_each(|(_, field)| collect(field, depth + 1, found))?,
        },
    }
    Ok(())
}

/// Writes a value with its references replaced. `collect` has bounded its depth.
fn write(value: &RawValue, contents: &mut impl Iterator<Item = String>, out: &mut String) {
    if !value.get().contains(HANDLE_KEY) {
        out.push_str(value.get());
        return;
    }
    match parts(value) {
        Parts::Scalar => out.push_str(value.get()),
        Parts::List(items) => {
            for (at, item) in items.into_iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write(item, contents, out);
            }
            out.push(']');
        }
        Parts::Object(fields) if fields.iter().any(|(key, _)| key == HANDLE_KEY) => out.extend(contents.next()),
        Parts::Object(fields) => {
            for (at, (key, field)) in fields.into_iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                out.push_str(&quote(&key));
                out.push(':');
                write(field, contents, out);
            }
            out.push('}');
        }
    }
}

/// A value split by one level. Its parts stay as written, so that no number loses digits.
enum Parts<'a> {
    Scalar,
    List(Vec<&'a RawValue>),
    Object(Vec<(String, &'a RawValue)>),
}

fn parts(value: &RawValue) -> Parts<'_> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'[') => serde_json::from_str(text).map_or(Parts::Scalar, Parts::List),
        Some(b'{') => serde_json::from_str(text).map_or(Parts::Scalar, |RawFields(fields)| Parts::Object(fields)),
        _ => Parts::Scalar,
    }
}

fn spill_failure(error: &SpillError) -> Failure {
    let kind = match error {
        SpillError::Io(_) => Kind::Internal,
        _ => Kind::InvalidArguments,
    };
    Failure::new(kind, error.to_string()).hint("call the tool again that gave the handle")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::spill::SpillLimits;

    async fn spilled(form: OutputFormat, text: &str) -> (Spill, String) {
        let spill = Spill::new(SpillLimits::default());
        let text = Arc::new(text.to_owned());
        let handle = spill.keep(Output { format: form, text }).await.unwrap();
        (spill, handle)
    }

    async fn check(form: OutputFormat, text: &str, arguments: &str, expected: &str) {
        let (spill, handle) = spilled(form, text).await;
        let arguments = Arguments::parse(&arguments.replace("OUT", &handle)).unwrap();
        let resolved = resolve(Cow::Owned(arguments), &spill).await.unwrap();
        assert_eq!(resolved.as_raw().get(), expected);
    }

    #[tokio::test]
    async fn text_becomes_a_text_and_structured_content_a_value() {
        let text = "a \"page\"\n";
        check(
            OutputFormat::Text,
            text,
            r#"{"id": 1, "body": {"$handle": "OUT"}}"#,
            r#"{"id":1,"body":"a \"page\"\n"}"#,
        )
        .await;
        check(
            OutputFormat::Json,
            r#"{"n":1.10}"#,
            r#"{"x":[{"$handle":"OUT"}]}"#,
            r#"{"x":[{"n":1.10}]}"#,
        )
        .await;
        check(
            OutputFormat::Json,
            r#"{"n":1}"#,
            r#"{"x":{"$handle":"OUT","as":"text"}}"#,
            r#"{"x":"{\"n\":1}"}"#,
        )
        .await;
        check(
            OutputFormat::Text,
            "[1, 2]",
            r#"{"x":{"$handle":"OUT","as":"json"}}"#,
            r#"{"x":[1, 2]}"#,
        )
        .await;
    }

    #[tokio::test]
    async fn a_path_picks_a_part() {
        let json = r#"{"a":[{"b":"x"},{"b":{"c":1}}]}"#;
        check(
            OutputFormat::Text,
            json,
            r#"{"x":{"$handle":"OUT","path":"$.a[0].b"}}"#,
            r#"{"x":"x"}"#,
        )
        .await;
        check(
            OutputFormat::Json,
            json,
            r#"{"x":{"$handle":"OUT","path":"$.a[1].b"}}"#,
            r#"{"x":{"c":1}}"#,
        )
        .await;
        check(
            OutputFormat::Json,
            json,
            r#"{"x":{"$handle":"OUT","path":"$.a[1].b","as":"text"}}"#,
            r#"{"x":"{\"c\":1}"}"#,
        )
        .await;
    }

    #[tokio::test]
    async fn what_is_beside_a_handle_stays_as_it_was_written() {
        let arguments =
            r#"{"big": 123456789012345678901, "price": 1.10, "again": {"x": 2, "$other": 3}, "h": {"$handle": "OUT"}}"#;
        let expected = r#"{"big":123456789012345678901,"price":1.10,"again":{"x": 2, "$other": 3},"h":"t"}"#;
        check(OutputFormat::Text, "t", arguments, expected).await;
        let spill = Spill::default();
        let plain = r#"{ "n": 123456789012345678901 }"#;
        let resolved = resolve(Cow::Owned(Arguments::parse(plain).unwrap()), &spill)
            .await
            .unwrap();
        assert_eq!(resolved.as_raw().get(), plain);
    }

    #[tokio::test]
    async fn a_text_that_only_speaks_of_handles_is_left_alone() {
        check(
            OutputFormat::Text,
            "t",
            r#"{"say": "use {\"$handle\": 1}"}"#,
            r#"{"say":"use {\"$handle\": 1}"}"#,
        )
        .await;
    }

    #[tokio::test]
    async fn a_handle_that_cannot_be_used_refuses_the_call() {
        let (spill, handle) = spilled(OutputFormat::Text, "no json").await;
        for (arguments, words) in [
            (
                r#"{"x": {"$handle": "out_0"}}"#.to_owned(),
                "there is no output `out_0`",
            ),
            (r#"{"x": {"$handle": 7}}"#.to_owned(), "not a text"),
            (
                format!(r#"{{"x": {{"$handle": "{handle}", "as": "json"}}}}"#),
                "is not JSON",
            ),
            (
                format!(r#"{{"x": {{"$handle": "{handle}", "path": "$.a"}}}}"#),
                "has no such path",
            ),
            (
                format!(r#"{{"x": {{"$handle": "{handle}", "more": "x"}}}}"#),
                "has `more` beside it",
            ),
            (
                format!(
                    "{{\"x\": {}{{\"$handle\": \"a\"}}{}}}",
                    "[".repeat(5000),
                    "]".repeat(5000)
                ),
                "nested deeper",
            ),
        ] {
            let failure = resolve(Cow::Owned(Arguments::parse(&arguments).unwrap()), &spill)
                .await
                .unwrap_err();
            assert_eq!(failure.kind, Kind::InvalidArguments);
            assert!(failure.message.contains(words), "{}", failure.message);
        }
    }

    #[tokio::test]
    async fn a_few_handles_cannot_make_arguments_of_any_size() {
        let (spill, handle) = spilled(OutputFormat::Text, &"x".repeat(3 << 20)).await;
        let many = vec![format!(r#"{{"$handle": "{handle}"}}"#); 6].join(",");
        let failure = resolve(
            Cow::Owned(Arguments::parse(&format!(r#"{{"x": [{many}]}}"#)).unwrap()),
            &spill,
        )
        .await
        .unwrap_err();
        assert_eq!(failure.kind, Kind::LimitExceeded);
    }
}
