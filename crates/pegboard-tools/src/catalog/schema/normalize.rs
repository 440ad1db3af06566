//! Normalizes a schema while parsing it, without a JSON tree.

use std::borrow::Cow;

use super::Schema;
use crate::catalog::{argument_order::ArgumentOrder, sanitize::has_invisible};
use pegboard_base::json_scan::Scan;

/// Normalizes schemas. Its buffers are reused, so that only the schemas themselves allocate.
#[derive(Debug, Default)]
pub(in crate::catalog) struct SchemaNormalizer {
    out: Vec<u8>,
    spare: Vec<u8>,
    /// The fields so far of all objects that are still open.
    fields: Vec<FieldPosition>,
    root: Root,
}

/// What was found at the root of the schema, which decides whether it is a valid input schema.
#[derive(Debug, Default)]
struct Root {
    is_object: bool,
    has_invalid_properties: bool,
    /// The positions of the sorted properties in the order in which they were read.
    order: Box<[u16]>,
}

/// The position of a field of an object in the output.
#[derive(Debug, Clone, Copy)]
struct FieldPosition {
    start: usize,
    /// The end of its key, including the quotes.
    key: usize,
    end: usize,
}

impl FieldPosition {
    /// Its key as written. It has no escapes, so comparing the bytes compares the keys.
    fn key_in(self, out: &[u8]) -> &[u8] {
        &out[self.start + 1..self.key - 1]
    }
}

impl SchemaNormalizer {
    /// Parses an input schema, and the order of its arguments. `None` if it needs the slow path, or if its root is not declared as an object.
    pub(in crate::catalog) fn arguments(
        &mut self,
        scan: &mut Scan<'_>,
        depth: usize,
        bytes: usize,
    ) -> Option<(Schema, ArgumentOrder)> {
        self.root = Root::default();
        let schema = self.schema(scan, depth, bytes)?;
        let root = std::mem::take(&mut self.root);
        (root.is_object && !root.has_invalid_properties).then(|| (schema, ArgumentOrder::new(root.order)))
    }

    /// Parses a schema of at most `depth` levels and `bytes` bytes.
    pub(in crate::catalog) fn schema(&mut self, scan: &mut Scan<'_>, depth: usize, bytes: usize) -> Option<Schema> {
        self.out.clear();
        self.fields.clear();
        self.value(scan, depth)?;
        if self.out.len() > bytes {
            return None;
        }
        Some(Schema::from_text(String::from_utf8(self.out.clone()).ok()?))
    }

    fn value(&mut self, scan: &mut Scan<'_>, left: usize) -> Option<()> {
        match scan.peek()? {
            b'{' => self.object(scan, left.checked_sub(1)?, false),
            b'[' => self.list(scan, left.checked_sub(1)?),
            b'"' => {
                let text = scan.text()?;
                self.text(&text)
            }
            _ => self.copy_literal(scan),
        }
    }

    fn copy_literal(&mut self, scan: &mut Scan<'_>) -> Option<()> {
        let mut ahead = scan.clone();
        let literal = match ahead.peek()? {
            b't' | b'f' => ahead.boolean().map(|is| if is { "true" } else { "false" }),
            _ => None,
        };
        // The caller checks what follows the literal.
        if let Some(literal) = literal {
            *scan = ahead;
            self.out.extend_from_slice(literal.as_bytes());
            return Some(());
        }
        serde_json::to_writer(&mut self.out, &scan.value(0)?).ok()
    }

    #[expect(clippy::ptr_arg, reason = "a text that is borrowed came without escapes")]
    fn text(&mut self, text: &Cow<'_, str>) -> Option<()> {
        // The slow path knows which texts are sanitized and which are data.
        if has_invisible(text) {
            return None;
        }
        match text {
            // Text that came without escapes needs none.
            Cow::Borrowed(plain) => {
                self.out.push(b'"');
                self.out.extend_from_slice(plain.as_bytes());
                self.out.push(b'"');
                Some(())
            }
            Cow::Owned(text) => serde_json::to_writer(&mut self.out, text).ok(),
        }
    }

    fn list(&mut self, scan: &mut Scan<'_>, left: usize) -> Option<()> {
        self.out.push(b'[');
        let start = self.out.len();
        scan.items(|scan| {
            self.comma(start);
            self.value(scan, left)
        })?;
        self.out.push(b']');
        Some(())
    }

    /// `are_arguments` if its fields are those at the root's `properties`.
    fn object(&mut self, scan: &mut Scan<'_>, left: usize, are_arguments: bool) -> Option<()> {
        self.out.push(b'{');
        let start = self.out.len();
        let first = self.fields.len();
        if !scan.eat(b'{') {
            return None;
        }
        let mut goes_on = !scan.eat(b'}');
        while goes_on {
            let key = scan.key()?;
            self.comma(start);
            let begin = self.out.len();
            self.text(&key)?;
            let key_end = self.out.len();
            self.out.push(b':');
            let value = self.out.len();
            if key == "required" && self.names(scan, left) == Some(()) {
                // Parsed and sorted by `names`.
            } else if start == 1 && key == "properties" && scan.peek() == Some(b'{') {
                self.object(scan, left.checked_sub(1)?, true)?;
            } else {
                self.value(scan, left)?;
            }
            if start == 1 {
                self.note_root(&key, value);
            }
            self.fields.push(FieldPosition {
                start: begin,
                key: key_end,
                end: self.out.len(),
            });
            // The bytes of an escaped key sort differently than its text.
            if matches!(key, Cow::Owned(_)) {
                return None;
            }
            goes_on = scan.eat(b',');
            if !goes_on && !scan.eat(b'}') {
                return None;
            }
        }
        if are_arguments {
            self.root.order = (0..u16::try_from(self.fields.len() - first).ok()?).collect();
        }
        self.sort(start, first, are_arguments)?;
        self.out.push(b'}');
        Some(())
    }

