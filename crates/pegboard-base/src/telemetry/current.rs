//! The span that the current thread works for, which log lines refer to.

use std::{cell::Cell, marker::PhantomData};

use super::trace_context::{SpanId, TraceContext, TraceId};

thread_local! {
    static CURRENT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// The trace and the span that the current thread works for.
pub fn current() -> Option<(TraceId, SpanId)> {
    CURRENT.get()
}

/// Makes a span the current one of this thread until the guard is dropped. The guard must not be held across an await.
#[must_use]
pub fn enter(context: &TraceContext) -> Entered {
    let before = CURRENT.replace(Some((context.trace, context.span)));
    Entered {
        before,
        _this_thread: PhantomData,
    }
}

/// Ends the work for a span when it is dropped.
#[derive(Debug)]
pub struct Entered {
    before: Option<(TraceId, SpanId)>,
    /// It stays on its thread.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_of_outer_work_is_current_again_after_the_inner_one() {
        assert_eq!(current(), None);
        let (outer, inner) = (TraceContext::root(), TraceContext::root());
        let entered = enter(&outer);
        drop(enter(&inner));
        assert_eq!(current(), Some((outer.trace, outer.span)));
        drop(entered);
        assert_eq!(current(), None);
    }
}
