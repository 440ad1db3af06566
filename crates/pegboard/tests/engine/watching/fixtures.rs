//! Events that were published so far, and assertions on them.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use pegboard::{Event, Events, Kind, Pegboard, metrics::Metrics};

/// The pending events, without waiting for more.
pub(crate) fn pending_events(events: &mut Events) -> Vec<Event> {
    let mut pending_events = Vec::new();
    while let Some(event) = events.next().now_or_never().flatten() {
        assert!(!matches!(event, Event::Missed { .. }), "the test was too slow");
        pending_events.push(event);
    }
    pending_events
}

/// The outcome kinds of the completed calls, in order. Asserts that each was created and completed exactly once.
pub(crate) fn calls(events: &[Event], what: &str) -> Vec<Kind> {
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    let mut kinds = Vec::new();
    for event in events {
        match event {
            Event::CallCreated { id, .. } => {
                assert_eq!(open.insert(id.clone(), true), None, "{what}: {id} was created twice");
            }
            Event::CallCompleted { id, kind, .. } => {
                let was_open = open.insert(id.clone(), false);
                assert_eq!(was_open, Some(true), "{what}: {id} was not open when it was completed");
                kinds.push(*kind);
            }
            _ => {}
        }
    }
    assert!(open.values().all(|is_open| !is_open), "{what}: not completed: {open:?}");
    kinds
}

/// The calls in all metrics of a board so far, by kind.
pub(crate) fn counted(board: &Pegboard) -> BTreeMap<Kind, u64> {
    let metrics = board.metrics();
    let mut counted = BTreeMap::new();
    for calls in [&metrics.total.calls, &metrics.unrouted, &metrics.own_tools] {
        assert_eq!(calls.latency.count, calls.total);
        assert_eq!(calls.by_kind.values().sum::<u64>(), calls.total);
        for (kind, count) in &calls.by_kind {
            *counted.entry(*kind).or_default() += count;
        }
    }
    agrees(&metrics);
    counted
}

fn agrees(metrics: &Metrics) {
    let servers = metrics.servers.values();
    assert_eq!(
        servers.map(|server| server.calls.total).sum::<u64>(),
        metrics.total.calls.total
    );
}

/// Counts kinds.
pub(crate) fn count_kinds(kinds: &[Kind]) -> BTreeMap<Kind, u64> {
    let mut tally = BTreeMap::new();
    for kind in kinds {
        *tally.entry(*kind).or_default() += 1;
    }
    tally
}

/// The difference between two counts.
pub(crate) fn since(before: &BTreeMap<Kind, u64>, after: &BTreeMap<Kind, u64>) -> BTreeMap<Kind, u64> {
    let grown = after.iter().map(|(kind, count)| {
        let before = before.get(kind).copied().unwrap_or_default();
        (*kind, count.checked_sub(before).expect("a counter went backwards"))
    });
    grown.filter(|(_, grown)| *grown > 0).collect()
}
