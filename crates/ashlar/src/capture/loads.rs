//! The volumes of a capture: each as a profile that does what it did, a VM group with that profile,
//! and the measured figures.

use super::Taken;
use super::text::{entry, quoted, size};
use crate::failure::Failure;
use api::{CapturedFlow, CapturedVolume, IoStats, LatencyStats, TransferStats, Volume};
use site::{RATE_MAX, RATE_MIN};
use std::collections::BTreeSet;
use workload::fit::{Counted, Fitted, fit};
use workload::profile::{IO_BYTES_MAX, IO_GRAIN_BYTES};

/// Operations under way at most, of which no more were seen: a faster load than the captured one
/// must not wait for itself.
const OUTSTANDING_MIN: u64 = 64;
const OUTSTANDING_MAX: u64 = 4096;

/// A disk must hold so many of the longest operations (`workload::profile` asks for them).
const OPERATIONS_MIN: u64 = 16;

/// Letters of a VM group's name: volumes in the rehearsal are called by it and more.
const NAME_MAX: usize = 40;

/// A volume that did something.
struct Busy<'a> {
    /// What its VM group is called.
    name: String,
    volume: &'a Volume,
    io: IoStats,
    seconds: f64,
    counted: &'a CapturedVolume,
}

/// The tables of all volumes that did something.
///
/// # Errors
/// None did.
pub(super) fn tables(taken: &Taken) -> Result<String, Failure> {
    let (busy, idle) = volumes(taken);
    if busy.is_empty() {
        let seconds = taken.capture.duration_s;
        let what = format!(
            "nothing to capture: no volume was read or written in {seconds} s. Capture while hosts \
             work, or for longer"
        );
        return Err(Failure::Failed(what));
    }
    let mut text = String::new();
    if !idle.is_empty() {
        text += &format!(
            "\n# Without reads and writes, and left out: {}\n",
            idle.join(", ")
        );
    }
    busy.iter().for_each(|one| text += &of_volume(taken, one));
    Ok(text)
}

/// Those that did something, and the names of the others.
fn volumes(taken: &Taken) -> (Vec<Busy<'_>>, Vec<&str>) {
    let [before, after] = &taken.stats;
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    for counted in &taken.capture.volumes {
        let volume = taken.volumes.iter().find(|one| one.uuid == counted.uuid);
        let later = after.iter().find(|one| one.uuid == counted.uuid);
        let (Some(volume), Some(later)) = (volume, later) else {
            continue;
        };
        let earlier = before.iter().find(|one| one.uuid == counted.uuid);
        let over_ms = later.over_ms - earlier.map_or(0, |one| one.over_ms).min(later.over_ms);
        let none = IoStats::default();
        let io = later
            .io
            .since(earlier.map_or(&none, |one| &one.io), over_ms);
        if io.reads.commands + io.writes.commands == 0 {
            idle.push(volume.name.as_str());
            continue;
        }
        busy.push(Busy {
            name: String::new(),
            volume,
            io,
            seconds: over_ms.max(1) as f64 / 1e3,
            counted,
        });
    }
    let names: Vec<&str> = busy.iter().map(|one| one.volume.name.as_str()).collect();
    let names = group_names(&names);
    busy.iter_mut()
        .zip(names)
        .for_each(|(one, name)| one.name = name);
    (busy, idle)
}

/// Names of VM groups for volumes: their own, or the beginning of a long one and a number that gives a
/// name which nothing else has.
fn group_names(volumes: &[&str]) -> Vec<String> {
    let fits = |name: &&&str| name.len() <= NAME_MAX;
    let mut taken: BTreeSet<String> = volumes
        .iter()
        .filter(fits)
        .map(|&name| name.into())
        .collect();
    let name = |volume: &&str| {
        if fits(&volume) {
            return (*volume).to_owned();
        }
        let begin: String = volume.chars().take(NAME_MAX - 6).collect();
        let mut numbered = (1..).map(|number| format!("{begin}-{number}"));
        let free = numbered.find(|name| !taken.contains(name));
        let free = free.unwrap_or_default();
        taken.insert(free.clone());
        free
    };
    volumes.iter().map(name).collect()
}

