//! What a Rust program expects of the public types: traits, words, stored values, builders and names.

mod labels;
mod names;
mod one_liners;
mod stored;
