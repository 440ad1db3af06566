//! The archive that people unpack by hand.

use std::process::Command;

use crate::packages::{Packages, TARGET, VERSION, run};

#[test]
fn the_archive_has_the_program_its_licences_completions_and_man_pages() {
    let packages = Packages::of_this_program("archive", &[]);
    let name = format!("pegboard-{VERSION}-{TARGET}");
    assert_eq!(packages.names(), ["SHA256SUMS", &format!("{name}.tar.gz")]);
    let mut sums = Command::new("sha256sum");
    run(sums
        .args(["--check", "SHA256SUMS"])
        .current_dir(packages.path("packages")))
    .succeeds();
    let mut tar = packages.command("tar");
    run(tar.arg("-xzf").arg(packages.path(&format!("packages/{name}.tar.gz")))).succeeds();
    let folder = packages.path(&name);
    for file in [
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "completions/_pegboard",
        "man/man1/pegboard.1",
        "monitoring/pegboard.json",
        "monitoring/alerts.yml",
    ] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let version = run(packages.command(folder.join("pegboard")).arg("--version"));
    assert_eq!(version.succeeds(), format!("pegboard {VERSION}\n"));
    let bash = folder.join("completions/pegboard.bash");
    run(packages.command("bash").arg("-n").arg(bash)).succeeds();
}
