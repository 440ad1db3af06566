//! A day in miniature: `pegboard serve` with a process and a remote server over TLS, from a start without them to a stop with a call in flight, under
//! each preset with each scope.
//!
//! All days run at the same time, because they mostly wait. `PEGBOARD_DAY=minion/session` runs one of them.

mod client;
mod scene;
mod steps;
mod tls_front;

use std::{panic, thread};

use tokio::time::Instant;

use scene::Scene;

const PRESETS: [&str; 5] = ["tarsy", "ai-agent", "antwort", "goat", "minion"];
const SCOPES: [&str; 3] = ["shared", "session", "pool(2)"];

#[test]
fn a_gateway_lives_through_a_day_of_faults_under_every_preset_and_scope() {
    let chosen = std::env::var("PEGBOARD_DAY").ok();
    let days = PRESETS.iter().flat_map(|preset| SCOPES.map(|scope| (*preset, scope)));
    let days = days.filter(|(preset, scope)| {
        let chosen = chosen.as_deref();
        chosen.is_none_or(|chosen| chosen == format!("{preset}/{scope}"))
    });
    let running: Vec<_> = days
        .enumerate()
        .map(|(number, (preset, scope))| {
            let name = format!("{preset}/{scope}");
            let day = thread::Builder::new().name(name.clone()).spawn(move || {
                let number = u8::try_from(number + 1).unwrap();
                live_through(&Scene::new(preset, scope, number));
            });
            (name, day.unwrap())
        })
        .collect();
    assert!(!running.is_empty(), "PEGBOARD_DAY names no day");
    // The panic of a day is printed by its thread, with the name of the day.
    let failed = running
        .into_iter()
        .filter_map(|(name, day)| day.join().err().map(|_| name));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "these days went wrong: {failed:?}");
}

/// A step of the day.
type Step = fn(&mut steps::Day<'_>);

/// One day. What a failed step leaves running ends with the scene.
fn live_through(scene: &Scene) {
    let mut day = steps::start_without_servers(scene);
    let steps: [(&str, Step); 6] = [
        ("late servers", steps::late_servers_make_it_ready),
        ("killed process", steps::a_killed_process_is_replaced),
        ("outage", steps::an_outage_concerns_one_server),
        ("reload", steps::a_reload_adds_a_server),
        ("wrong certificate", steps::a_wrong_certificate_is_forgotten),
        ("clients come and go", steps::clients_come_and_go),
    ];
    for (name, step) in steps {
        let began = Instant::now();
        let done = panic::catch_unwind(panic::AssertUnwindSafe(|| step(&mut day)));
        if let Err(problem) = done {
            scene.describe(&day.served, name);
            panic::resume_unwind(problem);
        }
        scene.say(name, began.elapsed());
    }
    steps::stop_with_a_call_in_flight(day);
}
