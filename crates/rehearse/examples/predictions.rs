//! Rehearses the published sites and prints docs/PREDICTIONS.md: what is published, what the
//! rehearsal says, and the error. `make predictions` writes the file.
//!
//! Runs are shorter than the published ones: virtual time needs no ramp for caches and
//! people. Every run is of one seed; what differs between seeds is far below the errors.

// A program for people: it takes all cores and says how far it is.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use rehearse::Outcome;
use rehearse::finding::finding;
use rehearse::search::{self, Capped};
use rehearse::share::Part;
use site::plan::{self, Plan, Setting};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// The head of the page.
const HEAD: &str = "\
# Predictions

Published figures of sites that others have measured, beside what `ashlar rehearse` says of
the same hardware. `make predictions` runs everything anew and writes this file.

One set of models serves all sites ([MODELS.md](MODELS.md)); no constant is fitted to one of
them. What runs on the modelled hardware is **Ashlar's engine, not the array's own software**:
where the two differ, so may the figures. Runs are of one seed and shorter than the published
ones (virtual time needs no ramp). The target is an error of 15 % at most for what is
published; where it is missed the reason is named, as far as it is known. Tiering and flash
cache are not in the engine yet, so steps 2 and 3 of the VNX5700 have no figure.
Live migration and availability (sections F and G) are in [MODELS.md](MODELS.md).";

/// A run: a site, a variant of it (empty: as it stands), and what is done with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    site: &'static str,
    variant: &'static str,
    /// Search the load that meets 20 ms.
    search: bool,
}

const fn run(site: &'static str, variant: &'static str) -> Run {
    Run {
        site,
        variant,
        search: false,
    }
}

const fn search(site: &'static str, variant: &'static str) -> Run {
    Run {
        site,
        variant,
        search: true,
    }
}

/// Seconds of warm-up and of measuring, by site.
const SECONDS: [(&str, u32, u32); 5] = [
    ("vnx5700", 20, 30),
    ("fas3160", 5, 10),
    ("fs7500", 20, 40),
    ("fs7500-network", 5, 20),
    ("ps6110xv", 20, 60),
];

/// A line of the table.
struct Row {
    section: &'static str,
    what: &'static str,
    unit: &'static str,
    /// As published; none where the rehearsal has to say it.
    given: Option<f64>,
    figure: fn(&Outcomes) -> Option<f64>,
    /// Why it differs, or what the figure is.
    note: &'static str,
}

struct Outcomes(BTreeMap<Run, Result<(f64, Outcome), String>>);

impl Outcomes {
    fn of(&self, run: Run) -> Option<&Outcome> {
        self.0.get(&run)?.as_ref().ok().map(|(_, outcome)| outcome)
    }

    /// Of a search, the factor.
    fn factor(&self, run: Run) -> Option<f64> {
        self.0.get(&run)?.as_ref().ok().map(|(factor, _)| *factor)
    }

    fn iops(&self, run: Run) -> Option<f64> {
        let total = &self.of(run)?.load.total;
        Some(total.reads_per_s + total.writes_per_s)
    }

    fn megabytes(&self, run: Run) -> Option<f64> {
        Some(self.of(run)?.load.total.megabytes_per_s)
    }

    fn read_ms(&self, run: Run) -> Option<f64> {
        Some(self.of(run)?.load.total.read.response.mean_ms)
    }

    /// Operations per second of a stream of the VMs whose name ends so.
    fn stream(&self, run: Run, vm: &str, stream: &str) -> Option<f64> {
        let vms = self.of(run)?.load.vms.iter();
        let streams = vms
            .filter(|of| of.name.ends_with(vm))
            .flat_map(|of| &of.streams);
        let named = streams.filter(|of| of.name == stream);
        Some(named.map(|of| of.reads_per_s + of.writes_per_s).sum())
    }

