//! Health probes that are set for all servers.

use std::time::Duration;

use super::*;

fn health(top: &str, own: &str) -> (Probe, Option<Duration>) {
    let health = server(&format!("{top}\n[servers.x]\ncommand = 'a'\n{own}\n"))
        .policy
        .health;
    (health.probe, health.interval)
}

const THIRTY: Option<Duration> = Some(Duration::from_secs(30));

#[test]
fn an_interval_does_not_void_a_probe_that_stands_beside_it() {
    let both = "health_probe = 'none'\nhealth_interval = '30s'";
    assert_eq!(health(both, ""), (Probe::Never, THIRTY), "at the top of the file");
    assert_eq!(health("", both), (Probe::Never, THIRTY), "in the server's table");
}

#[test]
fn an_interval_turns_on_the_probes_that_a_weaker_layer_turns_off() {
    let (off, every) = ("health_probe = 'none'", "health_interval = '30s'");
    assert_eq!(health(off, every), (Probe::Auto, THIRTY));
    assert_eq!(health("preset = 'goat'", every), (Probe::Auto, THIRTY));
    assert_eq!(health(&format!("preset = 'goat'\n{every}"), ""), (Probe::Auto, THIRTY));
    assert_eq!(
        health(every, off),
        (Probe::Never, THIRTY),
        "the server's own probe wins"
    );
}