/// The disk that stands for a volume, in bytes, and the longest operation on it. `scale` is what its
/// drives are of those that were captured.
fn disk_of(size_bytes: u64, scale: f64) -> (u64, u32) {
    let scaled = match scale < 1.0 {
        true => (size_bytes as f64 * scale) as u64 >> 20 << 20,
        false => size_bytes,
    };
    let grain = u64::from(IO_GRAIN_BYTES);
    let disk = scaled.max(OPERATIONS_MIN * grain);
    let longest = disk / OPERATIONS_MIN / grain * grain;
    (disk, longest.min(u64::from(IO_BYTES_MAX)) as u32)
}

/// Sizes with their shares, of which none is longer than this.
fn cut(sizes: Vec<(u32, u32)>, longest: u32) -> Vec<(u32, u32)> {
    let mut cut: Vec<(u32, u32)> = Vec::new();
    for (bytes, share) in sizes {
        let bytes = bytes.min(longest);
        match cut.iter_mut().find(|(known, _)| *known == bytes) {
            Some((_, sum)) => *sum += share,
            None => cut.push((bytes, share)),
        }
    }
    cut
}

/// The profile's disk, with a comment where it is not as large as the volume.
fn disk_lines(busy: &Busy<'_>, scale: f64) -> String {
    let captured = busy.counted.size_bytes;
    let (disk, longest) = disk_of(captured, scale);
    let mut text = String::new();
    if scale < 1.0 {
        text += &format!(
            "# The volume has {captured} bytes. The modelled drives are smaller than those of its pool, \
             and so is\n# this disk, in proportion.\n"
        );
    } else if disk != captured {
        text += &format!("# The volume has {captured} bytes, and a disk needs {disk}.\n");
    }
    if longest < IO_BYTES_MAX {
        text += &format!("# Operations have {longest} bytes at most, a sixteenth of the disk.\n");
    }
    text + &entry("disk", size(disk))
}

fn of_volume(taken: &Taken, busy: &Busy<'_>) -> String {
    let volume = busy.volume;
    let name = quoted(&busy.name);
    let scale = super::hardware::scale(taken, &volume.pool);
    let (_, longest) = disk_of(busy.counted.size_bytes, scale);
    let mut text = format!("\n# Volume {}\n[[profile]]\n", volume.name);
    text += &entry("name", &name);
    text += &disk_lines(busy, scale);
    text += "streams = [\n";
    let flows = [
        ("reads", 100, &busy.io.reads, &busy.counted.reads),
        ("writes", 0, &busy.io.writes, &busy.counted.writes),
    ];
    for (stream, percent, stats, counted) in flows {
        text += &stream_line(busy, (stream, percent), (stats, counted), longest);
    }
    text += "]\n\n[[vm_group]]\n";
    text += &entry("name", &name);
    text += &entry("profile", &name);
    text += "hosts = [\"host\"]\n";
    text += &entry("pools", format!("[{}]", quoted(&volume.pool)));
    let provisioning = match volume.provisioning {
        api::Provisioning::Thin => "thin",
        api::Provisioning::Thick => "thick",
    };
    text += &entry("provisioning", quoted(provisioning));
    let mapped = volume.mapped_bytes as f64 / volume.size_bytes.max(1) as f64;
    let filled = (mapped * 100.0).ceil().clamp(0.0, 100.0);
    text += &entry("filled", filled);
    text + &measured(busy)
}

/// A stream of reads or of writes; nothing where there are none.
fn stream_line(
    busy: &Busy<'_>,
    (name, read_percent): (&str, u32),
    (stats, flow): (&TransferStats, &CapturedFlow),
    longest: u32,
) -> String {
    let counted = counted(busy, stats, flow);
    let Some(fitted) = fit(&counted).filter(|_| stats.commands > 0) else {
        return String::new();
    };
    let Fitted {
        sizes,
        random_percent,
        hot_percent,
        active_percent,
    } = fitted;
    let sizes = cut(sizes, longest);
    let bytes: Vec<String> = sizes
        .iter()
        .map(|(bytes, _)| size(u64::from(*bytes)))
        .collect();
    let shares: Vec<String> = sizes.iter().map(|(_, share)| share.to_string()).collect();
    let depth = busy
        .io
        .queue_depth_max
        .clamp(OUTSTANDING_MIN, OUTSTANDING_MAX);
    format!(
        "  {{ name = \"{name}\", rate = {:.4}, reads = {read_percent}, random = {random_percent}, \
         hot = {hot_percent}, active = {active_percent}, sizes = [{}], shares = [{}], \
         outstanding = {depth} }},\n",
        (stats.commands as f64 / busy.seconds).clamp(RATE_MIN, RATE_MAX),
        bytes.join(", "),
        shares.join(", ")
    )
}

