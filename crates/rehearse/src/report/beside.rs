//! What a capture measured, beside what the rehearsal of it predicts.
//!
//! The measured latencies are of the array, from the arrival of a command to its end. The predicted
//! ones count from the intended start of an operation, with its way from the host: a capture has a
//! host and a network that take next to no time.

use super::schema::{BesideReport, PairReport};
use super::{plain, text::line};
use crate::findings::summary::Rehearsal;
use crate::plan::described;
use crate::run::Outcome;
use site::plan::{Measured, Plan, VmGroup};
use workload::report::VmReport;

/// Measured figures from here on have a difference: below, it says nothing.
const LITTLE: f64 = 1e-9;

/// Each VM group of `plan`, in its order; nothing where the plan has no measured figures.
pub fn beside(plan: &Plan, rehearsal: &Rehearsal) -> Vec<BesideReport> {
    if plan.measured.is_empty() {
        return Vec::new();
    }
    let groups = plan.vm_groups.iter();
    groups
        .map(|group| of_group(plan, group, rehearsal))
        .collect()
}

fn of_group(plan: &Plan, group: &VmGroup, rehearsal: &Rehearsal) -> BesideReport {
    let mut measured = plan.measured.iter();
    let measured = measured.find(|one| one.vm_group == group.name);
    let pair = |of: fn(&Measured) -> f64, predicted: &dyn Fn(&VmReport) -> f64| {
        let of_seeds = rehearsal.outcomes.iter();
        let of_seeds = of_seeds.map(|outcome| vm_of(group, outcome).map(predicted));
        let all: Option<Vec<f64>> = of_seeds.collect();
        let mean = all.map(|all| all.iter().sum::<f64>() / all.len().max(1) as f64);
        paired(measured.map(of), mean)
    };
    BesideReport {
        vm_group: group.name.clone(),
        reads_per_s: pair(|one| one.reads.per_s, &|vm| vm.reads_per_s),
        writes_per_s: pair(|one| one.writes.per_s, &|vm| vm.writes_per_s),
        read_mean_ms: pair(|one| one.reads.mean_ms, &|vm| vm.read.response.mean_ms),
        read_p95_ms: pair(|one| one.reads.p95_ms, &|vm| vm.read.response.p95_ms),
        write_mean_ms: pair(|one| one.writes.mean_ms, &|vm| vm.write.response.mean_ms),
        write_p95_ms: pair(|one| one.writes.p95_ms, &|vm| vm.write.response.p95_ms),
    }
}

/// The VM of a group that stands for a volume: the only one of a profile of the file.
fn vm_of<'a>(group: &VmGroup, outcome: &'a Outcome) -> Option<&'a VmReport> {
    let name = format!("{}-{}", group.name, described::VM);
    let mut vms = outcome.load.vms.iter();
    vms.find(|vm| vm.name == name)
}

fn paired(measured: Option<f64>, predicted: Option<f64>) -> PairReport {
    let difference = measured.zip(predicted);
    let difference = difference.filter(|(measured, _)| *measured > LITTLE);
    PairReport {
        measured,
        predicted,
        difference_percent: difference.map(|(was, is)| (is / was - 1.0) * 100.0),
    }
}

impl BesideReport {
    /// Figures in the order of a table, with what they are called; without those that are zero on
    /// both sides, as of reads where nobody reads.
    pub(super) fn figures(&self) -> Vec<(&'static str, &PairReport)> {
        let all = [
            ("reads/s", &self.reads_per_s),
            ("read mean, ms", &self.read_mean_ms),
            ("read p95, ms", &self.read_p95_ms),
            ("writes/s", &self.writes_per_s),
            ("write mean, ms", &self.write_mean_ms),
            ("write p95, ms", &self.write_p95_ms),
        ];
        let is_zero = |pair: &PairReport| pair.measured == Some(0.0) && pair.predicted == Some(0.0);
        let shown = all.into_iter().filter(|(_, pair)| !is_zero(pair));
        shown.collect()
    }
}

impl PairReport {
    /// Measured, predicted and the difference, as a table shows them; "–" for what is not known.
    pub(super) fn cells(&self) -> [String; 3] {
        let known = |figure: Option<f64>| figure.map_or("–".to_owned(), plain);
        let difference = self.difference_percent;
        let difference = difference.map_or("–".to_owned(), |percent| format!("{percent:+.0} %"));
        [known(self.measured), known(self.predicted), difference]
    }
}

/// The figures for a terminal; nothing where there are none.
pub fn measured(beside: &[BesideReport]) -> String {
    let mut text = String::new();
    if beside.is_empty() {
        return text;
    }
    let widest = beside.iter().map(|one| one.vm_group.chars().count()).max();
    let widest = widest.unwrap_or_default().max("volume".len());
    let heading = ["measured", "predicted", "difference"];
    let [measured, predicted, difference] = heading;
    text.push_str("\nMeasured beside predicted\n");
    let head = format_args!(
        "  {:<widest$}  {:<15} {measured:>10} {predicted:>10} {difference:>11}",
        "volume", "figure"
    );
    line(&mut text, head);
    for one in beside {
        for (place, (figure, pair)) in one.figures().into_iter().enumerate() {
            let name = if place == 0 {
                one.vm_group.as_str()
            } else {
                ""
            };
            let [measured, predicted, difference] = pair.cells();
            let row = format_args!(
                "  {name:<widest$}  {figure:<15} {measured:>10} {predicted:>10} {difference:>11}"
            );
            line(&mut text, row);
        }
    }
    text
}
