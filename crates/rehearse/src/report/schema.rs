//! The result of a rehearsal as data: `--json` writes it, and the page is drawn from it.
//!
//! Stable: fields are added, never renamed, removed or given another meaning, without a new
//! number in [`SCHEMA`]. Units are in the names (`_s`, `_ms`, `_per_s`); shares of time are
//! from 0 to 1; a megabyte is 1,000,000 bytes. Nothing in it tells when or where it ran, so
//! equal plans, seeds and programs give equal bytes.

use crate::parts::disk::Stage;
pub use crate::run::layout::{
    BusLayout, ControllerLayout, HostLayout, LayoutReport, NetworkLayout, PoolLayout,
};
pub use crate::run::settled::{Burst, PoolDebt, Settling};
use crate::run::share::Part;
use serde::{Deserialize, Serialize};

/// The name and version of this schema.
pub const SCHEMA: &str = "ashlar-rehearse/1";

/// What came of a site and its variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The name and version of this schema: [`SCHEMA`].
    pub schema: String,
    /// The version of Ashlar that rehearsed it.
    #[serde(default)]
    pub version: String,
    /// What was rehearsed; null where the plan is from no file.
    #[serde(default)]
    pub source: Option<SourceReport>,
    /// The name of the site, from its file.
    pub site: String,
    /// What it is, in a sentence.
    pub about: Option<String>,
    /// Hardware that the file does not say, and that was modelled as usual; left out where there
    /// is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<AssumptionReport>,
    /// The site as it stands, and its variants, in the order of the file.
    pub variants: Vec<VariantReport>,
    /// The mixes of drives that were tried for a pool; left out where none was. The good ones
    /// are the variants then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizing: Option<SizingReport>,
}

/// Something that the file does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssumptionReport {
    /// The key that would say it.
    pub key: String,
    /// What was modelled, and where.
    pub value: String,
}

/// Mixes of drives that were tried for a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizingReport {
    /// The pool that the mixes are for.
    pub pool: String,
    /// What mean response times of each VM have to stay below.
    pub limit_ms: f64,
    /// The window of the file.
    pub window_s: f64,
    /// The good ones first, the smallest in front; then those that were rejected.
    pub candidates: Vec<CandidateReport>,
}

/// A mix of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateReport {
    /// The mix in words, such as its level and drive model.
    pub name: String,
    /// The name of its drive model in the file.
    pub model: String,
    /// Its level, as a site file says it.
    pub level: String,
    /// Drives of a group.
    pub group_drives: u16,
    /// Groups of the smallest that is good enough; null when none is.
    pub groups: Option<u16>,
    /// Drives of it, spares included.
    pub drives: Option<u32>,
    /// Operations per second of all VMs.
    pub iops: Option<f64>,
    /// Mean response time of reads; the interval is over the seconds of the window.
    pub read_ms: Option<EstimateReport>,
    /// Mean response time of writes; likewise.
    pub write_ms: Option<EstimateReport>,
    /// Seconds of the window that were measured.
    pub measured_s: Option<f64>,
    /// Why it is no good, or not sized; null when it is good.
    pub rejected: Option<String>,
    /// Drives that it takes at least, where that is more than the smallest mix has, so that it
    /// was not sized; null otherwise.
    #[serde(default)]
    pub drives_at_least: Option<u32>,
    /// What was rehearsed, in the order of trying; empty when it was rejected before.
    pub tried: Vec<GroupsTried>,
}

/// A number of groups that was rehearsed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupsTried {
    /// How many groups the pool had.
    pub groups: u16,
    /// Whether they met the limits.
    pub met: bool,
    /// Seconds that were measured; 0 when the run was given up.
    pub measured_s: f64,
}

/// The file that was rehearsed, and how it was changed first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// The file's name, without its directory.
    pub file: String,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// Settings of the command line (`--set`), in their order.
    pub settings: Vec<String>,
}

/// A site or a variant of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// The variant's name; of the site as it stands, "as it stands".
    pub name: String,
    /// What is connected to what at the start of a run; null when a search found no load.
    pub layout: Option<LayoutReport>,
    /// The figures over all seeds; null when a search found no load.
    pub summary: Option<SummaryReport>,
    /// One for each seed, in their order; of a search one at most.
    pub seeds: Vec<SeedReport>,
    /// The search for the load that meets a cap, where one was asked for.
    pub search: Option<SearchReport>,
    /// What a capture measured beside what is predicted; left out where the file is no capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideReport>,
}

/// A VM group that stands for a volume: what it did on the running array, and does here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideReport {
    /// The name of the VM group.
    pub vm_group: String,
    /// Completed reads per second.
    pub reads_per_s: PairReport,
    /// Completed writes per second.
    pub writes_per_s: PairReport,
    /// Mean latency of reads.
    pub read_mean_ms: PairReport,
    /// 95 of 100 reads took no longer.
    pub read_p95_ms: PairReport,
    /// Mean latency of writes.
    pub write_mean_ms: PairReport,
    /// 95 of 100 writes took no longer.
    pub write_p95_ms: PairReport,
}

