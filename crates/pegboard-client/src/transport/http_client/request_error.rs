//! Converts errors of requests to failures: whether the request can have run, and a readable message.

use std::io;

use pegboard_http::Error;
use rustls::AlertDescription as Alert;
use url::Url;

use crate::transport::{
    connect_error::{
        CERTIFICATE_ALERTS, alert_advice, connect_fault, error_chain, host_and_port, tls_advice, with_causes,
    },
    delivery::Sent,
    request_failure::{ConnectFault, FailureKind, TlsFault, WireFailure},
};

/// The failure of a request to `url` before its response began.
pub(in crate::transport) fn before_response(error: &Error, url: &Url) -> WireFailure {
    let is_plain = url.scheme() == "http";
    if !error.is_connect() {
        let mut failure = request_failure(error);
        // A server that expects TLS responds to plain HTTP with a TLS alert.
        if is_plain && failure.sent == Sent::Maybe && is_unparsable(error) {
            let advice = "; the server does not answer in HTTP: if it expects TLS, write `https://` in `url`";
            failure.message.push_str(advice);
        }
        return failure;
    }
    let fault = if error.is_timeout() {
        ConnectFault::Timeout
    } else if error.is_lookup() {
        ConnectFault::Dns
    } else {
        match connect_fault(error) {
            // Before the request, only the TLS handshake reads.
            ConnectFault::Other if !is_plain && is_end_of_file(error) => ConnectFault::TlsClosed,
            fault => fault,
        }
    };
    // The errors in between only say that a connection failed; the innermost one says why.
    let why = error_chain(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let why = match tls_advice(error) {
        Some(advice) => format!("{advice} ({why})"),
        None => why,
    };
    WireFailure::new(
        FailureKind::Connect(fault),
        Sent::No,
        format!("no connection to {}: {why}", host_and_port(url)),
    )
}

/// The failure of a request for which there was a connection.
pub(in crate::transport) fn request_failure(error: &Error) -> WireFailure {
    let text = with_causes(error);
    // In TLS 1.3 the server may reject our certificate after the handshake is done on our side. It has read no request then.
    if let Some(alert) = certificate_alert(error) {
        let text = format!("{} ({text})", alert_advice(alert));
        let kind = FailureKind::Connect(ConnectFault::Tls(TlsFault::ClientCertificate));
        WireFailure::new(kind, Sent::Rejected, text)
    } else if is_refused_unprocessed(error) {
        WireFailure::new(FailureKind::ConnectionLost, Sent::Rejected, text)
    } else {
        WireFailure::new(FailureKind::ConnectionLost, Sent::Maybe, text)
    }
}

/// The failure of a request after its response began. The server has acted on the request by then, so neither a refused stream nor a
/// closing connection proves that it did not run.
pub(super) fn after_response(error: &Error) -> WireFailure {
    WireFailure {
        sent: Sent::Maybe,
        ..request_failure(error)
    }
}

/// Whether what the server answered is no HTTP.
fn is_unparsable(error: &Error) -> bool {
    error_chain(error)
        .filter_map(<dyn std::error::Error>::downcast_ref)
        .any(|error: &hyper::Error| error.is_parse() && !error.is_parse_too_large() && !error.is_parse_status())
}

/// Whether the connection was closed by the other side.
fn is_end_of_file(error: &Error) -> bool {
    error_chain(error)
        .filter_map(<dyn std::error::Error>::downcast_ref)
        .any(|error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof)
}

/// Whether the server reports that it did not process the request: over HTTP/2 it may refuse a single stream, or close the connection
/// gracefully. This holds even after an informational (1xx) response, which proxies send before they forward a request: by RFC 9113 section
/// 8.7 a request on a refused stream was not processed at all.
pub(super) fn is_refused_unprocessed(error: &Error) -> bool {
    error_chain(error)
        .filter_map(<dyn std::error::Error>::downcast_ref)
        .any(|error: &h2::Error| {
            let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            let is_closing = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            error.is_remote() && (is_refused || is_closing)
        })
}

/// The TLS alert with which the server rejected our client certificate, or the lack of one.
fn certificate_alert(error: &(dyn std::error::Error + 'static)) -> Option<Alert> {
    let alert = error_chain(error).find_map(|cause| match cause.downcast_ref() {
        Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
        _ => alert_in_text(cause.downcast_ref()?),
    });
    alert.filter(|alert| CERTIFICATE_ALERTS.contains(alert))
}

/// Finds the alert in an I/O error of an HTTP/2 connection, which keeps only the kind and the text of the original error.
fn alert_in_text(error: &io::Error) -> Option<Alert> {
    let text = error.to_string();
    let is_named = |alert: &Alert| text == rustls::Error::AlertReceived(*alert).to_string();
    let is_of_tls = error.kind() == io::ErrorKind::InvalidData;
    CERTIFICATE_ALERTS.into_iter().filter(|_| is_of_tls).find(is_named)
}
