//! JSON of I/O statistics of volumes, initiators and sessions.
//!
//! Counters only grow, so the difference of two answers ([`IoStats::since`]) is the I/O between
//! them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was done at a volume since the array was brought up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VolumeStats {
    /// Name of the volume, as it is called now.
    pub name: String,
    /// Identity (UUID) of the volume, which stays when it is renamed.
    pub uuid: String,
    /// Sessions connected now that have used it.
    pub sessions: u64,
    /// Milliseconds that this is about.
    pub over_ms: u64,
    /// Counters of all sessions at this volume.
    pub io: IoStats,
}

/// What an initiator did since the array was brought up, in all its sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InitiatorStats {
    /// iSCSI name of the initiator.
    pub name: String,
    /// Sessions of the initiator that are connected now.
    pub sessions: u64,
    /// Milliseconds that this is about.
    pub over_ms: u64,
    /// Counters of all its sessions.
    pub io: IoStats,
}

/// What a session did since it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionStats {
    /// Number of the session (the TSIH of RFC 7143), until it ends.
    pub id: u16,
    /// iSCSI name that the initiator logged in with.
    pub initiator: String,
    /// iSCSI name of the target that the session is at.
    pub target: String,
    /// When it logged in, in seconds since 1970.
    pub since_unix_s: u64,
    /// Milliseconds that this is about.
    pub over_ms: u64,
    /// Counters of this session at all its LUNs.
    pub io: IoStats,
}

/// What commands came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IoStats {
    /// All that ended, whatever became of them.
    pub commands: u64,
    /// READ commands that ended well.
    pub reads: TransferStats,
    /// WRITE commands that ended well, with WRITE AND VERIFY, WRITE ATOMIC and ORWRITE.
    pub writes: TransferStats,
    /// Reads among reads and writes, from 0 to 1.
    pub read_share: f64,
    /// Random ones among reads and writes, from 0 to 1.
    pub random_share: f64,
    /// UNMAP commands that ended well, and WRITE SAME with UNMAP.
    pub unmaps: CommandStats,
    /// WRITE SAME commands without UNMAP that ended well, most often of zeroes.
    pub write_sames: CommandStats,
    /// COMPARE AND WRITE commands that ended well.
    pub compare_and_writes: CommandStats,
    /// EXTENDED COPY, POPULATE TOKEN and WRITE USING TOKEN commands that ended well.
    pub offloads: CommandStats,
    /// CHECK CONDITION, but for unit attentions.
    pub errors: u64,
    /// Commands that ended with the status RESERVATION CONFLICT.
    pub reservation_conflicts: u64,
    /// Commands in progress, summed up over time: grows by one in each nanosecond for each of
    /// them, up to when one came or ended last.
    pub queue_depth_ns: u64,
    /// The mean of those in progress over the time that this is about.
    pub queue_depth_mean: f64,
    /// The most that were in progress in one session at one LUN since the start.
    pub queue_depth_max: u64,
}

/// Commands of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandStats {
    /// Number of commands that ended well.
    pub commands: u64,
    /// From the command's arrival to its end, with the arrival of its data.
    pub latency: LatencyStats,
}

/// Commands that transferred data in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransferStats {
    /// Number of commands that ended well.
    pub commands: u64,
    /// Bytes that went over the wire.
    pub bytes: u64,
    /// Those that did not begin where one of the last in this direction and session ended, or
    /// up to four times their own length behind it.
    pub random: u64,
    /// How long they were, by power of two; only sizes that there were.
    pub sizes: Vec<SizeCount>,
    /// From the command's arrival to its end, with the arrival of its data.
    pub latency: LatencyStats,
}

/// Commands of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeCount {
    /// At least so many bytes, and less than twice as many. The first, 512, has what is
    /// shorter, too; the last, 1 MiB, what is longer.
    pub from_bytes: u64,
    /// Number of commands of that size.
    pub commands: u64,
}

/// A distribution of latencies, in nanoseconds. Percentiles are at most an eighth too long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyStats {
    /// Sum over all commands.
    pub total_ns: u64,
    /// Mean; zero without commands, as all of these.
    pub mean_ns: u64,
    /// Half of the commands take no longer.
    pub p50_ns: u64,
    /// 95 of 100 take no longer.
    pub p95_ns: u64,
    /// 99 of 100 take no longer.
    pub p99_ns: u64,
    /// The longest latency; zero without commands.
    pub max_ns: u64,
    /// The histogram: only buckets that there was something in.
    pub buckets: Vec<LatencyBucket>,
}

