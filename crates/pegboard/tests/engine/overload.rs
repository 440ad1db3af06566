//! Many clients on one board: they take turns, keep to their limits, are refused at once when there is too much to do, and leave nothing behind.

mod dead_clients;
mod limits;
mod turns;

/// Waits until a condition holds.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(crate::support::secs(60), waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until: {what}"));
}
