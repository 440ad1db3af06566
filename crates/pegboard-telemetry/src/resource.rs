//! Who sends: the resource of all telemetry.

use crate::proto;

/// The resource and the scope of everything that one process sends, encoded once.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) resource: proto::Resource,
    pub(crate) scope: proto::InstrumentationScope,
}

impl Origin {
    pub(crate) fn new(attributes: &[(String, String)]) -> Self {
        Self {
            resource: proto::Resource {
                attributes: attributes
                    .iter()
                    .map(|(name, value)| proto::KeyValue::text(name, value))
                    .collect(),
            },
            scope: proto::InstrumentationScope {
                name: "pegboard".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
        }
    }
}