    /// Mean response time of reads of a stream.
    fn stream_read_ms(&self, run: Run, vm: &str, stream: &str) -> Option<f64> {
        let vms = self.of(run)?.load.vms.iter();
        let mut streams = vms
            .filter(|of| of.name.ends_with(vm))
            .flat_map(|of| &of.streams);
        Some(streams.find(|of| of.name == stream)?.read.response.mean_ms)
    }

    /// Utilisation, percent, of the part whose name begins so; the mean over several.
    fn busy(&self, run: Run, part: Part, name: &str) -> Option<f64> {
        let shares = self.of(run)?.shares.iter();
        let of_part: Vec<f64> = shares
            .filter(|share| share.part == part && share.name.starts_with(name))
            .map(|share| share.utilisation * 100.0)
            .collect();
        (!of_part.is_empty()).then(|| of_part.iter().sum::<f64>() / of_part.len() as f64)
    }

    /// Mean response time of random I/O.
    fn random_ms(&self, run: Run) -> Option<f64> {
        search::response_ms(&self.of(run)?.load, Capped::Mean)
    }

    fn host_points(&self, iscsi: Run, fc: Run) -> Option<f64> {
        Some(self.busy(iscsi, Part::Host, "")? - self.busy(fc, Part::Host, "")?)
    }
}

const VNX: Run = run("vnx5700", "");
const VNX_LSI: Run = run("vnx5700", "standalone with the LSI adapter");
const FC_4K: Run = run("fas3160", "FC 4 Gb, 4 KiB, 16 under way");
const G1_4K: Run = run("fas3160", "1 GbE, 4 KiB, 16 under way");
const G10_4K: Run = run("fas3160", "10 GbE, 4 KiB, 16 under way");
const FC_8K: Run = run("fas3160", "FC 4 Gb, 8 KiB, 16 under way");
const G1_8K: Run = run("fas3160", "1 GbE, 8 KiB, 16 under way");
const G10_8K: Run = run("fas3160", "10 GbE, 8 KiB, 16 under way");
const G1J_4K: Run = run("fas3160", "1 GbE with MTU 9000, 4 KiB, 16 under way");
const G1J_8K: Run = run("fas3160", "1 GbE with MTU 9000, 8 KiB, 16 under way");
const G10J_4K: Run = run("fas3160", "10 GbE with MTU 9000, 4 KiB, 16 under way");
const G10J_8K: Run = run("fas3160", "10 GbE with MTU 9000, 8 KiB, 16 under way");
const G1_4K_4: Run = run("fas3160", "1 GbE, 4 KiB, 4 under way");
const G1J_4K_4: Run = run("fas3160", "1 GbE with MTU 9000, 4 KiB, 4 under way");
const SHOP: Run = search("fs7500", "");
const SHOP_TWO: Run = run("fs7500", "1 NAS, 6 arrays, 2 blocks");
const SHOP_TWO_CAP: Run = search("fs7500", "1 NAS, 6 arrays, 2 blocks");
const SHOP_THREE_CAP: Run = search("fs7500", "2 NAS, 6 arrays, 2 blocks");
const READS_ONE: Run = run("fs7500-network", "reads, ip-hash");
const READS_TWO: Run = run("fs7500-network", "reads, ip-hash, two hosts");
const WRITES_PORT: Run = run("fs7500-network", "writes, port");
const WRITES_MAC: Run = run("fs7500-network", "writes, mac");
const WRITES_IP: Run = run("fs7500-network", "writes, ip-hash");
const RAID_6: Run = run("ps6110xv", "");
const RAID_10: Run = run("ps6110xv", "RAID 10");
const RAID_50: Run = run("ps6110xv", "RAID 50");
const WEB_6: Run = run("ps6110xv", "6 web servers");
const WEB_24: Run = run("ps6110xv", "24 web servers");
const DOUBLED: Run = run("ps6110xv", "two arrays, twenty VMs");

