//! Which format a scraper wants, by its `Accept`.

use http::{HeaderMap, header::ACCEPT};
use pegboard::metrics::PageFormat;

/// The most media types that are read. Prometheus sends five.
const MAX_TYPES: usize = 32;

/// OpenMetrics if the client prefers it, and otherwise the text format of Prometheus, which every scraper reads.
pub(super) fn choose(headers: &HeaderMap) -> PageFormat {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).take(MAX_TYPES);
    let (mut open, mut text) = (0, 0);
    for range in ranges.filter_map(MediaRange::parse) {
        let quality = match range.name.as_str() {
            "application/openmetrics-text" if matches!(range.version.as_deref(), None | Some("1.0.0")) => &mut open,
            "text/plain" if matches!(range.version.as_deref(), None | Some("0.0.4")) => &mut text,
            _ => continue,
        };
        *quality = (*quality).max(range.quality);
    }
    match open > 0 && open >= text {
        true => PageFormat::OpenMetrics,
        false => PageFormat::Prometheus,
    }
}

/// One media type that a client accepts.
#[derive(Debug)]
struct MediaRange {
    name: String,
    version: Option<String>,
    /// In thousandths.
    quality: u32,
}

impl MediaRange {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let mut range = Self {
            name,
            version: None,
            quality: 1000,
        };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "version" => range.version = Some(value.to_owned()),
                "q" => range.quality = parse_quality(value)?,
                _ => {}
            }
        }
        Some(range)
    }
}

/// A number from 0 to 1 with at most three digits after the point.
fn parse_quality(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let is_number = rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u32 = format!("{rest:0<3}").parse().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_scraper_prefers() {
        const PROMETHEUS_2: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        const PROMETHEUS_3: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, is_open) in [
            (PROMETHEUS_2, true),
            (PROMETHEUS_3, true),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", true),
            ("", false),
            ("*/*", false),
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("text/plain;version=0.0.4", false),
            ("application/openmetrics-text;version=0.0.1", false),
            ("application/openmetrics-text;version=1.0.0;q=0", false),
            (
                "application/openmetrics-text;version=1.0.0;q=0.3,text/plain;q=0.5",
                false,
            ),
            ("application/openmetrics-text;q=2", false),
            ("application/openmetrics-text;q=0.1234", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(choose(&headers) == PageFormat::OpenMetrics, is_open, "{accept}");
        }
        assert_eq!(choose(&HeaderMap::new()), PageFormat::Prometheus);
    }
}
