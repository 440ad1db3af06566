//! The pages on which people sign in to servers: `/signin`.
//!
//! A browser has no token. It comes with a one-time link ([`SignInLinks`](pegboard_gateway::SignInLinks)) and has a cookie from then on; without
//! tokens in the config, the user of the machine needs no link. A sign-in begins with a form, so that a person has agreed to it, and ends with the
//! redirect of the authorization server in the same browser.

mod cookie;
mod form;
mod handlers;
mod html;
mod pages;
mod pending;
mod routes;
mod site;
mod visitor;

pub(crate) use routes::router;
