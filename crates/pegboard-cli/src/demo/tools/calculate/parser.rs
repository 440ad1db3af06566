//! Parses and evaluates an arithmetic expression by recursive descent:
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = sign (("*" | "/" | "%") sign)*
//! sign    = ("-" | "+") sign | power
//! power   = atom ("^" sign)?
//! atom    = number | name "(" sum ("," sum)* ")" | "(" sum ")"
//! ```

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

/// The limit on nested parentheses, signs and powers, which bounds the parser's stack.
const MAX_DEPTH: usize = 64;

/// Functions take at most this many arguments.
const MAX_ARGUMENTS: usize = 64;

/// What is wrong with an expression, and at which character (counted from 1).
#[derive(Debug, PartialEq)]
pub(super) struct Trouble {
    what: String,
    position: usize,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.what, self.position)
    }
}

pub(super) fn evaluate(expression: &str) -> Result<f64, Trouble> {
    let mut parser = Parser {
        text: expression,
        rest: expression.char_indices().peekable(),
        depth: 0,
    };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some((at, ')')) => Err(parser.trouble(at, "`)` without its `(`")),
        Some((at, other)) => Err(parser.trouble(at, format!("expected an operator, found `{other}`"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<f64, Trouble> {
        let mut value = self.product()?;
        while let Some((at, operator @ ('+' | '-'))) = self.peek() {
            self.rest.next();
            let right = self.product()?;
            value = self.finite(at, if operator == '+' { value + right } else { value - right })?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, Trouble> {
        let mut value = self.sign()?;
        while let Some((at, operator @ ('*' | '/' | '%'))) = self.peek() {
            self.rest.next();
            let right = self.sign()?;
            if operator != '*' && right == 0.0 {
                return Err(self.trouble(at, "division by zero"));
            }
            let result = match operator {
                '*' => value * right,
                '/' => value / right,
                _ => value % right,
            };
            value = self.finite(at, result)?;
        }
        Ok(value)
    }

    fn sign(&mut self) -> Result<f64, Trouble> {
        match self.peek() {
            Some((at, sign @ ('-' | '+'))) => {
                self.rest.next();
                let value = self.parse_nested(at, Self::sign)?;
                Ok(if sign == '-' { -value } else { value })
            }
            _ => self.power(),
        }
    }

    fn power(&mut self) -> Result<f64, Trouble> {
        let base = self.atom()?;
        let Some((at, '^')) = self.peek() else { return Ok(base) };
        self.rest.next();
        let exponent = self.parse_nested(at, Self::sign)?;
        if base == 0.0 && exponent < 0.0 {
            return Err(self.trouble(at, "division by zero"));
        }
        let value = base.powf(exponent);
        if value.is_nan() {
            return Err(self.trouble(at, "a negative number has no real power with a fraction"));
        }
        self.finite(at, value)
    }

    fn atom(&mut self) -> Result<f64, Trouble> {
        match self.peek() {
            Some((at, '(')) => {
                self.rest.next();
                let value = self.parse_nested(at, Self::sum)?;
                self.close(at)?;
                Ok(value)
            }
            Some((at, '0'..='9' | '.')) => self.number(at),
            Some((at, letter)) if letter.is_ascii_alphabetic() => self.function(at),
            Some((at, other)) => Err(self.trouble(at, format!("expected a number, found `{other}`"))),
            None => Err(self.trouble(self.text.len(), "expected a number, found the end")),
        }
    }

    fn number(&mut self, start: usize) -> Result<f64, Trouble> {
        self.skip(|letter| letter.is_ascii_digit());
        if self.rest.next_if(|&(_, letter)| letter == '.').is_some() {
            self.skip(|letter| letter.is_ascii_digit());
        }
        if self.rest.next_if(|&(_, letter)| matches!(letter, 'e' | 'E')).is_some() {
            self.rest.next_if(|&(_, letter)| matches!(letter, '+' | '-'));
            self.skip(|letter| letter.is_ascii_digit());
        }
        let text = &self.text[start..self.here()];
        let value: f64 = text
            .parse()
            .map_err(|_| self.trouble(start, format!("`{text}` is no number")))?;
        self.finite(start, value)
    }

    fn function(&mut self, start: usize) -> Result<f64, Trouble> {
        self.skip(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let name = self.text[start..self.here()].to_owned();
        if !["sqrt", "abs", "round", "min", "max"].contains(&name.as_str()) {
            return Err(self.trouble(
                start,
                format!("`{name}` is unknown; there are sqrt, abs, round, min and max,"),
            ));
        }
        let Some((open, '(')) = self.peek() else {
            let here = self.here();
            return Err(self.trouble(here, format!("expected `(` after `{name}`")));
        };
        self.rest.next();
        let mut arguments = vec![self.parse_nested(open, Self::sum)?];
        while let Some((at, ',')) = self.peek() {
            self.rest.next();
            if arguments.len() == MAX_ARGUMENTS {
                return Err(self.trouble(at, format!("more than {MAX_ARGUMENTS} arguments")));
            }
            arguments.push(self.parse_nested(open, Self::sum)?);
        }
        self.close(open)?;
        self.apply(&name, &arguments, start)
    }

    fn apply(&self, name: &str, arguments: &[f64], start: usize) -> Result<f64, Trouble> {
        match (name, arguments) {
            ("min", all) => Ok(all.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max", all) => Ok(all.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ("sqrt", [value]) if *value < 0.0 => Err(self.trouble(start, "a negative number has no real square root")),
            ("sqrt", [value]) => Ok(value.sqrt()),
            ("abs", [value]) => Ok(value.abs()),
            ("round", [value]) => Ok(value.round()),
            _ => Err(self.trouble(start, format!("`{name}` takes one argument, not {}", arguments.len()))),
        }
    }

    /// Parses one level deeper, within the depth limit.
    fn parse_nested(&mut self, at: usize, parse: fn(&mut Self) -> Result<f64, Trouble>) -> Result<f64, Trouble> {
        if self.depth == MAX_DEPTH {
            return Err(self.trouble(at, format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn close(&mut self, open: usize) -> Result<(), Trouble> {
        match self.peek() {
            Some((_, ')')) => {
                self.rest.next();
                Ok(())
            }
            Some((at, other)) => Err(self.trouble(at, format!("expected an operator or `)`, found `{other}`"))),
            None => Err(self.trouble(open, "`(` without its `)`")),
        }
    }

    fn finite(&self, at: usize, value: f64) -> Result<f64, Trouble> {
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.trouble(at, "the value is too large"))
        }
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.rest.next_if(|&(_, letter)| wanted(letter)).is_some() {}
    }

    /// The next non-space character, with its byte offset.
    fn peek(&mut self) -> Option<(usize, char)> {
        self.skip(char::is_whitespace);
        self.rest.peek().copied()
    }

    fn here(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |&(at, _)| at)
    }

    fn trouble(&self, at: usize, what: impl Into<String>) -> Trouble {
        Trouble {
            what: what.into(),
            position: self.text[..at].chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_usual_values() {
        for (expression, value) in [
            ("1", 1.0),
            (" 1 + 2 * 3 ", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("100 / 10 / 5", 2.0),
            ("7 % 4", 3.0),
            ("-7 % 4", -3.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("(-2) ^ 2", 4.0),
            ("2 ^ -1", 0.5),
            ("--3", 3.0),
            ("+3 - -3", 6.0),
            ("2 * -3", -6.0),
            (".5 + 1.", 1.5),
            ("1e3 + 2.5E-1", 1000.25),
            ("sqrt(16)", 4.0),
            ("abs(-2.5)", 2.5),
            ("round(2.5)", 3.0),
            ("round(-2.4)", -2.0),
            ("min(3, 1, 2)", 1.0),
            ("max(3, 1 + 4, 2)", 5.0),
            ("max(7)", 7.0),
            ("sqrt (abs(-9)) ^ 2", 9.0),
            ("0 * 5", 0.0),
        ] {
            assert_eq!(evaluate(expression), Ok(value), "{expression}");
        }
    }

    #[test]
    fn a_wrong_expression_says_what_and_where() {
        for (expression, message) in [
            ("", "expected a number, found the end at character 1"),
            ("1 +", "expected a number, found the end at character 4"),
            ("1 2", "expected an operator, found `2` at character 3"),
            ("1 + * 2", "expected a number, found `*` at character 5"),
            ("(1 + 2", "`(` without its `)` at character 1"),
            ("1 + 2)", "`)` without its `(` at character 6"),
            ("(1 ; 2)", "expected an operator or `)`, found `;` at character 4"),
            ("ä + 1", "expected a number, found `ä` at character 1"),
            ("1 / (2 - 2)", "division by zero at character 3"),
            ("1 % 0", "division by zero at character 3"),
            ("0 ^ -1", "division by zero at character 3"),
            ("10 ^ 400", "the value is too large at character 4"),
            ("1e999", "the value is too large at character 1"),
            ("1e308 * 10", "the value is too large at character 7"),
            (
                "(-8) ^ 0.5",
                "a negative number has no real power with a fraction at character 6",
            ),
            ("sqrt(-1)", "a negative number has no real square root at character 1"),
            ("sqrt(1, 2)", "`sqrt` takes one argument, not 2 at character 1"),
            ("sqrt 4", "expected `(` after `sqrt` at character 6"),
            ("min()", "expected a number, found `)` at character 5"),
            (
                "2 * sin(1)",
                "`sin` is unknown; there are sqrt, abs, round, min and max, at character 5",
            ),
            ("1.2.3", "expected an operator, found `.` at character 4"),
            (".", "`.` is no number at character 1"),
            ("1e", "`1e` is no number at character 1"),
        ] {
            let trouble = evaluate(expression).expect_err(expression);
            assert_eq!(trouble.to_string(), message, "{expression}");
        }
    }

    #[test]
    fn nesting_is_bounded_however_it_is_written() {
        for opening in ["(", "-", "2^", "abs("] {
            let trouble = evaluate(&opening.repeat(300)).unwrap_err();
            assert!(trouble.what.starts_with("more than 64 levels"), "{opening}: {trouble}");
        }
        assert_eq!(evaluate(&format!("{}1{}", "(".repeat(64), ")".repeat(64))), Ok(1.0));
    }

    #[test]
    fn long_flat_expressions_need_no_depth() {
        assert_eq!(evaluate(&vec!["1"; 400].join("+")), Ok(400.0));
    }
}
