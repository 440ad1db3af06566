//! Diagnoses a failed request by its types. The texts of the server have no part in it.

use super::fault::{Fault, FaultKind, Flaw};
use crate::{
    credential::{PersonTask, Remedy},
    transport::{ConnectFault, DialError, EndReason, Exit, FailureKind, SpawnError, TlsFault, WireEnd},
};
use pegboard_base::diagnosis::{Cause, Code, Diagnosis, Step};
use pegboard_tools::outcome::{Failure, Kind};

/// What was being done when a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The connection was being opened, or the protocol version negotiated.
    Handshake,
    /// The server's tools were being listed.
    List,
    /// The server was in use.
    Call,
}

impl Fault {
    /// What is wrong, as data. `is_process` tells whether the server is a process of this program.
    pub fn diagnosis(&self, stage: Stage, is_process: bool) -> Diagnosis {
        match &self.kind {
            FaultKind::Error(error) => diagnose_error_response(stage, error.code),
            FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) => {
                diagnose_wire(&failure.kind, stage, is_process)
            }
            FaultKind::Ended(end) => end.diagnosis(stage, is_process),
            FaultKind::Dial(error) => diagnose_dial(error),
            FaultKind::TimedOut { waited, last_words, .. } => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let (code, step) = match stage {
                    Stage::Call => (Code::CallTimeout, Step::Call),
                    Stage::List => (Code::ListFailed, Step::List),
                    Stage::Handshake if !is_process => (Code::ConnectTimeout, Step::Connect),
                    Stage::Handshake if last_words.is_some() => (Code::WaitsForInput, Step::Spawn),
                    Stage::Handshake => (Code::Silent, Step::Spawn),
                };
                Diagnosis::new(code, step, Cause::Timeout { waited_ms })
            }
            FaultKind::Unreadable(response) => match response.flaw {
                Flaw::EndlessList => Diagnosis::new(Code::ListEndless, Step::List, Cause::Response),
                Flaw::NoVersion => Diagnosis::new(Code::ProtocolUnsupported, Step::Handshake, Cause::Version),
                Flaw::Malformed => diagnose_unusable_response(stage, is_process),
            },
            FaultKind::NoVersion(_) => Diagnosis::new(Code::ProtocolUnsupported, Step::Handshake, Cause::Version),
        }
    }
}

impl WireEnd {
    /// What the end of a connection means, as data.
    pub fn diagnosis(&self, stage: Stage, is_process: bool) -> Diagnosis {
        match &self.reason {
            EndReason::Exited(exit) => {
                let (code, step) = match stage {
                    Stage::Call => (Code::Exited, Step::Call),
                    Stage::List => (Code::ExitsAtStart, Step::List),
                    Stage::Handshake => (Code::ExitsAtStart, Step::Spawn),
                };
                Diagnosis::new(code, step, cause_of_exit(exit))
            }
            EndReason::Flood { lines, .. } => {
                Diagnosis::new(Code::StdoutFlood, Step::Spawn, Cause::Output { lines: *lines })
            }
            EndReason::Protocol(_) => diagnose_unusable_response(stage, is_process),
            EndReason::TooLarge(_) => Diagnosis::new(Code::AnswerTooLarge, step_of(stage), Cause::Limit),
            EndReason::Closed => Diagnosis::new(Code::Closed, step_of(stage), Cause::State),
            // A process that closes its output will not answer any more.
            EndReason::Eof if is_process && stage != Stage::Call => {
                Diagnosis::new(Code::ExitsAtStart, Step::Spawn, Cause::Connection)
            }
            EndReason::Eof | EndReason::Broken(_) | EndReason::Stalled(_) | EndReason::Replaced(_) => {
                diagnose_lost_connection(stage, is_process)
            }
        }
    }
}

