//! Links against closed forms: frame efficiency, queueing, groups and paths.

use base::{Prng, Time};
use model::link::balance::{Balance, Flow, Group};
use model::link::framing::iscsi_stream_bytes;
use model::link::multipath::{Paths, Policy};
use model::link::{Ethernet, FibreChannel, Framing, Lane, Link, TcpCost};
use std::time::Duration;

const GIGABIT: u64 = 1_000_000_000;

fn near(is: f64, should: f64, share: f64) {
    assert!((is / should - 1.0).abs() <= share, "{is} is not {should}");
}

fn flow(host: u8, address: u8) -> Flow {
    Flow {
        port: u32::from(host),
        source_mac: [0, 0x50, 0x56, 0, 0, host],
        destination_mac: [0, 0x1b, 0x21, 0, 0, 9],
        source_ip: [10, 0, 0, host],
        destination_ip: [10, 0, 0, address],
    }
}

/// Bytes per second of payload while 4000 messages are sent one after the other.
fn saturated(link: &Link, payload_bytes: u64) -> f64 {
    let mut lane = Lane::default();
    for _ in 0..4000 {
        lane.send(link, Time(0), payload_bytes);
    }
    assert_eq!(
        lane.busy(),
        lane.free_at() - Time(0),
        "idle while it had work"
    );
    lane.payload_bytes() as f64 / lane.busy().as_secs_f64()
}

#[test]
fn full_segments_fill_ethernet_to_the_published_share() {
    for (ethernet, share) in [
        (Ethernet::STANDARD.without_options(), 1460.0 / 1538.0),
        (Ethernet::JUMBO.without_options(), 8960.0 / 9038.0),
        (Ethernet::STANDARD, 1448.0 / 1538.0),
        (Ethernet::JUMBO, 8948.0 / 9038.0),
    ] {
        let link = Link::ethernet(GIGABIT, ethernet);
        near(
            saturated(&link, ethernet.segment_bytes() * 100) * 8.0,
            1e9 * share,
            1e-6,
        );
        near(link.payload_bytes_per_second() * 8.0, 1e9 * share, 1e-9);
    }
    // The figures everybody quotes.
    near(1460.0 / 1538.0, 0.949, 0.001);
    near(8960.0 / 9038.0, 0.991, 0.001);
}

#[test]
fn fibre_channel_counts_its_frames_and_gaps_after_8b10b() {
    // 2148 bytes of frame and 24 of gap for 2112 of payload.
    near(saturated(&Link::FC_8, 2112), 850e6 * 2112.0 / 2172.0, 1e-6);
    near(saturated(&Link::FC_4, 2112), 425e6 * 2112.0 / 2172.0, 1e-6);
    // Both are above the round figure in the name, 100 MB/s for each Gb/s.
    assert!(saturated(&Link::FC_8, 2112) > 800e6 && saturated(&Link::FC_4, 2112) > 400e6);
}

#[test]
fn the_last_frame_is_as_short_as_it_may_be() {
    let ethernet = Framing::Ethernet(Ethernet::STANDARD.without_options());
    let one = ethernet.wire(1);
    assert_eq!((one.frames, one.bytes), (1, 84), "the least frame, padded");
    let more = ethernet.wire(1461);
    assert_eq!((more.frames, more.bytes), (2, 1538 + 84));
    assert_eq!(more.largest_frame_bytes, 1538);
    assert_eq!(ethernet.wire(0).frames, 1, "an empty message is a frame");
    let fc = Framing::FibreChannel(FibreChannel::FULL);
    assert_eq!(fc.wire(4096).bytes, (2112 + 60) + (1984 + 60));
    assert_eq!(fc.wire(5).bytes, 8 + 60, "whole words");
}

#[test]
fn iscsi_adds_a_header_to_each_pdu() {
    assert_eq!(iscsi_stream_bytes(4096, 8192), 4096 + 48);
    assert_eq!(iscsi_stream_bytes(65_536, 8192), 65_536 + 8 * 48);
    assert_eq!(iscsi_stream_bytes(0, 8192), 48, "a command");
    assert_eq!(iscsi_stream_bytes(5, 8192), 8 + 48, "padded");
}

#[test]
fn latency_is_cable_and_stored_frames() {
    let mut link = Link::ethernet(GIGABIT, Ethernet::STANDARD.without_options());
    (link.metres, link.switches) = (100, 2);
    link.forwarding = Duration::from_micros(3);
    let delivery = Lane::default().send(&link, Time(500), 10 * 1460);
    assert_eq!(
        (delivery.begun, delivery.sent),
        (Time(500), Time(500 + 123_040))
    );
    // 100 m of glass 490 ns; twice a frame of 12.304 us and 3 us.
    assert_eq!(
        delivery.arrived - delivery.sent,
        Duration::from_nanos(490 + 2 * 15_304)
    );
}

