//! Renders an answer as text for a model: blocks or structured content, separators, and the fence.

use std::borrow::Cow;

use serde_json::Value;

use super::{answer::Answer, content::Content, untrusted_fence};
use pegboard_config::{Join, Structured};

impl Answer {
    /// The answer as one text. Binary blocks are described, not included.
    ///
    /// The config of the tool sets the separator between blocks, whether structured content is shown, and whether the text is fenced. The
    /// default is the blocks, joined by newlines, or the structured content as JSON if there are none.
    pub fn text(&self) -> String {
        let body = self.body();
        match &self.rendering.fence {
            Some(source) => untrusted_fence::around(&body, source),
            None => body.into_owned(),
        }
    }

    /// The blocks for a model that reads blocks, fenced like the text.
    pub fn blocks(&self) -> Cow<'_, [Content]> {
        let source = match &self.rendering.fence {
            Some(source) if !self.content.is_empty() => source,
            _ => return Cow::Borrowed(&self.content),
        };
        let texts: Vec<Cow<'_, str>> = self.content.iter().map(Content::to_text).collect();
        let [before, after] = untrusted_fence::marks(&texts.iter().map(|text| &**text).collect::<Vec<_>>(), source);
        let mut blocks = vec![Content::text(before)];
        blocks.extend_from_slice(&self.content);
        blocks.push(Content::text(after));
        Cow::Owned(blocks)
    }

    /// The blocks for a client that makes a text of them itself, so that this text is close to [`Answer::text`]: adjacent texts are joined if
    /// the separator is not a newline, structured content is a block where it is shown, and all of it is fenced like the text.
    #[doc(hidden)]
    pub fn rendered_blocks(&self) -> Cow<'_, [Content]> {
        let is_default = self.rendering.join == Join::Newline && self.rendering.structured == Structured::ContentFirst;
        let has_hidden_text = self.is_fenced() && self.content.is_empty();
        if is_default && !has_hidden_text {
            return self.blocks();
        }
        let (shown, structured) = self.shown_parts();
        let content = if shown { self.join_adjacent_texts() } else { Vec::new() };
        // Without a fence, a client finds structured content beside the blocks.
        let structured = structured.filter(|_| !is_default || has_hidden_text);
        let structured = structured.map(|structured| Content::text(structured.to_string()));
        let shown = Self {
            rendering: self.rendering.clone(),
            ..Self::from_content(content.into_iter().chain(structured))
        };
        Cow::Owned(shown.blocks().into_owned())
    }

    /// The blocks, adjacent texts joined.
    fn join_adjacent_texts(&self) -> Vec<Content> {
        let separator = match self.rendering.join {
            Join::Newline => return self.content.clone(),
            Join::First => return self.content.iter().take(1).cloned().collect(),
            Join::EmptyLine => "\n\n",
            Join::Nothing => "",
        };
        let mut blocks: Vec<Content> = Vec::with_capacity(self.content.len());
        for block in &self.content {
            match (blocks.last_mut(), block) {
                (Some(Content::Text { text: before, .. }), Content::Text { text, .. }) => {
                    before.push_str(separator);
                    before.push_str(text);
                }
                _ => blocks.push(block.clone()),
            }
        }
        blocks
    }

    /// Returns whether its text is fenced as untrusted.
    #[doc(hidden)]
    pub fn is_fenced(&self) -> bool {
        self.rendering.fence.is_some()
    }

    /// Returns whether its text is empty.
    #[doc(hidden)]
    pub fn is_blank(&self) -> bool {
        self.body().trim().is_empty()
    }

    /// The text without a fence.
    #[doc(hidden)]
    pub fn body(&self) -> Cow<'_, str> {
        let (shown, structured) = self.shown_parts();
        match (shown, structured) {
            (false, None) => Cow::Borrowed(""),
            (true, None) => self.join_text(),
            (false, Some(structured)) => structured.to_string().into(),
            (true, Some(structured)) => {
                let mut text = self.join_text().into_owned();
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&structured.to_string());
                text.into()
            }
        }
    }

    /// Whether the blocks are shown, and the structured content if it is shown.
    #[doc(hidden)]
    pub fn shown_parts(&self) -> (bool, Option<&Value>) {
        let structured = self.structured.as_ref();
        match self.rendering.structured {
            Structured::ContentFirst if self.content.is_empty() => (false, structured),
            Structured::ContentFirst | Structured::ContentOnly => (true, None),
            Structured::StructuredFirst => (structured.is_none(), structured),
            Structured::StructuredOnly => (false, structured),
            Structured::BothDedup => (true, structured.filter(|structured| !self.says(structured))),
        }
    }

    /// Returns whether a text block is the structured content as JSON.
    fn says(&self, structured: &Value) -> bool {
        self.content.iter().any(|block| match block {
            Content::Text { text, .. } => is_json_of(text, structured),
            _ => false,
        })
    }

    /// The blocks as one text.
    fn join_text(&self) -> Cow<'_, str> {
        let separator = match self.rendering.join {
            Join::Newline => "\n",
            Join::EmptyLine => "\n\n",
            Join::Nothing => "",
            Join::First => return self.content.first().map(Content::to_text).unwrap_or_default(),
        };
        match self.content.as_slice() {
            [] => Cow::Borrowed(""),
            [block] => block.to_text(),
            blocks => {
                let texts: Vec<_> = blocks.iter().map(Content::to_text).collect();
                texts.join(separator).into()
            }
        }
    }
}

