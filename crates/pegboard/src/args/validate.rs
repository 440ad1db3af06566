//! Whether values fit the schemas of a tool. A schema is compiled when it is first needed and kept with the tool.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::{
    Arguments, coerce, json,
    problem::{describe, is_unknown_argument},
    schema::{Shape, plain},
    validation_cost,
};
use crate::config::Check;

/// How many problems are told.
const MAX_PROBLEMS: usize = 8;
/// The most schemas inside one.
const MAX_PARTS: usize = 1000;
/// The most patterns in a schema: each is compiled.
const MAX_PATTERNS: usize = 100;
/// The memory that one compiled pattern may take, and all of a schema together. It takes time to fill, too.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const MAX_PATTERNS_BYTES: usize = 8 << 20;

/// A schema that is compiled when it is first needed.
#[derive(Default)]
pub(crate) struct Checker(OnceLock<Compiled>);

enum Compiled {
    /// The schema allows everything.
    Silent,
    Ready {
        validator: Box<Validator>,
        has_references: bool,
    },
    /// The schema is broken or too much, and nothing is checked.
    Unusable(String),
}

/// What a check made of arguments.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// The arguments to use instead, when some had to change.
    pub(crate) changed: Option<Arguments>,
    /// What was changed or overlooked.
    pub(crate) notes: Vec<String>,
}

impl Checker {
    /// Why the schema cannot be used for checking, if that was found out already.
    pub(crate) fn unusable(&self) -> Option<&str> {
        match self.0.get()? {
            Compiled::Unusable(why) => Some(why),
            Compiled::Silent | Compiled::Ready { .. } => None,
        }
    }

    /// Checks arguments against the schema, and changes types where that makes them fit and the mode allows it. What is wrong comes back in
    /// words, a sentence for each problem.
    pub(crate) fn arguments(&self, given: &Arguments, schema: &Value, mode: Check) -> Result<Checked, Vec<String>> {
        match mode {
            Check::Off => return Ok(Checked::default()),
            Check::Required => return required(given, schema),
            Check::Relaxed | Check::Coerce | Check::Strict => {}
        }
        let (validator, has_references) = match self.compiled(schema) {
            Compiled::Silent => return Ok(Checked::default()),
            Compiled::Unusable(why) => {
                let notes = vec![format!(
                    "the arguments were not checked: the tool's schema cannot be used: {why}"
                )];
                return Ok(Checked { changed: None, notes });
            }
            Compiled::Ready {
                validator,
                has_references,
            } => (validator, *has_references),
        };
        let value = json::value(given).map_err(|problem| vec![problem])?;
        if has_references && !validation_cost::is_bounded(schema, &value) {
            let notes = vec!["the arguments were not checked: that would take too long".to_owned()];
            return Ok(Checked { changed: None, notes });
        }
        if validator.is_valid(&value) {
            return Ok(Checked::default());
        }
        let shape = Shape::new(schema);
        let fitted = match mode {
            Check::Relaxed | Check::Coerce => coerce::fitted(given, shape),
            Check::Off | Check::Required | Check::Strict => None,
        };
        let (value, mut checked) = match fitted {
            Some((arguments, notes)) => {
                let value = json::value(&arguments).map_err(|problem| vec![problem])?;
                (
                    value,
                    Checked {
                        changed: Some(arguments),
                        notes,
                    },
                )
            }
            None => (value, Checked::default()),
        };
        let (problems, overlooked) = problems(validator, &value, shape, mode == Check::Relaxed);
        if problems.is_empty() {
            checked.notes.extend(overlooked);
            Ok(checked)
        } else {
            Err(problems)
        }
    }

    /// What is wrong with a structured answer; nothing when it fits.
    pub(crate) fn answer(&self, value: &Value, schema: &Value) -> Vec<String> {
        let Compiled::Ready {
            validator,
            has_references,
        } = self.compiled(schema)
        else {
            return Vec::new();
        };
        if (*has_references && !validation_cost::is_bounded(schema, value)) || validator.is_valid(value) {
            return Vec::new();
        }
        problems(validator, value, Shape::new(schema), false).0
    }

    fn compiled(&self, schema: &Value) -> &Compiled {
        self.0.get_or_init(|| compile(schema))
    }
}

/// The problems, and apart from them the unknown arguments if those may pass.
fn problems(
    validator: &Validator,
    value: &Value,
    shape: Shape<'_>,
    unknown_may_pass: bool,
) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut overlooked, mut more) = (Vec::new(), Vec::new(), 0_usize);
    for error in validator.iter_errors(value) {
        if unknown_may_pass && is_unknown_argument(&error) {
            if overlooked.len() < MAX_PROBLEMS {
                overlooked.push(describe(&error, shape));
            }
        } else if wrong.len() < MAX_PROBLEMS {
            wrong.push(describe(&error, shape));
        } else {
            more += 1;
        }
    }
    if !wrong.is_empty() {
        // A name that is unknown is often the misspelt one of those that are missing.
        wrong.append(&mut overlooked);
    }
    if more > 0 {
        wrong.push(format!("{more} more problems"));
    }
    (wrong, overlooked)
}

