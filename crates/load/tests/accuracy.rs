//! The reported means are right: against nbdkit with a known delay.
//!
//! Alone in its file, so that no other test of this crate runs meanwhile.
//!
//! The delay is not all that an operation takes: the machine has to carry it
//! there and back and to wake two programs, and a busy one takes its time. So a
//! probe that shares no code with the generator, a blocking client with one read
//! at a time, asks the same server at the same time, and what it sees is the
//! truth. The probe never begins late and the generator may: it says by how much, and
//! response times count from when an operation was due, so that much is taken off.

#![allow(clippy::unwrap_used)] // helpers of tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers, real time

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::{nbdkit, need, paced, plan, run_whole};
use workload::report::{self, VmReport};

const READ_BYTES: u32 = 8192;

/// What happens to one of the two by bad luck is no finding; so a few attempts.
const ATTEMPTS: usize = 4;

/// A blocking NBD client: newstyle, `NBD_OPT_EXPORT_NAME`, simple replies.
struct Probe(TcpStream);

impl Probe {
    fn connect(address: &str) -> Probe {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend(0u32.to_be_bytes());
        stream.write_all(&hello).unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Probe(stream)
    }

    /// One read, and how long it took in milliseconds.
    fn read_ms(&mut self) -> f64 {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend([0; 4 + 8 + 8]);
        request.extend(READ_BYTES.to_be_bytes());
        let start = Instant::now();
        self.0.write_all(&request).unwrap();
        let mut reply = vec![0; 16 + READ_BYTES as usize];
        self.0.read_exact(&mut reply).unwrap();
        start.elapsed().as_secs_f64() * 1e3
    }
}

/// What the generator reports and what the probe sees.
fn measured(delay_ms: u64) -> (VmReport, f64) {
    let (read, write) = (
        format!("rdelay={delay_ms}ms"),
        format!("wdelay={delay_ms}ms"),
    );
    let server = nbdkit(&["--filter=delay", "memory", "64M", &read, &write]);
    let address = server
        .url
        .trim_start_matches("nbd://")
        .trim_end_matches('/');
    let plan = plan(
        paced("rand-8k-67", 40.0, 64),
        &[&server.url],
        Duration::from_secs(3),
    );
    let mut probe = Probe::connect(address);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| run_whole(&plan).unwrap());
        let mut seen = Vec::new();
        while !load.is_finished() {
            seen.push(probe.read_ms());
        }
        let outcome = load.join().unwrap();
        let mean_ms = seen.iter().sum::<f64>() / seen.len() as f64;
        (report::report(&plan, &outcome).vms.remove(0), mean_ms)
    })
}

#[test]
fn known_delays_are_reported_within_5_per_cent() {
    need("nbdkit");
    for delay_ms in [5, 20] {
        let mut told = Vec::new();
        let close = (0..ATTEMPTS).any(|_| {
            let (vm, truth_ms) = measured(delay_ms);
            let means = [vm.read.response.mean_ms, vm.write.response.mean_ms];
            assert!(vm.failed == 0 && vm.valid, "{:?}", vm.failures);
            assert!(vm.read.response.count > 40 && vm.write.response.count > 15);
            assert!(
                means.iter().all(|&mean| mean >= delay_ms as f64),
                "{means:?} ms is faster than the server can be"
            );
            told.push((truth_ms, means, vm.lateness.mean_ms));
            let late_ms = vm.lateness.mean_ms;
            means
                .iter()
                .all(|mean| ((mean - late_ms) / truth_ms - 1.0).abs() < 0.05)
        });
        assert!(
            close,
            "{delay_ms} ms: (truth, reported means, lateness): {told:?}"
        );
    }
}
