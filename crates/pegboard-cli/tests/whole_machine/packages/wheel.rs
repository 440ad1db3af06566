//! The wheel, run by `uvx` as people do who have Python tools.

use std::process::Command;

use crate::packages::{Packages, VERSION, peer, run};

/// `uvx` that knows these packages and no others.
fn uvx(packages: &Packages, args: &[&str]) -> Command {
    let mut command = packages.command(peer("python-packaging/bin/uvx"));
    command
        .args(["--offline", "--no-index", "--no-config", "--find-links"])
        .arg(packages.path("packages"))
        .args(args)
        .env("UV_CACHE_DIR", packages.path("cache"))
        .env("UV_TOOL_DIR", packages.path("tools"))
        .env("UV_PYTHON_DOWNLOADS", "never");
    command
}

#[test]
fn uvx_runs_the_program_of_the_wheel() {
    let packages = Packages::of_this_program("wheel", &[]);
    let called = run(&mut uvx(
        &packages,
        &[
            "--from",
            "pegboard-mcp",
            "pegboard",
            "call",
            "demo.calculate",
            "expression=6*7",
        ],
    ));
    assert_eq!(called.succeeds(), "{\"value\":42}\n");
    // The name of the package is a command too, because uvx starts that one unless told otherwise.
    let version = run(&mut uvx(&packages, &["pegboard-mcp", "--version"]));
    assert_eq!(version.succeeds(), format!("pegboard {VERSION}\n"));
    let unknown = run(&mut uvx(&packages, &["pegboard-mcp", "call", "demo.nothing"]));
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
}

#[test]
fn uvx_pegboard_runs_a_wheel_of_that_name() {
    let packages = Packages::of_this_program("wheel", &["--wheel-name", "pegboard"]);
    let called = run(&mut uvx(
        &packages,
        &["pegboard", "call", "demo.calculate", "expression=6*7"],
    ));
    assert_eq!(called.succeeds(), "{\"value\":42}\n");
}
