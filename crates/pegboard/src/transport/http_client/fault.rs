//! What a failed request means: whether it can have been carried out, and why in words for people.

use std::io;

use rustls::AlertDescription as Alert;

use crate::transport::{
    ConnectFault, FailureKind, Sent, WireFailure,
    remote::fault::{alert_words, all_causes, causes, connect_fault, place, tls_words},
};

/// What the failure of a request means to which no response has begun.
pub(in crate::transport) fn failure(error: reqwest::Error) -> WireFailure {
    let is_plain = error.url().is_some_and(|url| url.scheme() == "http");
    let place = error.url().map(place);
    let error = error.without_url();
    let mut text = causes(&error);
    if !error.is_connect() {
        // A server may turn our certificate down after we believe the connection to be open, but before it reads a request.
        return if let Some(alert) = certificate_alert(&error) {
            let text = format!("{} ({text})", alert_words(alert));
            WireFailure::new(FailureKind::Connect(ConnectFault::Tls), Sent::Rejected, text)
        } else if is_turned_away(&error) {
            WireFailure::new(FailureKind::Cut, Sent::Rejected, text)
        } else {
            // A server that expects TLS answers a plain request with an alert, which is no HTTP.
            if is_plain && text.contains("invalid HTTP version parsed") {
                text.push_str("; the server does not answer in HTTP: if it expects TLS, write `https://` in `url`");
            }
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
    let why = match tls_words(&error) {
        Some(words) => format!("{words} ({why})"),
        None => why,
    };
    let place = place.unwrap_or_else(|| "the server".to_owned());
    WireFailure::new(
        FailureKind::Connect(fault),
        Sent::No,
        format!("no connection to {place}: {why}"),
    )
}

/// What a failure means once a response has begun. The server has acted on the request by then, so neither a refused stream nor a closing
/// connection proves that it did not run.
pub(in crate::transport) fn after_response(error: reqwest::Error) -> WireFailure {
    WireFailure {
        sent: Sent::Maybe,
        ..failure(error)
    }
}

/// Whether the server said that it did not look at the request: over HTTP/2 it may refuse single requests, and those that come while it
/// closes a connection. That is believed also after an informational (1xx) response, which proxies send before they pass a request on: RFC
/// 9113 section 8.7 promises that a request on a refused stream was not processed at all.
pub(super) fn is_turned_away(error: &reqwest::Error) -> bool {
    all_causes(error)
        .filter_map(<dyn std::error::Error>::downcast_ref)
        .any(|error: &h2::Error| {
            let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            let is_closing = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            error.is_remote() && (is_refused || is_closing)
        })
}

/// The alert with which the peer ended the connection because of the certificate that we showed, or did not show.
fn certificate_alert(error: &(dyn std::error::Error + 'static)) -> Option<Alert> {
    let alert = all_causes(error).find_map(|cause| match cause.downcast_ref() {
        Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
        _ => named_alert(cause.downcast_ref()?),
    });
    alert.filter(|alert| OF_CERTIFICATES.contains(alert))
}

/// The alert in an I/O error of an HTTP/2 connection, of which only the kind and the text are left.
fn named_alert(error: &io::Error) -> Option<Alert> {
    let text = error.to_string();
    let is_named = |alert: &Alert| text == rustls::Error::AlertReceived(*alert).to_string();
    let is_of_tls = error.kind() == io::ErrorKind::InvalidData;
    OF_CERTIFICATES.into_iter().filter(|_| is_of_tls).find(is_named)
}

/// The alerts with which a server turns a client down because of its certificate.
const OF_CERTIFICATES: [Alert; 10] = [
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
