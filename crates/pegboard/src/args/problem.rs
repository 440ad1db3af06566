//! What is wrong with arguments, in words that name the argument and the kinds of values, never the values themselves.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Wrong},
};
use serde_json::Value;

use super::schema::{Kinds, Shape, few, plain, words};

/// The longest piece of a schema that is shown.
const MAX_QUOTE: usize = 80;

/// Whether the problem is only that an argument is there which the schema does not know.
pub(super) fn is_unknown_argument(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        Wrong::AdditionalProperties { .. } | Wrong::UnevaluatedProperties { .. }
    )
}

/// The problem in words, and where it is: a name for an argument, a JSON pointer for what is inside one.
pub(super) fn describe(error: &ValidationError<'_>, shape: Shape<'_>) -> String {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        Wrong::Required { property } => format!("{} is missing", place(pointer, property.as_str())),
        Wrong::AdditionalProperties { unexpected } | Wrong::UnevaluatedProperties { unexpected } => {
            let inside = shape.under(pointer);
            let unknown: Vec<_> = unexpected
                .iter()
                .take(4)
                .map(|name| unknown(pointer, name, inside))
                .collect();
            unknown.join("; ")
        }
        _ => format!("{} {}", place(pointer, None), rule(error)),
    }
}

fn unknown(pointer: &str, name: &str, shape: Option<Shape<'_>>) -> String {
    let place = place(pointer, Some(name));
    match shape.and_then(|shape| shape.nearest(name)) {
        Some(near) => format!("{place} is unknown, did you mean `{}`?", plain(near)),
        None => format!("{place} is unknown"),
    }
}

/// `limit`, or `/filter/limit`.
fn place(pointer: &str, name: Option<&str>) -> String {
    let whole = match name {
        Some(name) => format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
        None => pointer.to_owned(),
    };
    match whole.strip_prefix('/') {
        None => "the whole".to_owned(),
        Some(top) if !top.contains('/') => format!("`{}`", plain(&top.replace("~1", "/").replace("~0", "~"))),
        Some(_) => {
            let shown: String = whole.chars().take(200).flat_map(char::escape_debug).collect();
            format!("`{shown}`")
        }
    }
}

/// What the value should have been.
fn rule(error: &ValidationError<'_>) -> String {
    let given = words(Kinds::of(error.instance())).join("");
    match error.kind() {
        Wrong::Type { kind } => format!("must be {}, and {} was given", expected(kind), article(&given)),
        Wrong::Enum { options } => match options.as_array().and_then(|options| few(options)) {
            Some(options) => format!("must be one of {}", options.join(", ")),
            None => "is none of the values that its schema lists".to_owned(),
        },
        Wrong::Constant { expected_value } => format!("must be {}", quoted(expected_value)),
        Wrong::Minimum { limit } => format!("must be at least {limit}"),
        Wrong::Maximum { limit } => format!("must be at most {limit}"),
        Wrong::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Wrong::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Wrong::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Wrong::MinLength { limit } => format!("must have at least {limit} characters"),
        Wrong::MaxLength { limit } => format!("must have at most {limit} characters"),
        Wrong::MinItems { limit } => format!("must have at least {limit} items"),
        Wrong::MaxItems { limit } => format!("must have at most {limit} items"),
        Wrong::MinProperties { limit } => format!("must have at least {limit} fields"),
        Wrong::MaxProperties { limit } => format!("must have at most {limit} fields"),
        Wrong::UniqueItems => "must not have the same item twice".to_owned(),
        Wrong::Pattern { pattern } => format!("must match the pattern `{}`", cut(pattern)),
        Wrong::AnyOf { context } | Wrong::OneOfNotValid { context } => none_of(context, error, &given),
        Wrong::OneOfMultipleValid { .. } => "fits several of the forms of which it must fit one".to_owned(),
        Wrong::FalseSchema => "must not be given".to_owned(),
        Wrong::Not { .. } => "has a form that is not allowed".to_owned(),
        other => format!("does not fit `{}` of its schema", cut(other.keyword())),
    }
}

/// No alternative fits: when only the type is wrong in each, the types are told.
fn none_of(context: &[Vec<ValidationError<'_>>], error: &ValidationError<'_>, given: &str) -> String {
    let types: Option<Vec<String>> = context
        .iter()
        .map(|branch| match branch.first()?.kind() {
            Wrong::Type { kind } if branch[0].instance_path() == error.instance_path() => Some(expected(kind)),
            _ => None,
        })
        .collect();
    match types {
        Some(types) if !types.is_empty() => format!("must be {}, and {} was given", types.join(" or "), article(given)),
        _ => format!("fits none of the {} forms that are allowed", context.len()),
    }
}

fn expected(kind: &TypeKind) -> String {
    let name = |word: &str| article(if word == "array" { "list" } else { word });
    match kind {
        TypeKind::Single(kind) => name(kind.as_str()),
        TypeKind::Multiple(kinds) => {
            let names: Vec<_> = kinds.iter().map(|kind| name(kind.as_str())).collect();
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

fn quoted(value: &Value) -> String {
    format!("`{}`", cut(&value.to_string()))
}

/// A piece of the server's text on one line.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTE).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        shown.push('…');
    }
    shown
}
