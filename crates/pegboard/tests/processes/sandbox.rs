//! What a hostile stdio server can do at each level of the sandbox, and what happens where a level cannot be enforced.
//!
//! The program under test is the example `shimmed`. If the tests run as root, it runs as another user, because root may do everything.

mod fallback;
mod leftovers;
mod levels;
mod settings;
mod stage;
