//! [`JsonFields`]: the fields of an event or a span as JSON.

use std::{error::Error, fmt};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

use super::plain_fields;

/// The fields of an event. Those that only exporters of traces read are left out.
#[derive(Debug, Default)]
pub(super) struct JsonFields(pub(super) Map<String, Value>);

impl JsonFields {
    fn add(&mut self, field: &Field, value: Value) {
        if plain_fields::is_shown(field.name()) {
            self.0.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for JsonFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}
