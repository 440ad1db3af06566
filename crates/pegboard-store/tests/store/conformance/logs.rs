//! Sentences about logs.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use pegboard_store::{Key, LogBounds, LogRead, Store};

use crate::fixture::{Fixture, LONG, SHORT, bytes, eventually};

const BOUNDS: LogBounds = LogBounds {
    entries: 100,
    bytes: 10_000,
};

fn entries(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| bytes(text)).collect()
}

fn texts(read: &LogRead) -> Vec<&str> {
    let texts = read
        .entries
        .iter()
        .map(|entry| std::str::from_utf8(&entry.bytes).unwrap());
    texts.collect()
}

pub(crate) async fn a_log_is_read_after_a_position(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["a"]));
    assert_eq!(store.read_after(&key, 0, 10).await.unwrap(), LogRead::default());
    let second = store.append(&key, entries(&["1", "2"]), BOUNDS, LONG).await.unwrap();
    let fourth = store.append(&key, entries(&["3", ""]), BOUNDS, LONG).await.unwrap();
    assert_eq!(fourth, second + 2);
    let all = fixture.opening(1).read_after(&key, 0, 10).await.unwrap();
    assert_eq!(
        (texts(&all), all.missed, all.end),
        (vec!["1", "2", "3", ""], false, fourth)
    );
    let positions: Vec<u64> = all.entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, [second - 1, second, second + 1, fourth]);
    let read = store.read_after(&key, second - 1, 2).await.unwrap();
    assert_eq!((texts(&read), read.missed, read.end), (vec!["2", "3"], false, fourth));
    let read = store.read_after(&key, fourth, 10).await.unwrap();
    assert_eq!((texts(&read), read.missed, read.end), (vec![], false, fourth));
    assert_eq!(
        store.append(&key, vec![], BOUNDS, LONG).await.unwrap(),
        fourth,
        "nothing is appended"
    );
}

pub(crate) async fn a_log_drops_its_oldest_entries_and_says_so(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["full"]));
    let bounds = LogBounds { entries: 3, ..BOUNDS };
    let second = store.append(&key, entries(&["1", "2"]), bounds, LONG).await.unwrap();
    let end = store
        .append(&key, entries(&["3", "4", "5"]), bounds, LONG)
        .await
        .unwrap();
    assert_eq!(end, second + 3);
    let read = store.read_after(&key, second, 10).await.unwrap();
    assert_eq!(
        (texts(&read), read.missed),
        (vec!["3", "4", "5"], false),
        "nothing after the position was dropped"
    );
    for position in [0, second - 1] {
        let read = store.read_after(&key, position, 10).await.unwrap();
        assert_eq!(
            (texts(&read), read.missed),
            (vec!["3", "4", "5"], true),
            "after {position}"
        );
    }
    let many: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    store.append(&key, entries(&many), bounds, LONG).await.unwrap();
    let read = store.read_after(&key, 0, 10).await.unwrap();
    assert_eq!((texts(&read), read.end), (vec!["47", "48", "49"], end + 50));
}

pub(crate) async fn a_log_is_bounded_in_bytes(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["bytes"]));
    // A sealed entry is larger, so the bound is far from both.
    let bounds = LogBounds { bytes: 2500, ..BOUNDS };
    let large = "x".repeat(1000);
    for number in 0..5 {
        let entry = format!("{number}{large}");
        store.append(&key, entries(&[&entry]), bounds, LONG).await.unwrap();
    }
    let read = store.read_after(&key, 0, 10).await.unwrap();
    assert_eq!((read.entries.len(), read.missed), (2, true));
    assert!(read.entries[0].bytes.starts_with(b"3"));
    let larger = "y".repeat(9000);
    store.append(&key, entries(&[&larger]), bounds, LONG).await.unwrap();
    let read = store.read_after(&key, 0, 10).await.unwrap();
    assert_eq!(texts(&read), [larger], "the newest is always there");
}

pub(crate) async fn no_entry_of_racing_appends_is_lost(fixture: &Fixture) {
    let append = |store: Arc<dyn Store>, task: usize| async move {
        let key = Key::new("log", &["race"]);
        let mut last = 0;
        for number in 0..4 {
            let entry = bytes(&format!("{task}-{number}"));
            let position = store.append(&key, vec![entry], BOUNDS, LONG).await.unwrap();
            assert!(position > last, "positions rise");
            last = position;
        }
    };
    fixture.race(8, append).await;
    let read = fixture
        .store()
        .read_after(&Key::new("log", &["race"]), 0, 100)
        .await
        .unwrap();
    let different: BTreeSet<&str> = texts(&read).into_iter().collect();
    assert_eq!((read.entries.len(), different.len()), (32, 32));
    let rises = read
        .entries
        .windows(2)
        .all(|pair| pair[1].position == pair[0].position + 1);
    assert!(rises && !read.missed);
}

pub(crate) async fn positions_rise_after_a_log_expired(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["short"]));
    let old = store.append(&key, entries(&["1", "2"]), BOUNDS, SHORT).await.unwrap();
    let gone = eventually(|| async {
        let read = store.read_after(&key, old, 10).await.unwrap();
        (read.end == 0).then_some(read)
    })
    .await;
    assert!(
        gone.missed,
        "whoever was at the position cannot know what came after it"
    );
    let new = store.append(&key, entries(&["3"]), BOUNDS, LONG).await.unwrap();
    assert!(new > old);
    let read = store.read_after(&key, old, 10).await.unwrap();
    assert_eq!((texts(&read), read.missed), (vec!["3"], true));
    let read = store.read_after(&key, 0, 10).await.unwrap();
    assert_eq!(
        (texts(&read), read.missed),
        (vec!["3"], false),
        "nothing of this log was dropped"
    );
}

pub(crate) async fn a_position_that_a_log_never_had_is_missed(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["positions"]));
    let end = store.append(&key, entries(&["1"]), BOUNDS, LONG).await.unwrap();
    for position in [1, end + 1, u64::MAX] {
        let read = store.read_after(&key, position, 10).await.unwrap();
        assert_eq!((texts(&read), read.missed), (vec!["1"], true), "after {position}");
    }
}

pub(crate) async fn one_read_of_a_log_is_bounded(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("log", &["large"]));
    let bounds = LogBounds {
        entries: 10,
        bytes: 10_000_000,
    };
    let large = Bytes::from(vec![7; store.max_value_bytes() / 2]);
    for _ in 0..5 {
        store.append(&key, vec![large.clone()], bounds, LONG).await.unwrap();
    }
    let (mut position, mut found) = (0, 0);
    while found < 5 {
        let read = store.read_after(&key, position, 10).await.unwrap();
        assert!((1..3).contains(&read.entries.len()), "{}", read.entries.len());
        found += read.entries.len();
        position = read.entries.last().unwrap().position;
    }
}
