//! The figures of a rehearsal over its seeds.

use super::bottleneck::{Finding, finding};
use crate::run::Outcome;
use crate::run::confidence::{Estimate, estimate};
use crate::search::load_factor::{Capped, response_ms};

/// A site, or a variant of it, with what came of each seed.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The variant's name; of the site as it stands, "as it stands".
    pub name: String,
    /// One for each seed, in their order; at least one.
    pub outcomes: Vec<Outcome>,
}

/// The figures by which variants are compared, each over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Operations per second, reads and writes together.
    pub iops: Estimate,
    /// Reads per second that completed in the window.
    pub reads_per_s: Estimate,
    /// Writes per second that completed in the window.
    pub writes_per_s: Estimate,
    /// Data read and written, in 10⁶ bytes per second.
    pub megabytes_per_s: Estimate,
    /// Mean response time of reads, milliseconds.
    pub read_ms: Estimate,
    /// Mean response time of writes, milliseconds.
    pub write_ms: Estimate,
    /// Mean response time of random I/O, or of all where none is random, milliseconds; none
    /// when what was due did not complete with some seed.
    pub random_ms: Option<Estimate>,
    /// What holds it back, with the first seed.
    pub finding: Finding,
}

impl Rehearsal {
    /// Over all seeds.
    ///
    /// # Panics
    /// When there is no outcome.
    pub fn summary(&self) -> Summary {
        let of = |figure: &dyn Fn(&Outcome) -> f64| {
            let figures: Vec<f64> = self.outcomes.iter().map(figure).collect();
            estimate(&figures)
        };
        let random: Option<Vec<f64>> = self
            .outcomes
            .iter()
            .map(|outcome| response_ms(&outcome.load, Capped::Mean))
            .collect();
        let total = |outcome: &Outcome| outcome.load.total.clone();
        Summary {
            iops: of(&|outcome| total(outcome).reads_per_s + total(outcome).writes_per_s),
            reads_per_s: of(&|outcome| total(outcome).reads_per_s),
            writes_per_s: of(&|outcome| total(outcome).writes_per_s),
            megabytes_per_s: of(&|outcome| total(outcome).megabytes_per_s),
            read_ms: of(&|outcome| total(outcome).read.response.mean_ms),
            write_ms: of(&|outcome| total(outcome).write.response.mean_ms),
            random_ms: random.map(|figures| estimate(&figures)),
            finding: finding(&self.outcomes[0]),
        }
    }
}