/// The diagnosis of the process that supervises the server, or what the kind of its failure tells.
pub(super) fn diagnose_other_supervisor(failure: &Failure) -> Diagnosis {
    if let Some(diagnosis) = &failure.diagnosis {
        return (**diagnosis).clone();
    }
    match failure.kind {
        Kind::NeedsAuth => Diagnosis::new(Code::SignInNeeded, Step::SignIn, Cause::Credential),
        Kind::Timeout => Diagnosis::new(Code::StillStarting, Step::Connect, Cause::State),
        _ => Diagnosis::new(Code::ConnectionFailed, Step::Connect, Cause::Connection),
    }
}

fn step_of(stage: Stage) -> Step {
    match stage {
        Stage::Handshake => Step::Handshake,
        Stage::List => Step::List,
        Stage::Call => Step::Call,
    }
}

/// The server answered with an error response.
fn diagnose_error_response(stage: Stage, code: i64) -> Diagnosis {
    let what = match stage {
        Stage::Handshake => Code::HandshakeRefused,
        Stage::List => Code::ListFailed,
        Stage::Call => Code::CallRefused,
    };
    Diagnosis::new(what, step_of(stage), Cause::RpcError { code })
}

/// The server answered with something that is no response.
fn diagnose_unusable_response(stage: Stage, is_process: bool) -> Diagnosis {
    let code = match stage {
        Stage::Handshake if is_process => Code::StartFailed,
        Stage::Handshake => Code::NotMcp,
        Stage::List => Code::ListFailed,
        Stage::Call => Code::AnswerUnusable,
    };
    Diagnosis::new(code, step_of(stage), Cause::Response)
}

/// The connection was open and is lost.
fn diagnose_lost_connection(stage: Stage, is_process: bool) -> Diagnosis {
    let (code, step) = match stage {
        Stage::Call => (Code::ConnectionLost, Step::Call),
        Stage::Handshake | Stage::List if is_process => (Code::StartFailed, Step::Spawn),
        Stage::Handshake | Stage::List => (Code::ConnectionFailed, Step::Connect),
    };
    Diagnosis::new(code, step, Cause::Connection)
}

fn diagnose_dial(error: &DialError) -> Diagnosis {
    match error {
        DialError::Spawn(error) => diagnose_spawn(error),
        DialError::Tls(_) => Diagnosis::new(Code::TlsFailed, Step::Tls, Cause::Setting),
        DialError::NoCryptography | DialError::Setting(_) | DialError::NotBuilt(_) => {
            Diagnosis::new(Code::ConfigError, Step::Config, Cause::Setting)
        }
        DialError::Failed(failure) => diagnose_wire(&failure.kind, Stage::Handshake, false),
    }
}

fn diagnose_spawn(error: &SpawnError) -> Diagnosis {
    let (code, path) = match error {
        SpawnError::NotFound { program, .. } => (Code::ProgramMissing, program.clone()),
        SpawnError::NotExecutable { program, .. } => (Code::ProgramNotExecutable, program.display().to_string()),
        SpawnError::NoInterpreter { program } => (Code::InterpreterMissing, program.display().to_string()),
        SpawnError::NoFolder { cwd } => (Code::FolderMissing, cwd.display().to_string()),
        SpawnError::NoSandbox { .. } => {
            return Diagnosis::new(Code::SandboxMissing, Step::Spawn, Cause::Setting);
        }
        SpawnError::NoSandboxPath { path } => (Code::SandboxMissing, path.display().to_string()),
        SpawnError::Failed { program, .. } => (Code::StartFailed, program.clone()),
    };
    Diagnosis::new(code, Step::Spawn, Cause::Program { path })
}