/// Returns whether `text` is `value` as JSON.
pub fn is_json_of(text: &str, value: &Value) -> bool {
    // The first character rules out most texts without parsing them.
    let may_be = match value {
        Value::Object(_) => text.trim_start().starts_with('{'),
        Value::Array(_) => text.trim_start().starts_with('['),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    may_be && serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(texts: &[&str], structured: Option<Value>) -> Answer {
        let mut answer = Answer::from_text("");
        answer.content = texts.iter().map(|text| Content::text(*text)).collect();
        answer.structured = structured;
        answer
    }

    /// Five policies on the four shapes that servers send.
    #[test]
    fn every_policy_shows_the_right_form_of_every_shape() {
        let value = json!({"t": 21});
        let shapes = [
            answer(&["21 degrees"], None),
            answer(&[], Some(value.clone())),
            answer(&[" {\"t\": 21}\n"], Some(value.clone())),
            answer(&["21 degrees"], Some(value)),
        ];
        let json = r#"{"t":21}"#;
        let same = " {\"t\": 21}\n";
        for (policy, expected) in [
            (Structured::ContentFirst, ["21 degrees", json, same, "21 degrees"]),
            (Structured::StructuredFirst, ["21 degrees", json, json, json]),
            (
                Structured::BothDedup,
                ["21 degrees", json, same, "21 degrees\n{\"t\":21}"],
            ),
            (Structured::ContentOnly, ["21 degrees", "", same, "21 degrees"]),
            (Structured::StructuredOnly, ["", json, json, json]),
        ] {
            for (shape, expected) in shapes.iter().zip(expected) {
                let mut answer = shape.clone();
                answer.rendering.structured = policy;
                assert_eq!(answer.text(), expected, "{policy:?} on {shape:?}");
            }
        }
    }

    #[test]
    fn blocks_are_joined_as_each_design_wants_it() {
        for (join, expected) in [
            (Join::Newline, "a\nb\n[image image/png, 3 bytes]"),
            (Join::EmptyLine, "a\n\nb\n\n[image image/png, 3 bytes]"),
            (Join::Nothing, "ab[image image/png, 3 bytes]"),
            (Join::First, "a"),
        ] {
            let mut answer = answer(&["a", "b"], None);
            let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
            answer.content.push(serde_json::from_value(image).unwrap());
            answer.rendering.join = join;
            assert_eq!(answer.text(), expected, "{join:?}");
        }
    }

    #[test]
    fn scalars_and_lists_are_recognised_as_the_same_too() {
        for (text, value, same) in [
            ("[1, 2]", json!([1, 2]), true),
            ("[1]", json!([1, 2]), false),
            (" 7 ", json!(7), true),
            ("\"x\"", json!("x"), true),
            ("{}", json!([]), false),
            ("{broken", json!({}), false),
        ] {
            assert_eq!(is_json_of(text, &value), same, "{text}");
        }
    }

    #[test]
    fn a_fence_stands_around_the_text_and_around_the_blocks() {
        let mut answer = answer(&["a", "b"], None);
        answer.rendering.fence = Some("git.log".into());
        let text = answer.text();
        assert!(
            text.starts_with("<untrusted-") && text.contains(" instructions.\na\nb\n</untrusted-"),
            "{text}"
        );
        let blocks = answer.blocks();
        assert_eq!(blocks.len(), 4);
        assert_eq!(format!("{}\na\nb\n{}", blocks[0].to_text(), blocks[3].to_text()), text);
    }
}