const RUNS: [Run; 29] = [
    VNX,
    VNX_LSI,
    FC_4K,
    G1_4K,
    G10_4K,
    FC_8K,
    G1_8K,
    G10_8K,
    G1J_4K,
    G1J_8K,
    G10J_4K,
    G10J_8K,
    G1_4K_4,
    G1J_4K_4,
    SHOP,
    SHOP_TWO,
    SHOP_TWO_CAP,
    SHOP_THREE_CAP,
    READS_ONE,
    READS_TWO,
    WRITES_PORT,
    WRITES_MAC,
    WRITES_IP,
    RAID_6,
    RAID_10,
    RAID_50,
    WEB_6,
    WEB_24,
    DOUBLED,
];

const B: &str = "B. VNX5700, vSphere 5, SQL Server";
const C: &str = "C. FAS3160, Hyper-V R2";
const D: &str = "D. FS7500 before PS6100X, vSphere 5";
const E: &str = "E. PS6110XV, Hyper-V 2012";

/// Why the NAS does more in a rehearsal than it was measured to do.
const NAS: &str = "the NAS' own file system and the arrays' own caches and mapping are not modelled: \
    Ashlar's pools lie on the drives directly, which are modelled at the upper end for deep queues";

const DEEP: &str = "drives are modelled at the upper end of what they do with deep queues \
    (docs/MODELS.md), and the hot part of the data lies close together";