fn diagnose_wire(kind: &FailureKind, stage: Stage, is_process: bool) -> Diagnosis {
    match kind {
        FailureKind::Connect(fault) => diagnose_connect(*fault),
        FailureKind::ConnectionLost | FailureKind::SessionGone => diagnose_lost_connection(stage, is_process),
        FailureKind::TooLarge => Diagnosis::new(Code::AnswerTooLarge, step_of(stage), Cause::Limit),
        FailureKind::NoRoom => Diagnosis::new(Code::Overloaded, step_of(stage), Cause::Limit),
        // The only process that is refused for lack of room is one too many.
        FailureKind::Busy if is_process && stage == Stage::Handshake => {
            Diagnosis::new(Code::BoardFull, Step::Spawn, Cause::Limit)
        }
        FailureKind::Busy => Diagnosis::new(Code::Overloaded, step_of(stage), Cause::Limit),
        FailureKind::Protocol => diagnose_unusable_response(stage, is_process),
        FailureKind::NeedsAuth => Diagnosis::new(Code::SignInNeeded, Step::SignIn, Cause::HttpStatus { status: 401 }),
        FailureKind::Forbidden => Diagnosis::new(Code::Forbidden, Step::SignIn, Cause::HttpStatus { status: 403 }),
        FailureKind::NoCredential(remedy) => {
            let code = match remedy {
                Remedy::Person { task, .. } => match task {
                    PersonTask::SignIn => Code::SignInNeeded,
                    PersonTask::SignInAgain => Code::SignInExpired,
                    PersonTask::Correct => Code::CredentialsRefused,
                },
                Remedy::Program | Remedy::Wait { .. } => Code::CredentialsMissing,
            };
            Diagnosis::new(code, Step::SignIn, Cause::Credential)
        }
        FailureKind::Rpc(error) => diagnose_error_response(stage, error.code),
        FailureKind::Status { code, .. } => diagnose_status(*code, stage),
    }
}

fn diagnose_connect(fault: ConnectFault) -> Diagnosis {
    let (code, step) = match fault {
        ConnectFault::Refused => (Code::ConnectionRefused, Step::Connect),
        ConnectFault::Dns => (Code::HostUnknown, Step::Connect),
        ConnectFault::Timeout => (Code::ConnectTimeout, Step::Connect),
        ConnectFault::Tls(TlsFault::UnknownIssuer) => (Code::CertificateUnknown, Step::Tls),
        ConnectFault::Tls(TlsFault::Expired) => (Code::CertificateExpired, Step::Tls),
        ConnectFault::Tls(TlsFault::NotYetValid) => (Code::CertificateNotYetValid, Step::Tls),
        ConnectFault::Tls(TlsFault::WrongHost) => (Code::CertificateWrongHost, Step::Tls),
        ConnectFault::Tls(TlsFault::ClientCertificate | TlsFault::NotTls | TlsFault::Other) => {
            (Code::TlsFailed, Step::Tls)
        }
        ConnectFault::TlsClosed => (Code::TlsFailed, Step::Tls),
        ConnectFault::Redirect => (Code::Redirected, Step::Connect),
        ConnectFault::Other => (Code::ConnectionFailed, Step::Connect),
    };
    Diagnosis::new(code, step, Cause::Connect { fault })
}

fn diagnose_status(status: u16, stage: Stage) -> Diagnosis {
    let code = match status {
        404 | 405 => Code::PathNotFound,
        429 => Code::RateLimited,
        500.. => Code::ServerError,
        300..400 => Code::Redirected,
        _ => Code::NotMcp,
    };
    let step = match stage {
        Stage::Call => Step::Call,
        Stage::Handshake | Stage::List => Step::Connect,
    };
    Diagnosis::new(code, step, Cause::HttpStatus { status })
}