/// Commands of about the same latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// Shorter than this, and not shorter than the bound before it: there are eight to the
    /// octave, from 1 µs to 64 s.
    pub below_ns: u64,
    /// Number of commands in this bucket.
    pub commands: u64,
}

impl LatencyStats {
    /// What this histogram says; `max_ns` is the longest latency there was.
    pub fn of(buckets: Vec<LatencyBucket>, total_ns: u64, max_ns: u64) -> Self {
        let commands: u64 = buckets.iter().map(|bucket| bucket.commands).sum();
        let mut stats = LatencyStats {
            total_ns,
            mean_ns: total_ns.checked_div(commands).unwrap_or(0),
            max_ns: if commands == 0 { 0 } else { max_ns },
            buckets,
            ..LatencyStats::default()
        };
        [stats.p50_ns, stats.p95_ns, stats.p99_ns] =
            [50, 95, 99].map(|percent| stats.percentile_ns(percent));
        stats
    }

    /// What so many of a hundred commands do not exceed; zero without commands.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let commands: u64 = self.buckets.iter().map(|bucket| bucket.commands).sum();
        let rank = (u128::from(commands) * u128::from(percent)).div_ceil(100);
        let mut before = 0;
        for bucket in &self.buckets {
            before += u128::from(bucket.commands);
            if before >= rank {
                return bucket.below_ns.min(self.max_ns);
            }
        }
        0
    }

    /// Both histograms together: counts and totals are added, the longest is that of either.
    pub fn and(&self, other: &Self) -> Self {
        let mut all = [&self.buckets[..], &other.buckets].concat();
        all.sort_by_key(|bucket| bucket.below_ns);
        let mut buckets: Vec<LatencyBucket> = Vec::with_capacity(all.len());
        for bucket in all {
            match buckets.last_mut() {
                Some(last) if last.below_ns == bucket.below_ns => last.commands += bucket.commands,
                _ => buckets.push(bucket),
            }
        }
        let total_ns = self.total_ns + other.total_ns;
        LatencyStats::of(buckets, total_ns, self.max_ns.max(other.max_ns))
    }

    /// What came after `earlier`.
    fn since(&self, earlier: &Self) -> Self {
        let before = |below_ns| {
            let mut buckets = earlier.buckets.iter();
            let found = buckets.find(|bucket| bucket.below_ns == below_ns);
            found.map_or(0, |bucket| bucket.commands)
        };
        let newer = self.buckets.iter().map(|bucket| LatencyBucket {
            commands: bucket.commands.saturating_sub(before(bucket.below_ns)),
            ..*bucket
        });
        let newer: Vec<_> = newer.filter(|bucket| bucket.commands > 0).collect();
        // A longest that was there before may not be of this time: the histogram knows.
        let longest = newer.last().map_or(0, |bucket| bucket.below_ns);
        let total_ns = self.total_ns.saturating_sub(earlier.total_ns);
        LatencyStats::of(newer, total_ns, self.max_ns.min(longest))
    }
}

