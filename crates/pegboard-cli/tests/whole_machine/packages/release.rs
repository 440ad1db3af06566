//! What a release publishes: the packages of all systems, each for its system only, and the same bytes from the same inputs.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::json;

use crate::packages::{Packages, VERSION, registry::manifest, run};

const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];

/// Packages of all systems around a script.
fn of_a_script() -> Packages {
    let packages = Packages::new();
    let program = packages.path("pegboard");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&program)).succeeds();
    for target in TARGETS {
        let kinds = ["--only", "archive", "--only", "wheel", "--only", "npm"];
        packages.make(&[&kinds[..], &["--program", program.to_str().unwrap(), target]].concat());
    }
    packages
}

#[test]
fn every_system_has_an_archive_a_wheel_and_an_npm_package() {
    let packages = of_a_script();
    insta::assert_snapshot!(packages.names().join("\n"));
    let launcher = manifest(&packages.path(&format!("packages/pegboard-{VERSION}.tgz")));
    let programs = launcher["optionalDependencies"].as_object().unwrap();
    assert_eq!(programs.len(), TARGETS.len());
    for (name, version) in programs {
        // Equal versions: a launcher never starts a program of another release.
        assert_eq!(version, VERSION);
        let system = name.strip_prefix("@pegboard/").unwrap();
        let package = manifest(&packages.path(&format!("packages/pegboard-{system}-{VERSION}.tgz")));
        let (os, cpu) = system.split_once('-').unwrap();
        assert_eq!((&package["os"], &package["cpu"]), (&json!([os]), &json!([cpu])));
        assert_eq!(package["name"], name.as_str());
        // npm asks before it runs scripts of packages, so nothing may depend on them.
        assert_eq!(package.get("scripts"), None);
    }
}

#[test]
fn the_same_program_makes_the_same_packages() {
    let read = |packages: &Packages| -> BTreeMap<String, Vec<u8>> {
        let content = |name: String| (name.clone(), fs::read(packages.path("packages").join(name)).unwrap());
        packages.names().into_iter().map(content).collect()
    };
    let (one, other) = (of_a_script(), of_a_script());
    assert!(read(&one) == read(&other));
}

#[test]
fn one_command_checks_the_packages_of_this_machine_and_uses_each_of_them() {
    let packages = Packages::new();
    let mut command = Command::new(crate::packages::root().join("scripts/release"));
    command
        .args([
            "--program",
            env!("CARGO_BIN_EXE_pegboard"),
            "--level",
            "1",
            "--crates",
            "no",
            "--out",
        ])
        .arg(packages.path("packages"));
    let table = run(&mut command).succeeds();
    for (package, result) in [
        ("archive", "unpacked, called a tool, sums agree"),
        ("npm", "installed, called a tool, `npm publish --dry-run` accepts it"),
        ("wheel", "installed, called a tool, metadata and RECORD agree"),
    ] {
        let row = table.lines().find(|line| line.starts_with(package)).unwrap();
        assert!(row.ends_with(result), "{table}");
    }
}
