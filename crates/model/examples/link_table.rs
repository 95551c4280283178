//! The tables of links in docs/internals/models.md: `cargo run -p ashlar-model --example
//! link_table`. Every figure is computed; nothing is random but the seeded arrivals.

use base::{Prng, Time};
use model::link::balance::{Balance, Flow, Group};
use model::link::framing::iscsi_stream_bytes;
use model::link::{Ethernet, Framing, Lane, Link, TcpCost};

const GIGABIT: u64 = 1_000_000_000;
const MEGA: f64 = 1e6;

fn links() -> [(&'static str, Link); 8] {
    let plain = |ethernet: Ethernet| ethernet.without_options();
    [
        (
            "1 GbE, MTU 1500, no TCP options",
            Link::ethernet(GIGABIT, plain(Ethernet::STANDARD)),
        ),
        (
            "1 GbE, MTU 9000, no TCP options",
            Link::ethernet(GIGABIT, plain(Ethernet::JUMBO)),
        ),
        (
            "1 GbE, MTU 1500",
            Link::ethernet(GIGABIT, Ethernet::STANDARD),
        ),
        ("1 GbE, MTU 9000", Link::ethernet(GIGABIT, Ethernet::JUMBO)),
        (
            "10 GbE, MTU 1500",
            Link::ethernet(10 * GIGABIT, Ethernet::STANDARD),
        ),
        (
            "10 GbE, MTU 9000",
            Link::ethernet(10 * GIGABIT, Ethernet::JUMBO),
        ),
        ("FC 4 Gb", Link::FC_4),
        ("FC 8 Gb", Link::FC_8),
    ]
}

/// Bytes on the link for so much data of a command: Ethernet carries iSCSI.
fn message_bytes(link: &Link, data_bytes: u64) -> u64 {
    match link.framing {
        Framing::Ethernet(_) => iscsi_stream_bytes(data_bytes, 65_536),
        Framing::FibreChannel(_) | Framing::Packets(_) => data_bytes,
    }
}

fn rates() {
    println!(
        "| link | full frames, share of the wire | payload, MB/s | acknowledgements, share of the other way | 4 KiB data, µs | 8 KiB data, µs | 64 KiB data, MB/s |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, link) in links() {
        let micros = |data| {
            let mut lane = Lane::default();
            let sent = lane.send(&link, Time(0), message_bytes(&link, data)).sent;
            sent.as_nanos() as f64 / 1e3
        };
        let acknowledgements = match link.framing {
            Framing::Ethernet(ethernet) => {
                format!("{:.1} %", ethernet.acknowledgement_share() * 100.0)
            }
            Framing::FibreChannel(_) | Framing::Packets(_) => "–".into(),
        };
        println!(
            "| {name} | {:.1} % | {:.1} | {acknowledgements} | {:.1} | {:.1} | {:.1} |",
            link.framing.efficiency() * 100.0,
            link.payload_bytes_per_second() / MEGA,
            micros(4096),
            micros(8192),
            65_536.0 / micros(65_536),
        );
    }
}

fn segments() {
    println!(
        "\n| data of a command | segments, MTU 1500 | segments, MTU 9000 | kilocycles, MTU 1500 | kilocycles, MTU 9000 |"
    );
    println!("|---|---|---|---|---|");
    for kib in [4, 8, 64] {
        let data = kib * 1024;
        let stream = iscsi_stream_bytes(data, 65_536);
        let segments = |ethernet| Framing::Ethernet(ethernet).wire(stream).frames;
        let cycles = |frames| {
            let ends = [TcpCost::SEGMENTS_ONLY, TcpCost::BYTES_ONLY]
                .map(|cost| cost.cycles(frames, stream) as f64 / 1e3);
            let (least, most) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            format!("{least:.0} to {most:.0}")
        };
        let (standard, jumbo) = (segments(Ethernet::STANDARD), segments(Ethernet::JUMBO));
        println!(
            "| {kib} KiB | {standard} | {jumbo} | {} | {} |",
            cycles(standard),
            cycles(jumbo)
        );
    }
}

fn waits() {
    println!("\n| utilisation | closed form, µs | modelled, µs | difference |");
    println!("|---|---|---|---|");
    let link = Link::ethernet(GIGABIT, Ethernet::STANDARD);
    let service = link.framing.wire(8192).bytes as f64 * 8.0;
    for utilisation in [0.3, 0.5, 0.7, 0.9] {
        let closed_form = utilisation * service / (2.0 * (1.0 - utilisation));
        let (mut lane, mut prng) = (Lane::default(), Prng::from_seed(1));
        let (mut now, mut waited) = (0.0f64, 0.0f64);
        let messages = 4_000_000;
        for _ in 0..messages {
            let uniform = ((prng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
            now -= uniform.ln() * service / utilisation;
            let handed_over = Time(now as u64);
            waited += (lane.send(&link, handed_over, 8192).begun - handed_over).as_nanos() as f64;
        }
        let modelled = waited / f64::from(messages);
        println!(
            "| {utilisation:.1} | {:.2} | {:.2} | {:+.1} % |",
            closed_form / 1e3,
            modelled / 1e3,
            (modelled / closed_form - 1.0) * 100.0
        );
    }
}

fn groups() {
    println!(
        "\n| rule | one host, one address | one host, four addresses | one host, eight addresses | four hosts, one address |"
    );
    println!("|---|---|---|---|---|");
    let rules = [
        ("port", Balance::Port),
        ("source MAC", Balance::SourceMac),
        ("MAC pair (layer2)", Balance::MacPair),
        ("IP pair (IP hash)", Balance::IpPair),
        ("MAC and IP (layer2+3)", Balance::MacAndIp),
    ];
    for (name, balance) in rules {
        let cells = [(1, 1), (1, 4), (1, 8), (4, 1)]
            .map(|(hosts, addresses)| format!("{:.0}", over_four(balance, hosts, addresses)));
        println!("| {name} | {} |", cells.join(" | "));
    }
}

/// MB/s of every pair of a host and an address over four 1 GbE members, MTU 9000.
fn over_four(balance: Balance, hosts: u8, addresses: u8) -> f64 {
    let link = Link::ethernet(GIGABIT, Ethernet::JUMBO);
    let mut group = Group::new(balance, 4);
    let (mut end, mut bytes) = (Time(0), 0);
    for pair in (0..200).flat_map(|_| (0..hosts).flat_map(|h| (0..addresses).map(move |a| (h, a))))
    {
        let flow = Flow {
            port: u32::from(pair.0),
            source_mac: [0, 0, 0, 0, 0, pair.0],
            destination_mac: [0; 6],
            source_ip: [10, 0, 0, 20 + pair.0],
            destination_ip: [10, 0, 0, 100 + pair.1],
        };
        end = end.max(group.send(&link, &flow, Time(0), 65_536).sent);
        bytes += 65_536;
    }
    f64::from(bytes) / (end - Time(0)).as_secs_f64() / MEGA
}

fn main() {
    rates();
    segments();
    waits();
    groups();
}