/// Only whether everything is there that must be.
fn required(given: &Arguments, schema: &Value) -> Result<Checked, Vec<String>> {
    let Some(names) = schema
        .get("required")
        .and_then(Value::as_array)
        .filter(|names| !names.is_empty())
    else {
        return Ok(Checked::default());
    };
    let value = json::value(given).map_err(|problem| vec![problem])?;
    let missing: Vec<_> = names
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| value.get(name).is_none())
        .take(MAX_PROBLEMS)
        .map(|name| format!("`{}` is missing", plain(name)))
        .collect();
    if missing.is_empty() {
        Ok(Checked::default())
    } else {
        Err(missing)
    }
}

fn compile(schema: &Value) -> Compiled {
    if says_nothing(schema) {
        return Compiled::Silent;
    }
    let size = Size::of(schema);
    if size.parts > MAX_PARTS {
        return Compiled::Unusable(format!("it consists of more than {MAX_PARTS} schemas"));
    }
    if size.patterns > MAX_PATTERNS {
        return Compiled::Unusable(format!("it has more than {MAX_PATTERNS} patterns"));
    }
    if let Some(target) = size.leads_out {
        return Compiled::Unusable(format!("its reference `{}` leads out of it", plain(target)));
    }
    let bytes = MAX_PATTERN_BYTES.min(MAX_PATTERNS_BYTES / size.patterns.max(1));
    let patterns = PatternOptions::regex().size_limit(bytes).dfa_size_limit(bytes);
    let built = jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .offline()
        .build(schema);
    match built {
        Ok(validator) => Compiled::Ready {
            validator: Box::new(validator),
            has_references: size.references > 0,
        },
        Err(error) => {
            let text: String = error
                .to_string()
                .chars()
                .take(200)
                .flat_map(char::escape_debug)
                .collect();
            Compiled::Unusable(text)
        }
    }
}

/// Whether the schema is so plain that every object fits it.
fn says_nothing(schema: &Value) -> bool {
    let Value::Object(fields) = schema else {
        return schema == &Value::Bool(true);
    };
    fields.iter().all(|(key, value)| match (key.as_str(), value) {
        ("title" | "description" | "$schema" | "$comment" | "examples" | "default", _) => true,
        ("type", kind) => kind == "object",
        ("properties" | "$defs" | "definitions", Value::Object(fields)) => fields.is_empty(),
        ("required", Value::Array(names)) => names.is_empty(),
        ("additionalProperties", allowed) => allowed == &Value::Bool(true),
        _ => false,
    })
}

/// What a schema is made of. It was read from a message, so its depth is bounded.
struct Size<'s> {
    root: &'s Value,
    parts: usize,
    patterns: usize,
    references: usize,
    /// A reference that is not simply a place in the schema. Nothing is fetched, and no other way of naming places is followed, so that it
    /// can be told how much work a check is.
    leads_out: Option<&'s str>,
}

impl<'s> Size<'s> {
    fn of(root: &'s Value) -> Self {
        let mut size = Self {
            root,
            parts: 0,
            patterns: 0,
            references: 0,
            leads_out: None,
        };
        size.count(root);
        size
    }

    fn count(&mut self, value: &'s Value) {
        match value {
            Value::Object(fields) => {
                self.parts += 1;
                for (key, inner) in fields {
                    match (key.as_str(), inner) {
                        ("pattern", Value::String(_)) => self.patterns += 1,
                        ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
                        ("$ref", Value::String(target)) => {
                            self.references += 1;
                            let place = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                            if place.is_none() {
                                self.leads_out = Some(target);
                            }
                        }
                        ("$dynamicRef" | "$recursiveRef", Value::String(target)) => self.leads_out = Some(target),
                        // References below it would start from there.
                        ("$id", Value::String(id)) if !std::ptr::eq(value, self.root) => self.leads_out = Some(id),
                        _ => {}
                    }
                    self.count(inner);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.count(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A copy of a tool may be given another schema, so it does not share what was compiled.
impl Clone for Checker {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What was compiled is no property of a tool.
impl PartialEq for Checker {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0.get() {
            None => "not compiled yet",
            Some(Compiled::Silent) => "allows everything",
            Some(Compiled::Ready { .. }) => "compiled",
            Some(Compiled::Unusable(_)) => "unusable",
        })
    }
}

#[cfg(test)]
mod tests;
