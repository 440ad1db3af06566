//! What the breaker guarantees in any interleaving of threads.

use shuttle::{rand::Rng, thread};

use super::*;
use pegboard_base::sync::explore::explore;

/// The name of a server in these tests.
fn server() -> ServerName {
    ServerName::parse("k8s").expect("a name")
}

const RULE: Rule = Rule {
    failures: 1,
    percent: 0,
    of: 10,
    open: Duration::from_secs(1),
    probes: 2,
    successes: 2,
};

/// Makes some attempts with random outcomes; the last ticket may be kept.
fn attempt(breaker: &Breaker, now: Instant) -> Vec<Ticket> {
    let mut kept = Vec::new();
    for _ in 0..2 {
        if let Ok(ticket) = breaker.allow(now) {
            match shuttle::rand::thread_rng().gen_range(0..5) {
                0 => breaker.report_success(ticket),
                1 => breaker.report_failure(ticket, now),
                2 => breaker.report_unreachable(ticket, now),
                3 => drop(ticket),
                _ => kept.push(ticket),
            }
        }
        check(breaker);
    }
    kept
}

fn check(breaker: &Breaker) {
    let circuit = breaker.0.circuit.lock();
    if let CircuitState::HalfOpen { running, successes, .. } = circuit.state {
        assert!(running <= RULE.probes, "{running} probes at once");
        assert!(successes < RULE.successes, "it should have closed");
    }
}

fn period(ticket: &Ticket) -> u64 {
    match &ticket.0 {
        Admission::Passed { period, .. } => *period,
        Admission::Probe(probe) => probe.as_ref().unwrap().period,
    }
}

#[test]
fn the_probes_that_count_as_under_way_are_those_whose_tickets_are_held() {
    explore(|| {
        let breaker = Breaker::new(&server(), BreakerPolicy::On(RULE));
        let began = Instant::now();
        let (now, later) = (began + RULE.open, began + 2 * RULE.open);
        breaker.report_failure(breaker.allow(began).unwrap(), began);
        let callers = [now, now, later].map(|now| {
            let breaker = breaker.clone();
            thread::spawn(move || attempt(&breaker, now))
        });
        let kept: Vec<Ticket> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();

        let circuit = breaker.0.circuit.lock();
        let of_now = |ticket: &&Ticket| period(ticket) == circuit.period;
        let held = u32::try_from(kept.iter().filter(of_now).count()).unwrap();
        match circuit.state {
            CircuitState::HalfOpen { running, .. } => assert_eq!(running, held),
            CircuitState::Open { .. } => assert_eq!(held, 0, "a ticket given while it was open"),
            CircuitState::Closed { .. } => {}
        }
        drop(circuit);
        drop(kept);
        let circuit = breaker.0.circuit.lock();
        assert!(
            !matches!(circuit.state, CircuitState::HalfOpen { running: 1.., .. }),
            "{circuit:?}"
        );
    });
}

#[test]
fn of_many_callers_only_as_many_as_may_probe_a_breaker_that_wakes() {
    explore(|| {
        let breaker = Breaker::new(&server(), BreakerPolicy::On(RULE));
        let began = Instant::now();
        breaker.report_failure(breaker.allow(began).unwrap(), began);
        let callers = [(); 4].map(|()| {
            let breaker = breaker.clone();
            thread::spawn(move || breaker.allow(began + RULE.open).ok())
        });
        let tickets: Vec<Ticket> = callers
            .into_iter()
            .filter_map(|caller| caller.join().unwrap())
            .collect();
        assert_eq!(tickets.len(), 2);
    });
}
