//! The volumes of a capture: each as a profile that does what it did, a VM group with that profile,
//! and the measured figures.

use super::Taken;
use super::text::{entry, quoted, size};
use crate::failure::Failure;
use api::{CapturedFlow, CapturedVolume, IoStats, LatencyStats, TransferStats, Volume};
use site::{RATE_MAX, RATE_MIN};
use std::collections::BTreeSet;
use workload::fit::{Counted, Fitted, fit};

/// Operations under way at most, of which no more were seen: a faster load than the captured one
/// must not wait for itself.
const OUTSTANDING_MIN: u64 = 64;
const OUTSTANDING_MAX: u64 = 4096;

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
    busy.iter().for_each(|one| text += &of_volume(one));
    Ok(text)
}

/// Those that did something, and the names of the others.
fn volumes(taken: &Taken) -> (Vec<Busy<'_>>, Vec<&str>) {
    let [before, after] = &taken.stats;
    let (mut busy, mut idle, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
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
            name: group_name(&volume.name, &mut names),
            volume,
            io,
            seconds: over_ms.max(1) as f64 / 1e3,
            counted,
        });
    }
    (busy, idle)
}

/// A name of a VM group for a volume: its own, or the beginning of a long one and a number.
fn group_name(volume: &str, names: &mut BTreeSet<String>) -> String {
    let mut name = volume.to_owned();
    if name.len() > NAME_MAX {
        // Names are ASCII.
        name = format!("{}-{}", &volume[..NAME_MAX - 6], names.len() + 1);
    }
    names.insert(name.clone());
    name
}

fn of_volume(busy: &Busy<'_>) -> String {
    let volume = busy.volume;
    let name = quoted(&busy.name);
    let mut text = format!("\n# Volume {}\n[[profile]]\n", volume.name);
    text += &entry("name", &name);
    text += &entry("disk", size(busy.counted.size_bytes));
    text += "streams = [\n";
    let flows = [
        ("reads", 100, &busy.io.reads, &busy.counted.reads),
        ("writes", 0, &busy.io.writes, &busy.counted.writes),
    ];
    for (stream, percent, stats, counted) in flows {
        text += &stream_line(busy, (stream, percent), stats, counted);
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
    stats: &TransferStats,
    flow: &CapturedFlow,
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
        let mut names = BTreeSet::new();
        let long = "v".repeat(64);
        let first = group_name(&long, &mut names);
        let second = group_name(&long.replacen("vv", "vw", 1), &mut names);
        assert!(
            first.len() <= NAME_MAX && first != second,
            "{first} {second}"
        );
        assert_eq!(group_name("vm1", &mut names), "vm1");
    }
}
