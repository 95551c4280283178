//! The result of a run as data, which `--json` writes.
//!
//! Stable: fields are added, never renamed, removed or given another meaning,
//! without a new number in [`SCHEMA`]. Units are in the names (`_s`, `_ms`,
//! `_bytes`, `_per_s`); a megabyte is 1,000,000 bytes.

use serde::{Deserialize, Serialize};

/// The name and version of this schema.
pub const SCHEMA: &str = "ashlar-load/1";

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The schema's name and version: always [`SCHEMA`].
    pub schema: String,
    /// Where it comes from; absent of a rehearsal, which is the same everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginReport>,
    /// The name of the profile that was run.
    pub profile: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// Whether it was stopped before its end; figures are those until then.
    pub interrupted: bool,
    /// The seed of operations and data.
    pub seed: u64,
    /// What the profile's rates were multiplied by.
    pub rate_scale: f64,
    /// Length of the warm-up.
    pub warmup_s: f64,
    /// Length of the measured window, as asked for.
    pub duration_s: f64,
    /// Length of the measured window, as it was.
    pub measured_s: f64,
    /// Whether the disks were written once before.
    pub filled: bool,
    /// Whether outages that end, and what was under way then, are no failure.
    #[serde(default)]
    pub outages_allowed: bool,
    /// Times in which targets were away, in their order.
    #[serde(default)]
    pub outages: Vec<OutageReport>,
    /// The KPIs of each VM, in the order of the plan.
    pub vms: Vec<VmReport>,
    /// All VMs merged: rates add up, distributions are merged.
    pub total: VmReport,
}

/// When, where and by which program something was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginReport {
    /// When the command began, such as `2026-11-25T02:00:30Z`.
    pub started_utc: String,
    /// The version of the program that measured.
    pub version: String,
    /// The machine that the load comes from.
    pub machine: MachineReport,
}

/// A machine. What the system does not tell is empty, or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineReport {
    /// Its name in the network.
    pub host_name: String,
    /// The model of its processor.
    pub processor: String,
    /// Logical processors that this program may use.
    pub processors_usable: u64,
    /// Logical processors that it has.
    pub processors: u64,
    /// RAM that the kernel has, bytes.
    pub memory_bytes: u64,
    /// The name and release of its kernel.
    pub kernel: String,
}

/// What a run comes to, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Operations failed, or a target went away; see also [`Report::outages_allowed`].
    Errors,
    /// The run was stopped before its end.
    Incomplete,
    /// A VM's rate missed its target: the KPIs are those of another load.
    Invalid,
    /// A latency is not below a limit of the profile.
    LimitFailed,
    /// No failure, and all limits are kept.
    Pass,
}

/// The KPIs of one VM, or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmReport {
    /// The VM's name, or `total`.
    pub name: String,
    /// What it stands for.
    pub role: String,
    /// URLs of its targets, without passwords.
    pub targets: Vec<String>,
    /// Capacity of each of its disks.
    pub disk_bytes: Vec<u64>,
    /// Reads completed per second of the window.
    pub reads_per_s: f64,
    /// Writes completed per second of the window.
    pub writes_per_s: f64,
    /// Data moved per second of the window.
    pub megabytes_per_s: f64,
    /// Latencies of the reads that completed in the window.
    pub read: KindReport,
    /// Latencies of the writes that completed in the window.
    pub write: KindReport,
    /// Mean number of operations at the target.
    pub queue_length: f64,
    /// The same by Little's law: rate × mean service time. A large difference
    /// means that the run was not in a steady state.
    pub queue_length_by_littles_law: f64,
    /// Transactions of closed networks; null where there were none.
    #[serde(default)]
    pub transactions: Option<TransactionReport>,
    /// Operations due per second of the window; null for a closed loop.
    pub offered_per_s: Option<f64>,
    /// Completed of due, in the window; null for a closed loop.
    pub achieved_percent: Option<f64>,
    /// Whether enough of what was due completed for the KPIs to mean something.
    pub valid: bool,
    /// Operations due in the window that had not completed when the run was over.
    pub unfinished: u64,
    /// Operations that ended with an error, lost ones included.
    pub failed: u64,
    /// Of them, those that were under way when a session was lost: writes of them may have
    /// been done. They are in no latency.
    #[serde(default)]
    pub lost_operations: u64,
    /// Whether a target went away and was not back in time: the VM's part of the run ended.
    pub lost: bool,
    /// The first failures, in words.
    pub failures: Vec<String>,
    /// Unit attentions: a target told something instead of doing an operation, which was sent
    /// again, and is no failure.
    #[serde(default)]
    pub unit_attentions: u64,
    /// The first of them, in words.
    #[serde(default)]
    pub attentions: Vec<String>,
    /// How late the generator itself was.
    pub lateness: LatencyReport,
    /// Limits and whether they hold.
    pub limits: Vec<LimitReport>,
    /// Per second of the run, warm-up included.
    pub seconds: Vec<SecondReport>,
    /// Per interval of the run, warm-up included: percentiles over time.
    #[serde(default)]
    pub intervals: Vec<IntervalReport>,
    /// One for each stream of the VM; empty for the total.
    #[serde(default)]
    pub streams: Vec<StreamReport>,
}

