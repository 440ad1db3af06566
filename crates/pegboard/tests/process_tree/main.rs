//! No process of a stdio server is ever left behind, whatever it starts and however we end.
#![cfg(target_os = "linux")]

mod ends;
mod inside;
mod killed;
mod program;