/// What the array counted, as the fit takes it. Of a volume that was exported meanwhile, only the
/// statistics know.
fn counted(busy: &Busy<'_>, stats: &TransferStats, flow: &CapturedFlow) -> Counted {
    let mut counted = Counted {
        operations: flow.commands,
        random: flow.random,
        sizes: flow
            .sizes
            .iter()
            .map(|size| (size.commands, size.bytes))
            .collect(),
        placed: flow.placed,
        pairs: flow.pairs,
        disk_bytes: busy.counted.size_bytes,
        grain_bytes: busy.counted.grain_bytes,
        periods: flow.periods,
        period_mean: flow.period_mean,
        period_variance: flow.period_variance,
    };
    if flow.commands == 0 {
        let sizes = stats.sizes.iter();
        counted.sizes = sizes
            .map(|size| (size.commands, size.commands * size.from_bytes))
            .collect();
        (counted.operations, counted.random) = (stats.commands, stats.random);
    }
    counted
}

fn measured(busy: &Busy<'_>) -> String {
    let (reads, writes) = (&busy.io.reads, &busy.io.writes);
    let mut text = "\n[[measured]]\n".to_owned();
    text += &entry("vm_group", quoted(&busy.name));
    text += &flow("read", reads.commands as f64 / busy.seconds, &reads.latency);
    text += &flow(
        "write",
        writes.commands as f64 / busy.seconds,
        &writes.latency,
    );
    let figure = |key, value: f64| entry(key, format!("{value:.3}"));
    text += &figure("queue", busy.io.queue_depth_mean);
    let counted = busy.counted;
    for (key, flow) in [
        ("read_bursts", &counted.reads),
        ("write_bursts", &counted.writes),
    ] {
        if flow.period_mean > 0.0 {
            text += &figure(key, flow.period_variance / flow.period_mean);
        }
    }
    text += &figure("hottest_tenth_percent", counted.hottest_tenth * 100.0);
    if counted.working_set_bytes > 0 {
        text += &entry("working_set", size(counted.working_set_bytes >> 10 << 10));
    }
    text
}

/// Rate and latencies of reads or of writes.
fn flow(kind: &str, per_s: f64, latency: &LatencyStats) -> String {
    let mut text = entry(&format!("{kind}s_per_s"), format!("{per_s:.4}"));
    for (key, ns) in [
        ("mean", latency.mean_ns),
        ("p50", latency.p50_ns),
        ("p95", latency.p95_ns),
        ("p99", latency.p99_ns),
    ] {
        let key = format!("{kind}_{key}_ms");
        text += &entry(&key, format!("{:.4}", ns as f64 / 1e6));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = "v".repeat(64);
        let other = format!("{}w", "v".repeat(63));
        let cut = format!("{}-1", "v".repeat(NAME_MAX - 6));
        let names = group_names(&[&long, &other, "vm1", &cut]);
        let different: BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), 4, "{names:?}");
        assert!(names.iter().all(|name| name.len() <= NAME_MAX), "{names:?}");
        assert_eq!(&names[2..], ["vm1", &cut]);
    }

    #[test]
    fn operations_of_a_small_disk_are_cut_and_of_a_large_one_are_not() {
        const MIB: u64 = 1 << 20;
        assert_eq!(disk_of(64 << 30, 1.0), (64 << 30, 1 << 20));
        assert_eq!(disk_of(4 * MIB, 1.0), (4 * MIB, 256 << 10));
        assert_eq!(disk_of(MIB + 4096, 1.0), (MIB + 4096, 64 << 10));
        // Smaller than sixteen of the smallest operations.
        assert_eq!(disk_of(8192, 1.0), (64 << 10, 4096));
        assert_eq!(disk_of(64 << 30, 0.125), (8 << 30, 1 << 20));
        let sizes = vec![(4096, 50), (128 << 10, 20), (1 << 20, 30)];
        assert_eq!(cut(sizes, 64 << 10), [(4096, 50), (64 << 10, 50)]);
    }
}
