//! Searches tools by meaning: the embedding program's model turns texts into vectors, and the vectors of tools are cached.

use pegboard_base::BoxFuture;
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, time::Instant};

use pegboard_base::sync::{Mutex, Panicked, catch};

/// How long a search waits for vectors. Vectors that arrive in time are cached, even if others are late.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long the embedder is not called after a search in which it returned nothing.
const PAUSE: Duration = Duration::from_secs(30);
/// The most texts per request.
const BATCH: usize = 64;
/// The most numbers in a vector.
const MAX_LENGTH: usize = 16_384;
/// The most numbers in all cached vectors.
const MAX_KEPT: usize = 16 << 20;

/// Turns texts into vectors that are close for texts of similar meaning: an embedding model, local or remote.
///
/// ```
/// use pegboard::{BoxFuture, toolset::Embedder};
///
/// /// Knows one thing about a text: whether it is about money.
/// struct Money;
///
/// impl Embedder for Money {
///     fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>> {
///         let money = |text: &String| ["pay", "invoice", "price"].iter().any(|word| text.contains(word));
///         let vectors = texts.iter().map(|text| if money(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] });
///         let vectors = vectors.collect();
///         Box::pin(async move { Ok(vectors) })
///     }
/// }
/// ```
pub trait Embedder: Send + Sync + 'static {
    /// Returns a vector for each text, in the same order and all of one length, or an error. Dropping the future cancels the request.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>>;
}

impl<T: Embedder + ?Sized> Embedder for Arc<T> {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>> {
        (**self).embed(texts)
    }
}

impl Embedder for Box<dyn Embedder> {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>> {
        (**self).embed(texts)
    }
}

