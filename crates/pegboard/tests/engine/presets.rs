//! The presets, row by row of their table, over the same fake servers; and, in `seed_*`, the tables of the designs that they stand for (see
//! docs/seeds.md).

mod calls;
mod files;
mod fixtures;
mod life;
mod limits;
mod outages;
mod results;
mod seed_000;
mod seed_001;
mod seed_002;
mod seed_003;
mod seed_004;
