//! Sentences about token buckets.

use std::{sync::Arc, time::Duration};

use pegboard_store::{Draw, Key, Rate, Store};

use crate::fixture::{Fixture, eventually};

pub(crate) async fn a_bucket_gives_its_burst_and_then_says_how_long_to_wait(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("rate", &["ada"]));
    let rate = Rate::new(5, 0.01).unwrap();
    assert_eq!(store.draw(&key, rate, 3).await.unwrap(), Draw::Drawn);
    assert_eq!(fixture.opening(1).draw(&key, rate, 2).await.unwrap(), Draw::Drawn);
    let (short, long) = (Duration::from_secs(50), Duration::from_secs(100));
    let Draw::Wait(wait) = store.draw(&key, rate, 1).await.unwrap() else {
        panic!("it is empty");
    };
    assert!(wait > short && wait <= long, "{wait:?}");
    let Draw::Wait(wait) = store.draw(&key, rate, 4).await.unwrap() else {
        panic!("it is empty");
    };
    assert!(wait > 3 * long && wait <= 4 * long, "{wait:?}");
    assert_eq!(
        store.draw(&Key::new("rate", &["bob"]), rate, 5).await.unwrap(),
        Draw::Drawn
    );
}

pub(crate) async fn a_bucket_refills(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("rate", &["fast"]));
    let rate = Rate::new(2, 50.0).unwrap();
    assert_eq!(store.draw(&key, rate, 2).await.unwrap(), Draw::Drawn);
    for _ in 0..3 {
        eventually(|| async {
            let draw = store.draw(&key, rate, 2).await.unwrap();
            (draw == Draw::Drawn).then_some(())
        })
        .await;
    }
}

pub(crate) async fn racing_draws_get_no_more_than_the_burst(fixture: &Fixture) {
    let draw = |store: Arc<dyn Store>, _| async move {
        let rate = Rate::new(7, 0.001).unwrap();
        let key = Key::new("rate", &["race"]);
        store.draw(&key, rate, 1).await.unwrap() == Draw::Drawn
    };
    let drawn = fixture
        .race(24, draw)
        .await
        .into_iter()
        .filter(|is_drawn| *is_drawn)
        .count();
    assert_eq!(drawn, 7);
}

pub(crate) async fn a_draw_of_more_than_the_burst_empties_the_bucket(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("rate", &["greedy"]));
    let rate = Rate::new(3, 0.01).unwrap();
    assert_eq!(store.draw(&key, rate, 1000).await.unwrap(), Draw::Drawn);
    assert!(matches!(store.draw(&key, rate, 1).await.unwrap(), Draw::Wait(_)));
}
