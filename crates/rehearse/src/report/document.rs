//! The conversion of outcomes to the schema.

use super::schema::{
    AssumptionReport, Document, EstimateReport, FailedReport, FindingReport, SCHEMA, SearchReport,
    SeedReport, ShareReport, SourceReport, StageReport, SummaryReport, ToldReport, TriedReport,
    VariantReport,
};
use crate::findings::bottleneck::{Finding, finding};
use crate::findings::summary::{Rehearsal, Summary};
use crate::parts::disk::Stage;
use crate::plan::catalog;
use crate::run::confidence::Estimate;
use crate::run::share::Share;
use crate::run::{Failed, Outcome};
use crate::search::load_factor::{Capped, Search};
use site::plan::Plan;
use workload::report::page::VERSION;

/// A document of `plan`'s site, which comes from `source`.
pub fn document(
    plan: &Plan,
    source: Option<SourceReport>,
    variants: Vec<VariantReport>,
) -> Document {
    Document {
        schema: SCHEMA.to_owned(),
        version: VERSION.to_owned(),
        source,
        site: plan.name.clone(),
        about: plan.about.clone(),
        assumed: assumed(plan),
        variants,
        sizing: None,
    }
}

/// What the file of `plan` does not say.
pub(super) fn assumed(plan: &Plan) -> Vec<AssumptionReport> {
    let one = |one: &site::plan::Assumption| AssumptionReport {
        key: one.key.clone(),
        value: one.value.clone(),
    };
    catalog::assumed(plan).iter().map(one).collect()
}

/// What came of a site or a variant.
pub fn rehearsed(rehearsal: &Rehearsal) -> VariantReport {
    VariantReport {
        name: rehearsal.name.clone(),
        layout: rehearsal.outcomes.first().map(|first| first.layout.clone()),
        summary: Some(summary(&rehearsal.summary())),
        seeds: rehearsal.outcomes.iter().map(seed).collect(),
        search: None,
        beside: Vec::new(),
    }
}

/// What came of a search: figures are those of the load that was found.
pub fn searched(name: &str, (capped, cap_ms): (Capped, f64), search: &Search) -> VariantReport {
    let found = search.found.as_ref();
    let mut report = match found {
        Some(found) => rehearsed(&Rehearsal {
            name: name.to_owned(),
            outcomes: vec![found.outcome.clone()],
        }),
        None => VariantReport {
            name: name.to_owned(),
            layout: None,
            summary: None,
            seeds: Vec::new(),
            search: None,
            beside: Vec::new(),
        },
    };
    let tried = search.tried.iter().map(|tried| TriedReport {
        factor: tried.factor,
        iops: tried.iops,
        response_ms: tried.response_ms,
    });
    report.search = Some(SearchReport {
        capped: match capped {
            Capped::Mean => "mean".to_owned(),
            Capped::Percentile95 => "p95".to_owned(),
        },
        cap_ms,
        factor: found.map(|found| found.factor),
        response_ms: found.map(|found| found.response_ms),
        tried: tried.collect(),
    });
    report
}

fn seed(outcome: &Outcome) -> SeedReport {
    SeedReport {
        seed: outcome.seed,
        trace_hash: format!("{:016x}", outcome.trace_hash),
        operations: outcome.operations,
        load: outcome.load.clone(),
        stages: stages(outcome),
        shares: outcome.shares.iter().map(share).collect(),
        told: outcome
            .told
            .iter()
            .map(|told| ToldReport {
                at_s: told.at.as_secs_f64(),
                text: told.text.clone(),
            })
            .collect(),
        failed: outcome.failed.iter().map(failed).collect(),
        settling: Some(outcome.settling.clone()),
        finding: found(finding(outcome)),
    }
}

fn failed(failed: &Failed) -> FailedReport {
    FailedReport {
        part: failed.part,
        name: failed.name.clone(),
        at_s: failed.at.as_secs_f64(),
    }
}

fn stages(outcome: &Outcome) -> Vec<StageReport> {
    let count = outcome.stages.count.max(1) as f64;
    let all: u128 = outcome.stages.ns.iter().sum();
    let report = |stage: Stage| {
        let ns = outcome.stages.ns[stage as usize] as f64;
        StageReport {
            stage,
            mean_ms: ns / 1e6 / count,
            share: ns / all.max(1) as f64,
        }
    };
    Stage::ALL.into_iter().map(report).collect()
}

fn share(share: &Share) -> ShareReport {
    // What was not counted is zero in a share.
    let known = |figure: f64| (share.per_s > 0.0).then_some(figure);
    ShareReport {
        part: share.part,
        name: share.name.clone(),
        utilisation: share.utilisation,
        per_s: known(share.per_s),
        service_ms: known(share.service_ms),
        waiting_ms: known(share.waiting_ms),
        stroke: share.stroke.filter(|_| share.per_s > 0.0),
    }
}

fn found(finding: Finding) -> FindingReport {
    FindingReport {
        bottleneck: finding.first.as_ref().map(share),
        next: finding.next.as_ref().map(share),
        slowest_stage: finding.slowest,
        slowest_share: finding.slowest_share,
        headroom: finding.headroom,
        sentence: finding.sentence,
        next_sentence: finding.next_sentence,
    }
}

/// A figure with its interval.
pub(super) fn estimated(estimate: &Estimate) -> EstimateReport {
    EstimateReport {
        mean: estimate.mean,
        half_width_95: estimate.half_width,
    }
}

fn summary(summary: &Summary) -> SummaryReport {
    let of = estimated;
    SummaryReport {
        iops: of(&summary.iops),
        reads_per_s: of(&summary.reads_per_s),
        writes_per_s: of(&summary.writes_per_s),
        megabytes_per_s: of(&summary.megabytes_per_s),
        read_ms: of(&summary.read_ms),
        write_ms: of(&summary.write_ms),
        random_ms: summary.random_ms.as_ref().map(of),
    }
}
