//! What went wrong with a server, as a [`StoreError`].

use std::{io, sync::Arc};

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::server_name::ServerName;
use crate::error::{Refusal, StoreError};

/// How much of a server's words an error shows.
const SHOWN: usize = 200;

/// Nothing answers.
pub(super) fn unreachable(name: &ServerName, cause: io::Error) -> StoreError {
    StoreError::Unreachable {
        address: name.shown(),
        cause: Arc::new(cause),
    }
}

/// An operation took too long.
pub(super) fn timed_out(name: &ServerName) -> StoreError {
    StoreError::TimedOut {
        address: name.shown(),
        limit: name.limit(),
    }
}

pub(super) fn refused(name: &ServerName, refusal: Refusal) -> StoreError {
    StoreError::Refused {
        address: name.shown(),
        refusal,
    }
}

/// A reply that is none of what the server can reply.
pub(super) fn unexpected(name: &ServerName) -> StoreError {
    refused(name, Refusal::NotAStore)
}

/// Whether the connection is of no use any more.
pub(super) fn is_lost(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client)
}

/// Whether the server has lost its role, so that another one is to be asked.
pub(super) fn is_demoted(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly))
}

/// What an error of a request means. `key` is the key that the request was about.
pub(super) fn classify(name: &ServerName, key: &str, error: &RedisError) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    // Redis 6 puts the code of an error within a script into the text.
    let says = |code: &str| error.code() == Some(code) || detail.contains(code);
    if says("WRONGTYPE") || says("TOOLARGE") {
        return StoreError::Damaged {
            address: name.shown(),
            key: key.into(),
            reason: "it is not what this program stores there",
        };
    }
    let refusal = match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Refusal::NotAStore,
        ErrorKind::AuthenticationFailed => Refusal::Credentials,
        ErrorKind::Server(ServerErrorKind::NoPerm) => Refusal::Permission(shorten(detail)),
        ErrorKind::Io
        | ErrorKind::Client
        | ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ReadOnly,
        ) => {
            return StoreError::Unreachable {
                address: name.shown(),
                cause: Arc::new(error.clone()),
            };
        }
        _ if says("NOAUTH") || says("WRONGPASS") => Refusal::Credentials,
        // Redis 7 says it so of a command within a script.
        _ if says("NOPERM") || says("The user executing the script") => Refusal::Permission(shorten(detail)),
        _ if says("OOM") => Refusal::Full,
        _ => Refusal::Other(shorten(&format!("{} {detail}", error.code().unwrap_or_default()))),
    };
    refused(name, refusal)
}

fn shorten(text: &str) -> String {
    let printable = text.trim().chars().filter(|character| !character.is_control());
    printable.take(SHOWN).collect()
}
