//! 64 sessions with verified I/O, resets and logouts, digests on and off, for so many seconds
//! (600, unless said otherwise): `cargo run --release -p ashlar-e2e --example soak -- 600`.
//! Prints every ten seconds how much was done, and how much memory the server has in use.

// This runs in the real world; and a panic with its reason is how it fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used
)]

use e2e::array::Array;
use e2e::soak;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const SESSIONS: usize = 64;

fn main() {
    let seconds = std::env::args().nth(1);
    let seconds: u64 = seconds.map_or(600, |text| text.parse().unwrap());
    let array = Array::start_with(&soak::site(SESSIONS));
    let process = array.process();
    let (begun, said) = (Instant::now(), Mutex::new(Instant::now()));
    let goes_on = || {
        let mut said = said.lock().unwrap();
        if said.elapsed() > Duration::from_secs(10) {
            *said = Instant::now();
            let (at, mib) = (begun.elapsed().as_secs(), soak::memory_bytes(process) >> 20);
            println!("{at} s: {mib} MiB in use");
        }
        begun.elapsed().as_secs() < seconds
    };
    let done = soak::run(array.portal(), SESSIONS, 1, goes_on);
    println!(
        "{} commands, {} logins, {} resets in {} s; no byte was wrong",
        done.commands.load(Relaxed),
        done.logins.load(Relaxed),
        done.resets.load(Relaxed),
        begun.elapsed().as_secs()
    );
}
