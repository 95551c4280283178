//! The writes of a machine to its memory: its writable working sets.
//!
//! Pages of a set of `S` bytes are written at random, `w` bytes of pages each second. A page
//! that is written twice is dirty once, so after `t` seconds
//!
//! ```text
//! D(t) = Σ S (1 - e^(-w t / S))                                  bytes
//! ```
//!
//! are dirty. A small set that is written often is the "writable working set" of Clark et
//! al. (NSDI 2005): dirty again at once, so not worth sending before the end. A large set is
//! a cache or a buffer pool.
//!
//! What I/O does to memory: a read is put into the page cache or buffer pool by the device,
//! and a page was changed there before it was written. So each I/O dirties its own size.
//! What else a machine writes, its heap and stacks, has no source and is given as a set of
//! its own where it is known.

use std::time::Duration;

/// Memory that is written at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritableSet {
    /// The size of the set, bytes; 0 when nothing is written.
    pub bytes: u64,
    /// Pages written in it, bytes per second; those written twice count twice.
    pub written_bytes_per_second: f64,
}

impl WritableSet {
    /// The most that a set has dirty after `elapsed`, bytes.
    fn dirty_bytes(&self, elapsed: f64) -> f64 {
        if self.bytes == 0 {
            return 0.0;
        }
        let size = self.bytes as f64;
        -size * (-self.written_bytes_per_second * elapsed / size).exp_m1()
    }
}

/// All that a machine writes to its memory: a hot set and a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activity {
    /// Small and written all the time.
    pub hot: WritableSet,
    /// Large, and written by I/O.
    pub cache: WritableSet,
}

const UNWRITTEN: WritableSet = WritableSet {
    bytes: 0,
    written_bytes_per_second: 0.0,
};

impl Activity {
    /// A machine that writes nothing to its memory.
    pub const IDLE: Activity = Activity {
        hot: UNWRITTEN,
        cache: UNWRITTEN,
    };

    /// A server that does so many I/Os of so many bytes each second through a cache of
    /// `cache_bytes`: a database's buffer pool.
    pub fn io(cache_bytes: u64, iops: f64, io_bytes: u64) -> Activity {
        Activity {
            hot: UNWRITTEN,
            cache: WritableSet {
                bytes: cache_bytes,
                written_bytes_per_second: iops * io_bytes as f64,
            },
        }
    }

    /// What is dirty of it `elapsed` after all was clean, at `speed` of its full speed, bytes.
    pub fn dirty_bytes(&self, elapsed: Duration, speed: f64) -> f64 {
        let elapsed = elapsed.as_secs_f64() * speed;
        self.hot.dirty_bytes(elapsed) + self.cache.dirty_bytes(elapsed)
    }
}
