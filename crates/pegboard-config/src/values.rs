//! Finds and changes the values of a table by their fields.

use super::{
    field::Field,
    setting::{Found, Setting, Values},
};

impl Values {
    pub(super) fn find(&self, field: &Field) -> Option<&Found> {
        self.0.get(field.name)
    }

    pub(super) fn insert(&mut self, field: &Field, found: Found) {
        self.0.insert(field.name, found);
    }

    pub(super) fn find_mut(&mut self, field: &Field) -> Option<&mut Found> {
        self.0.get_mut(field.name)
    }

    pub(super) fn remove(&mut self, field: &Field) -> Option<Found> {
        self.0.remove(field.name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Found)> {
        self.0.iter().map(|(name, found)| (*name, found))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (&'static str, Found)> {
        self.0.into_iter()
    }

    /// Adds the settings of `lower` that are not set here.
    pub(super) fn fill_from(&mut self, lower: Self) {
        for (name, found) in lower.0 {
            self.0.entry(name).or_insert(found);
        }
    }

    /// The values of a field that is a table.
    pub(super) fn table(&self, field: &Field) -> Option<&Self> {
        match &self.find(field)?.setting {
            Setting::Table(values) => Some(values),
            _ => None,
        }
    }
}