/// Mean wait, and busy time over elapsed time, of Poisson arrivals at so many a
/// second.
fn poisson(link: &Link, payload_bytes: u64, per_second: f64, seed: u64) -> (f64, f64) {
    let (mut lane, mut prng) = (Lane::default(), Prng::from_seed(seed));
    let (mut now, mut waited) = (0.0f64, 0.0f64);
    const MESSAGES: u32 = 1_500_000;
    for _ in 0..MESSAGES {
        let uniform = ((prng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        now += -uniform.ln() / per_second * 1e9;
        let handed_over = Time(now as u64);
        let delivery = lane.send(link, handed_over, payload_bytes);
        waited += (delivery.begun - handed_over).as_nanos() as f64;
    }
    (
        waited / f64::from(MESSAGES),
        lane.busy().as_nanos() as f64 / now,
    )
}

#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    let link = Link::ethernet(GIGABIT, Ethernet::STANDARD);
    let service = link.framing.wire(8192).bytes as f64 * 8.0;
    for utilisation in [0.3, 0.5, 0.7] {
        let closed_form = utilisation * service / (2.0 * (1.0 - utilisation));
        for seed in [1, 2, 3] {
            let (wait, busy) = poisson(&link, 8192, utilisation / service * 1e9, seed);
            near(wait, closed_form, 0.02);
            // The utilisation law: rate times service time.
            near(busy, utilisation, 0.005);
        }
    }
}

#[test]
fn the_two_directions_do_not_disturb_each_other() {
    let link = Link::ethernet(GIGABIT, Ethernet::STANDARD);
    let mut both = model::link::State::default();
    let out = both.out.send(&link, Time(0), 100_000);
    let back = both.back.send(&link, Time(0), 100_000);
    assert_eq!(out, back);
}

#[test]
#[should_panic(expected = "in order of time")]
fn a_message_from_the_past_is_refused() {
    let mut lane = Lane::default();
    lane.send(&Link::FC_8, Time(10), 1);
    lane.send(&Link::FC_8, Time(9), 1);
}

/// Bytes per second of two flows, each of 2000 messages, over four members.
fn over_four(balance: Balance, flows: &[Flow]) -> f64 {
    let link = Link::ethernet(GIGABIT, Ethernet::JUMBO);
    let mut group = Group::new(balance, 4);
    let mut end = Time(0);
    for _ in 0..500 {
        for flow in flows {
            end = end.max(group.send(&link, flow, Time(0), 65_536).sent);
        }
    }
    let bytes: u64 = group
        .members()
        .iter()
        .map(|member| member.out.payload_bytes())
        .sum();
    assert_eq!(bytes, 500 * 65_536 * flows.len() as u64, "nothing is lost");
    bytes as f64 / (end - Time(0)).as_secs_f64()
}

#[test]
fn a_flow_never_exceeds_a_member_and_addresses_spread_only_by_ip_hash() {
    let link = Link::ethernet(GIGABIT, Ethernet::JUMBO);
    let one = saturated(&link, 65_536);
    let every = [
        Balance::Port,
        Balance::SourceMac,
        Balance::MacPair,
        Balance::IpPair,
    ];
    for balance in every.into_iter().chain([Balance::MacAndIp]) {
        near(over_four(balance, &[flow(20, 100)]), one, 1e-6);
    }
    // One host, four addresses of one peer: only rules that see addresses use more.
    let four = [flow(20, 100), flow(20, 101), flow(20, 102), flow(20, 103)];
    for balance in [Balance::Port, Balance::SourceMac, Balance::MacPair] {
        near(over_four(balance, &four), one, 1e-6);
    }
    near(over_four(Balance::IpPair, &four), 4.0 * one, 1e-6);
    near(over_four(Balance::MacAndIp, &four), 4.0 * one, 1e-6);
    // Four hosts and one address: they spread by each rule.
    let hosts = [flow(20, 100), flow(21, 100), flow(22, 100), flow(23, 100)];
    for balance in every {
        near(over_four(balance, &hosts), 4.0 * one, 1e-6);
    }
}

#[test]
fn hashes_are_the_documented_ones_and_spread_evenly() {
    let one = flow(0x14, 0x65);
    // 14h XOR 65h = 71h = 113.
    assert_eq!(Balance::IpPair.member(&one, 4), 113 % 4);
    assert_eq!(Balance::IpPair.member(&one, 3), 113 % 3);
    // 14h XOR 09h XOR 0800h = 81Dh = 2077.
    assert_eq!(Balance::MacPair.member(&one, 3), 2077 % 3);
    assert_eq!(Balance::SourceMac.member(&one, 3), 20 % 3);
    assert_eq!(Balance::Port.member(&one, 3), 20 % 3);
    // 81Dh XOR 71h = 86Ch; no bits above 16; 86Ch XOR 8h = 864h = 2148.
    assert_eq!(Balance::MacAndIp.member(&one, 3), 2148 % 3);
    // 81Dh XOR 00010071h = 1086Ch; XOR 1h = 1086Dh; XOR 108h = 10965h = 67941.
    let far = Flow {
        destination_ip: [10, 1, 0, 0x65],
        ..one
    };
    assert_eq!(Balance::MacAndIp.member(&far, 7), 67_941 % 7);
    for balance in [Balance::IpPair, Balance::MacAndIp] {
        let mut on_member = [0; 4];
        for (host, address) in (0..64).flat_map(|host| (0..64).map(move |to| (host, to))) {
            on_member[balance.member(&flow(host, address), 4)] += 1;
        }
        assert_eq!(on_member, [1024; 4], "{balance:?}");
    }
}

#[test]
fn round_robin_changes_after_so_many_commands() {
    let mut paths = Paths::new(Policy::RoundRobin { ios_per_path: 3 }, 2);
    let chosen: Vec<usize> = (0..8).map(|_| paths.begin(|_| true).unwrap()).collect();
    assert_eq!(chosen, [0, 0, 0, 1, 1, 1, 0, 0]);
    assert_eq!(paths.outstanding(), [5, 3]);
}

#[test]
fn least_queue_takes_the_shortest_and_goes_round_among_equals() {
    let mut paths = Paths::new(Policy::LeastQueue, 3);
    assert_eq!(
        [
            paths.begin(|_| true).unwrap(),
            paths.begin(|_| true).unwrap(),
            paths.begin(|_| true).unwrap()
        ],
        [0, 1, 2]
    );
    paths.end(1);
    assert_eq!(paths.begin(|_| true).unwrap(), 1, "the one that is short");
    // A slow path 0 keeps its command; the others take turns.
    let turns: Vec<usize> = (0..4)
        .map(|_| {
            paths.end(1);
            paths.end(2);
            (
                paths.begin(|_| true).unwrap(),
                paths.begin(|_| true).unwrap(),
            )
                .0
        })
        .collect();
    assert_eq!(paths.outstanding(), [1, 1, 1]);
    assert!(turns.iter().all(|&path| path != 0));
    let mut idle = Paths::new(Policy::LeastQueue, 3);
    let one_at_a_time: Vec<usize> = (0..4)
        .map(|_| {
            let path = idle.begin(|_| true).unwrap();
            idle.end(path);
            path
        })
        .collect();
    assert_eq!(one_at_a_time, [0, 1, 2, 0]);
}

#[test]
#[should_panic(expected = "ends once")]
fn a_command_cannot_end_twice() {
    let mut paths = Paths::new(Policy::LeastQueue, 1);
    let path = paths.begin(|_| true).unwrap();
    paths.end(path);
    paths.end(path);
}

#[test]
fn two_paths_carry_one_volume_where_a_group_does_not() {
    let link = Link::ethernet(GIGABIT, Ethernet::JUMBO);
    let mut paths = Paths::new(Policy::RoundRobin { ios_per_path: 1 }, 2);
    let mut lanes = [Lane::default(), Lane::default()];
    let mut end = Time(0);
    for _ in 0..1000 {
        end = end.max(
            lanes[paths.begin(|_| true).unwrap()]
                .send(&link, Time(0), 65_536)
                .sent,
        );
    }
    near(
        65_536e3 / (end - Time(0)).as_secs_f64(),
        2.0 * saturated(&link, 65_536),
        1e-6,
    );
}

#[test]
fn tcp_costs_a_cycle_per_bit_at_mtu_1500_and_larger_frames_bound_what_is_saved() {
    let segments = |ethernet: Ethernet| {
        let payload = 1460 * 8960;
        Framing::Ethernet(ethernet.without_options())
            .wire(payload)
            .frames
    };
    let payload = 1460 * 8960;
    for cost in [TcpCost::SEGMENTS_ONLY, TcpCost::BYTES_ONLY] {
        assert_eq!(
            cost.cycles(segments(Ethernet::STANDARD), payload),
            8 * payload
        );
    }
    let jumbo = TcpCost::SEGMENTS_ONLY.time(segments(Ethernet::JUMBO), payload, 1_000_000_000);
    assert_eq!(jumbo.as_nanos(), u128::from(8 * payload * 1460 / 8960));
    let most = TcpCost::BYTES_ONLY.cycles(segments(Ethernet::JUMBO), payload);
    assert_eq!(most, 8 * payload);
}

#[test]
fn commands_go_by_paths_that_are_up_whatever_the_rule() {
    for policy in [Policy::LeastQueue, Policy::RoundRobin { ios_per_path: 2 }] {
        let mut paths = Paths::new(policy, 4);
        let up = |path: usize| path >= 2;
        let chosen: Vec<Option<usize>> = (0..8).map(|_| paths.begin(up)).collect();
        assert!(chosen.iter().all(|path| path.is_some_and(up)), "{chosen:?}");
        assert_eq!(paths.outstanding(), [0, 0, 4, 4], "{policy:?}");
        assert_eq!(paths.begin(|_| false), None);
        assert_eq!(paths.outstanding(), [0, 0, 4, 4], "none has begun");
        // One that comes back is used at once by who looks for the shortest queue.
        let back = paths.begin(|path| path == 1);
        assert_eq!(back, Some(1));
    }
}
