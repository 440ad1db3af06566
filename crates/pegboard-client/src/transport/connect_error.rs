//! Classifies failed connections and explains the usual TLS errors.

use std::io;

use rustls::AlertDescription as Alert;
use url::Url;

use super::{
    request_failure::{ConnectFault, TlsFault},
    tls::WrongId,
};

/// The alerts with which a server rejects a client certificate, or the lack of one.
pub(super) const CERTIFICATE_ALERTS: [Alert; 10] = [
    Alert::CertificateRequired,
    Alert::NoCertificate,
    Alert::BadCertificate,
    Alert::UnsupportedCertificate,
    Alert::CertificateRevoked,
    Alert::CertificateExpired,
    Alert::CertificateUnknown,
    Alert::DecryptError,
    Alert::UnknownCA,
    Alert::AccessDenied,
];

/// Host and port of a URL, without the parts that may be secret.
pub(super) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Classifies a failed connection by its chain of causes.
pub(super) fn connect_fault(error: &(dyn std::error::Error + 'static)) -> ConnectFault {
    let found = error_chain(error).find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return Some(ConnectFault::Tls(tls_fault(error)));
        }
        match cause.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::ConnectionRefused => Some(ConnectFault::Refused),
            io::ErrorKind::TimedOut => Some(ConnectFault::Timeout),
            _ => None,
        }
    });
    found.unwrap_or(ConnectFault::Other)
}

/// Classifies a failed TLS handshake.
fn tls_fault(error: &rustls::Error) -> TlsFault {
    use rustls::{CertificateError as Bad, Error};
    match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => TlsFault::UnknownIssuer,
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => TlsFault::WrongHost,
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => TlsFault::Expired,
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => TlsFault::NotYetValid,
        Error::AlertReceived(alert) if CERTIFICATE_ALERTS.contains(alert) => TlsFault::ClientCertificate,
        Error::InvalidMessage(_) => TlsFault::NotTls,
        _ => TlsFault::Other,
    }
}

/// Advice on the config for the usual causes of a failed TLS handshake.
pub(super) fn tls_advice(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    use rustls::{CertificateError as Bad, Error};
    let error = error_chain(error).find_map(<dyn std::error::Error>::downcast_ref::<Error>)?;
    Some(match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "its certificate is signed by an authority that is not trusted here; name the authority's file in `tls.ca`"
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "its certificate is for another host name; write the name that is in the certificate in `url`"
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "its certificate has expired; the server needs a new one, or the clock of this machine is wrong"
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "its certificate is not valid yet; the clock of this machine may be wrong"
        }
        Error::InvalidCertificate(Bad::Other(other)) if is_of_authority(other) => {
            "its certificate is one of an authority (CA) and not of a server; give the server a certificate of its own, signed by that authority"
        }
        Error::InvalidCertificate(Bad::Other(other)) if other.0.is::<WrongId>() => {
            "its certificate is not that of the workload in `tls.server_id`; check that setting, or what answers at `url`"
        }
        Error::AlertReceived(alert) if CERTIFICATE_ALERTS.contains(alert) => alert_advice(*alert),
        Error::InvalidMessage(_) => {
            "the server does not speak TLS there; if it speaks plain HTTP, write `http://` in `url`"
        }
        _ => return None,
    })
}

/// Whether the server's certificate is that of an authority.
fn is_of_authority(error: &rustls::OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Advice on the config for an alert with which the server rejected our client certificate.
pub(super) fn alert_advice(alert: Alert) -> &'static str {
    match alert {
        Alert::CertificateRequired | Alert::NoCertificate => {
            "the server asks for a client certificate; name its files in `tls.cert` and `tls.key`"
        }
        _ => "the server refused the client certificate; check the files in `tls.cert` and `tls.key`",
    }
}

/// Iterates over an error and its causes, including the error that an I/O error wraps, which `source` skips.
pub(super) fn error_chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        }
    })
}

/// Formats an error with its causes on one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
