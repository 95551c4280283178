//! The rate at which this machine reckons sums and parity.
//!
//! `arithmetic_rate SECONDS` prints one line of JSON: nanoseconds for the CRC-32C of a
//! block of 4 KiB that is in the cache and of one that is not, and bytes a second of
//! data that go through the parity of four columns, beside those that memcpy and an
//! addition of all words move. Each is repeated for SECONDS. `scripts/bench` puts the
//! first beside what a read costs.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that measures with the real clock"
)]

use base::{BLOCK_BYTES, Prng, crc32c};
use engine::raid::parity;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// More than the caches of a processor hold.
const LARGE_BYTES: usize = 256 << 20;
/// A stripe unit.
const UNIT_BYTES: usize = 64 << 10;
const COLUMNS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .ok_or("usage: arithmetic_rate SECONDS")?;
    let duration = Duration::from_secs_f64(seconds.parse()?);
    let mut large = vec![0; LARGE_BYTES];
    Prng::from_seed(1).fill(&mut large);
    let mut copy = vec![0u8; LARGE_BYTES];
    let per_block = |bytes_per_s: f64| BLOCK_BYTES as f64 / bytes_per_s * 1e9;
    let crc_hot = rate(duration, BLOCK_BYTES, || {
        black_box(crc32c(black_box(&large[..BLOCK_BYTES])));
    });
    let crc_cold = rate(duration, LARGE_BYTES, || {
        for block in large.chunks(BLOCK_BYTES) {
            black_box(crc32c(block));
        }
    });
    let copied = rate(duration, LARGE_BYTES, || {
        copy.copy_from_slice(black_box(&large));
        black_box(&mut copy);
    });
    let summed = rate(duration, LARGE_BYTES, || {
        black_box(words(black_box(&large)));
    });
    let p_hot = parity_rate(duration, &large[..COLUMNS * UNIT_BYTES], false);
    let pq_hot = parity_rate(duration, &large[..COLUMNS * UNIT_BYTES], true);
    let p_cold = parity_rate(duration, &large, false);
    let pq_cold = parity_rate(duration, &large, true);
    println!(
        "{{\"crc_cached_ns\": {:.0}, \"crc_ns\": {:.0}, \"memcpy_bytes_per_s\": {copied:.0}, \
         \"read_bytes_per_s\": {summed:.0}, \"p_cached_bytes_per_s\": {p_hot:.0}, \
         \"pq_cached_bytes_per_s\": {pq_hot:.0}, \"p_bytes_per_s\": {p_cold:.0}, \
         \"pq_bytes_per_s\": {pq_cold:.0}}}",
        per_block(crc_hot),
        per_block(crc_cold)
    );
    Ok(())
}

/// Bytes a second of `step`, which goes over `bytes`.
fn rate(duration: Duration, bytes: usize, mut step: impl FnMut()) -> f64 {
    step();
    let (began, mut done) = (Instant::now(), 0);
    while began.elapsed() < duration {
        // Not so often that the clock counts.
        for _ in 0..(UNIT_BYTES / bytes).max(1) {
            step();
            done += bytes;
        }
    }
    done as f64 / began.elapsed().as_secs_f64()
}

/// The sum of all words: what reading memory alone costs.
fn words(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words
        .iter()
        .fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// Bytes a second of data whose parity is reckoned, a stripe of units at a time.
fn parity_rate(duration: Duration, data: &[u8], with_q: bool) -> f64 {
    let (mut p, mut q) = (vec![0; UNIT_BYTES], vec![0; UNIT_BYTES]);
    rate(duration, data.len(), || {
        for stripe in data.chunks(COLUMNS * UNIT_BYTES) {
            let columns: Vec<Option<&[u8]>> = stripe.chunks(UNIT_BYTES).map(Some).collect();
            match with_q {
                true => parity::pq_of(&mut p, &mut q, black_box(&columns)),
                false => parity::p_of(&mut p, black_box(&columns)),
            }
            black_box((&mut p, &mut q));
        }
    })
}
