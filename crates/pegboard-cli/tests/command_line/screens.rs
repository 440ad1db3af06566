//! The screens of everyday commands, at 80 and at 120 columns, with and without colour.

mod home;
#[path = "../whole_machine/newcomer/screen.rs"]
mod screen;

use home::Home;
use screen::Screen;

use crate::find::registry::{FakeRegistry, published};

const SCREENS: [Screen; 4] = [
    Screen::new(80, false),
    Screen::new(80, true),
    Screen::new(120, false),
    Screen::new(120, true),
];

/// Runs a command on every screen, and compares each with its snapshot.
#[track_caller]
fn shows(name: &str, home: &Home, args: &[&str], code: i32) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../command_line/screens/snapshots");
    settings.bind(|| {
        for screen in SCREENS {
            screen.shows(name, home, args, code);
        }
    });
}

#[test]
fn the_list_of_servers() {
    shows("list", &Home::new(), &["list"], 0);
}

#[test]
fn one_server() {
    let home = Home::new();
    shows("get", &home, &["get", "orders"], 0);
    shows("get a remote one", &home, &["get", "tickets"], 0);
    shows("get one that is misconfigured", &home, &["get", "github"], 0);
}

#[test]
fn the_states_of_servers() {
    let home = Home::new();
    let _remote = home.with_a_remote_server();
    shows("status", &home, &["status"], 0);
}

#[test]
fn one_tool() {
    shows(
        "tool",
        &Home::new(),
        &["tools", "demo.search_text", "--server", "demo"],
        0,
    );
}

#[test]
fn the_tools_of_a_server() {
    shows("tools", &Home::new(), &["tools", "--server", "demo"], 0);
}

#[test]
fn servers_of_a_registry() {
    let registry = FakeRegistry::with(published(), 100);
    let mut home = Home::new();
    registry.address().clone_into(&mut home.registry);
    shows("find", &home, &["find", "github", "--all"], 0);
}

#[test]
fn the_findings_of_the_doctor() {
    shows("doctor", &Home::new(), &["doctor"], 1);
}