    fn note_root(&mut self, key: &str, value: usize) {
        match key {
            "type" => self.root.is_object = &self.out[value..] == br#""object""#,
            "properties" => self.root.has_invalid_properties = self.out[value] != b'{',
            _ => {}
        }
    }

    /// Parses a list of strings and writes it sorted. Consumes and writes nothing if the list has other items.
    fn names(&mut self, scan: &mut Scan<'_>, left: usize) -> Option<()> {
        left.checked_sub(1)?;
        let mut ahead = scan.clone();
        let mut names = Vec::new();
        ahead.items(|ahead| {
            names.push(ahead.text()?);
            Some(())
        })?;
        *scan = ahead;
        names.sort();
        self.out.push(b'[');
        let start = self.out.len();
        for name in &names {
            self.comma(start);
            self.text(name)?;
        }
        self.out.push(b']');
        Some(())
    }

    /// Sorts the fields from index `first` on, written since `start`, by their keys. Duplicate keys return `None`: the slow path lets
    /// serde_json resolve them.
    fn sort(&mut self, start: usize, first: usize, are_arguments: bool) -> Option<()> {
        let (out, fields) = (&mut self.out, &mut self.fields[first..]);
        if !fields.is_sorted_by(|one, two| one.key_in(out) < two.key_in(out)) {
            fields.sort_by(|one, two| one.key_in(out).cmp(two.key_in(out)));
            if fields.windows(2).any(|pair| pair[0].key_in(out) == pair[1].key_in(out)) {
                return None;
            }
            if are_arguments {
                self.root.order.sort_by_key(|at| fields[usize::from(*at)].start);
            }
            self.spare.clear();
            self.spare.extend_from_slice(&out[start..]);
            out.truncate(start);
            for field in fields {
                if out.len() > start {
                    out.push(b',');
                }
                out.extend_from_slice(&self.spare[field.start - start..field.end - start]);
            }
        }
        self.fields.truncate(first);
        Some(())
    }

    /// Writes a comma before every item but the first.
    fn comma(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::sanitize::is_invisible;
    use proptest::prelude::*;
    use serde_json::Value;

    fn tidied(text: &str) -> Option<Schema> {
        let mut scan = Scan::new(text.as_bytes());
        let schema = SchemaNormalizer::default().schema(&mut scan, 32, 64 << 10)?;
        scan.is_at_end().then_some(schema)
    }

    fn check(text: &str) {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(tidied(text), Some(expected.into()), "{text}");
    }

    #[test]
    fn a_schema_comes_out_as_if_a_tree_had_been_built() {
        for text in [
            "{}",
            "true",
            "[ ]",
            r#" { "b" : 1 , "a" : [ 1.50 , -0 , 1e3, null, true , false, "x\u0041\n", "é" ] , "ab" : { } } "#,
            r#"{"type":"object","required":["b","a\"","\u0061"],"properties":{"required":{"default":["q","p"]},"z":{"required":[2,"a"]}}}"#,
            r#"{"required":[],"é":1,"B":2,"a":{"required":"no list"}}"#,
        ] {
            check(text);
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(tidied(&deep(32)).is_some());
        let long = format!(r#""{}""#, "x".repeat(65_536));
        for text in [
            "",
            "{",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\u200b"}"#,
            r#"{"\u0042":2}"#,
            r#"{"a":truefalse}"#,
            r#"[true false]"#,
            "\"\u{7f}\"",
            "nul",
            &deep(33),
            &long,
        ] {
            assert_eq!(tidied(text), None, "{text}");
        }
        let arguments =
            |text: &str| SchemaNormalizer::default().arguments(&mut Scan::new(text.as_bytes()), 32, 64 << 10);
        assert!(arguments(r#"{"properties":{"type":{}},"type":"object"}"#).is_some());
        for text in [
            "{}",
            "true",
            r#"{"type":["object"]}"#,
            r#"{"type":"object","properties":null}"#,
        ] {
            assert_eq!(arguments(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_tree_comes_out_in_order(tree in any_tree()) {
            check(&tree.to_string());
            check(&serde_json::to_string_pretty(&tree).unwrap());
        }
    }

    fn any_tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "(\\PC|\n|\"){0,12}".prop_map(|text| Value::from(text.replace(is_invisible, "?"))),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            let key = prop_oneof![
                Just("required".to_owned()),
                Just("type".to_owned()),
                "\\PC{0,5}".prop_map(|key| key.replace(|c| is_invisible(c) || matches!(c, '"' | '\\'), "?"))
            ];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec("[a-c]{1,2}", 0..4).prop_map(Value::from),
                proptest::collection::btree_map(key, inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }
}
