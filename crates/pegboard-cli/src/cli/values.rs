//! Parses the values of options.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use pegboard::config::AccessLogTarget;

/// A time limit.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    // Like coreutils' `timeout 30`, a bare number is in seconds.
    let seconds = || {
        text.trim()
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    match pegboard::config::parse_duration(text).or_else(seconds) {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("write a number and a unit, such as 500ms, 30s or 2m"),
    }
}

/// Where an access log is written.
pub(crate) fn access_log(text: &str) -> Result<AccessLogTarget, &'static str> {
    match text {
        "" | "-" | "stdout" => Err("write `stderr`, `off` or the path of a file"),
        text => Ok(AccessLogTarget::parse(text)),
    }
}

/// An address, or a port of loopback.
pub(crate) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let text = text.trim();
    let port = text.rsplit(':').next().unwrap_or(text);
    if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_err() {
        return Err("the port is too large: ports go up to 65535");
    }
    let port = text.strip_prefix("localhost:").unwrap_or(text).parse::<u16>();
    let local = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse()
        .or(local)
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:7337 or [::1]:7337")
}

/// A key with its value.
pub(crate) fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, or give all arguments with --json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_a_unit_is_in_seconds() {
        for (text, millis) in [("30", 30_000), ("1.5", 1500), ("30s", 30_000), ("250ms", 250)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "-1", "nan", "inf", "1e300", "s", "30 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:0", "[::1]:0"),
        ] {
            assert_eq!(
                address(text).map(|found| found.to_string()).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
        for text in ["", "example.com:80", "127.0.0.1", ":80"] {
            assert!(
                address(text).unwrap_err().contains("an IP address and a port"),
                "{text}"
            );
        }
        for text in [
            "99999",
            "65536",
            "127.0.0.1:99999",
            "[::1]:123456789012",
            "localhost:70000",
        ] {
            assert!(address(text).unwrap_err().contains("up to 65535"), "{text}");
        }
    }
}
