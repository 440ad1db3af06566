//! What a person can do about a server that refuses the credentials of its config.

use std::sync::Arc;

use pegboard_base::{diagnosis::Code, name::ServerName, secret::Secret};
use pegboard_client::{
    credential::CredentialSource,
    session::{Fault, FaultKind, Spec},
    transport::{DialError, FailureKind, Target},
};
use pegboard_config::{Auth, Command, Endpoint};

/// The hint for a start that the server refused with status 401 or 403; `None` for other failures.
pub(super) fn hint(spec: &Spec, fault: &Fault) -> Option<String> {
    let (FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure))) = &fault.kind else {
        return None;
    };
    let is_forbidden = match failure.kind {
        FailureKind::NeedsAuth => false,
        FailureKind::Forbidden => true,
        _ => return None,
    };
    let Target::Configured(transport) = &spec.target else {
        return None;
    };
    let is_of_program = |source: &Arc<CredentialSource>| source.covers(transport.endpoint().is_none());
    if spec.configured_credentials.is_none() && spec.credentials.as_ref().is_some_and(is_of_program) {
        return Some("the credential comes from the program's `Credentials`, which must return another one".to_owned());
    }
    let endpoint = transport.endpoint()?;
    Some(match is_forbidden {
        true => hint_for_forbidden(&spec.name, endpoint),
        false => hint_for_unauthorized(&spec.name, endpoint),
    })
}

/// What a status of 401 means by the config of the server: that it wants credentials, or that it refuses those that it got.
pub(super) fn code(spec: &Spec, fault: &Fault) -> Option<Code> {
    let (FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure))) = &fault.kind else {
        return None;
    };
    let Target::Configured(transport) = &spec.target else {
        return None;
    };
    if failure.kind != FailureKind::NeedsAuth {
        return None;
    }
    let is_of_program = |source: &Arc<CredentialSource>| source.covers(transport.endpoint().is_none());
    if spec.configured_credentials.is_none() && spec.credentials.as_ref().is_some_and(is_of_program) {
        return Some(Code::CredentialsRefused);
    }
    let endpoint = transport.endpoint()?;
    Some(match &endpoint.auth {
        Auth::Anonymous => Code::SignInNeeded,
        Auth::OAuth(settings) if settings.grant.needs_person() => Code::SignInNeeded,
        Auth::None if !endpoint.has_credentials() => Code::SignInNeeded,
        _ => Code::CredentialsRefused,
    })
}

fn hint_for_unauthorized(name: &ServerName, endpoint: &Endpoint) -> String {
    match &endpoint.auth {
        Auth::Bearer(_) => "replace the token in `auth.bearer` of the server: it is not valid".to_owned(),
        Auth::Basic { .. } => "correct `auth.user` and `auth.password` of the server".to_owned(),
        Auth::BearerFile(path) => format!("write a valid token to `{}` (`auth.bearer_file`)", path.display()),
        // Its text may have secrets.
        Auth::HeadersHelper(helper) if is_shell(&helper.command) => {
            "the shell command of `headers_helper` must print headers that the server accepts".to_owned()
        }
        Auth::HeadersHelper(helper) => format!(
            "`{}` (`headers_helper`) must print headers that the server accepts",
            helper.command.program
        ),
        // Servers with the same URL share this connection, so no name is right for all of them.
        Auth::Anonymous => "the config says that the server needs no credentials; remove that (`auth = \"none\"` or `oauth = false`) and sign in \
                            with `pegboard login`, or give them in `auth`"
            .to_owned(),
        Auth::OAuth(settings) if settings.grant.needs_person() => format!("sign in again with `pegboard login {name}`"),
        Auth::OAuth(_) => {
            "the server does not accept the token of its authorization server; check `scopes`, `resource` and `audience` in `oauth`".to_owned()
        }
        Auth::None if endpoint.has_credentials() => "correct the credentials in `auth` or `headers` of the server".to_owned(),
        Auth::None => "give the server's credentials in `auth` or `headers`".to_owned(),
    }
}

/// Whether a program is the shell that runs a helper which the config gives as text.
fn is_shell(command: &Command) -> bool {
    let first = command.args.first().map(Secret::expose);
    matches!(
        (command.program.as_str(), first),
        ("sh", Some("-c")) | ("cmd", Some("/C"))
    )
}

fn hint_for_forbidden(name: &ServerName, endpoint: &Endpoint) -> String {
    match &endpoint.auth {
        Auth::OAuth(settings) if settings.grant.needs_person() => format!(
            "the account that is signed in may not use the server; sign in as another one with `pegboard login {name}`, or ask its operator"
        ),
        Auth::None if !endpoint.has_credentials() => {
            "the server does not allow this without credentials; give them in `auth` or `headers`, or ask its operator".to_owned()
        }
        _ => "the credentials of the config may not use the server; give others in `auth` or `headers`, or ask its operator".to_owned(),
    }
}
