//! Warnings about tools that could impersonate others.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    call::RouteTable,
    catalog::{Tool, shadows},
};

/// Warnings about tools of a route table that could impersonate others, computed once for each table.
#[derive(Debug, Default)]
pub(super) struct ShadowWarnings(Mutex<Option<Found>>);

type Found = (Arc<RouteTable>, Arc<[String]>);

impl ShadowWarnings {
    pub(super) fn of(&self, table: &Arc<RouteTable>) -> Arc<[String]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, warnings)) if Arc::ptr_eq(of, table) => warnings.clone(),
            _ => {
                let tools: Vec<&Tool> = table.routes().iter().map(|route| route.tool.as_ref()).collect();
                let warnings: Arc<[String]> = shadows(&tools).into();
                *known = Some((table.clone(), warnings.clone()));
                warnings
            }
        }
    }
}
