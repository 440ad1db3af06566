//! [`EchoOff`]: the terminal without echo, which signals give back as it was.

use std::{io, sync::Once};

use pegboard_base::sync::Mutex;
use rustix::{
    process::{Signal, getpid, kill_process},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr},
};
use tokio::signal::unix::{SignalKind, signal};

/// The settings of the terminal from before its echo was turned off, as long as it is off. Global, because the process has one terminal, and
/// because signals are for the process.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Starts [`follow_signals`] once.
static FOLLOWING: Once = Once::new();

/// What is added to the number of a signal in the exit code, as shells do.
const BY_SIGNAL: i32 = 128;

/// Turns the terminal's echo off until it is dropped. One inside of another changes nothing.
pub(crate) struct EchoOff {
    is_outermost: bool,
}

impl EchoOff {
    pub(crate) fn new() -> io::Result<Self> {
        if tokio::runtime::Handle::try_current().is_ok() {
            FOLLOWING.call_once(follow_signals);
        }
        let mut before = BEFORE.lock();
        if before.is_some() {
            return Ok(Self { is_outermost: false });
        }
        let found = tcgetattr(io::stdin())?;
        hide(&found)?;
        *before = Some(found);
        Ok(Self { is_outermost: true })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        if self.is_outermost {
            restore(BEFORE.lock().take().as_ref());
        }
    }
}

fn hide(found: &Termios) -> io::Result<()> {
    let mut hidden = found.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    // The newline is still echoed, so that the next output starts on a new line.
    hidden.local_modes.insert(LocalModes::ECHONL);
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?)
}

fn restore(before: Option<&Termios>) {
    if let Some(before) = before {
        // This fails only if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
}

/// Gives the terminal back before a signal ends or stops the process, which those that are caught elsewhere (SIGINT, SIGTERM) do by themselves.
/// From then on this process ends and stops itself when these signals arrive, as it would have without.
fn follow_signals() {
    let of = |which: Signal| signal(SignalKind::from_raw(which.as_raw()));
    let (Ok(mut hangup), Ok(mut quit), Ok(mut stop), Ok(mut resume)) =
        (of(Signal::HUP), of(Signal::QUIT), of(Signal::TSTP), of(Signal::CONT))
    else {
        return;
    };
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => end(Signal::HUP),
                _ = quit.recv() => end(Signal::QUIT),
                _ = stop.recv() => {
                    restore(BEFORE.lock().as_ref());
                    // The terminal's stop (SIGTSTP) is caught here, this one cannot be.
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                _ = resume.recv() => {
                    if let Some(before) = BEFORE.lock().as_ref() {
                        let _ = hide(before);
                    }
                }
            }
        }
    });
}

fn end(by: Signal) {
    restore(BEFORE.lock().take().as_ref());
    // Servers end with this process, as if the signal had ended it.
    std::process::exit(BY_SIGNAL + by.as_raw());
}
