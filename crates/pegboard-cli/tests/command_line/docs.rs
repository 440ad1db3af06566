//! The commands in the documentation: every `console` block of a page runs, in order, in a new home folder, and prints what the page shows.
//!
//! A command begins with `$ ` and ends with exit code 0, or with N if its comment says `# exit code N`. The lines after it are its output,
//! stdout and stderr together; without any, the output does not matter. `…` stands for any text, and alone on a line for any lines. A server
//! such as `pegboard serve` keeps running until the page ends. Comments in HTML prepare what a reader has already:
//!
//! * `<!-- setup: COMMAND -->` runs a command;
//! * `<!-- file: PATH -->` writes the next block to a file, `<!-- hidden: PATH` and the lines up to `-->` write one that is not shown;
//! * `<!-- norun: REASON -->` says why the next block, a `console,norun` one, does not run.

mod page;
mod run;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use page::Page;

/// How many blocks do not run. Each has a reason.
const NOT_RUN: usize = 24;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The pages of a folder of the repository, or one page.
fn pages(place: &str) -> Vec<Page> {
    let path = root().join(place);
    if path.is_file() {
        return vec![Page::read(place, &fs::read_to_string(path).unwrap())];
    }
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    names
        .iter()
        .flat_map(|name| pages(&format!("{place}/{name}")))
        .collect()
}

/// Runs several pages at once, each in a home of its own.
#[track_caller]
fn assert_pages_run(pages: &[Page]) {
    let problems: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = pages.iter().map(|page| scope.spawn(|| run::problems(page))).collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn the_commands_of_the_readme_and_the_tutorial_print_what_is_shown() {
    assert_pages_run(&[pages("README.md"), pages("docs/index.md"), pages("docs/tutorial.md")].concat());
}

#[test]
fn the_commands_of_the_guides_print_what_is_shown() {
    assert_pages_run(&pages("docs/guides"));
}

#[test]
fn the_commands_for_users_of_other_programs_print_what_is_shown() {
    assert_pages_run(
        &[
            pages("docs/coming-from"),
            pages("docs/comparison.md"),
            pages("docs/seeds.md"),
        ]
        .concat(),
    );
}

#[test]
fn the_commands_of_concepts_and_references_print_what_is_shown() {
    assert_pages_run(&[pages("docs/concepts"), pages("docs/reference"), pages("docs/cli.md")].concat());
}

#[test]
fn the_picture_in_the_readme_shows_what_the_program_prints() {
    let mut check = Command::new(root().join("scripts/recording"));
    check.args(["--check", env!("CARGO_BIN_EXE_pegboard")]);
    let checked = check.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn few_blocks_do_not_run_and_each_has_a_reason() {
    let places = [
        "README.md",
        "docs",
        "docs/guides",
        "docs/coming-from",
        "docs/concepts",
        "docs/reference",
        "docs/design",
    ];
    let pages: Vec<Page> = places.into_iter().flat_map(pages).collect();
    let not_run: Vec<&str> = pages
        .iter()
        .flat_map(|page| &page.not_run)
        .map(String::as_str)
        .collect();
    assert_eq!(not_run.len(), NOT_RUN, "{not_run:#?}");
}
