//! [`Fixture`]: a store for a test, as several processes would open it.

use std::{any::Any, fmt::Debug, sync::Arc, time::Duration};

use bytes::Bytes;
use pegboard_store::{Key, KeyRing, SealedStore, Store};

/// A time to live that does not end during a test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A time to live that ends soon.
pub(crate) const SHORT: Duration = Duration::from_millis(40);

/// Where "this does not hang" is meant.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A store that was opened several times, and whatever must live as long as it.
pub(crate) struct Fixture {
    stores: Vec<Arc<dyn Store>>,
    _keep: Box<dyn Any + Send>,
}

impl Fixture {
    pub(crate) fn new(stores: Vec<Arc<dyn Store>>, keep: impl Any + Send) -> Self {
        Self {
            stores,
            _keep: Box::new(keep),
        }
    }

    /// Seals the values of the store. Each opening has keys of its own making.
    pub(crate) fn sealed(mut self) -> Self {
        for store in &mut self.stores {
            let ring = KeyRing::new(&[1; 32], Some(&[2; 32]));
            *store = Arc::new(SealedStore::new(store.clone(), ring, "test"));
        }
        self
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.stores[0]
    }

    /// One of the openings.
    pub(crate) fn opening(&self, number: usize) -> Arc<dyn Store> {
        self.stores[number % self.stores.len()].clone()
    }

    /// Runs tasks at the same time, spread over the openings.
    pub(crate) async fn race<T: Send + 'static, F>(
        &self,
        tasks: usize,
        task: impl Fn(Arc<dyn Store>, usize) -> F,
    ) -> Vec<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let running: Vec<_> = (0..tasks)
            .map(|number| tokio::spawn(task(self.opening(number), number)))
            .collect();
        let mut results = Vec::new();
        for task in running {
            results.push(task.await.unwrap());
        }
        results
    }
}

/// The bytes of a text.
pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The value of a key as text.
pub(crate) async fn text(store: &dyn Store, key: &Key) -> Option<String> {
    let value = store.get(key).await.unwrap()?;
    Some(String::from_utf8(value.bytes.to_vec()).unwrap())
}

/// Tries until `attempt` returns something.
pub(crate) async fn eventually<T: Debug, F: Future<Output = Option<T>>>(mut attempt: impl FnMut() -> F) -> T {
    let trying = async {
        loop {
            if let Some(result) = attempt().await {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, trying)
        .await
        .expect("it does not happen")
}
