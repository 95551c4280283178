//! The time that a connection takes to cut a READ into Data-In PDUs of 512 bytes.
//!
//! `data_in_rate [ROUNDS]` prints one line of JSON: milliseconds of processor time, which other
//! programs do not lengthen much, for READs of 1, 8 and 16 MiB to the last byte of output, and the ratio of the last two, which is 2 where the work grows
//! with the data. (What is longer than a cache costs more than 16 times what 1 MiB does.)
//! `from_the_front` is what cutting alone takes when each segment is looked for from the first
//! part on, as connections did once. Each figure is the median of ROUNDS (5 unless said).
use base::{BLOCK_BYTES, BufPool, Payload};
use iscsi::connection::{Completion, Connection, Event};
use iscsi::login::{Admission, Limits, LoginPortal, Negotiated, Parameters};
use iscsi::pdu::Request;
use iscsi::pdu::request::{Order, ScsiCommand};
use std::error::Error;
use std::hint::black_box;

/// The smallest MaxRecvDataSegmentLength that an initiator may declare (RFC 7143 clause 13.12).
const SEGMENT_BYTES: usize = 512;

/// Runs of bytes that a connection hands to one system call, and bytes that a socket takes.
const RUNS_MAX: usize = 256;
const SENT_BYTES_MAX: usize = 256 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = match std::env::args().nth(1) {
        Some(rounds) => rounds.parse::<usize>()?.max(1),
        None => 5,
    };
    let buffers = BufPool::new();
    let data = [1, 8, 16].map(|mib| payload(&buffers, mib << 20));
    let told = |name: &str, [first, second, third]: [f64; 3]| {
        format!(
            "\"{name}_1_mib_ms\": {first:.2}, \"{name}_8_mib_ms\": {second:.2}, \
             \"{name}_16_mib_ms\": {third:.2}, \"ratio_16_to_8\": {:.1}",
            third / second
        )
    };
    let served = data.each_ref();
    let served = served.map(|data| median(rounds, data, |data| answer(&buffers, data)));
    let sought = data.each_ref().map(|data| median(rounds, data, seek));
    println!(
        "{{{}, \"from_the_front\": {{{}}}}}",
        told("read", served),
        told("cut", sought)
    );
    Ok(())
}

/// As a read of blocks that lie apart gives it.
fn payload(buffers: &BufPool, len: usize) -> Payload {
    let mut payload = Payload::new();
    for _ in 0..len / BLOCK_BYTES {
        payload.push(buffers.zeroed(BLOCK_BYTES).freeze());
    }
    payload
}

/// The median of what one of `rounds` takes. The clock has a grain of milliseconds: a short one
/// is repeated in each round until 16 MiB are through.
fn median(rounds: usize, data: &Payload, mut measured: impl FnMut(&Payload) -> f64) -> f64 {
    let repeated = (16 << 20) / data.len();
    let mut round = || (0..repeated).map(|_| measured(data)).sum::<f64>() / repeated as f64;
    let mut all: Vec<f64> = (0..rounds).map(|_| round()).collect();
    all.sort_by(f64::total_cmp);
    all[rounds / 2]
}

/// Processor time of this thread, in ms. (proc(5): its schedstat begins with nanoseconds.)
fn processor_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent_ns = stat
        .split(' ')
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    spent_ns.map_or(f64::NAN, |spent_ns| spent_ns / 1e6)
}

/// Has a connection answer a READ with `data`, to the last byte of its output.
fn answer(buffers: &BufPool, data: &Payload) -> f64 {
    let mut connection = Connection::new(negotiated(), buffers.clone(), Limits::default());
    let command = ScsiCommand {
        order: Order {
            immediate: false,
            cmd_sn: 1,
            exp_stat_sn: 0,
        },
        is_final: true,
        read: true,
        write: false,
        attribute: 1,
        lun: [0; 8],
        task_tag: 1,
        expected_bytes: data.len() as u32,
        cdb: [0; 16],
    };
    connection.receive(&Request::ScsiCommand(command).encode());
    let Some(Event::Command { task, .. }) = connection.next_event() else {
        panic!("a command was sent");
    };
    let completion = Completion {
        data: data.clone(),
        wanted_bytes: data.len() as u64,
        ..Completion::default()
    };
    let began = processor_ms();
    connection.complete(task, completion);
    let output = connection.output();
    while !output.is_empty() {
        let mut runs = Vec::with_capacity(RUNS_MAX);
        output.slices(&mut runs, RUNS_MAX);
        let sent: usize = runs.iter().map(|run| run.len()).sum();
        drop(black_box(runs));
        output.advance(sent.min(SENT_BYTES_MAX));
    }
    processor_ms() - began
}

/// Cuts `data`, looking for each segment from the first part on.
fn seek(data: &Payload) -> f64 {
    let began = processor_ms();
    for at in (0..data.len()).step_by(SEGMENT_BYTES) {
        black_box(data.slice(at, SEGMENT_BYTES));
    }
    processor_ms() - began
}

fn negotiated() -> Negotiated {
    Negotiated {
        admission: Admission {
            initiator: "iqn.2026-11.org.example:host".to_owned(),
            account: None,
            portal: LoginPortal {
                portal_group: 1,
                address: ([127, 0, 0, 1], 3260).into(),
            },
        },
        initiator_alias: None,
        target: Some("iqn.2026-11.dev.ashlar:disk".to_owned()),
        isid: [0; 6],
        tsih: 1,
        cid: 1,
        parameters: Parameters {
            peer_max_recv_data_segment_bytes: SEGMENT_BYTES as u32,
            ..Parameters::default()
        },
        cmd_sn: 1,
        stat_sn: 1,
    }
}
