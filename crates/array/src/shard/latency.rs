//! The buckets of latency histograms: eight to the octave, from 1 µs to 64 s.
//!
//! Each is a range of nanoseconds whose ends are at most an eighth apart, so what is read
//! from them is never more than an eighth too long. Shorter latencies are in the first one,
//! longer ones in the last. A fixed number of plain counters: `hdrhistogram`, which the load
//! generator uses, takes a hundred times the space, and one owner at a time.

/// Buckets to the octave, as a power of two.
const FINE_BITS: u32 = 3;

/// The first octave begins at two to this power, in nanoseconds.
const LOWEST_BIT: u32 = 10;

/// Number of octaves.
const OCTAVES: u32 = 26;

/// How many buckets there are: those of the octaves, and one for what is longer.
pub const BUCKETS: usize = ((OCTAVES << FINE_BITS) + 1) as usize;

/// The bucket of a latency.
pub fn bucket(latency_ns: u64) -> usize {
    if latency_ns < 1 << LOWEST_BIT {
        return 0;
    }
    let octave = latency_ns.ilog2();
    let fine = (latency_ns >> (octave - FINE_BITS)) & ((1 << FINE_BITS) - 1);
    let index = (u64::from(octave - LOWEST_BIT) << FINE_BITS) + fine;
    (index as usize).min(BUCKETS - 1)
}

/// What all latencies in `bucket` are below.
pub fn below_ns(bucket: usize) -> u64 {
    if bucket >= BUCKETS - 1 {
        return u64::MAX;
    }
    let bucket = bucket as u64;
    let fine = bucket & ((1 << FINE_BITS) - 1);
    ((1 << FINE_BITS) + fine + 1) << ((bucket >> FINE_BITS) + u64::from(LOWEST_BIT - FINE_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_it_ends() {
        for index in 0..BUCKETS - 1 {
            let end = below_ns(index);
            assert_eq!(bucket(end - 1), index);
            assert_eq!(bucket(end), index + 1);
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
        assert_eq!(below_ns(0), 1152, "1.125 x 1024");
        assert_eq!(below_ns(BUCKETS - 2), 1 << (LOWEST_BIT + OCTAVES));
        assert_eq!(below_ns(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn a_bucket_is_at_most_an_eighth_wide() {
        for index in 1..BUCKETS - 1 {
            let (begin, end) = (below_ns(index - 1), below_ns(index));
            assert!((end - begin) * 8 <= begin, "{begin} to {end}");
        }
    }
}
