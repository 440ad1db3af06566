//! What a failed request or connection means: whether the request can have been carried out, and why in words for people.

use std::io;

use url::Url;

use crate::transport::{ConnectFault, FailureKind, Sent, WireFailure};

/// What a failed request means.
pub(in crate::transport) fn failure(error: reqwest::Error) -> WireFailure {
    let place = error.url().map(place);
    let error = error.without_url();
    let text = causes(&error);
    if error.is_redirect() {
        return WireFailure::new(FailureKind::Connect(ConnectFault::Redirect), Sent::Rejected, text);
    }
    if !error.is_connect() {
        // A server may turn our certificate down after we believe the connection to be open, but before it reads a request.
        return if certificate_refused(&error) {
            WireFailure::new(FailureKind::Connect(ConnectFault::Tls), Sent::Rejected, text)
        } else {
            WireFailure::new(FailureKind::Cut, Sent::Maybe, text)
        };
    }
    let fault = if error.is_timeout() {
        ConnectFault::Timeout
    } else if error.is_dns() {
        ConnectFault::Dns
    } else {
        connect_fault(&error)
    };
    // The layers in between only say that a connection failed; where and why is what a person needs.
    let why = all_causes(&error).last().map_or(text, ToString::to_string);
    let place = place.unwrap_or_else(|| "the server".to_owned());
    WireFailure::new(
        FailureKind::Connect(fault),
        Sent::No,
        format!("no connection to {place}: {why}"),
    )
}

/// Host and port of a URL, without anything in it that may be secret.
pub(in crate::transport) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Looks through the causes of a failed connection for the one that tells what it was.
pub(in crate::transport) fn connect_fault(error: &(dyn std::error::Error + 'static)) -> ConnectFault {
    let found = all_causes(error).find_map(|cause| {
        if cause.is::<rustls::Error>() {
            return Some(ConnectFault::Tls);
        }
        match cause.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::ConnectionRefused => Some(ConnectFault::Refused),
            io::ErrorKind::TimedOut => Some(ConnectFault::Timeout),
            _ => None,
        }
    });
    found.unwrap_or(ConnectFault::Other)
}

/// Whether the peer ended the connection because of the certificate that we showed, or did not show.
fn certificate_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    use rustls::AlertDescription as Alert;
    all_causes(error).any(|cause| {
        let Some(rustls::Error::AlertReceived(alert)) = cause.downcast_ref() else {
            return false;
        };
        matches!(
            alert,
            Alert::CertificateRequired
                | Alert::NoCertificate
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::DecryptError
                | Alert::UnknownCA
                | Alert::AccessDenied
        )
    })
}

/// An error and its causes. An I/O error does not count what it wraps among its causes, so that is looked into as well.
fn all_causes<'a>(
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

/// An error with its causes, in one line.
pub(in crate::transport) fn causes(error: &dyn std::error::Error) -> String {
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
