//! [`AddressClass`]: which network an address belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressClass {
    Public,
    /// This machine.
    Loopback,
    /// A private network, including carrier-grade NAT.
    Private,
    /// The same link, such as the metadata services of clouds.
    LinkLocal,
    /// Not an address of a server: unspecified, multicast, reserved, for documentation.
    Unusable,
}

impl AddressClass {
    pub(super) fn classify(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::classify_v4(address),
            IpAddr::V6(address) => match embedded_v4(address) {
                Some(inner) => Self::classify_v4(inner),
                None => Self::classify_v6(address),
            },
        }
    }

    fn classify_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Self::Private,
            [169, 254, ..] => Self::LinkLocal,
            [0, ..]
            | [192, 0, 0, _]
            | [192, 0, 2, _]
            | [192, 88, 99, _]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..] => Self::Unusable,
            _ => Self::Public,
        }
    }

    fn classify_v6(address: Ipv6Addr) -> Self {
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            [0xfc00..=0xfdff, ..] => Self::Private,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            // Global unicast, without the ranges for documentation, benchmarks and ORCHID.
            [0x2001, 0x0db8, ..]
            | [0x2001, 0x0002, 0, ..]
            | [0x2001, 0x0010..=0x002f, ..]
            | [0x3fff, 0..=0x0fff, ..] => Self::Unusable,
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Unusable,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "this machine",
            Self::Private => "a private network",
            Self::LinkLocal => "a link-local address",
            Self::Unusable => "an address that no server has",
        }
    }
}

/// Whether an address is that of a cloud's metadata service, which gives credentials to everyone who asks.
pub(super) fn is_metadata_service(address: IpAddr) -> bool {
    const V4: [Ipv4Addr; 3] = [
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::new(169, 254, 170, 2),
        Ipv4Addr::new(100, 100, 100, 200),
    ];
    // Of AWS and of Google Cloud.
    const V6: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    ];
    match address {
        IpAddr::V4(address) => V4.contains(&address),
        IpAddr::V6(address) => V6.contains(&address) || embedded_v4(address).is_some_and(|inner| V4.contains(&inner)),
    }
}

/// The IPv4 address that packets to an IPv6 address reach: mapped, compatible, NAT64, 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => from(high, low),
        // Translated by a stateless translator, and the well-known and the local prefix of NAT64.
        [0, 0, 0, 0, 0xffff, 0, high, low] => from(high, low),
        [0x64, 0xff9b, 0 | 1, _, _, _, high, low] => from(high, low),
        [0x2002, high, low, ..] => from(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_network_is_recognised() {
        let check = |class: AddressClass, addresses: &[&str]| {
            for address in addresses {
                assert_eq!(AddressClass::classify(address.parse().unwrap()), class, "{address}");
            }
        };
        check(
            AddressClass::Public,
            &[
                "1.1.1.1",
                "172.15.0.1",
                "172.32.0.1",
                "100.63.0.1",
                "100.128.0.1",
                "2606:4700::1111",
            ],
        );
        check(
            AddressClass::Loopback,
            &[
                "127.0.0.1",
                "127.9.9.9",
                "::1",
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "64:ff9b::7f00:1",
                "2002:7f00:1::",
            ],
        );
        check(
            AddressClass::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
                "100.127.255.255",
                "fc00::1",
                "fd12::1",
                "::ffff:10.0.0.1",
                "64:ff9b:1::a00:1",
            ],
        );
        check(
            AddressClass::LinkLocal,
            &["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"],
        );
        check(
            AddressClass::Unusable,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "224.0.0.1",
                "239.255.255.255",
                "255.255.255.255",
                "240.0.0.1",
                "192.0.2.1",
                "198.18.0.1",
                "::",
                "ff02::1",
                "2001:db8::1",
                "fec0::1",
                "100::1",
            ],
        );
    }

    #[test]
    fn metadata_services_are_recognised_in_every_form() {
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            assert!(is_metadata_service(address.parse().unwrap()), "{address}");
        }
        assert!(!is_metadata_service("169.254.1.1".parse().unwrap()));
    }
}
