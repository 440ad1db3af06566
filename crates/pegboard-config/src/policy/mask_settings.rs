//! The settings of masking, which resolve to a `Masking`.

use crate::{
    field::{DefaultValue, Floor, ValueKind},
    floor::never_off,
    from_setting::FromSetting as _,
    key::{Nested, choice, flag, list, text, texts},
    setting::Text,
    settings::settings,
};
use pegboard_mask::MaskStyle;

settings! {
    masking = "masking" {
        /// Whether anything besides the secrets of the config is masked.
        enabled: bool = flag(true).floor(never_off());
        /// Whether the default patterns are masked.
        defaults: bool = flag(true).floor(never_off());
        /// Names of further pattern groups to mask.
        groups: Vec<Text> = texts().aka(&["pattern_groups"]);
        /// Names of further patterns to mask.
        patterns: Vec<Text> = texts();
        /// Custom patterns to mask.
        custom: Vec<Nested<pattern::In>> = list(&ValueKind::Table(&pattern::SECTION))
            .aka(&["custom_patterns"])
            .shown(DefaultValue::EmptyList);
        /// Regular expressions for whole values that are never masked, even if a pattern matches them.
        except: Vec<Text> = texts().aka(&["allow_list", "allowlist"]).floor(Floor::Default(|_, _| true));
        /// Whether only the secret is replaced, or its name as well.
        style: MaskStyle = choice().floor(Floor::Default(|own, _| MaskStyle::from_setting(own) == Some(MaskStyle::Value)));
    }
}

settings! {
    pattern = "pattern" {
        /// The regular expression to search for.
        pattern: Option<Text> = text().aka(&["regex"]);
        /// The text that replaces a match.
        replacement: Option<String> = text().shown(DefaultValue::Text("[MASKED]"));
        /// What the pattern finds.
        description: Option<String> = text().aka(&["name"]);
    }
}