/// An async function that returns a vector for each text.
impl<F, R> Embedder for F
where
    F: Fn(Vec<String>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Vec<Vec<f32>>, String>> + Send + 'static,
{
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>> {
        Box::pin(self(texts))
    }
}

/// An embedder, and the cached vectors of tools.
pub(crate) struct Embeddings {
    embedder: Arc<dyn Embedder>,
    state: Mutex<VectorCache>,
    /// One search at a time calls the embedder, so that no text is embedded twice.
    permit: Semaphore,
}

#[derive(Default)]
struct VectorCache {
    vectors: HashMap<[u8; 32], Arc<[f32]>>,
    /// How many numbers all vectors have in total.
    numbers: usize,
    /// After a failure, the embedder is not called until then.
    paused_until: Option<Instant>,
}

/// The vectors of a query and of all tools.
#[derive(Debug, PartialEq)]
pub(crate) struct Vectors {
    pub(crate) question: Arc<[f32]>,
    pub(crate) tools: Vec<Arc<[f32]>>,
}

impl Embeddings {
    pub(crate) fn new(embedder: impl Embedder) -> Self {
        Self {
            embedder: Arc::new(embedder),
            state: Mutex::default(),
            permit: Semaphore::new(1),
        }
    }

    /// Returns the vectors of a query and of these tools, if all of them arrive in time.
    pub(crate) async fn embed(&self, question: &str, tools: &[String]) -> Option<Vectors> {
        if self
            .state
            .lock()
            .paused_until
            .is_some_and(|until| Instant::now() < until)
        {
            return None;
        }
        let known = self.state.lock().vectors.len();
        let result = match tokio::time::timeout(TIMEOUT, self.all(question, tools)).await {
            Ok(result) => result,
            Err(_) => Err(format!("they did not come within {} s", TIMEOUT.as_secs())),
        };
        let mut state = self.state.lock();
        match result {
            Ok(vectors) => {
                state.paused_until = None;
                Some(vectors)
            }
            Err(problem) => {
                if state.vectors.len() <= known {
                    state.paused_until = Some(Instant::now() + PAUSE);
                }
                tracing::warn!(%problem, "tools are found by their words only: there are no embeddings");
                None
            }
        }
    }

    async fn all(&self, question: &str, tools: &[String]) -> Result<Vectors, String> {
        let _permit = self.permit.acquire().await;
        let keys: Vec<_> = tools
            .iter()
            .map(|text| <[u8; 32]>::from(Sha256::digest(text)))
            .collect();
        let unknown: Vec<usize> = {
            let state = self.state.lock();
            let indices = 0..tools.len();
            indices.filter(|at| !state.vectors.contains_key(&keys[*at])).collect()
        };
        for batch in unknown.chunks(BATCH) {
            let texts = batch.iter().map(|at| tools[*at].clone()).collect();
            let vectors = self.request(texts).await?;
            self.state
                .lock()
                .keep(batch.iter().map(|at| keys[*at]).zip(vectors), &keys);
        }
        let question = self.request(vec![question.to_owned()]).await?.pop();
        let question = question.ok_or("there is none for the question")?;
        let state = self.state.lock();
        let tools = keys.iter().map(|key| state.vectors.get(key).cloned());
        let tools: Option<Vec<_>> = tools.collect();
        let tools = tools.ok_or("there are more tools than vectors are kept")?;
        Ok(Vectors { question, tools })
    }

    /// Requests a vector for each text and validates them.
    async fn request(&self, texts: Vec<String>) -> Result<Vec<Arc<[f32]>>, String> {
        let wanted = texts.len();
        let embedding = catch(async { self.embedder.embed(texts).await });
        let vectors = embedding
            .await
            .unwrap_or_else(|Panicked| Err("the embedder panicked".to_owned()))?;
        if vectors.len() != wanted {
            return Err(format!("{} came for {wanted} texts", vectors.len()));
        }
        let is_usable = |vector: &Vec<f32>| {
            (1..=MAX_LENGTH).contains(&vector.len()) && vector.iter().all(|number| number.is_finite())
        };
        if !vectors.iter().all(is_usable) {
            return Err("one of them is empty, too long, or has numbers that are none".to_owned());
        }
        Ok(vectors.into_iter().map(Arc::from).collect())
    }
}

impl VectorCache {
    /// Caches vectors. When there are too many, evicts those of tools that are not `wanted` now.
    fn keep(&mut self, vectors: impl Iterator<Item = ([u8; 32], Arc<[f32]>)>, wanted: &[[u8; 32]]) {
        for (key, vector) in vectors {
            if self.numbers + vector.len() > MAX_KEPT {
                self.vectors.retain(|key, _| wanted.contains(key));
                self.numbers = self.vectors.values().map(|vector| vector.len()).sum();
            }
            if self.numbers + vector.len() <= MAX_KEPT {
                self.numbers += vector.len();
                self.vectors.insert(key, vector);
            }
        }
    }
}

impl fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embeddings")
            .field("kept", &self.state.lock().vectors.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Embeds a text as its length, with a delay per batch, and counts the texts.
    struct Lengths {
        each: Duration,
        texts: Arc<AtomicUsize>,
    }

    impl Embedder for Lengths {
        fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, String>> {
            Box::pin(async move {
                tokio::time::sleep(self.each).await;
                self.texts.fetch_add(texts.len(), Ordering::SeqCst);
                if texts.iter().any(|text| text == "bad") {
                    return Err("no".to_owned());
                }
                #[expect(clippy::cast_precision_loss, reason = "the texts of tests are short")]
                let lengths = texts.iter().map(|text| vec![text.len() as f32]);
                Ok(lengths.collect())
            })
        }
    }

    fn embeddings(each: Duration) -> (Embeddings, Arc<AtomicUsize>) {
        let texts = Arc::<AtomicUsize>::default();
        let lengths = Lengths {
            each,
            texts: texts.clone(),
        };
        (Embeddings::new(lengths), texts)
    }

    fn tools(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("tool {n}")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_vector_of_a_text_is_asked_for_once() {
        let (embeddings, asked) = embeddings(Duration::ZERO);
        let found = embeddings.embed("why", &tools(10)).await.unwrap();
        assert_eq!((found.question.as_ref(), found.tools.len()), (&[3.0][..], 10));
        assert_eq!(asked.load(Ordering::SeqCst), 11);
        embeddings.embed("who", &tools(12)).await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 11 + 3);
        let (two, three) = (tools(20), tools(20));
        let (one, other) = tokio::join!(embeddings.embed("a", &two), embeddings.embed("b", &three));
        assert!(one.is_some() && other.is_some());
        assert_eq!(asked.load(Ordering::SeqCst), 14 + 8 + 2);
    }

    /// Three batches of two seconds each do not fit into one search, but into two.
    #[tokio::test(start_paused = true)]
    async fn what_came_in_time_is_kept_for_the_next_search() {
        let (embeddings, _) = embeddings(Duration::from_secs(2));
        let tools = tools(3 * BATCH);
        let started = Instant::now();
        assert_eq!(embeddings.embed("why", &tools).await, None);
        assert_eq!(started.elapsed(), TIMEOUT);
        assert!(embeddings.embed("why", &tools).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_embedder_is_not_called_for_a_while() {
        let (embeddings, asked) = embeddings(Duration::from_secs(1));
        assert_eq!(embeddings.embed("bad", &[]).await, None);
        assert_eq!(embeddings.embed("good", &[]).await, None);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        tokio::time::advance(PAUSE).await;
        assert!(embeddings.embed("good", &[]).await.is_some());
    }
}
