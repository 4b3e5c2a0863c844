//! Kubernetes' IP addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::common::types::Type;

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, get, give, give_bool, give_int, give_text, no_overload, text},
    instead,
    opaque::{CIDR, IP, Kind, Opaque},
    ours,
};

/// What kro says before the reason, once for the text and once for its parser.
const CONVERSION: &str = "network address parse error during conversion from string: ";

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("ip", &["ip(string) -> net.IP"], ip),
        ours("ip", &["net.CIDR.ip() -> net.IP"], network_ip),
        ours("isIP", &["isIP(string) -> bool"], is_ip),
        ours("ip.isCanonical", &["ip.isCanonical(string) -> bool"], is_canonical),
        instead("string", &["string(net.IP) -> string"], ip_text),
        instead("string", &["string(net.CIDR) -> string"], network_text),
        ours("family", &["net.IP.family() -> int"], family),
        ours("isUnspecified", &["net.IP.isUnspecified() -> bool"], |arguments| check(&arguments, IpAddr::is_unspecified)),
        ours("isLoopback", &["net.IP.isLoopback() -> bool"], |arguments| check(&arguments, IpAddr::is_loopback)),
        ours("isLinkLocalMulticast", &["net.IP.isLinkLocalMulticast() -> bool"], |arguments| {
            check(&arguments, link_local_multicast)
        }),
        ours("isLinkLocalUnicast", &["net.IP.isLinkLocalUnicast() -> bool"], |arguments| check(&arguments, link_local_unicast)),
        ours("isGlobalUnicast", &["net.IP.isGlobalUnicast() -> bool"], |arguments| check(&arguments, global_unicast)),
        ours("cidr", &["cidr(string) -> net.CIDR"], cidr),
        ours("isCIDR", &["isCIDR(string) -> bool"], is_cidr),
        ours("containsIP", &["net.CIDR.containsIP(net.IP) -> bool", "net.CIDR.containsIP(string) -> bool"], contains_ip),
        ours(
            "containsCIDR",
            &["net.CIDR.containsCIDR(net.CIDR) -> bool", "net.CIDR.containsCIDR(string) -> bool"],
            contains_cidr,
        ),
        ours("prefixLength", &["net.CIDR.prefixLength() -> int"], prefix_length),
        ours("masked", &["net.CIDR.masked() -> net.CIDR"], masked),
    ]
}

impl Kind for IpAddr {
    fn runtime_type() -> &'static Type {
        &IP
    }
}

/// An address and how many of its first bits name the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    length: u8,
}

impl Kind for Network {
    fn runtime_type() -> &'static Type {
        &CIDR
    }
}

/// Neither zones nor IPv4 addresses in IPv6 form are addresses.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!("IP address {text:?} with zone value is not allowed"));
    }
    match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        Ok(address) => Ok(address),
        Err(_) => {
            Err(format!("IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"))
        }
    }
}

fn parse_network(text: &str) -> Result<Network, String> {
    let bad = |why: &str| format!("{CONVERSION}{CONVERSION}netip.ParsePrefix({text:?}): {why}");
    let (address, length) = text.split_once('/').ok_or_else(|| bad("no '/'"))?;
    let canonical =
        length == "0" || (!length.starts_with('0') && !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()));
    let length = length.parse().ok().filter(|_| canonical).ok_or_else(|| bad("bad bits after slash"))?;
    let address = parse_ip(address).map_err(|why| bad(&why))?;
    if length > bits(address) {
        return Err(bad("prefix length out of range"));
    }
    Ok(Network { address, length })
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl Network {
    /// The first bits of an address of the network's family, the others zero.
    fn start(self, of: IpAddr) -> IpAddr {
        match of {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
            }
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        bits(address) == bits(self.address) && self.start(address) == self.start(self.address)
    }
}

fn ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match parse_ip(text(&arguments, 0)?) {
        Ok(address) => give(Opaque(address)),
        Err(message) => fail(message),
    }
}

fn cidr<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match parse_network(text(&arguments, 0)?) {
        Ok(network) => give(Opaque(network)),
        Err(message) => fail(message),
    }
}

fn is_ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(parse_ip(text(&arguments, 0)?).is_ok())
}

fn is_cidr<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(parse_network(text(&arguments, 0)?).is_ok())
}

fn is_canonical<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let written = text(&arguments, 0)?;
    match parse_ip(written) {
        Ok(address) => give_bool(address.to_string() == written),
        Err(message) => fail(message),
    }
}

fn address(arguments: &Arguments<'_, '_>, index: usize) -> Result<IpAddr, cel::ExecutionError> {
    Ok(get::<Opaque<IpAddr>>(arguments, index)?.0)
}

fn network(arguments: &Arguments<'_, '_>, index: usize) -> Result<Network, cel::ExecutionError> {
    Ok(get::<Opaque<Network>>(arguments, index)?.0)
}

fn ip_text<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_text(address(&arguments, 0)?.to_string())
}

fn network_text<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let Network { address, length } = network(&arguments, 0)?;
    give_text(format!("{address}/{length}"))
}

fn network_ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(network(&arguments, 0)?.address))
}

fn family<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(if address(&arguments, 0)?.is_ipv4() { 4 } else { 6 })
}

fn check<'b, 'v>(arguments: &Arguments<'b, 'v>, holds: fn(&IpAddr) -> bool) -> Outcome<'b, 'v> {
    give_bool(holds(&address(arguments, 0)?))
}

fn link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Go's meaning: private addresses are global unicast too.
fn global_unicast(address: &IpAddr) -> bool {
    let broadcast = *address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast || address.is_unspecified() || address.is_loopback() || address.is_multicast() || link_local_unicast(address))
}

fn contains_ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let within = network(&arguments, 0)?;
    match address(&arguments, 1) {
        Ok(address) => give_bool(within.contains(address)),
        // kro's words for a text that is no address.
        Err(_) => match parse_ip(text(&arguments, 1)?) {
            Ok(address) => give_bool(within.contains(address)),
            Err(_) => Err(no_overload()),
        },
    }
}

fn contains_cidr<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let within = network(&arguments, 0)?;
    let other = match network(&arguments, 1) {
        Ok(other) => other,
        Err(_) => match parse_network(text(&arguments, 1)?) {
            Ok(other) => other,
            Err(message) => return fail(message),
        },
    };
    give_bool(other.length >= within.length && within.contains(other.start(other.address)))
}

fn prefix_length<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(i64::from(network(&arguments, 0)?.length))
}

fn masked<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let network = network(&arguments, 0)?;
    give(Opaque(Network { address: network.start(network.address), length: network.length }))
}
