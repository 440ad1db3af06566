//! [`RequestTag`]: by which the lines of one client's request are found in logs.

use std::{
    cell::Cell,
    fmt,
    future::poll_fn,
    hash::{BuildHasher, Hasher, RandomState},
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::trace_context::{SpanId, TraceContext, TraceId};

thread_local! {
    static CURRENT: Cell<Option<RequestTag>> = const { Cell::new(None) };
}

/// The longest id of a client, in bytes.
const MAX_ID: usize = 128;

/// Tells the ids of this process from those of others.
static PROCESS: LazyLock<u32> = LazyLock::new(|| (RandomState::new().build_hasher().finish() >> 32) as u32);
/// The number of the next request.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The id of a request of a client, and the span of the client that it belongs to. Its text is only made when something is written.
#[derive(Debug, Clone)]
pub struct RequestTag {
    id: Id,
    span: Option<(TraceId, SpanId)>,
}

#[derive(Debug, Clone)]
enum Id {
    /// A number of this process.
    Own(u64),
    /// What the client sent.
    Client(Arc<str>),
}

impl RequestTag {
    /// The tag of a request. An id that its client sent is used if it is of 1 to 128 visible ASCII characters.
    pub fn new(client: Option<&[u8]>) -> Self {
        let is_sane = |id: &&[u8]| (1..=MAX_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic);
        let client = client.filter(is_sane).and_then(|id| std::str::from_utf8(id).ok());
        Self {
            id: match client {
                Some(id) => Id::Client(id.into()),
                None => Id::Own(NEXT.fetch_add(1, Ordering::Relaxed)),
            },
            span: None,
        }
    }

    /// The same request, as part of this span if there is one.
    #[must_use]
    pub fn within(mut self, span: Option<&TraceContext>) -> Self {
        if let Some(span) = span {
            self.span = Some((span.trace, span.span));
        }
        self
    }

    /// The span that it belongs to.
    pub fn span(&self) -> Option<(TraceId, SpanId)> {
        self.span
    }

    /// Makes it the request that this thread works for until the guard is dropped. The guard must not be held across an await.
    #[must_use]
    pub fn enter(&self) -> EnteredRequest {
        EnteredRequest {
            before: CURRENT.replace(Some(self.clone())),
            _this_thread: PhantomData,
        }
    }

    /// Makes it the request that threads work for while they poll a future.
    pub async fn during<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|context| {
            let _entered = self.enter();
            work.as_mut().poll(context)
        })
        .await
    }
}

/// The request that the current thread works for.
pub fn current_request() -> Option<RequestTag> {
    let current = CURRENT.take();
    CURRENT.set(current.clone());
    current
}

/// Writes the id.
impl fmt::Display for RequestTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Id::Own(number) => write!(f, "{:08x}-{number:x}", *PROCESS),
            Id::Client(id) => f.write_str(id),
        }
    }
}

/// Ends the work for a request when it is dropped.
#[derive(Debug)]
pub struct EnteredRequest {
    before: Option<RequestTag>,
    /// It stays on its thread.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for EnteredRequest {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sane_id_of_the_client_is_used_and_others_are_not() {
        let id = |text: &[u8]| RequestTag::new(Some(text)).to_string();
        assert_eq!(id(b"7f-3/a:b"), "7f-3/a:b");
        assert_eq!(id(&[b'x'; MAX_ID]), "x".repeat(MAX_ID));
        for odd in [&b""[..], b"a b", b"a\nb", b"\xff", "é".as_bytes(), &[b'x'; MAX_ID + 1]] {
            let id = id(odd);
            assert!(id.starts_with(&format!("{:08x}-", *PROCESS)), "{id}");
        }
    }

    #[test]
    fn each_request_has_an_id_of_its_own() {
        assert_ne!(RequestTag::new(None).to_string(), RequestTag::new(None).to_string());
    }

    #[tokio::test]
    async fn a_thread_works_for_a_request_while_it_polls_it() {
        let (outer, inner) = (RequestTag::new(None), RequestTag::new(Some(b"inner")));
        let context = TraceContext::root();
        let inner = inner.within(Some(&context));
        assert!(current_request().is_none());
        let entered = outer.enter();
        let work = std::pin::pin!(async {
            tokio::task::yield_now().await;
            let current = current_request().map(|tag| (tag.to_string(), tag.span()));
            assert_eq!(current, Some(("inner".to_owned(), Some((context.trace, context.span)))));
        });
        inner.during(work).await;
        assert_eq!(current_request().map(|tag| tag.to_string()), Some(outer.to_string()));
        drop(entered);
        assert!(current_request().is_none());
    }
}
