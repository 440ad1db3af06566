//! The counters of one board, by server name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    counters::{CallCounters, ServerCounters, SumCounters, ViewCounters},
    labels::{LabelBound, LabelTable, MetricLabels},
    load::BoardLoad,
    snapshot::{Metrics, ServerMetrics},
};
use crate::recent::{RecentCalls, WaitingApprovals};
use pegboard_base::sync::Mutex;
use pegboard_base::{caller::Principal, name::ServerName};

/// How many names of removed servers are kept. The counts of older ones remain in the total.
const MAX_REMOVED: usize = 1024;

/// The counters of one board.
#[derive(Debug, Default)]
pub(crate) struct BoardCounters {
    /// Locked when a server is created, when the counters are read, and by a call of a server that was never ready.
    names: Mutex<CountedNames>,
    pub(crate) unrouted: CallCounters,
    pub(crate) own_tools: CallCounters,
    /// The last calls, if a program asks for them.
    pub(crate) recent_calls: RecentCalls,
    /// The calls that wait for a person.
    pub(crate) waiting_approvals: WaitingApprovals,
    views: AtomicU64,
    /// How many more tools have labels.
    tools: Arc<LabelBound>,
    principals: LabelTable<SumCounters>,
    labelled_views: LabelTable<ViewCounters>,
}

#[derive(Debug, Default)]
struct CountedNames {
    counts: HashMap<ServerName, NamedCounters>,
    /// How many servers were created.
    created: u64,
    /// The sum of the counters of evicted names.
    evicted: ServerMetrics,
}

#[derive(Debug)]
struct NamedCounters {
    counts: Arc<ServerCounters>,
    /// The creation number of the latest server of that name.
    last: u64,
}

impl NamedCounters {
    /// Whether no server and no call uses the counters any more.
    fn is_removed(&self) -> bool {
        Arc::strong_count(&self.counts) == 1
    }
}

impl BoardCounters {
    /// Counters with so many labels of each kind.
    pub(crate) fn new(labels: MetricLabels) -> Self {
        Self {
            tools: LabelBound::new(labels.tools),
            principals: LabelTable::new(&LabelBound::new(labels.principals)),
            labelled_views: LabelTable::new(&LabelBound::new(labels.views)),
            ..Self::default()
        }
    }

    /// The counters of a principal, if principals are counted.
    pub(crate) fn principal(&self, name: &Principal) -> Option<Arc<SumCounters>> {
        self.principals.find(name.as_str())
    }

    /// The counters of the views with a label, if views are counted.
    pub(crate) fn labelled_view(&self, label: &str) -> Option<Arc<ViewCounters>> {
        self.labelled_views.find(label)
    }

    /// The counters of the servers of one name.
    pub(crate) fn get_or_insert(&self, name: &ServerName) -> Arc<ServerCounters> {
        let mut names = self.names.lock();
        names.created += 1;
        let last = names.created;
        if let Some(named) = names.counts.get_mut(name) {
            named.last = last;
            return named.counts.clone();
        }
        if names.counts.len() >= MAX_REMOVED {
            names.evict_oldest();
        }
        let counts = Arc::new(ServerCounters::new(&self.tools));
        let named = NamedCounters {
            counts: counts.clone(),
            last,
        };
        names.counts.insert(name.clone(), named);
        counts
    }

    /// The counters of the servers of one name, if there is or was one.
    pub(crate) fn find(&self, name: &ServerName) -> Option<Arc<ServerCounters>> {
        let names = self.names.lock();
        names.counts.get(name).map(|named| named.counts.clone())
    }

    /// How many calls are in flight on all servers.
    pub(crate) fn in_flight(&self) -> u64 {
        let names = self.names.lock();
        names.counts.values().map(|named| named.counts.in_flight()).sum()
    }

    pub(crate) fn add_view(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove_view(&self) {
        self.views.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reads the counters. What the board uses of its limits, and its audit log, are left to the board.
    pub(crate) fn read(&self, events_lost: u64, buffered_bytes: u64) -> Metrics {
        let (servers, mut total) = {
            let names = self.names.lock();
            let read = names
                .counts
                .iter()
                .map(|(name, named)| (name.clone(), named.counts.read()));
            (read.collect::<BTreeMap<_, _>>(), names.evicted.clone())
        };
        for server in servers.values() {
            total.add(server);
        }
        Metrics {
            servers,
            total,
            unrouted: self.unrouted.read(),
            own_tools: self.own_tools.read(),
            principals: self.principals.read(SumCounters::read),
            views: self.labelled_views.read(ViewCounters::read),
            load: BoardLoad::default(),
            audit: None,
            views_open: self.views.load(Ordering::Relaxed),
            events_lost,
            buffered_bytes,
        }
    }
}

impl CountedNames {
    /// Evicts the removed name whose latest server was created first, if too many are kept.
    fn evict_oldest(&mut self) {
        let mut gone = 0;
        let mut oldest: Option<(&ServerName, u64)> = None;
        for (name, named) in self.counts.iter().filter(|(_, named)| named.is_removed()) {
            gone += 1;
            if oldest.is_none_or(|(_, last)| named.last < last) {
                oldest = Some((name, named.last));
            }
        }
        let oldest = oldest.filter(|_| gone >= MAX_REMOVED).map(|(name, _)| name.clone());
        if let Some(named) = oldest.and_then(|name| self.counts.remove(&name)) {
            self.evicted.add(&named.counts.read());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use pegboard_tools::outcome::Kind;

    fn name(text: &str) -> ServerName {
        ServerName::parse(text).unwrap()
    }

    fn one_call(counts: &ServerCounters) {
        counts.begin();
        counts.end(Kind::Ok, Duration::from_millis(1));
    }

    #[test]
    fn a_name_that_comes_back_goes_on_counting() {
        let counters = BoardCounters::default();
        one_call(&counters.get_or_insert(&name("a")));
        one_call(&counters.get_or_insert(&name("a")));
        assert_eq!(counters.read(0, 0).servers[&name("a")].calls.total, 2);
    }

    #[test]
    fn the_names_of_servers_that_are_gone_are_bounded_and_the_sum_keeps_their_counts() {
        let counters = BoardCounters::default();
        let kept = counters.get_or_insert(&name("kept"));
        one_call(&kept);
        for n in 0..MAX_REMOVED + 100 {
            one_call(&counters.get_or_insert(&name(&format!("s{n}"))));
        }
        let read = counters.read(0, 0);
        assert!(read.servers.len() <= MAX_REMOVED + 1, "{}", read.servers.len());
        assert!(
            read.servers.contains_key(&name("kept")),
            "a server that is there was evicted"
        );
        assert!(!read.servers.contains_key(&name("s0")));
        assert_eq!(read.total.calls.total as usize, MAX_REMOVED + 101);
        assert_eq!(read.total.calls.latency.count as usize, MAX_REMOVED + 101);
    }
}
