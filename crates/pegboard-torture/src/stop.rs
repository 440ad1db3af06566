//! [`Stop`]: why a case ends before its last step.

/// Why a case ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The server failed it.
    Fail(String),
    /// It does not apply to this server.
    Skip(String),
}

/// Fails a case.
pub(super) fn fail<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fail(why.into()))
}

/// Skips a case.
pub(super) fn skip<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skip(why.into()))
}

/// Fails a case unless something is true.
pub(super) fn ensure(is_true: bool, why: impl FnOnce() -> String) -> Result<(), Stop> {
    match is_true {
        true => Ok(()),
        false => fail(why()),
    }
}
