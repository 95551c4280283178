//! Prints the tables of `docs/internals/models.md`, sections "Buses", "Controllers", "Hosts" and "Virtual
//! machines". Every figure is computed; nothing is random.

use base::{Prng, Time};
use model::bus::{Bus, Direction, State};
use model::controller::{self, Controller};
use model::host::{Adapter, INTERRUPT_CYCLES, Initiator, Io, Processor};
use model::link::{Ethernet, TcpCost};
use model::vm::{Residents, Vm};
use std::fmt::Write;
use std::time::Duration;

const KIB: u64 = 1 << 10;

#[allow(dead_code, reason = "a test takes the tables without the program")]
fn main() {
    print!("{}", tables());
}

/// All tables, in Markdown.
pub fn tables() -> String {
    [
        buses(),
        costs(),
        controllers_against_given(),
        safe_writes(),
        cycles(),
        interrupts(),
        points(),
        adapters(),
        residents(),
    ]
    .join("\n")
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn buses() -> String {
    let mut text = String::from(
        "| bus | lanes | time of a lane for a command, µs | 4 KiB commands/s in one direction | 64 KiB reads, MB/s | reads and writes of 64 KiB, MB/s |\n|---|---|---|---|---|---|\n",
    );
    for bus in Bus::ALL {
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.0} | {:.0} | {:.0} |",
            bus.name,
            bus.lanes,
            micros(bus.per_command),
            bus.commands_per_second(4 * KIB),
            saturated_mb(&bus, &[Direction::FromDrives]),
            saturated_mb(&bus, &[Direction::FromDrives, Direction::ToDrives]),
        );
    }
    text
}

/// MB/s of commands of 64 KiB that all come at once, in these directions in turn.
pub fn saturated_mb(bus: &Bus, directions: &[Direction]) -> f64 {
    let (mut state, mut end, mut bytes) = (State::new(bus), Time(0), 0);
    for command in 0..4_000 {
        let direction = directions[command % directions.len()];
        end = end.max(state.transfer(bus, Time(0), direction, 64 * KIB).sent);
        bytes += 64 * KIB;
    }
    bytes as f64 / (end - Time(0)).as_secs_f64() / 1e6
}

fn costs() -> String {
    let mut text = String::from(
        "| controller | cores | command, µs | KiB of data, µs | drive command, µs | KiB of parity, µs | write, µs | KiB in the log, µs | 4 KiB from cache, thousand/s |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for controller in controller::ALL {
        let costs = &controller.costs;
        let us = |ps: u64| ps as f64 / 1e6;
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.3} | {:.2} | {:.3} | {:.2} | {:.3} | {:.0} |",
            controller.name,
            controller.cores,
            us(costs.per_command_ps),
            us(costs.per_kib_ps),
            us(costs.per_drive_command_ps),
            us(costs.per_parity_kib_ps),
            us(costs.per_write_ps),
            us(costs.per_log_kib_ps),
            f64::from(controller.cores) / costs.command(4 * KIB).as_secs_f64() / 1e3,
        );
    }
    text
}

/// Share of the cores that 8 KiB I/Os at 9 reads to 1 write on RAID 5 take, 0 to 1. A read is
/// one drive command, a write four, with one parity block.
pub fn utilisation(controller: &Controller, per_second: f64) -> f64 {
    let costs = &controller.costs;
    let read = costs.command(8 * KIB) + costs.drive_commands(1);
    let write = costs.command(8 * KIB)
        + costs.drive_commands(4)
        + costs.parity(8 * KIB)
        + costs.log(8 * KIB, 2);
    let mean_s = 0.9 * read.as_secs_f64() + 0.1 * write.as_secs_f64();
    mean_s * per_second / f64::from(controller.cores)
}

fn controllers_against_given() -> String {
    let mut text = String::from(
        "| controller | load | published utilisation | model | in points |\n|---|---|---|---|---|\n",
    );
    let Some(vnx) = controller::named("vnx5700") else {
        return text;
    };
    for (per_second, says) in [(6_500.0, 18.0), (7_800.0, 20.0)] {
        let is = utilisation(&vnx, per_second) * 100.0;
        let _ = writeln!(
            text,
            "| {} | {per_second:.0} I/Os a second of 8 KiB, 9 : 1, RAID 5 | {says:.0} % | {is:.1} % | {:+.1} |",
            vnx.name,
            is - says
        );
    }
    text
}

