//! Ends what clients have open when their tokens expire.

use std::{sync::Weak, time::Duration};

use tokio::sync::watch;

use super::site::Site;

/// The longest time between two looks at the clock: a timer stops while the machine sleeps, and the clock may be set.
const LOOK: Duration = Duration::from_secs(60);

/// Revokes tokens at the time when they expire, until the site is dropped.
pub(super) async fn watch(site: Weak<Site>, mut tokens_changed: watch::Receiver<()>) {
    loop {
        let Some(next) = site.upgrade().map(|site| site.end_expired()) else {
            return;
        };
        let time = next.map_or(LOOK, |next| next.min(LOOK));
        tokio::select! {
            changed = tokens_changed.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(time) => {}
        }
    }
}
