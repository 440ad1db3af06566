//! Temporary files that a killed guard leaves behind.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    kernel::Need,
    sandbox::stage::{Stage, parent},
};

/// The private folders for temporary files.
fn folders(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.path("tmp")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn within(condition: impl Fn() -> bool) -> bool {
    (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        condition()
    })
}

#[test]
fn temporary_files_of_a_killed_guard_are_removed_by_the_next_one() {
    let stage = Stage::new();
    let server = stage.hostile(&json!("basic"));
    let mut program = stage.start(&server, true);
    if program.is_refused(Need::Files) {
        return;
    }
    let [left] = &folders(&stage)[..] else {
        panic!("one folder: {:?}", folders(&stage));
    };
    fs::write(left.join("file"), "x").unwrap();
    let other = program.server("other")["pid"].as_u64().unwrap();
    let guard = parent(u32::try_from(other).unwrap());
    kill_process(Pid::from_raw(guard.cast_signed()).unwrap(), Signal::KILL).unwrap();
    drop(program);

    // It is young, so another guard may have created it just now.
    let mut second = stage.start(&server, true);
    assert!(left.exists() && folders(&stage).len() == 2);
    second.tell("close");
    drop(second);
    assert!(within(|| folders(&stage).len() == 1), "{:?}", folders(&stage));

    let before = SystemTime::now() - Duration::from_secs(3600);
    File::open(left).unwrap().set_modified(before).unwrap();
    let third = stage.start(&server, true);
    assert!(within(|| !left.exists()), "it is left behind");
    assert_eq!(folders(&stage).len(), 1, "the folder of the running server stays");
    drop(third);
    assert!(within(|| folders(&stage).is_empty()), "{:?}", folders(&stage));
}
