//! Validates values against a tool's schemas. A schema is compiled on first use, and its validator is dropped when it is not used for long.

use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapWeak;
use serde_json::Value;

use super::{
    arguments::Arguments,
    checked::{Checked, accept_unchecked, check_required},
    compiled_schemas::{CompiledSchema, CompiledSchemas},
};
use pegboard_config::Check;

/// A reference to the compiled form of one schema of a tool. All uses must give the same schema, as JSON text.
#[derive(Default)]
pub struct LazyValidator {
    /// Owned by the board's [`CompiledSchemas`], which may drop it.
    compiled: ArcSwapWeak<CompiledSchema>,
    /// Why the schema cannot be compiled, once that was tried.
    unusable: OnceLock<Box<str>>,
}

impl LazyValidator {
    /// Why the schema cannot be compiled, if that has been tried already.
    pub(crate) fn unusable(&self) -> Option<&str> {
        self.unusable.get().map(|why| &**why)
    }

    /// Validates arguments against the schema, and coerces types where the mode allows it. The error has a sentence for each problem.
    pub fn arguments(
        &self,
        given: &Arguments,
        schema: &str,
        mode: Check,
        compiled: &CompiledSchemas,
    ) -> Result<Checked, Vec<String>> {
        if mode == Check::Off {
            return accept_unchecked(given, Vec::new());
        }
        let compiled = self.get_or_compile(schema, compiled);
        match mode {
            Check::Required => check_required(given, compiled.tree()),
            _ => compiled.check().arguments(compiled.tree(), given, mode),
        }
    }

    /// Validates structured output. Returns a sentence for each problem.
    pub fn structured_output(&self, value: &Value, schema: &str, compiled: &CompiledSchemas) -> Vec<String> {
        let compiled = self.get_or_compile(schema, compiled);
        compiled.check().structured_output(compiled.tree(), value)
    }

    fn get_or_compile(&self, schema: &str, store: &CompiledSchemas) -> Arc<CompiledSchema> {
        if let Some(compiled) = self.compiled.load().upgrade() {
            store.mark_used(&compiled);
            return compiled;
        }
        let compiled = store.get(schema);
        if let Some(why) = compiled.check().unusable() {
            self.unusable.get_or_init(|| why.into());
        }
        self.compiled.store(Arc::downgrade(&compiled));
        compiled
    }
}

/// A clone starts uncompiled: a copy of a tool may be given another schema.
impl Clone for LazyValidator {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Always equal, so that compiling a schema does not make two equal tools differ.
impl PartialEq for LazyValidator {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for LazyValidator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.unusable(), Weak::strong_count(&self.compiled.load())) {
            (Some(_), _) => "unusable",
            (None, 0) => "not compiled",
            (None, _) => "compiled",
        })
    }
}
