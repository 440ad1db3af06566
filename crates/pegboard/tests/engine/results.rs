//! Results on a whole board: handles, the tool that reads them, handles as arguments, and their expiry.

mod fixtures;
mod handles;
mod policies;
