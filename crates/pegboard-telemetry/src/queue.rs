//! [`Queue`]: what waits to be sent. It is bounded: when it is full, the oldest item makes room for the newest.

use std::{collections::VecDeque, time::Duration};

use pegboard_base::sync::Mutex;
use tokio::{sync::Notify, time::timeout};

use crate::signal::Tally;

/// What waits to be sent.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    /// The most items.
    limit: usize,
    /// How many items are sent at once.
    batch: usize,
    /// Woken by the first item, and by the one that fills a batch.
    news: Notify,
    pub(crate) tally: Tally,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: usize, batch: usize) -> Self {
        Self {
            items: Mutex::default(),
            limit: limit.max(1),
            batch: batch.clamp(1, limit.max(1)),
            news: Notify::new(),
            tally: Tally::default(),
        }
    }

    /// Adds an item. Never waits.
    pub(crate) fn push(&self, item: T) {
        let mut items = self.items.lock();
        // Dropped after the lock is free.
        let oldest = (items.len() >= self.limit).then(|| items.pop_front()).flatten();
        items.push_back(item);
        let length = items.len();
        drop(items);
        if oldest.is_some() {
            self.tally.add_dropped(1);
        }
        if length == 1 || length == self.batch {
            self.news.notify_one();
        }
    }

    /// Waits until there is a batch, or until the first item has waited for `delay`.
    pub(crate) async fn wait(&self, delay: Duration) {
        while self.len() == 0 {
            self.news.notified().await;
        }
        let filled = async {
            while self.len() < self.batch {
                self.news.notified().await;
            }
        };
        // Late is as good as full.
        let _ = timeout(delay, filled).await;
    }

    /// Takes the oldest items, at most a batch.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut items = self.items.lock();
        let count = items.len().min(self.batch);
        items.drain(..count).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_its_oldest_items_and_counts_them() {
        let queue = Queue::new(3, 2);
        (0..5).for_each(|item| queue.push(item));
        assert_eq!(
            (queue.take(), queue.take(), queue.take()),
            (vec![2, 3], vec![4], vec![])
        );
        assert_eq!(queue.tally.read().dropped, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_waited_for_no_longer_than_the_delay() {
        let queue = Queue::new(9, 2);
        let begun = tokio::time::Instant::now();
        queue.push(1);
        queue.wait(Duration::from_secs(5)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        queue.push(2);
        queue.wait(Duration::from_secs(5)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5), "a full batch does not wait");
    }
}
