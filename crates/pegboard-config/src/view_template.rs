//! Templates with the variables of views: `{{NAME}}` is replaced for each view.

/// Why a text is no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadTemplate {
    #[error("a `{{{{` has no closing `}}}}`")]
    Unclosed,
    #[error("a `{{{{…}}}}` does not hold the name of a variable: letters, digits and `_`")]
    Name,
}

/// Part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    Variable(&'t str),
}

/// Splits a template into literals and variables.
pub(super) fn pieces(value: &str) -> Result<Vec<Piece<'_>>, BadTemplate> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while let Some((before, inside)) = rest.split_once("{{") {
        let (name, after) = inside.split_once("}}").ok_or(BadTemplate::Unclosed)?;
        let name = name.trim();
        if !is_name(name) {
            return Err(BadTemplate::Name);
        }
        pieces.extend([Piece::Literal(before), Piece::Variable(name)]);
        rest = after;
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