fn safe_writes() -> String {
    let mut text = String::from(
        "| controller | 4 KiB, µs | mirrored | 8 KiB | mirrored | 64 KiB | mirrored | mirrored, MB/s |\n|---|---|---|---|---|---|---|---|\n",
    );
    for controller in controller::ALL {
        let Some(cache) = controller.write_cache else {
            continue;
        };
        let safe = |kib: u64, mirrored| {
            let mut state = controller::State::new(&controller);
            let partner = Some(&controller.interconnect).filter(|_| mirrored);
            micros(state.keep(&cache, partner, Time(0), kib * KIB) - Time(0))
        };
        let mut line = format!("| {}", controller.name);
        for kib in [4, 8, 64] {
            let _ = write!(line, " | {:.1} | {:.1}", safe(kib, false), safe(kib, true));
        }
        let way = controller.interconnect.link.payload_bytes_per_second();
        let most = way.min(cache.bytes_per_second as f64);
        let _ = writeln!(text, "{line} | {:.0} |", most / 1e6);
    }
    text
}

fn cycles() -> String {
    let mut text = String::from(
        "| initiator | data | read, MTU 1500, kilocycles | read, MTU 9000 | write, MTU 1500 | write, MTU 9000 |\n|---|---|---|---|---|---|\n",
    );
    for initiator in Initiator::ALL {
        for kib in [4, 8, 64] {
            let mut line = format!("| {} | {kib} KiB", initiator.name);
            for io in [Io::Read, Io::Write] {
                for network in [Ethernet::STANDARD, Ethernet::JUMBO] {
                    let kilo = initiator.cycles(io, kib * KIB, network) as f64 / 1e3;
                    let _ = write!(line, " | {kilo:.0}");
                }
            }
            let _ = writeln!(text, "{line} |");
        }
    }
    text
}

/// A quad-core E5420.
pub const E5420: Processor = Processor {
    cores: 4,
    hertz: 2_500_000_000,
};

/// What software iSCSI takes more of a processor than Fibre Channel, points, at so many I/Os
/// of 4 KiB a second, three of four of them reads.
pub fn more_points(tcp: TcpCost, per_second: f64) -> f64 {
    let iscsi = Initiator {
        tcp,
        ..Initiator::ISCSI_SOFTWARE
    };
    let cycles = |initiator: &Initiator, io| initiator.cycles(io, 4 * KIB, Ethernet::STANDARD);
    let mean = |initiator| (3 * cycles(initiator, Io::Read) + cycles(initiator, Io::Write)) / 4;
    let more = mean(&iscsi) - mean(&Initiator::FIBRE_CHANNEL);
    E5420.share(more, per_second) * 100.0
}

fn points() -> String {
    let mut text = String::from(
        "| I/Os a second of the host | all of TCP in bytes | half and half | all of TCP in segments |\n|---|---|---|---|\n",
    );
    for per_second in [2_500.0, 5_000.0, 7_500.0, 10_000.0] {
        let mut line = format!("| {per_second:.0}");
        for tcp in [TcpCost::BYTES_ONLY, TcpCost::HALVES, TcpCost::SEGMENTS_ONLY] {
            let _ = write!(line, " | {:.1}", more_points(tcp, per_second));
        }
        let _ = writeln!(text, "{line} |");
    }
    text
}

/// Interrupts for each read of 4 KiB by software iSCSI, at so many a second by 10 Gb/s at random
/// times.
pub fn interrupts_per_read(network: Ethernet, per_second: f64) -> f64 {
    const READS: u64 = 20_000;
    let initiator = Initiator::ISCSI_SOFTWARE;
    let Some(answer) = initiator.answer(Io::Read, 4 * KIB, network) else {
        unreachable!("the processor takes the answers")
    };
    let behind_ns = (answer.bytes - answer.largest_frame_bytes) * 8 / 10;
    let mut gaps = Prng::from_seed(1).stream("reads");
    let (mut now, mut last, mut interrupts) = (Time(1_000_000), None, 0);
    for _ in 0..READS {
        let gap_s = -(1.0 - gaps.unit()).ln() / per_second;
        // Frames of two answers do not mix.
        now = Time(now.as_nanos() + behind_ns.max((gap_s * 1e9) as u64));
        let first = Time(now.as_nanos() - behind_ns);
        let coalescing = initiator.coalescing;
        let told = coalescing.told_of_frames(last, (first, now), answer.frames);
        (last, interrupts) = (Some(told.at), interrupts + told.interrupts);
    }
    interrupts as f64 / READS as f64
}

