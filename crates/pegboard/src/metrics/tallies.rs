//! The counters of one board, by the names of its servers.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Calls, Counts, Metrics, ServerMetrics};
use crate::name::ServerName;

/// How many names are kept whose servers are gone. The counts of older ones go into the sum for all servers.
const GONE: usize = 1024;

/// The counters of one board.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Taken when a server is made and when the counters are read, never by a call.
    names: Mutex<Names>,
    pub(crate) unrouted: Calls,
    pub(crate) own_tools: Calls,
    views: AtomicU64,
}

#[derive(Debug, Default)]
struct Names {
    counts: HashMap<ServerName, Named>,
    /// Counts the servers that were made.
    made: u64,
    /// What was counted under names that are not kept any more.
    forgotten: ServerMetrics,
}

#[derive(Debug)]
struct Named {
    counts: Arc<Counts>,
    /// The number of the last server of that name.
    last: u64,
}

impl Named {
    /// Whether no server and no call counts here.
    fn is_gone(&self) -> bool {
        Arc::strong_count(&self.counts) == 1
    }
}

impl Tallies {
    /// The counters of the servers of one name.
    pub(crate) fn of(&self, name: &ServerName) -> Arc<Counts> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.made += 1;
        let last = names.made;
        if let Some(named) = names.counts.get_mut(name) {
            named.last = last;
            return named.counts.clone();
        }
        if names.counts.len() >= GONE {
            names.forget_oldest();
        }
        let counts = Arc::<Counts>::default();
        let named = Named {
            counts: counts.clone(),
            last,
        };
        names.counts.insert(name.clone(), named);
        counts
    }

    /// How many calls of servers have begun and not ended.
    pub(crate) fn in_flight(&self) -> u64 {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.counts.values().map(|named| named.counts.in_flight()).sum()
    }

    pub(crate) fn view_opened(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn view_closed(&self) {
        self.views.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, events_lost: u64, buffered_bytes: u64) -> Metrics {
        let (servers, mut total) = {
            let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            let read = names
                .counts
                .iter()
                .map(|(name, named)| (name.clone(), named.counts.read()));
            (read.collect::<BTreeMap<_, _>>(), names.forgotten.clone())
        };
        for server in servers.values() {
            total.add(server);
        }
        Metrics {
            servers,
            total,
            unrouted: self.unrouted.read(),
            own_tools: self.own_tools.read(),
            views_open: self.views.load(Ordering::Relaxed),
            events_lost,
            buffered_bytes,
        }
    }
}

impl Names {
    /// Forgets the name whose last server is gone for longest, if as many are gone as may be kept.
    fn forget_oldest(&mut self) {
        let mut gone = 0;
        let mut oldest: Option<(&ServerName, u64)> = None;
        for (name, named) in self.counts.iter().filter(|(_, named)| named.is_gone()) {
            gone += 1;
            if oldest.is_none_or(|(_, last)| named.last < last) {
                oldest = Some((name, named.last));
            }
        }
        let oldest = oldest.filter(|_| gone >= GONE).map(|(name, _)| name.clone());
        if let Some(named) = oldest.and_then(|name| self.counts.remove(&name)) {
            self.forgotten.add(&named.counts.read());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome::Kind;

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    fn one_call(counts: &Counts) {
        counts.begin();
        counts.end(Kind::Ok, Duration::from_millis(1));
    }

    #[test]
    fn a_name_that_comes_back_goes_on_counting() {
        let tallies = Tallies::default();
        one_call(&tallies.of(&name("a")));
        one_call(&tallies.of(&name("a")));
        assert_eq!(tallies.read(0, 0).servers[&name("a")].calls.total, 2);
    }

    #[test]
    fn the_names_of_servers_that_are_gone_are_bounded_and_the_sum_keeps_their_counts() {
        let tallies = Tallies::default();
        let kept = tallies.of(&name("kept"));
        one_call(&kept);
        for n in 0..GONE + 100 {
            one_call(&tallies.of(&name(&format!("s{n}"))));
        }
        let read = tallies.read(0, 0);
        assert!(read.servers.len() <= GONE + 1, "{}", read.servers.len());
        assert!(
            read.servers.contains_key(&name("kept")),
            "a server that is there was forgotten"
        );
        assert!(!read.servers.contains_key(&name("s0")));
        assert_eq!(read.total.calls.total as usize, GONE + 101);
        assert_eq!(read.total.calls.latency.count as usize, GONE + 101);
    }
}
