//! The `pegboard` command.

fn main() {}
