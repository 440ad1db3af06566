//! The metrics of what is in use, beside its limits.

use super::{families, family::Family, number, page::MetricsSink};
use crate::{
    metrics::load::{BoardLoad, ServerLoad},
    status::QueueStatus,
};

/// Reads a gauge or a counter of a part of the board.
type Read<T> = fn(&T) -> u64;

/// Writes how much of its limits a board uses.
pub(super) fn write(page: &mut impl MetricsSink, load: &BoardLoad) {
    let gauges: [(&Family, Read<ServerLoad>); 3] = [
        (&families::PERMITS, |server| server.in_use),
        (&families::PERMITS_LIMIT, |server| server.limit),
        (&families::QUEUED_LIMIT, |server| server.queued_limit),
    ];
    for (family, read) in gauges {
        let servers = load.servers.iter();
        let values = servers.map(|(server, load)| (vec![server.as_str()], number(read(load))));
        page.family(family, values);
    }
    let breakers = load.servers.iter().flat_map(|(server, load)| {
        let counts = load.breakers;
        let states = [
            ("closed", counts.closed),
            ("half_open", counts.half_open),
            ("open", counts.open),
        ];
        states.map(|(state, count)| (vec![server.as_str(), state], number(count)))
    });
    page.family(&families::BREAKERS, breakers);
    page.single(&families::PROCESSES, number(load.processes));
    page.single(&families::PROCESSES_LIMIT, number(load.processes_limit));
}

/// Writes the queues that servers share.
pub(super) fn write_queues(page: &mut impl MetricsSink, queues: &[QueueStatus]) {
    let metrics: [(&Family, Read<QueueStatus>); 4] = [
        (&families::QUEUE_IN_USE, |queue| queue.in_use as u64),
        (&families::QUEUE_LIMIT, |queue| queue.capacity as u64),
        (&families::QUEUE_WAITING, |queue| queue.depth as u64),
        (&families::QUEUE_REFUSED, |queue| queue.refused),
    ];
    for (family, read) in metrics {
        let values = queues
            .iter()
            .map(|queue| (vec![queue.name.as_str()], number(read(queue))));
        page.family(family, values);
    }
}
