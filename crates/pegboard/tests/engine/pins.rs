//! Pinned definitions: what changed since a person saw it is reported, or held until a person accepts it; and definitions that look like
//! attacks.

mod accepting;
mod fixtures;
mod holding;
mod identity;
mod scanning;
mod stores;
