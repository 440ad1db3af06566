//! The fields of a definition that have no field of their own, kept as JSON text.

use serde_json::Value;

use pegboard_mask::Masker;

/// Masks the other fields of a definition.
pub(super) fn mask_more(more: &mut Option<Box<str>>, masker: &Masker) {
    let Some(text) = more.as_deref().filter(|text| !masker.is_surely_clean(text)) else {
        return;
    };
    let mut tree: Value = serde_json::from_str(text).unwrap_or_default();
    if !masker.value(&mut tree).is_empty() {
        *more = Some(tree.to_string().into());
    }
}
