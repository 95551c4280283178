//! The rate at which memory is copied while migrations share links and cores.
//!
//! With `p` the payload rate of a link, `n` the connections on it, `s` the core-seconds of
//! TCP for a byte, `F` the cores that are free, and `k` migrations that copy:
//!
//! ```text
//! of a connection        w = min(p / n, 1 / s)                    bytes/s on the link
//! of all                 Σ w s ≤ F, else all are slowed down alike
//! compressed in a second C = (F - Σ w s) / (k (c + e))            bytes of memory
//! copied                 r = min(ratio × w, w + C (1 - 1/ratio))  bytes of memory/s
//! ```
//!
//! The last line: of each second `C` bytes of memory are compressed and take `C / ratio` of
//! the link; what the link has left carries memory as it is. So with no core free it is TCP
//! alone, as Hyper-V 2012 R2 falls back to. Cores that compress (`c` for a byte) are those of
//! the source, cores that expand (`e`) those of the destination: `C` is the least of the two.

use super::method::{Method, Transport};
use super::{Path, Spread};
use crate::link::Framing;

/// Of iWARP in each segment: header of a tagged DDP segment with RDMAP's control byte 14 (RFC
/// 5041 section 4.2), length 2 and CRC 4 of MPA (RFC 5044 section 4), no markers.
const IWARP_BYTES: u64 = 14 + 2 + 4;
/// MPA pads to whole words (RFC 5044 section 4.1).
const MPA_WORD_BYTES: u64 = 4;

/// A migration that copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    /// The link of its one connection, where it has only one.
    pub(super) link: usize,
}

/// What a migration gets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    /// Memory, bytes per second.
    pub(super) memory: f64,
    /// Payload on all its links, bytes per second.
    pub(super) wire: f64,
}

/// What all of them take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    /// In the order of the migrations.
    pub(super) rates: Vec<Rate>,
    /// Payload on each link, bytes per second.
    pub(super) links: Vec<f64>,
    /// Cores of the source.
    pub(super) source_cores: f64,
    /// Cores of the destination.
    pub(super) destination_cores: f64,
}

/// Payload that a link carries with this transport, bytes per second.
pub(super) fn payload_rate(path: &Path, transport: Transport) -> f64 {
    let tcp = path.link.payload_bytes_per_second();
    match (transport, path.link.framing) {
        (Transport::Iwarp, Framing::Ethernet(ethernet)) => {
            let segment = ethernet.segment_bytes();
            let unit = segment - segment % MPA_WORD_BYTES;
            tcp * unit.saturating_sub(IWARP_BYTES) as f64 / segment as f64
        }
        _ => tcp,
    }
}

/// Shares links and cores among those that copy.
pub(super) fn share(method: &Method, path: &Path, copying: &[Copying]) -> Shares {
    let per_byte = match method.transport {
        Transport::Tcp {
            core_seconds_per_byte,
        } => core_seconds_per_byte,
        Transport::Iwarp => 0.0,
    };
    let payload = payload_rate(path, method.transport);
    let most = connections(method, path, copying, payload, 1.0 / per_byte);
    // From 0: the sum of no floating-point numbers is -0.
    let wire = most.iter().fold(0.0, |sum, each| sum + each.2);
    let wanted = wire * per_byte;
    let slowed = if wanted > path.free_cores {
        path.free_cores / wanted
    } else {
        1.0
    };
    let mut shares = Shares {
        rates: vec![Rate::default(); copying.len()],
        links: vec![0.0; path.links],
        source_cores: wanted * slowed,
        destination_cores: wanted * slowed,
    };
    for (number, link, rate) in most {
        shares.links[link] += rate * slowed;
        shares.rates[number].wire += rate * slowed;
        shares.rates[number].memory += rate * slowed;
    }
    compress(method, path, &mut shares);
    shares
}

/// What each migration gets of each link that it uses, as far as links and single cores let
/// it: its place, the link, payload in bytes per second.
fn connections(
    method: &Method,
    path: &Path,
    copying: &[Copying],
    payload: f64,
    core: f64,
) -> Vec<(usize, usize, f64)> {
    let uses = |copy: &Copying, link: usize| match method.spread {
        Spread::EveryLink => true,
        Spread::OneLink => copy.link == link,
    };
    let of_one = f64::from(method.connections_per_link);
    let mut rates = Vec::new();
    for link in 0..path.links {
        let here = copying.iter().filter(|copy| uses(copy, link)).count();
        let each = (payload / (here as f64 * of_one)).min(core);
        for (number, copy) in copying.iter().enumerate() {
            if uses(copy, link) {
                rates.push((number, link, each * of_one));
            }
        }
    }
    rates
}

