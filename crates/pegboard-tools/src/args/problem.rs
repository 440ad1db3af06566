//! Describes validation errors. A description names the argument and the types, never the value itself, which may be a secret.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Map, Value};

use super::schema::{JsonTypes, Subschema, display_name, listed_values, type_names};

/// The longest piece of a schema that is quoted, in characters.
const MAX_QUOTE: usize = 80;

/// Whether the error is only an argument that the schema does not declare.
pub(super) fn is_unknown_argument(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. }
    )
}

/// Describes the error with its location: a name for an argument, a JSON pointer for a value inside one.
pub(super) fn describe(error: &ValidationError<'_>, subschema: Subschema<'_>) -> String {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        Kind::Required { property } => format!("{} is missing", location(pointer, property.as_str())),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let inside = subschema.at_pointer(pointer);
            let unknown: Vec<_> = unexpected
                .iter()
                .take(4)
                .map(|name| describe_unknown(pointer, name, inside, error.instance()))
                .collect();
            unknown.join("; ")
        }
        _ => format!("{} {}", location(pointer, None), expectation(error)),
    }
}

fn describe_unknown(pointer: &str, name: &str, subschema: Option<Subschema<'_>>, given: &Value) -> String {
    let location = location(pointer, Some(name));
    let none = Map::new();
    let given = given.as_object().unwrap_or(&none);
    match subschema.and_then(|subschema| subschema.nearest_not_in(name, given)) {
        Some(near) => format!("{location} is unknown, did you mean `{}`?", display_name(near)),
        None => format!("{location} is unknown"),
    }
}

/// Formats a location: `limit`, or `/filter/limit`.
fn location(pointer: &str, name: Option<&str>) -> String {
    let whole = match name {
        Some(name) => format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
        None => pointer.to_owned(),
    };
    match whole.strip_prefix('/') {
        None => "the whole".to_owned(),
        Some(top) if !top.contains('/') => format!("`{}`", display_name(&top.replace("~1", "/").replace("~0", "~"))),
        Some(_) => {
            let shown: String = whole.chars().take(200).flat_map(char::escape_debug).collect();
            format!("`{shown}`")
        }
    }
}

/// Says what the value should have been.
fn expectation(error: &ValidationError<'_>) -> String {
    let given = type_names(JsonTypes::new(error.instance())).join("");
    match error.kind() {
        Kind::Type { kind } => format!("must be {}, and {} was given", describe_expected(kind), article(&given)),
        Kind::Enum { options } => match options.as_array().and_then(|options| listed_values(options)) {
            Some(options) => format!("must be one of {}", options.join(", ")),
            None => "is none of the values that its schema lists".to_owned(),
        },
        Kind::Constant { expected_value } => format!("must be {}", quote(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", cut(pattern)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => none_of(context, error, &given),
        Kind::OneOfMultipleValid { .. } => "fits several of the forms of which it must fit one".to_owned(),
        Kind::FalseSchema => "must not be given".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        other => format!("does not fit `{}` of its schema", cut(other.keyword())),
    }
}

/// Says that no alternative matches. If each fails on the type alone, the types are listed.
fn none_of(context: &[Vec<ValidationError<'_>>], error: &ValidationError<'_>, given: &str) -> String {
    let types: Option<Vec<String>> = context
        .iter()
        .map(|branch| match branch.first()?.kind() {
            Kind::Type { kind } if branch[0].instance_path() == error.instance_path() => Some(describe_expected(kind)),
            _ => None,
        })
        .collect();
    match types {
        Some(types) if !types.is_empty() => format!("must be {}, and {} was given", types.join(" or "), article(given)),
        _ => format!("fits none of the {} forms that are allowed", context.len()),
    }
}

fn describe_expected(kind: &TypeKind) -> String {
    let name = |word: &str| article(if word == "array" { "list" } else { word });
    match kind {
        TypeKind::Single(kind) => name(kind.as_str()),
        TypeKind::Multiple(types) => {
            let names: Vec<_> = types.iter().map(|kind| name(kind.as_str())).collect();
            names.join(" or ")
        }
    }
}

fn article(word: &str) -> String {
    match word {
        "null" => word.to_owned(),
        "integer" | "object" => format!("an {word}"),
        _ => format!("a {word}"),
    }
}

fn quote(value: &Value) -> String {
    format!("`{}`", cut(&value.to_string()))
}

/// Escapes and truncates a piece of the server's schema.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTE).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        shown.push('…');
    }
    shown
}
