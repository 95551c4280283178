//! The report of `ashlar fsck`, as text and as JSON.
//!
//! Scripts rely on the field names of the JSON.

use engine::fsck::{Counts, Finding, Report, Severity};
use serde::Serialize;
use site::{counted, human};
use std::fmt;

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// `clean`, `damage` or `loss`.
    outcome: &'static str,
    /// Drives that belong to no pool.
    drives: Vec<Remark>,
    /// Pools of the array's record of which no drive is there.
    missing_pools: Vec<String>,
    pools: Vec<PoolReport>,
    #[serde(skip)]
    worst: Option<Severity>,
}

/// A drive that was not looked through.
#[derive(Debug, Serialize)]
pub struct Remark {
    drive: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct PoolReport {
    pool: String,
    uuid: String,
    outcome: &'static str,
    closed_cleanly: bool,
    deep: bool,
    findings: Vec<Line>,
    findings_left_out: u64,
    counts: Numbers,
}

#[derive(Debug, Serialize)]
struct Line {
    severity: &'static str,
    place: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Numbers {
    drives: u64,
    checkpoint_generation: u64,
    journal_records: u64,
    volumes: u64,
    zones: u64,
    mapped_pages: u64,
    log_entries: u64,
    intent_entries: u64,
    sum_copies: u64,
    data_blocks: u64,
    skipped_blocks: u64,
    parity_rows: u64,
    read_bytes: u64,
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Damage => "damage",
        Severity::Loss => "loss",
    }
}

fn verdict(worst: Option<Severity>) -> &'static str {
    match worst {
        None | Some(Severity::Note) => "clean",
        Some(worst) => word(worst),
    }
}

impl Outcome {
    pub fn new(drives: Vec<Remark>, missing_pools: Vec<String>, reports: Vec<Report>) -> Self {
        let missing = missing_pools.first().map(|_| Severity::Loss);
        let found = reports.iter().filter_map(|report| report.worst).max();
        let worst = found.max(missing);
        Outcome {
            outcome: verdict(worst),
            drives,
            missing_pools,
            pools: reports.into_iter().map(PoolReport::from).collect(),
            worst,
        }
    }

    /// The worst of all findings.
    pub fn worst(&self) -> Option<Severity> {
        self.worst
    }
}

impl Remark {
    pub fn new(drive: &str, text: String) -> Self {
        Remark {
            drive: drive.to_owned(),
            text,
        }
    }
}

impl From<Report> for PoolReport {
    fn from(report: Report) -> Self {
        PoolReport {
            pool: report.pool,
            uuid: report.uuid.to_string(),
            outcome: verdict(report.worst),
            closed_cleanly: report.clean,
            deep: report.deep,
            findings: report.findings.into_iter().map(Line::from).collect(),
            findings_left_out: report.left_out,
            counts: Numbers::from(report.counts),
        }
    }
}

impl From<Finding> for Line {
    fn from(finding: Finding) -> Self {
        Line {
            severity: word(finding.severity),
            place: finding.place,
            text: finding.text,
        }
    }
}

impl From<Counts> for Numbers {
    fn from(counts: Counts) -> Self {
        Numbers {
            drives: counts.drives,
            checkpoint_generation: counts.checkpoint_generation,
            journal_records: counts.journal_records,
            volumes: counts.volumes,
            zones: counts.zones,
            mapped_pages: counts.mapped_pages,
            log_entries: counts.log_entries,
            intent_entries: counts.intent_entries,
            sum_copies: counts.sum_copies,
            data_blocks: counts.data_blocks,
            skipped_blocks: counts.skipped_blocks,
            parity_rows: counts.parity_rows,
            read_bytes: counts.read_bytes,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for drive in &self.drives {
            writeln!(f, "note    {drive}")?;
        }
        for pool in &self.missing_pools {
            writeln!(
                f,
                "loss    pool '{pool}': no drive with its label is there: bring its drives back"
            )?;
        }
        self.pools.iter().try_for_each(|pool| pool.fmt(f))
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drive '{}': {}", self.drive, self.text)
    }
}

impl fmt::Display for PoolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        for Line {
            severity,
            place,
            text,
        } in &self.findings
        {
            writeln!(f, "{severity:<6}  {place}: {text}")?;
        }
        if self.findings_left_out > 0 {
            writeln!(f, "        and {} more", self.findings_left_out)?;
        }
        let verdict = match self.outcome {
            "clean" => "nothing is damaged",
            "loss" => "something is lost",
            _ => "something is damaged",
        };
        let looked = match self.deep {
            true => format!(
                "{} blocks of data and {} rows of parity checked, {} left to the log",
                counts.data_blocks, counts.parity_rows, counts.skipped_blocks
            ),
            false => "data not checked (--deep checks it)".to_owned(),
        };
        writeln!(
            f,
            "pool '{}': {verdict}: {}, {} with {} in {}; {looked}; {} read",
            self.pool,
            counted(counts.drives, "drive"),
            counted(counts.volumes, "volume"),
            counted(counts.mapped_pages, "page"),
            counted(counts.zones, "zone"),
            human(counts.read_bytes)
        )
    }
}
