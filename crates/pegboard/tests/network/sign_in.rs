//! Sign-in over a real authorization server: each flow, what goes wrong, and many processes at once.

mod canary;
mod dpop;
mod fixtures;
mod flows;
mod hostile;
mod known_tools;
mod listing;
mod pick_up;
mod processes;
mod refresh;
mod step_up;
