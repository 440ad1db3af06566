//! [`Who`]: a visitor as the frame of a page shows it.

use maud::{Markup, html};
use pegboard_gateway::{Scope, Scopes};

/// The name of the field with which a form proves that a page of ours has sent it.
pub(crate) const FORM_TOKEN: &str = "form_token";

/// A visitor as the frame of a page shows it.
#[derive(Debug)]
pub(crate) struct Who<'a> {
    pub(crate) name: String,
    /// What the visitor may do, in words.
    pub(crate) rights: String,
    pub(crate) scopes: Scopes,
    pub(crate) is_signed_in: bool,
    pub(crate) form_token: &'a str,
}

impl Who<'_> {
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// The field that every form has.
    pub(crate) fn token_field(&self) -> Markup {
        html! { input type="hidden" name=(FORM_TOKEN) value=(self.form_token); }
    }
}