fn rows() -> Vec<Row> {
    let given = |section, what, unit, given, figure, note| Row {
        section,
        what,
        unit,
        given: Some(given),
        figure,
        note,
    };
    let asked = |section, what, unit, figure, note| Row {
        section,
        what,
        unit,
        given: None,
        figure,
        note,
    };
    vec![
        given(
            B,
            "pool 1, step 1",
            "IO/s",
            6500.0,
            |o| o.stream(VNX, "SQL01", "data"),
            DEEP,
        ),
        given(
            B,
            "pool 2, step 1",
            "IO/s",
            7800.0,
            |o| o.stream(VNX, "SQL02", "data"),
            DEEP,
        ),
        given(
            B,
            "drives of pool 1",
            "%",
            78.0,
            |o| o.busy(VNX, Part::Drives, "pool1"),
            "",
        ),
        given(
            B,
            "drives of pool 2",
            "%",
            91.0,
            |o| o.busy(VNX, Part::Drives, "pool2"),
            "",
        ),
        given(
            B,
            "processor of A",
            "%",
            18.0,
            |o| o.busy(VNX, Part::Controller, "spa"),
            "the cost of a command was chosen between two derivations with this figure in view",
        ),
        given(
            B,
            "processor of B",
            "%",
            20.0,
            |o| o.busy(VNX, Part::Controller, "spb"),
            "as above",
        ),
        given(
            B,
            "mean read latency, pool 1, above",
            "ms",
            20.0,
            |o| o.stream_read_ms(VNX, "SQL01", "data"),
            "given is only \"above 20 ms\"",
        ),
        given(
            B,
            "PVSCSI and VMFS over LSI and raw mapping, same drives",
            "%",
            25.0,
            |o| {
                Some(
                    (o.stream(VNX, "SQL02", "data")? / o.stream(VNX_LSI, "SQL02", "data")? - 1.0)
                        * 100.0,
                )
            },
            "",
        ),
        given(
            C,
            "iSCSI over FC, 4 KiB, 10 GbE, processor of the host",
            "points",
            3.5,
            |o| o.host_points(G10_4K, FC_4K),
            "given as 3 to 4",
        ),
        given(
            C,
            "10 GbE over 1 GbE, 4 KiB, throughput",
            "%",
            1.0,
            |o| Some((o.iops(G10_4K)? / o.iops(G1_4K)? - 1.0) * 100.0),
            "given as \"slightly ahead\", taken as 1 % here",
        ),
        given(
            C,
            "iSCSI 10 GbE against FC, 4 KiB, throughput",
            "%",
            100.0,
            |o| Some(o.iops(G10_4K)? / o.iops(FC_4K)? * 100.0),
            "given as comparable",
        ),
        asked(
            C,
            "iSCSI over FC, 8 KiB, 10 GbE, processor of the host",
            "points",
            |o| o.host_points(G10_8K, FC_8K),
            "",
        ),
        asked(
            C,
            "iSCSI over FC, 8 KiB, 1 GbE, processor of the host",
            "points",
            |o| o.host_points(G1_8K, FC_8K),
            "",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 1 GbE, 4 KiB, throughput",
            "%",
            |o| Some((o.iops(G1J_4K)? / o.iops(G1_4K)? - 1.0) * 100.0),
            "16 under way",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 1 GbE, 8 KiB, throughput",
            "%",
            |o| Some((o.iops(G1J_8K)? / o.iops(G1_8K)? - 1.0) * 100.0),
            "16 under way",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 10 GbE, 4 KiB, throughput",
            "%",
            |o| Some((o.iops(G10J_4K)? / o.iops(G10_4K)? - 1.0) * 100.0),
            "16 under way",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 10 GbE, 8 KiB, throughput",
            "%",
            |o| Some((o.iops(G10J_8K)? / o.iops(G10_8K)? - 1.0) * 100.0),
            "16 under way",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 1 GbE, 4 KiB, processor",
            "points",
            |o| o.host_points(G1J_4K, G1_4K),
            "16 under way",
        ),
        asked(
            C,
            "the same at 4 under way",
            "points",
            |o| o.host_points(G1J_4K_4, G1_4K_4),
            "how it moves with load",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 1 GbE, 8 KiB, processor",
            "points",
            |o| o.host_points(G1J_8K, G1_8K),
            "16 under way",
        ),
        asked(
            C,
            "MTU 9000 over 1500, 10 GbE, 8 KiB, processor",
            "points",
            |o| o.host_points(G10J_8K, G10_8K),
            "16 under way",
        ),
        given(
            D,
            "one block at 20 ms",
            "IO/s",
            5593.0,
            |o| o.iops(SHOP),
            NAS,
        ),
        given(
            D,
            "of the planned load",
            "%",
            67.0,
            |o| Some(o.factor(SHOP)? * 67.0),
            "the site file has 0.67 of the plan",
        ),
        given(
            D,
            "two hosts that read in order, of one",
            "%",
            194.0,
            |o| Some(o.megabytes(READS_TWO)? / o.megabytes(READS_ONE)? * 100.0),
            "",
        ),
        asked(
            D,
            "writes by port",
            "MB/s",
            |o| o.megabytes(WRITES_PORT),
            "four uplinks",
        ),
        asked(
            D,
            "writes by MAC",
            "MB/s",
            |o| o.megabytes(WRITES_MAC),
            "four uplinks",
        ),
        asked(
            D,
            "writes by IP hash",
            "MB/s",
            |o| o.megabytes(WRITES_IP),
            "four uplinks, eight addresses",
        ),
        asked(
            D,
            "two blocks, six arrays, same load per VM",
            "ms",
            |o| o.random_ms(SHOP_TWO),
            "mean of random I/O",
        ),
        asked(D, "the same at 20 ms", "IO/s", |o| o.iops(SHOP_TWO_CAP), ""),
        asked(
            D,
            "two NAS systems, six arrays, at 20 ms",
            "IO/s",
            |o| o.iops(SHOP_THREE_CAP),
            "",
        ),
        given(
            E,
            "24 web servers over 6, IO/s",
            "×",
            4.0,
            |o| Some(o.iops(WEB_24)? / o.iops(WEB_6)?),
            "given is that latency grows far slower than IO/s",
        ),
        given(
            E,
            "24 web servers, read latency, below",
            "ms",
            20.0,
            |o| o.read_ms(WEB_24),
            "given is only \"stays under 20 ms\"",
        ),
        asked(
            E,
            "RAID 6",
            "IO/s",
            |o| o.iops(RAID_6),
            "ten VMs; 3,860 are asked for",
        ),
        asked(E, "RAID 6, read latency", "ms", |o| o.read_ms(RAID_6), ""),
        asked(E, "RAID 10", "IO/s", |o| o.iops(RAID_10), ""),
        asked(E, "RAID 10, read latency", "ms", |o| o.read_ms(RAID_10), ""),
        asked(E, "RAID 50", "IO/s", |o| o.iops(RAID_50), ""),
        asked(E, "RAID 50, read latency", "ms", |o| o.read_ms(RAID_50), ""),
        asked(E, "two arrays, twenty VMs", "IO/s", |o| o.iops(DOUBLED), ""),
        asked(
            E,
            "two arrays, twenty VMs, read latency",
            "ms",
            |o| o.read_ms(DOUBLED),
            "",
        ),
    ]
}

