//! A secret of the config that a server puts into any of its messages appears in no output of the library.

mod canary;
mod counts;
mod crossing;
