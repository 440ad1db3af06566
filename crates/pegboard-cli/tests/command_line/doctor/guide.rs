//! The guide lists every finding, and each has a broken setup here.

use std::{fs, path::Path};

#[test]
fn each_finding_of_the_guide_has_a_broken_setup() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(folder.join("../../docs/guides/doctor.md")).unwrap();
    let rows = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let ids: Vec<&str> = rows.collect();
    assert!(ids.len() >= 50, "{ids:?}");
    let sources = fs::read_dir(folder.join("tests/command_line/doctor")).unwrap();
    let sources = sources
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("guide.rs"));
    let text: String = sources.map(|path| fs::read_to_string(path).unwrap()).collect();
    let has_setup = |id: &&str| text.contains(&format!("\"{id}\""));
    let missing: Vec<&str> = ids.into_iter().filter(|id| !has_setup(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
