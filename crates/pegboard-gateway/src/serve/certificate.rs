//! Reads when an X.509 certificate expires. Nothing else of it is of interest here: clients verify it.

use std::time::SystemTime;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When a certificate in DER expires; `None` if that cannot be read.
pub(super) fn expiry(der: &[u8]) -> Option<SystemTime> {
    let (certificate, _) = value(der, SEQUENCE)?;
    let (mut fields, _) = value(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, algorithm and issuer come before the validity.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (validity, _) = value(fields, SEQUENCE)?;
    let (_, _, rest) = element(validity)?;
    let (tag, not_after, _) = element(rest)?;
    time(tag, std::str::from_utf8(not_after).ok()?)
}

/// A time in UTC: `YYMMDDHHMMSSZ`, where `YY` from 50 on is of the last century, or `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, text: &str) -> Option<SystemTime> {
    let full = match tag {
        UTC_TIME => {
            let year: u8 = text.get(..2)?.parse().ok()?;
            format!("{}{text}", if year >= 50 { "19" } else { "20" })
        }
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%SZ", full).ok()?;
    let at: Timestamp = civil.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(at.into())
}

/// The content of the first element, which has this tag, and what follows it.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == tag).then_some((content, rest))
}

/// The tag and the content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ 0..=0x7f => (usize::from(*short), rest),
        // A certificate is shorter than 16 MiB.
        long @ 0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long - 0x80))?;
            (bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 3, 1);
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_formats() {
        for (year, expected) in [(2031, "2031-03-01T00:00:00Z"), (2070, "2070-03-01T00:00:00Z")] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(expiry(&certificate(year)), Some(expected.into()), "{year}");
        }
        assert_eq!(
            time(UTC_TIME, "700101000001Z"),
            Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
        );
    }

    #[test]
    fn no_prefix_and_no_flipped_byte_of_a_certificate_panics() {
        let whole = certificate(2031);
        for length in 0..whole.len() {
            let _ = expiry(&whole[..length]);
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            let _ = expiry(&broken);
        }
    }
}
