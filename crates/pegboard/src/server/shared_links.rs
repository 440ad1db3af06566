//! The links of a board that several servers may share.

use std::time::Duration;

use pegboard_base::sync::Mutex;

use super::{
    connection_plan::ConnectionPlan,
    event_publisher::LinkReporter,
    link::{Link, LinkLease, WeakLink},
};

/// The links of a board that several servers may share.
#[derive(Debug, Default)]
pub(crate) struct SharedLinks(Mutex<Vec<WeakLink>>);

impl SharedLinks {
    /// Leases a link that is compatible with `plan`. If there is none, `make` creates it.
    pub(super) fn lease(
        &self,
        plan: &ConnectionPlan,
        idle: Option<Duration>,
        reporter: LinkReporter,
        make: impl Fn() -> Link,
    ) -> LinkLease {
        let mut links = self.0.lock();
        links.retain(|link| !link.is_dropped());
        let mut compatible = links
            .iter()
            .filter_map(WeakLink::upgrade)
            .filter(|link| link.plan().is_compatible_with(plan));
        // A link whose last lease was released gives no new ones.
        let shared = compatible.find_map(|link| link.lease(idle, reporter.clone()));
        shared.unwrap_or_else(|| {
            let link = make();
            links.push(link.downgrade());
            link.lease(idle, reporter).expect("a new link has not ended")
        })
    }
}
