//! The report of a check: the findings, their severity, and the parts that were checked.
//!
//! Invariant: what is wrong in the same way at neighbouring places of one drive or
//! volume is one finding, so a drive full of garbage does not fill a screen; and the
//! list has an end, beyond which findings are only counted.

use base::Uuid;
use std::collections::BTreeMap;

/// Findings beyond these are counted and not kept.
const FINDINGS_MAX: usize = 1000;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong with the data or its protection.
    Note,
    /// Something is not what it should be, and the rest makes up for it.
    Damage,
    /// Something can't be had any more.
    Loss,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Drive and offset there, volume and offset in it, or a part of the pool.
    pub place: String,
    /// For people: what is wrong.
    pub text: String,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Drives that belong to the pool and were given.
    pub drives: u64,
    /// Of the newest whole checkpoint.
    pub checkpoint_generation: u64,
    /// Records journalled since that checkpoint.
    pub journal_records: u64,
    pub volumes: u64,
    pub zones: u64,
    pub mapped_pages: u64,
    /// Entries that wait in the data log, and in the intent log.
    pub log_entries: u64,
    /// Entries that wait in the intent log; see `log_entries`.
    pub intent_entries: u64,
    /// Copies of integrity blocks.
    pub sum_copies: u64,
    /// Blocks of mapped pages that were read and checked.
    pub data_blocks: u64,
    /// Those that were not, because a log has something newer.
    pub skipped_blocks: u64,
    /// Rows whose parity was reckoned and compared.
    pub parity_rows: u64,
    pub read_bytes: u64,
}

/// The outcome of a look at a pool.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pool's name, as its newest label has it.
    pub pool: String,
    /// The pool's identity for life.
    pub uuid: Uuid,
    /// Whether it was closed cleanly.
    pub clean: bool,
    /// Whether data was read, too.
    pub deep: bool,
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
    /// Findings that were left out because there are too many.
    pub left_out: u64,
    /// The worst of all findings, also of those left out.
    pub worst: Option<Severity>,
    pub counts: Counts,
}

impl Report {
    /// Takes in what was found in another lane of the same pool.
    pub(super) fn add(&mut self, lane: u16, other: Report) {
        self.clean &= other.clean;
        self.left_out += other.left_out;
        self.worst = self.worst.max(other.worst);
        self.counts.add(&other.counts);
        for finding in other.findings {
            let place = format!("lane {lane}, {}", finding.place);
            self.say(finding.severity, place, finding.text);
        }
    }

    /// One more finding.
    pub(super) fn say(&mut self, severity: Severity, place: String, text: String) {
        self.worst = self.worst.max(Some(severity));
        if self.findings.len() == FINDINGS_MAX {
            self.left_out += 1;
            return;
        }
        self.findings.push(Finding {
            severity,
            place,
            text,
        });
    }
}

impl Counts {
    /// Of several lanes; they have the same drives, and a checkpoint each.
    fn add(&mut self, other: &Counts) {
        self.drives = self.drives.max(other.drives);
        self.checkpoint_generation = self.checkpoint_generation.max(other.checkpoint_generation);
        self.journal_records += other.journal_records;
        self.volumes += other.volumes;
        self.zones += other.zones;
        self.mapped_pages += other.mapped_pages;
        self.log_entries += other.log_entries;
        self.intent_entries += other.intent_entries;
        self.sum_copies += other.sum_copies;
        self.data_blocks += other.data_blocks;
        self.skipped_blocks += other.skipped_blocks;
        self.parity_rows += other.parity_rows;
        self.read_bytes += other.read_bytes;
    }
}

/// A run of bytes of a drive or volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// `drive 'x'` or `volume 'x'`.
    pub subject: String,
    pub at: u64,
    pub len: u64,
}

/// Findings as they come in.
#[derive(Default)]
pub(super) struct Findings {
    kept: Vec<(Severity, FindingPlace, String)>,
    left_out: u64,
    worst: Option<Severity>,
    /// The last finding of each kind, by subject and text: it may go on.
    last: BTreeMap<(Severity, String, String), usize>,
}

enum FindingPlace {
    Named(String),
    Run(Run),
}

impl Findings {
    pub fn push(&mut self, severity: Severity, place: String, text: String) {
        self.keep(severity, FindingPlace::Named(place), text);
    }

    /// As [`Findings::push`], or makes the last finding of this kind longer.
    pub fn push_run(&mut self, severity: Severity, run: Run, text: String) {
        let key = (severity, run.subject.clone(), text.clone());
        let last = self.last.get(&key).and_then(|at| self.kept.get_mut(*at));
        if let Some((_, FindingPlace::Run(last), _)) = last
            && last.at + last.len == run.at
        {
            last.len += run.len;
            return;
        }
        if self.keep(severity, FindingPlace::Run(run), text) {
            self.last.insert(key, self.kept.len() - 1);
        }
    }

    fn keep(&mut self, severity: Severity, place: FindingPlace, text: String) -> bool {
        self.worst = self.worst.max(Some(severity));
        if self.kept.len() == FINDINGS_MAX {
            self.left_out += 1;
            return false;
        }
        self.kept.push((severity, place, text));
        true
    }

    /// The findings, how many were left out, and the worst of all.
    pub fn finish(self) -> (Vec<Finding>, u64, Option<Severity>) {
        let finding = |(severity, place, text)| Finding {
            severity,
            place: match place {
                FindingPlace::Named(place) => place,
                FindingPlace::Run(run) => {
                    format!("{}, {} bytes at {}", run.subject, run.len, run.at)
                }
            },
            text,
        };
        let findings = self.kept.into_iter().map(finding).collect();
        (findings, self.left_out, self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: u64) -> Run {
        Run {
            subject: "drive 'a'".into(),
            at,
            len: 10,
        }
    }

    #[test]
    fn neighbours_are_one_finding() {
        let mut findings = Findings::default();
        for at in [0, 10, 30, 20, 40] {
            findings.push_run(Severity::Damage, run(at), "bad".into());
            findings.push_run(Severity::Note, run(at), "odd".into());
        }
        let (findings, left_out, worst) = findings.finish();
        let damages = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Damage);
        let places: Vec<_> = damages.map(|finding| finding.place.as_str()).collect();
        assert_eq!(
            places,
            [
                "drive 'a', 20 bytes at 0",
                "drive 'a', 10 bytes at 30",
                "drive 'a', 10 bytes at 20",
                "drive 'a', 10 bytes at 40"
            ]
        );
        assert_eq!((left_out, worst), (0, Some(Severity::Damage)));
    }

    #[test]
    fn too_many_are_counted_and_the_worst_is_known() {
        let mut findings = Findings::default();
        for at in 0..FINDINGS_MAX as u64 + 5 {
            findings.push_run(Severity::Damage, run(20 * at), "bad".into());
        }
        findings.push(Severity::Loss, "pool".into(), "gone".into());
        let (kept, left_out, worst) = findings.finish();
        assert_eq!((kept.len(), left_out), (FINDINGS_MAX, 6));
        assert_eq!(worst, Some(Severity::Loss));
    }
}