fn cause_of_exit(exit: &Exit) -> Cause {
    match exit {
        Exit::Code(code) => Cause::Exit {
            code: Some(*code),
            signal: None,
        },
        Exit::Signal(signal) => Cause::Exit {
            code: None,
            signal: Some(*signal),
        },
        Exit::Unknown(_) => Cause::Exit {
            code: None,
            signal: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transport::{Sent, ServerError, WireFailure};

    /// Words of many other diagnoses.
    const LIES: &str = "HTTP 404: lookup failed, certificate expired, tools/list, protocol version, the token has expired, process ended";

    fn wire(kind: FailureKind) -> Fault {
        WireFailure::new(kind, Sent::Maybe, LIES).into()
    }

    fn ended(reason: EndReason) -> Fault {
        let mut end = WireEnd::new(reason);
        end.stderr = Some(LIES.to_owned());
        Fault::ended(end, Sent::Maybe)
    }

    fn status(code: u16) -> Fault {
        wire(FailureKind::Status {
            code,
            retry_after: None,
        })
    }

    fn timed_out(last_words: Option<&str>) -> Fault {
        Fault {
            kind: FaultKind::TimedOut {
                waited: Duration::from_secs(3),
                idle: false,
                last_words: last_words.map(str::to_owned),
            },
            sent: Sent::Maybe,
        }
    }

    #[track_caller]
    fn check(fault: &Fault, stage: Stage, is_process: bool, expected: Code) {
        assert_eq!(fault.diagnosis(stage, is_process).code, expected, "{fault:?}");
    }

    #[test]
    fn a_fault_is_diagnosed_by_its_type_whatever_the_server_wrote() {
        let error = || ServerError::new(-32603, LIES);
        for (fault, expected) in [
            (Fault::from(error()), Code::HandshakeRefused),
            (wire(FailureKind::Rpc(Box::new(error()))), Code::HandshakeRefused),
            (status(500), Code::ServerError),
            (status(405), Code::PathNotFound),
            (status(429), Code::RateLimited),
            (status(418), Code::NotMcp),
            (wire(FailureKind::Protocol), Code::NotMcp),
            (wire(FailureKind::ConnectionLost), Code::ConnectionFailed),
            (wire(FailureKind::Connect(ConnectFault::Other)), Code::ConnectionFailed),
            (wire(FailureKind::Connect(ConnectFault::Dns)), Code::HostUnknown),
            (wire(FailureKind::Connect(ConnectFault::TlsClosed)), Code::TlsFailed),
            (
                wire(FailureKind::Connect(ConnectFault::Tls(TlsFault::Other))),
                Code::TlsFailed,
            ),
            (wire(FailureKind::Forbidden), Code::Forbidden),
            (Fault::unreadable(LIES), Code::NotMcp),
            (Fault::flawed(Flaw::NoVersion, LIES), Code::ProtocolUnsupported),
            (timed_out(Some(LIES)), Code::ConnectTimeout),
        ] {
            check(&fault, Stage::Handshake, false, expected);
        }
        for (fault, expected) in [
            (ended(EndReason::Exited(Exit::Code(1))), Code::ExitsAtStart),
            (ended(EndReason::Exited(Exit::Signal(9))), Code::ExitsAtStart),
            (
                ended(EndReason::Flood {
                    lines: 2000,
                    first_line: LIES.to_owned(),
                }),
                Code::StdoutFlood,
            ),
            (timed_out(None), Code::Silent),
            (timed_out(Some(LIES)), Code::WaitsForInput),
            (Fault::from(error()), Code::HandshakeRefused),
        ] {
            check(&fault, Stage::Handshake, true, expected);
        }
    }

    #[test]
    fn the_stage_tells_a_list_from_a_handshake_and_a_call() {
        let error = Fault::from(ServerError::new(-32603, LIES));
        check(&error, Stage::List, true, Code::ListFailed);
        check(&error, Stage::Call, true, Code::CallRefused);
        check(&timed_out(None), Stage::List, true, Code::ListFailed);
        let exited = ended(EndReason::Exited(Exit::Code(1)));
        for (stage, step) in [(Stage::Handshake, Step::Spawn), (Stage::List, Step::List)] {
            let found = exited.diagnosis(stage, true);
            assert_eq!((found.code, found.step), (Code::ExitsAtStart, step));
        }
        check(
            &Fault::flawed(Flaw::EndlessList, LIES),
            Stage::List,
            false,
            Code::ListEndless,
        );
        check(
            &ended(EndReason::Exited(Exit::Code(0))),
            Stage::Call,
            true,
            Code::Exited,
        );
    }

    #[test]
    fn a_person_is_told_whether_a_sign_in_was_there() {
        for (task, expected) in [
            (PersonTask::SignIn, Code::SignInNeeded),
            (PersonTask::SignInAgain, Code::SignInExpired),
            (PersonTask::Correct, Code::CredentialsRefused),
        ] {
            let remedy = Remedy::Person { task, hint: None };
            check(
                &wire(FailureKind::NoCredential(remedy)),
                Stage::Handshake,
                false,
                expected,
            );
        }
    }
}