/// A time in which targets were away. Operations that became due in it waited, and count
/// from their intended start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutageReport {
    /// When the first session was lost, from the start of the run (warm-up included).
    pub from_s: f64,
    /// When all were back; null when they were not at the end of the run.
    pub until_s: Option<f64>,
    /// How long it took, or until the end of the run.
    pub seconds: f64,
    /// Operations that were under way when their session was lost.
    pub operations_lost: u64,
    /// How the first loss showed, in words.
    pub why: String,
    /// The VMs whose sessions were lost.
    pub vms: Vec<VmOutageReport>,
}

/// What an outage was for one VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VmOutageReport {
    /// The name of the VM.
    pub name: String,
    /// The targets that were away.
    pub targets: Vec<String>,
    /// When the VM's first session was lost.
    pub from_s: f64,
    /// When all its sessions were back; null when they were not at the end of the run.
    pub until_s: Option<f64>,
    /// Operations of the VM that were under way when their session was lost.
    pub operations_lost: u64,
}

/// One stream of a VM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// The stream's name in the profile.
    pub name: String,
    /// Whether more than half of its operations are random, so that it counts for
    /// the mean random latency.
    pub random: bool,
    /// Reads completed per second of the window.
    pub reads_per_s: f64,
    /// Writes completed per second of the window.
    pub writes_per_s: f64,
    /// Latencies of the reads that completed in the window.
    pub read: KindReport,
    /// Latencies of the writes that completed in the window.
    pub write: KindReport,
    /// Mean number of operations at the target.
    #[serde(default)]
    pub queue_length: f64,
    /// Transactions of a closed network; null where there were none.
    #[serde(default)]
    pub transactions: Option<TransactionReport>,
    /// Operations due per second of the window; null for a closed loop.
    pub offered_per_s: Option<f64>,
    /// Completed of due, in the window; null for a closed loop.
    pub achieved_percent: Option<f64>,
    /// Whether enough of what was due completed for the KPIs to mean something.
    pub valid: bool,
}

/// Transactions of threads that wait for their operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionReport {
    /// Transactions completed per second of the window.
    pub per_s: f64,
    /// From the end of the think time to the end of the transaction's last operation.
    pub response: LatencyReport,
    /// Mean number of their operations under way, commits included.
    #[serde(default)]
    pub under_way: f64,
}

/// Latencies of one kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
    /// From the intended start to the completion.
    pub response: LatencyReport,
    /// From the issue to the completion.
    pub service: LatencyReport,
    /// The distribution of the response time; empty without operations.
    pub percentiles: Vec<PercentilePoint>,
}

/// A distribution in figures; zeroes without observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Operations in the distribution; 0 makes all other figures 0.
    pub count: u64,
    /// The arithmetic mean, milliseconds.
    pub mean_ms: f64,
    /// The median: half of them are not longer.
    pub p50_ms: f64,
    /// 95 % are not longer.
    pub p95_ms: f64,
    /// 99 % are not longer.
    pub p99_ms: f64,
    /// 99.9 % are not longer.
    pub p999_ms: f64,
    /// The longest of all, milliseconds.
    pub max_ms: f64,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentilePoint {
    /// This many per cent …
    pub percent: f64,
    /// … are not longer than this.
    pub response_ms: f64,
}

/// A limit of the profile, and whether the run kept it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    /// The KPI that is limited, in words.
    pub kpi: String,
    /// The mean that the run measured.
    pub value_ms: f64,
    /// What it must stay below.
    pub limit_ms: f64,
    /// Whether `value_ms` is below `limit_ms`.
    pub pass: bool,
}

/// What completed in one second of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondReport {
    /// Seconds since the start of the run.
    pub second: u64,
    /// Reads that completed in this second.
    pub reads: u64,
    /// Writes that completed in this second.
    pub writes: u64,
    /// Mean response time of the reads, if there were any.
    pub read_mean_ms: Option<f64>,
    /// Mean response time of the writes, if there were any.
    pub write_mean_ms: Option<f64>,
    /// The longest response time.
    pub max_ms: f64,
}

/// What completed in one interval of the run. Intervals are 1 s long, or longer in runs of more
/// than 150 s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    /// From the start of the run to its begin.
    pub start_s: f64,
    /// The length of the interval, equal for all.
    pub length_s: f64,
    /// Reads; null when none completed.
    pub read: Option<IntervalLatencyReport>,
    /// Writes; null when none completed.
    pub write: Option<IntervalLatencyReport>,
}

/// Response times of an interval; percentiles are to 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalLatencyReport {
    /// Operations that completed in the interval.
    pub count: u64,
    /// The arithmetic mean of their response times.
    pub mean_ms: f64,
    /// The median: half of them are not longer.
    pub p50_ms: f64,
    /// 95 % are not longer.
    pub p95_ms: f64,
    /// 99 % are not longer.
    pub p99_ms: f64,
    /// The longest response time of the interval.
    pub max_ms: f64,
}
