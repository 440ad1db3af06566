//! Credentials that the program supplies at run time: when its provider is asked, what is sent, and what becomes of its failures, on every
//! transport and in both eras.

mod fixtures;

mod failures;
mod masking;
mod processes;
mod refusals;
mod requests;
