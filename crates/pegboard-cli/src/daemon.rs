//! The user's daemon: a `pegboard serve` whose Unix socket the other commands use, so that its servers keep their state between them.
//!
//! The daemon holds a [`Place`]: a locked file and a socket in a folder that only the user can enter. A command finds the place of its config by
//! name, asks the daemon there who it is, and opens a board whose servers are those of the daemon ([`RunningDaemon`]).

mod call_slots;
mod changeover;
mod client;
mod detached;
mod dialer;
mod find;
mod folder;
mod hello;
mod http;
mod identity;
mod journal;
mod leftovers;
mod lock;
mod occupy;
mod overview;
mod owner_token;
mod program_file;
mod refusal;
mod remote;
mod replies;
mod routes;
mod socket;
mod start;
mod stop;
mod version_order;
mod working_folder;

pub(crate) use call_slots::CallsInFlight;
pub(crate) use client::RunningDaemon;
pub(crate) use detached::Detached;
pub(crate) use find::{find, find_or_start, find_or_start_lasting, tell_of_sign_in};
pub(crate) use folder::user as user_id;
pub(crate) use hello::{ConfigDigests, Identified, Started};
pub(crate) use identity::Identity;
pub(crate) use journal::{Unfinished, forget_without_daemon, unfinished_without_daemon};
pub(crate) use leftovers::leftovers;
pub(crate) use occupy::{Claim, NotOccupied, Occupied, occupy};
pub(crate) use overview::{FoundDaemon, all_daemons, our_daemon, our_log, restart};
pub(crate) use owner_token::{OwnerToken, generate as random_token};
pub(crate) use remote::adapt;
pub(crate) use replies::as_made_here;
pub(crate) use routes::router;
pub(crate) use socket::DaemonSocket;
