//! The commands that change the servers of config files: what they write, what they refuse, and what they say.

mod adding;
mod bundles;
mod changing;
mod together;

use crate::home::Home;

const USER: &str = ".config/pegboard/pegboard.toml";

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path(name)).unwrap()
}

/// Runs a command that must end with this code, and returns what it printed on both streams.
fn screen(home: &Home, code: i32, args: &[&str]) -> String {
    let ran = home.run(args);
    assert_eq!(ran.code, Some(code), "{args:?}\n{}{}", ran.out, ran.err);
    format!("{}{}", ran.out, ran.err)
}