/// A figure, measured and predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// On the running array; null where the file does not say it.
    pub measured: Option<f64>,
    /// In the rehearsal, mean over all seeds; null where the group is not one VM of a profile of
    /// the file.
    pub predicted: Option<f64>,
    /// By how much what is predicted is above what was measured; null without either.
    pub difference_percent: Option<f64>,
}

/// What came of one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedReport {
    /// The seed that the run was made with.
    pub seed: u64,
    /// Hash over everything that happened, 16 hexadecimal digits: equal for equal plan, seed
    /// and program.
    pub trace_hash: String,
    /// Operations modelled, warm-up included.
    pub operations: u64,
    /// The KPIs, as `ashlar load` reports them.
    pub load: workload::report::Report,
    /// Where the time of the operations went, in the order of an operation.
    pub stages: Vec<StageReport>,
    /// How busy everything was in the measured window, in the order of an operation.
    pub shares: Vec<ShareReport>,
    /// What happened, in the order of time.
    pub told: Vec<ToldReport>,
    /// What failed by an event of the file, in the file's order.
    #[serde(default)]
    pub failed: Vec<FailedReport>,
    /// Whether it had settled; null in documents of older versions.
    #[serde(default)]
    pub settling: Option<Settling>,
    /// What holds the site back.
    pub finding: FindingReport,
}

/// Where the time of operations went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// The stage of an operation.
    pub stage: Stage,
    /// Mean time of an operation there.
    pub mean_ms: f64,
    /// Its share of the time of an operation.
    pub share: f64,
}

/// How busy a part was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareReport {
    /// The kind of the part.
    pub part: Part,
    /// The name of the part, from the file.
    pub name: String,
    /// Busy time over time.
    pub utilisation: f64,
    /// Jobs per second; null where they are not counted.
    pub per_s: Option<f64>,
    /// Mean time of a job at work; null where it is not known.
    pub service_ms: Option<f64>,
    /// Mean time of a job waiting there; null where it is not known.
    pub waiting_ms: Option<f64>,
    /// Of drives with an arm, the part of its stroke that it worked on; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<f64>,
}

/// Something that happened during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToldReport {
    /// From the start of the run.
    pub at_s: f64,
    /// What happened, for people to read.
    pub text: String,
}

/// A drive, a host or a controller that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedReport {
    /// What it is; hosts and controllers are called by their processors.
    pub part: Part,
    /// The name of the part in the file.
    pub name: String,
    /// From the start of the run.
    pub at_s: f64,
}

/// What holds a site back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingReport {
    /// The part that is busiest; null when nothing is busy.
    pub bottleneck: Option<ShareReport>,
    /// The busiest of another kind.
    pub next: Option<ShareReport>,
    /// Most of the time of an operation goes by here.
    pub slowest_stage: Stage,
    /// Its share of that time.
    pub slowest_share: f64,
    /// The factor on the load at which the bottleneck is busy all of the time; null when
    /// nothing is busy.
    pub headroom: Option<f64>,
    /// The bottleneck in one sentence.
    pub sentence: String,
    /// And the next one; empty without.
    pub next_sentence: String,
}

/// The figures that people compare, over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryReport {
    /// Completed operations of all VMs per second.
    pub iops: EstimateReport,
    /// Completed reads of all VMs per second.
    pub reads_per_s: EstimateReport,
    /// Completed writes of all VMs per second.
    pub writes_per_s: EstimateReport,
    /// Data read and written, in decimal megabytes per second.
    pub megabytes_per_s: EstimateReport,
    /// Mean response time of reads.
    pub read_ms: EstimateReport,
    /// Mean response time of writes.
    pub write_ms: EstimateReport,
    /// Mean response time of random I/O, or of all where none is random; null when what was
    /// due did not complete with some seed.
    pub random_ms: Option<EstimateReport>,
}

/// A figure over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateReport {
    /// The mean over all seeds.
    pub mean: f64,
    /// Half of the 95 % interval's width; null with one seed.
    pub half_width_95: Option<f64>,
}

/// A search for the largest load that meets a cap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchReport {
    /// What is capped: `mean` or `p95` of the response time of random I/O.
    pub capped: String,
    /// The cap on that response time.
    pub cap_ms: f64,
    /// The largest factor on the load that meets it; null when even the smallest that was tried
    /// does not.
    pub factor: Option<f64>,
    /// The response time then.
    pub response_ms: Option<f64>,
    /// In the order of trying.
    pub tried: Vec<TriedReport>,
}

/// A load that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedReport {
    /// On the load of the plan.
    pub factor: f64,
    /// Operations per second that came of it.
    pub iops: f64,
    /// What is capped; null when what was due did not complete.
    pub response_ms: Option<f64>,
}
