//! Checks values with a schema, which is compiled unless it is plain.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::{
    arguments::Arguments,
    checked::{Checked, MAX_PROBLEMS, accept_unchecked},
    coerce, json, plain_schema,
    problem::{describe, is_unknown_argument},
    schema::{Subschema, display_name},
    validation_cost::{self, SchemaSize},
};
use pegboard_config::Check;

/// The most subschemas in a schema.
const MAX_PARTS: usize = 1000;
/// The most patterns in a schema: each is compiled.
const MAX_PATTERNS: usize = 100;
/// The memory limits of one compiled pattern, and of all patterns of a schema. They also bound the time that compiling takes.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const MAX_PATTERNS_BYTES: usize = 8 << 20;
/// About how many bytes a validator takes for each subschema and for each pattern.
const PART_BYTES: usize = 3 << 10;
const PATTERN_BYTES: usize = 128 << 10;

/// A schema that values are checked with.
pub(super) enum SchemaCheck {
    /// The schema allows everything.
    AllowsAll,
    /// The schema is plain, so that it is compiled only for a value that may be invalid.
    Plain {
        size: SchemaSize,
        /// An estimate of the memory it takes once it is compiled.
        bytes: usize,
        compiled: OnceLock<Box<Self>>,
    },
    Ready {
        validator: Box<Validator>,
        size: SchemaSize,
        /// An estimate of the memory it takes.
        bytes: usize,
    },
    /// The schema is invalid or too large, so nothing is validated.
    Unusable(String),
}

impl SchemaCheck {
    /// Prepares a schema, and compiles it unless it is plain.
    pub(super) fn new(schema: &Value) -> Self {
        if allows_every_object(schema) {
            return Self::AllowsAll;
        }
        let stats = SchemaStats::measure(schema);
        if stats.parts <= MAX_PARTS && plain_schema::is_plain(schema) {
            return Self::Plain {
                size: SchemaSize {
                    parts: validation_cost::parts(schema),
                    has_references: false,
                },
                bytes: stats.bytes(),
                compiled: OnceLock::new(),
            };
        }
        Self::compile(schema, &stats)
    }

    fn compile(schema: &Value, stats: &SchemaStats<'_>) -> Self {
        if stats.parts > MAX_PARTS {
            return Self::Unusable(format!("it consists of more than {MAX_PARTS} schemas"));
        }
        if stats.patterns > MAX_PATTERNS {
            return Self::Unusable(format!("it has more than {MAX_PATTERNS} patterns"));
        }
        if let Some(target) = stats.unsupported_ref {
            return Self::Unusable(format!("its reference `{}` leads out of it", display_name(target)));
        }
        let bytes = MAX_PATTERN_BYTES.min(MAX_PATTERNS_BYTES / stats.patterns.max(1));
        let patterns = PatternOptions::regex().size_limit(bytes).dfa_size_limit(bytes);
        let built = jsonschema::options()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .offline()
            .build(schema);
        match built {
            Ok(validator) => Self::Ready {
                validator: Box::new(validator),
                size: SchemaSize {
                    parts: validation_cost::parts(schema),
                    has_references: stats.references > 0,
                },
                bytes: stats.bytes(),
            },
            Err(error) => {
                let text: String = error
                    .to_string()
                    .chars()
                    .take(200)
                    .flat_map(char::escape_debug)
                    .collect();
                Self::Unusable(text)
            }
        }
    }

    /// Why the schema cannot be used, if it cannot.
    pub(super) fn unusable(&self) -> Option<&str> {
        match self {
            Self::Unusable(why) => Some(why),
            Self::AllowsAll | Self::Plain { .. } | Self::Ready { .. } => None,
        }
    }