impl TransferStats {
    fn since(&self, earlier: &Self) -> Self {
        let before = |from_bytes| {
            let mut sizes = earlier.sizes.iter();
            let found = sizes.find(|size| size.from_bytes == from_bytes);
            found.map_or(0, |size| size.commands)
        };
        let sizes = self.sizes.iter().map(|size| SizeCount {
            commands: size.commands.saturating_sub(before(size.from_bytes)),
            ..*size
        });
        TransferStats {
            commands: self.commands.saturating_sub(earlier.commands),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            random: self.random.saturating_sub(earlier.random),
            sizes: sizes.filter(|size| size.commands > 0).collect(),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

impl CommandStats {
    fn since(&self, earlier: &Self) -> Self {
        CommandStats {
            commands: self.commands.saturating_sub(earlier.commands),
            latency: self.latency.since(&earlier.latency),
        }
    }
}

impl IoStats {
    /// The same with shares and means as the counters have them; the counters are about so
    /// many milliseconds.
    pub fn derived(mut self, over_ms: u64) -> Self {
        let share = |part: u64, whole: u64| match whole {
            0 => 0.0,
            _ => part as f64 / whole as f64,
        };
        let transfers = self.reads.commands + self.writes.commands;
        self.read_share = share(self.reads.commands, transfers);
        self.random_share = share(self.reads.random + self.writes.random, transfers);
        let over_ns = over_ms.saturating_mul(1_000_000);
        self.queue_depth_mean = share(self.queue_depth_ns, over_ns);
        self
    }

    /// What was done after `earlier`, in so many milliseconds. Where counters were forgotten
    /// meanwhile, zero.
    pub fn since(&self, earlier: &Self, over_ms: u64) -> Self {
        let less = |field: fn(&Self) -> u64| field(self).saturating_sub(field(earlier));
        let between = IoStats {
            commands: less(|io| io.commands),
            reads: self.reads.since(&earlier.reads),
            writes: self.writes.since(&earlier.writes),
            unmaps: self.unmaps.since(&earlier.unmaps),
            write_sames: self.write_sames.since(&earlier.write_sames),
            compare_and_writes: self.compare_and_writes.since(&earlier.compare_and_writes),
            offloads: self.offloads.since(&earlier.offloads),
            errors: less(|io| io.errors),
            reservation_conflicts: less(|io| io.reservation_conflicts),
            queue_depth_ns: less(|io| io.queue_depth_ns),
            queue_depth_max: self.queue_depth_max,
            ..IoStats::default()
        };
        between.derived(over_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(buckets: &[(u64, u64)], total_ns: u64, max_ns: u64) -> LatencyStats {
        let buckets = buckets.iter().map(|(below_ns, commands)| LatencyBucket {
            below_ns: *below_ns,
            commands: *commands,
        });
        LatencyStats::of(buckets.collect(), total_ns, max_ns)
    }

    #[test]
    fn percentiles_are_the_ends_of_buckets_and_no_longer_than_the_longest() {
        let stats = latency(
            &[(1000, 50), (2000, 45), (3000, 4), (u64::MAX, 1)],
            200,
            9000,
        );
        let read = (stats.p50_ns, stats.p95_ns, stats.p99_ns, stats.max_ns);
        assert_eq!(read, (1000, 2000, 3000, 9000));
        assert_eq!((stats.percentile_ns(100), stats.mean_ns), (9000, 2));
        assert_eq!(latency(&[(1000, 1)], 900, 900).p50_ns, 900);
        assert_eq!(latency(&[], 0, 7), LatencyStats::default());
    }

    #[test]
    fn a_difference_forgets_what_was_before() {
        let earlier = latency(&[(1000, 5), (8000, 2)], 19_000, 7500);
        let later = latency(&[(1000, 5), (2000, 3), (8000, 2)], 25_000, 7500);
        let between = later.since(&earlier);
        assert_eq!(between, latency(&[(2000, 3)], 6000, 2000));
        assert_eq!(later.since(&later), LatencyStats::default());
        assert_eq!(
            earlier.and(&between),
            latency(&later.buckets_of(), 25_000, 7500)
        );
    }

    impl LatencyStats {
        fn buckets_of(&self) -> Vec<(u64, u64)> {
            let buckets = self.buckets.iter();
            buckets
                .map(|bucket| (bucket.below_ns, bucket.commands))
                .collect()
        }
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let transfers = |commands, random| TransferStats {
            commands,
            bytes: commands * 512,
            random,
            sizes: vec![SizeCount {
                from_bytes: 512,
                commands,
            }],
            ..TransferStats::default()
        };
        let io = |reads, writes, commands, depth_ms: u64| IoStats {
            reads,
            writes,
            commands,
            queue_depth_ns: depth_ms * 1_000_000,
            offloads: CommandStats {
                commands,
                latency: latency(&[(2000, commands)], commands * 1500, 1600),
            },
            queue_depth_max: 9,
            ..IoStats::default()
        };
        let earlier = io(transfers(10, 10), transfers(0, 0), 10, 10).derived(100);
        let later = io(transfers(13, 11), transfers(1, 1), 20, 40).derived(110);
        assert_eq!(earlier.read_share, 1.0);
        assert_eq!(earlier.queue_depth_mean, 0.1);
        let between = later.since(&earlier, 10);
        let copies = (between.offloads.commands, between.offloads.latency.mean_ns);
        assert_eq!(copies, (10, 1500));
        assert_eq!((between.reads.commands, between.reads.bytes), (3, 1536));
        assert_eq!((between.read_share, between.random_share), (0.75, 0.5));
        assert_eq!(
            (between.queue_depth_mean, between.queue_depth_max),
            (3.0, 9)
        );
        assert_eq!(between.reads.sizes[0].commands, 3);
        assert_eq!(earlier.since(&later, 10).commands, 0);
        let nothing = later.since(&later, 0);
        assert_eq!((nothing.read_share, nothing.queue_depth_mean), (0.0, 0.0));
    }
}