/// What MTU 9000 saves at so many of these reads a second: cycles of each, and points of the
/// processor.
pub fn saved_by_jumbo(per_second: f64) -> (f64, f64) {
    let initiator = Initiator::ISCSI_SOFTWARE;
    let cycles = |network| {
        let answer = initiator.answer(Io::Read, 4 * KIB, network);
        let more = interrupts_per_read(network, per_second) - initiator.interrupts_held(answer);
        initiator.cycles(Io::Read, 4 * KIB, network) as f64 + more * INTERRUPT_CYCLES
    };
    let saved = cycles(Ethernet::STANDARD) - cycles(Ethernet::JUMBO);
    let all = f64::from(E5420.cores) * E5420.hertz as f64;
    (saved, saved * per_second / all * 100.0)
}

fn interrupts() -> String {
    let mut text = String::from(
        "| reads a second | interrupts, MTU 1500 | MTU 9000 | saved of a read, kilocycles | saved of a quad-core of 2.5 GHz, points |\n|---|---|---|---|---|\n",
    );
    for per_second in [1_000.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0] {
        let of = |network| interrupts_per_read(network, per_second);
        let (saved, points) = saved_by_jumbo(per_second);
        let _ = writeln!(
            text,
            "| {per_second:.0} | {:.2} | {:.2} | {:.1} | {points:.1} |",
            of(Ethernet::STANDARD),
            of(Ethernet::JUMBO),
            saved / 1e3
        );
    }
    text
}

/// What an I/O of 4 KiB costs less with PVSCSI than with LSI Logic, 0 to 1.
pub fn saved_by_pvscsi(initiator: &Initiator) -> f64 {
    let path = initiator.cycles(Io::Read, 4 * KIB, Ethernet::STANDARD);
    let with = |adapter: Adapter| (path + adapter.cycles_per_io) as f64;
    1.0 - with(Adapter::PVSCSI) / with(Adapter::LSI_SAS)
}

fn adapters() -> String {
    let mut text = String::from(
        "| adapter | kilocycles | under way, adapter | under way, disk |\n|---|---|---|---|\n",
    );
    for adapter in Adapter::ALL {
        if adapter == Adapter::NONE {
            continue;
        }
        let _ = writeln!(
            text,
            "| {} | {:.0} | {} | {} |",
            adapter.name,
            adapter.cycles_per_io as f64 / 1e3,
            adapter.queue,
            adapter.disk_queue
        );
    }
    text += "\n| PVSCSI in the place of LSI Logic, 4 KiB | published, fewer cycles | model |\n|---|---|---|\n";
    for (initiator, says) in [
        (Initiator::FIBRE_CHANNEL, "10 to 30 %"),
        (Initiator::ISCSI_SOFTWARE, "up to 25 %"),
    ] {
        let is = saved_by_pvscsi(&initiator) * 100.0;
        let _ = writeln!(text, "| {} | {says} | {is:.0} % |", initiator.name);
    }
    text
}

fn residents() -> String {
    let mut text = String::from(
        "| VMs of 4 vCPUs, 30 % busy, on 16 cores | cores' time taken | 10 µs of work take, µs |\n|---|---|---|\n",
    );
    for count in [0, 4, 8, 12] {
        let vms = vec![Vm::measured(4, 8 << 30); count];
        let Ok(residents) = Residents::new(&vms, 16, 192 << 30) else {
            continue;
        };
        let _ = writeln!(
            text,
            "| {count} | {:.0} % | {:.1} |",
            residents.utilisation() * 100.0,
            micros(residents.slowed(Duration::from_micros(10)))
        );
    }
    text
}