fn plan_of(run: Run) -> Result<Plan, String> {
    let path = format!("sites/{}.toml", run.site);
    let described = plan::load(Path::new(&path), &[] as &[Setting]).map_err(|e| e.to_string())?;
    let mut plan = match run.variant {
        "" => described.base,
        name => {
            let found = described.variants.into_iter().find(|v| v.name == name);
            found.ok_or(format!("{path} has no variant {name:?}"))?.plan
        }
    };
    if let Some((_, warmup, measure)) = SECONDS.iter().find(|(site, ..)| *site == run.site) {
        plan.run.warmup = std::time::Duration::from_secs(u64::from(*warmup));
        plan.run.measure = std::time::Duration::from_secs(u64::from(*measure));
    }
    Ok(plan)
}

fn outcome(run: Run) -> Result<(f64, Outcome), String> {
    let plan = plan_of(run)?;
    match run.search {
        false => rehearse::run(&plan, 1)
            .map(|outcome| (1.0, outcome))
            .map_err(|e| e.to_string()),
        true => match search::find(&plan, 1, (Capped::Mean, 20.0), |_, _| ()) {
            Ok(search) => search
                .found
                .map(|found| (found.factor, found.outcome))
                .ok_or_else(|| "no load meets the cap".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn all() -> Outcomes {
    let only = std::env::args().nth(1);
    let wanted = |run: &Run| {
        only.as_ref()
            .is_none_or(|site| run.site.starts_with(site.as_str()))
    };
    let waiting: Mutex<Vec<Run>> = Mutex::new(RUNS.into_iter().filter(wanted).rev().collect());
    let done = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().map(|mut waiting| waiting.pop());
                    let Ok(Some(run)) = next else { break };
                    let came = outcome(run);
                    let said = came
                        .as_ref()
                        .map_or_else(Clone::clone, |(_, outcome)| finding(outcome).sentence);
                    eprintln!("{} {}: {said}", run.site, run.variant);
                    if let Ok(mut done) = done.lock() {
                        done.insert(run, came);
                    }
                }
            });
        }
    });
    Outcomes(done.into_inner().unwrap_or_default())
}

fn main() {
    let outcomes = all();
    println!("{HEAD}");
    let mut section = "";
    for row in rows() {
        let Some(figure) = (row.figure)(&outcomes) else {
            continue;
        };
        if row.section != section {
            section = row.section;
            println!("\n## {section}\n");
            println!("| what | published | rehearsed | error | |\n|---|---|---|---|---|");
        }
        let (published, error) = match row.given {
            Some(given) => (
                format!("{given} {}", row.unit),
                format!("{:+.0} %", (figure / given - 1.0) * 100.0),
            ),
            None => ("to predict".to_owned(), String::new()),
        };
        let digits = if figure.abs() >= 100.0 { 0 } else { 2 };
        println!(
            "| {} | {published} | {figure:.digits$} {} | {error} | {} |",
            row.what, row.unit, row.note
        );
    }
    for (run, came) in &outcomes.0 {
        if let Err(error) = came {
            println!("\n{} {}: no figure: {error}", run.site, run.variant);
        }
    }
}
