//! Inputs for the steps that are counted and measured.

pub mod shapes;
