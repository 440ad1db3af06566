//! The compiled schemas of one board: those that were used last. Tools with equal schemas share one.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use pegboard_base::sync::Mutex;
use serde_json::Value;

#[cfg(feature = "validation")]
use super::schema_check::SchemaCheck;
#[cfg(not(feature = "validation"))]
use super::unchecked_schema::SchemaCheck;

/// The most compiled schemas: more than an agent uses in one task. Compiling one again takes about as long as a call over stdio.
const MAX_COMPILED: usize = 256;
/// The most bytes of all compiled schemas, as estimated. The newest is kept in any case.
const MAX_BYTES: usize = 64 << 20;
/// About how many bytes a parsed schema takes for each byte of its text.
const BYTES_PER_CHARACTER: usize = 8;

/// The compiled schemas of one board that were used last.
#[derive(Default)]
pub struct CompiledSchemas {
    by_text: Mutex<HashMap<Arc<str>, Arc<CompiledSchema>>>,
    /// Counts the schemas that were added, to tell which were used last.
    clock: AtomicU64,
}

/// A compiled schema and when it was used.
pub(crate) struct CompiledSchema {
    /// The time of `clock` at the last use.
    used: AtomicU64,
    /// Compiled once, while other calls with the same schema wait.
    compiled: OnceLock<(Value, SchemaCheck)>,
    text: Arc<str>,
}

impl CompiledSchema {
    /// The parsed schema.
    pub(super) fn tree(&self) -> &Value {
        &self.get_or_compile().0
    }

    pub(super) fn check(&self) -> &SchemaCheck {
        &self.get_or_compile().1
    }

    fn get_or_compile(&self) -> &(Value, SchemaCheck) {
        self.compiled.get_or_init(|| {
            let tree = serde_json::from_str(&self.text).unwrap_or_default();
            let check = SchemaCheck::new(&tree);
            (tree, check)
        })
    }

    /// An estimate of the memory it takes.
    fn bytes(&self) -> usize {
        let check = self.compiled.get().map_or(0, |(_, check)| check.bytes());
        check + self.text.len() * BYTES_PER_CHARACTER
    }
}

impl CompiledSchemas {
    /// The compiled form of a schema. Compiles it if it was not used for long.
    pub(super) fn get(&self, text: &str) -> Arc<CompiledSchema> {
        let (schema, is_new) = self.find_or_add(text);
        // Not under the lock, because it takes long.
        schema.get_or_compile();
        if is_new {
            self.trim(&schema);
        }
        schema
    }

    fn find_or_add(&self, text: &str) -> (Arc<CompiledSchema>, bool) {
        let mut by_text = self.by_text.lock();
        if let Some(known) = by_text.get(text) {
            self.mark_used(known);
            return (known.clone(), false);
        }
        let text: Arc<str> = text.into();
        let schema = Arc::new(CompiledSchema {
            used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed) + 1),
            compiled: OnceLock::new(),
            text: text.clone(),
        });
        by_text.insert(text, schema.clone());
        (schema, true)
    }

    /// Records a use. Cheap, because every call does it.
    pub(super) fn mark_used(&self, schema: &CompiledSchema) {
        let now = self.clock.load(Ordering::Relaxed);
        if schema.used.load(Ordering::Relaxed) != now {
            schema.used.store(now, Ordering::Relaxed);
        }
    }

    /// Drops the schemas that were not used for longest if there are too many.
    fn trim(&self, newest: &Arc<CompiledSchema>) {
        let mut by_text = self.by_text.lock();
        let mut bytes: usize = by_text.values().map(|schema| schema.bytes()).sum();
        while by_text.len() > MAX_COMPILED || bytes > MAX_BYTES {
            let others = by_text.values().filter(|schema| !Arc::ptr_eq(schema, newest));
            let Some(coldest) = others.min_by_key(|schema| schema.used.load(Ordering::Relaxed)) else {
                return;
            };
            bytes -= coldest.bytes().min(bytes);
            let text = coldest.text.clone();
            by_text.remove(&text);
        }
    }

    /// How many schemas are compiled now.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.by_text.lock().len()
    }
}

impl std::fmt::Debug for CompiledSchemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledSchemas")
            .field("count", &self.by_text.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
