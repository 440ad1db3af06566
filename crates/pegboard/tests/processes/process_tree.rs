//! No process of a stdio server is ever left behind, whatever it starts and however the program ends.

mod ends;
mod guard;
mod inside;
mod killed;
mod program;
