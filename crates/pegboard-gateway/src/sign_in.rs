//! Leads people to the sign-in pages of a gateway: one-time links, the visits of browsers that came with one, and the address of the pages.
//!
//! The pages themselves are served by the router of [`GatewayBuilder::fallback`](crate::GatewayBuilder::fallback).

mod links;
mod page_address;
mod tables;

pub(crate) use links::FinishedSignIns;
pub use links::{OpenedLink, SignInLink, SignInLinks};
pub use page_address::NoSignInPage;
pub(crate) use page_address::PageAddress;
pub use tables::SignInVisit;