    /// An estimate of the memory it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Plain { bytes, .. } | Self::Ready { bytes, .. } => *bytes,
            Self::AllowsAll | Self::Unusable(_) => 0,
        }
    }

    /// Validates arguments against `schema`, which is what was compiled, and coerces types where the mode allows it. The error has a sentence
    /// for each problem.
    pub(super) fn arguments(&self, schema: &Value, given: &Arguments, mode: Check) -> Result<Checked, Vec<String>> {
        let (validator, size) = match self {
            Self::AllowsAll => return accept_unchecked(given, Vec::new()),
            Self::Unusable(why) => {
                let notes = vec![format!(
                    "the arguments were not checked: the tool's schema cannot be used: {why}"
                )];
                return accept_unchecked(given, notes);
            }
            Self::Plain { size, compiled, .. } => {
                let is_known = json::value(given).is_ok_and(|value| {
                    validation_cost::is_bounded(schema, *size, &value) && plain_schema::accepts(schema, &value)
                });
                let coerces = matches!(mode, Check::Relaxed | Check::Coerce);
                if is_known && !(coerces && coerce::may_have_fraction(given.as_raw().get())) {
                    return Ok(Checked::default());
                }
                let compiled = compiled.get_or_init(|| compile_plain(schema));
                return compiled.arguments(schema, given, mode);
            }
            Self::Ready { validator, size, .. } => (validator, *size),
        };
        let value = json::value(given).map_err(|problem| vec![problem])?;
        if !validation_cost::is_bounded(schema, size, &value) {
            let notes = vec!["the arguments were not checked: that would take too long".to_owned()];
            return Ok(Checked { changed: None, notes });
        }
        let subschema = Subschema::root(schema);
        let coerces = matches!(mode, Check::Relaxed | Check::Coerce);
        if validator.is_valid(&value) {
            // Values that are valid may be written in a way that few servers read, such as `41.0`.
            let coerced = (coerces && coerce::may_have_fraction(given.as_raw().get()))
                .then(|| coerce::coerce(given, subschema))
                .flatten()
                .filter(|(arguments, _)| json::value(arguments).is_ok_and(|value| validator.is_valid(&value)));
            return Ok(coerced.map_or_else(Checked::default, |(arguments, notes)| Checked {
                changed: Some(arguments),
                notes,
            }));
        }
        let coerced = coerces.then(|| coerce::coerce(given, subschema)).flatten();
        let (value, mut checked) = match coerced {
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
        let (problems, tolerated) = problems(validator, &value, subschema, mode == Check::Relaxed);
        if problems.is_empty() {
            checked.notes.extend(tolerated);
            Ok(checked)
        } else {
            Err(problems)
        }
    }

    /// Validates structured output. Returns a sentence for each problem.
    pub(super) fn structured_output(&self, schema: &Value, value: &Value) -> Vec<String> {
        let (validator, size) = match self {
            Self::AllowsAll | Self::Unusable(_) => return Vec::new(),
            Self::Plain { size, compiled, .. } => {
                if !validation_cost::is_bounded(schema, *size, value) || plain_schema::accepts(schema, value) {
                    return Vec::new();
                }
                let compiled = compiled.get_or_init(|| compile_plain(schema));
                return compiled.structured_output(schema, value);
            }
            Self::Ready { validator, size, .. } => (validator, size),
        };
        if !validation_cost::is_bounded(schema, *size, value) || validator.is_valid(value) {
            return Vec::new();
        }
        problems(validator, value, Subschema::root(schema), false).0
    }
}

fn compile_plain(schema: &Value) -> Box<SchemaCheck> {
    Box::new(SchemaCheck::compile(schema, &SchemaStats::measure(schema)))
}

/// Returns the problems and, if unknown arguments are tolerated, those separately.
fn problems(
    validator: &Validator,
    value: &Value,
    subschema: Subschema<'_>,
    tolerate_unknown: bool,
) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut tolerated, mut more) = (Vec::new(), Vec::new(), 0_usize);
    for error in validator.iter_errors(value) {
        if tolerate_unknown && is_unknown_argument(&error) {
            if tolerated.len() < MAX_PROBLEMS {
                tolerated.push(describe(&error, subschema));
            }
        } else if wrong.len() < MAX_PROBLEMS {
            wrong.push(describe(&error, subschema));
        } else {
            more += 1;
        }
    }
    if !wrong.is_empty() {
        // An unknown name is often the misspelling of a missing one, so the report needs both.
        wrong.append(&mut tolerated);
    }
    if more > 0 {
        wrong.push(format!("{more} more problems"));
    }
    (wrong, tolerated)
}

/// Whether the schema accepts every object.
fn allows_every_object(schema: &Value) -> bool {
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

/// Counts what makes a schema expensive to compile. The schema was parsed from a message, so its depth is bounded.
struct SchemaStats<'s> {
    root: &'s Value,
    parts: usize,
    patterns: usize,
    references: usize,
    /// A reference that is not a JSON pointer into this schema. Nothing is fetched, and no other kind of reference is followed, so that the
    /// cost of a validation can be estimated.
    unsupported_ref: Option<&'s str>,
}

impl<'s> SchemaStats<'s> {
    fn measure(root: &'s Value) -> Self {
        let mut stats = Self {
            root,
            parts: 0,
            patterns: 0,
            references: 0,
            unsupported_ref: None,
        };
        stats.count(root);
        stats
    }

    /// An estimate of the memory that the compiled schema takes.
    fn bytes(&self) -> usize {
        self.parts * PART_BYTES + self.patterns * PATTERN_BYTES
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
                            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                            if found.is_none() {
                                self.unsupported_ref = Some(target);
                            }
                        }
                        ("$dynamicRef" | "$recursiveRef", Value::String(target)) => self.unsupported_ref = Some(target),
                        // A nested `$id` changes the base URI of the references below it.
                        ("$id", Value::String(id)) if !std::ptr::eq(value, self.root) => {
                            self.unsupported_ref = Some(id)
                        }
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

#[cfg(test)]
mod tests;