/// Compresses as far as cores are free.
fn compress(method: &Method, path: &Path, shares: &mut Shares) {
    let Some(by) = method.compression else { return };
    let each = |cores: f64| (path.free_cores - cores).max(0.0) / shares.rates.len() as f64;
    let most = (each(shares.source_cores) / by.compress_seconds_per_byte)
        .min(each(shares.destination_cores) / by.expand_seconds_per_byte);
    for rate in &mut shares.rates {
        // All that the link could carry compressed, or all that the cores could compress.
        let compressed = most.min(by.ratio * rate.wire);
        rate.memory = rate.wire + compressed * (1.0 - 1.0 / by.ratio);
        shares.source_cores += compressed * by.compress_seconds_per_byte;
        shares.destination_cores += compressed * by.expand_seconds_per_byte;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Compression;
    use super::*;
    use crate::link::{Ethernet, Link};

    fn path(gigabits: u64, links: usize, free_cores: f64) -> Path {
        Path {
            links,
            link: Link::ethernet(gigabits * 1_000_000_000, Ethernet::STANDARD),
            free_cores,
            at_once: 10,
        }
    }

    fn near(is: f64, should: f64) {
        assert!((is / should - 1.0).abs() < 1e-9, "{is} is not {should}");
    }

    const FIRST: Copying = Copying { link: 0 };

    #[test]
    fn a_connection_has_one_link_and_one_core() {
        let gigabit = path(1, 2, 8.0);
        let shares = share(&Method::HYPER_V_TCP, &gigabit, &[FIRST]);
        near(
            shares.rates[0].wire,
            gigabit.link.payload_bytes_per_second(),
        );
        assert_eq!(shares.links[1], 0.0, "one migration never uses two links");
        let ten = share(&Method::HYPER_V_TCP, &path(10, 1, 8.0), &[FIRST]);
        near(ten.rates[0].wire, 500e6);
        near(ten.source_cores, 1.0);
        near(ten.destination_cores, 1.0);
    }

    #[test]
    fn connections_on_a_link_share_it_alike() {
        let gigabit = path(1, 2, 8.0);
        let second = Copying { link: 1 };
        let shares = share(&Method::HYPER_V_TCP, &gigabit, &[FIRST, second, FIRST]);
        let payload = gigabit.link.payload_bytes_per_second();
        near(shares.rates[0].wire, payload / 2.0);
        near(shares.rates[1].wire, payload);
        near(shares.links[0], payload);
        near(shares.links[1], payload);
    }

    #[test]
    fn connections_on_every_link_add_up() {
        let gigabit = path(1, 4, 8.0);
        let payload = gigabit.link.payload_bytes_per_second();
        let one = share(&Method::VSPHERE_5, &gigabit, &[FIRST]);
        near(one.rates[0].wire, 4.0 * payload);
        let two = share(&Method::VSPHERE_5, &gigabit, &[FIRST, FIRST]);
        near(two.rates[0].wire, 2.0 * payload);
        near(two.links.iter().sum(), 4.0 * payload);
    }

    #[test]
    fn too_few_cores_slow_all_down_alike() {
        let shares = share(&Method::HYPER_V_TCP, &path(10, 2, 0.5), &[FIRST, FIRST]);
        near(shares.source_cores, 0.5);
        near(shares.rates[0].wire, 125e6);
        near(shares.rates[1].wire, 125e6);
    }

    #[test]
    fn free_cores_compress_and_without_them_it_is_tcp() {
        let rate = |cores: f64| share(&Method::HYPER_V_COMPRESSED, &path(1, 1, cores), &[FIRST]);
        let payload = path(1, 1, 1.0).link.payload_bytes_per_second();
        let plenty = rate(8.0);
        near(plenty.rates[0].memory, Compression::FAST.ratio * payload);
        let tcp = payload * 2e-9;
        let compressing = Compression::FAST.ratio * payload / 422e6;
        near(plenty.source_cores, tcp + compressing);
        near(rate(tcp).rates[0].memory, payload);
        let some = rate(tcp + 0.1);
        let saved = 42.2e6 * (1.0 - 1.0 / Compression::FAST.ratio);
        near(some.rates[0].memory, payload + saved);
        near(some.source_cores, tcp + 0.1);
        near(some.rates[0].wire, payload);
    }

    #[test]
    fn rdma_takes_no_core_and_frames_of_its_own() {
        let shares = share(&Method::HYPER_V_SMB_DIRECT, &path(10, 2, 0.0), &[FIRST]);
        assert_eq!(shares.source_cores, 0.0);
        // 1428 bytes of memory in the 1538 that a full frame takes on the wire.
        near(shares.rates[0].wire, 2.0 * 1.25e9 * 1428.0 / 1538.0);
    }
}
