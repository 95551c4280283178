//! Runs of the sites, on all cores, and the figures that the lines read from them.

use rehearse::Outcome;
use rehearse::findings::bottleneck::finding;
use rehearse::plan::profiles::shipped;
use rehearse::run::share::{Part, Share};
use rehearse::search::load_factor::{self, Capped};
use rehearse::timeline::log::Undertook;
use site::plan::{self, Plan, Setting};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// A run: a site, a variant of it (empty: as it stands), and what is done with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    site: &'static str,
    variant: &'static str,
    /// Keys of the file that are set first, and to what.
    set: &'static [(&'static str, &'static str)],
    /// Seconds of warm-up and of measuring.
    seconds: (u32, u32),
    /// Search the load that meets 20 ms.
    search: bool,
}

impl Run {
    /// So many seconds of warm-up and of measuring.
    pub const fn of(site: &'static str, variant: &'static str, seconds: (u32, u32)) -> Run {
        Run {
            site,
            variant,
            set: &[],
            seconds,
            search: false,
        }
    }

    /// At the load that meets 20 ms.
    pub const fn to_the_cap(self) -> Run {
        Run {
            search: true,
            ..self
        }
    }

    /// With these keys of the file set.
    pub const fn with(self, set: &'static [(&'static str, &'static str)]) -> Run {
        Run { set, ..self }
    }

    /// The site as this run has it.
    pub fn plan(&self) -> Result<Plan, String> {
        let sites = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sites");
        let path = format!("{sites}/{}.toml", self.site);
        let set = self.set.iter();
        let set = set.map(|(key, value)| Setting::parse(&format!("{key}={value}")));
        let set = set.collect::<Result<Vec<_>, _>>()?;
        let described = plan::load(Path::new(&path), &set).map_err(|e| e.to_string())?;
        let mut plan = match self.variant {
            "" => described.base,
            name => {
                let found = described.variants.into_iter().find(|v| v.name == name);
                found.ok_or(format!("it has no variant {name:?}"))?.plan
            }
        };
        let (warmup, measure) = self.seconds;
        plan.run.warmup = Duration::from_secs(u64::from(warmup));
        plan.run.measure = Duration::from_secs(u64::from(measure));
        Ok(plan)
    }

    /// The factor on the load, and what came of it.
    fn outcome(&self) -> Result<(f64, Outcome), String> {
        let plan = self.plan()?;
        match self.search {
            false => rehearse::run_lasting(&plan, 1, &shipped)
                .map(|outcome| (1.0, outcome))
                .map_err(|e| e.to_string()),
            true => {
                match load_factor::find(&plan, (1, &shipped), (Capped::Mean, 20.0), |_, _| ()) {
                    Ok(search) => search
                        .found
                        .map(|found| (found.factor, found.outcome))
                        .ok_or_else(|| "no load meets the cap".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }
}

/// What came of the runs.
pub struct Outcomes(BTreeMap<Run, Result<(f64, Outcome), String>>);

impl Outcomes {
    /// Does all of `runs`, the first ones first, and says how far it is.
    pub fn of_all(runs: Vec<Run>) -> Outcomes {
        let waiting: Mutex<Vec<Run>> = Mutex::new(runs.into_iter().rev().collect());
        let done = Mutex::new(BTreeMap::new());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().map(|mut waiting| waiting.pop());
                        let Ok(Some(run)) = next else { break };
                        let came = run.outcome();
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

    /// A sentence for each run that gave nothing.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(run, came)| {
            let error = came.as_ref().err()?;
            Some(format!("{} {}: no figure: {error}", run.site, run.variant))
        })
    }

    fn of(&self, run: Run) -> Option<&Outcome> {
        self.0.get(&run)?.as_ref().ok().map(|(_, outcome)| outcome)
    }

    /// Of a search, the factor.
    pub fn factor(&self, run: Run) -> Option<f64> {
        self.0.get(&run)?.as_ref().ok().map(|(factor, _)| *factor)
    }

    pub fn iops(&self, run: Run) -> Option<f64> {
        let total = &self.of(run)?.load.total;
        Some(total.reads_per_s + total.writes_per_s)
    }

    pub fn megabytes(&self, run: Run) -> Option<f64> {
        Some(self.of(run)?.load.total.megabytes_per_s)
    }

    pub fn read_ms(&self, run: Run) -> Option<f64> {
        Some(self.of(run)?.load.total.read.response.mean_ms)
    }

    /// Mean time of reads from the issue on, as a guest measures it.
    pub fn read_service_ms(&self, run: Run) -> Option<f64> {
        Some(self.of(run)?.load.total.read.service.mean_ms)
    }

    /// Operations per second of a stream of the VMs whose name ends so.
    pub fn stream(&self, run: Run, vm: &str, stream: &str) -> Option<f64> {
        let vms = self.of(run)?.load.vms.iter();
        let streams = vms
            .filter(|of| of.name.ends_with(vm))
            .flat_map(|of| &of.streams);
        let named = streams.filter(|of| of.name == stream);
        Some(named.map(|of| of.reads_per_s + of.writes_per_s).sum())
    }

    /// Transactions per second of the VM whose name ends so.
    pub fn transactions(&self, run: Run, vm: &str) -> Option<f64> {
        let mut vms = self.of(run)?.load.vms.iter();
        let of_vm = vms.find(|of| of.name.ends_with(vm))?;
        Some(of_vm.transactions?.per_s)
    }

    /// Mean response time of reads of the VM whose name ends so.
    pub fn vm_read_ms(&self, run: Run, vm: &str) -> Option<f64> {
        let mut vms = self.of(run)?.load.vms.iter();
        Some(vms.find(|of| of.name.ends_with(vm))?.read.response.mean_ms)
    }

    /// Mean response time of reads of a stream.
    pub fn stream_read_ms(&self, run: Run, vm: &str, stream: &str) -> Option<f64> {
        let vms = self.of(run)?.load.vms.iter();
        let mut streams = vms
            .filter(|of| of.name.ends_with(vm))
            .flat_map(|of| &of.streams);
        Some(streams.find(|of| of.name == stream)?.read.response.mean_ms)
    }

    /// Seconds from the beginning of what happened in a run to its end.
    pub fn took_s(&self, run: Run, what: &str) -> Option<f64> {
        let told = &self.of(run)?.told;
        let at = |then: &str| {
            let mut of_it = told.iter().filter_map(|told| {
                let rest = told.text.strip_prefix(what)?;
                rest.starts_with(then).then_some(told.at)
            });
            of_it.next()
        };
        Some((at(" has ended")? - at(" begins")?).as_secs_f64())
    }

    /// Links' worth of use while something happened, of the ports of a host into a network:
    /// they carry nothing else.
    pub fn links_used(&self, run: Run, ports: &str, what: &str) -> Option<f64> {
        let shares = self.of(run)?.shares.iter();
        let out = shares.filter(|share| {
            share.part == Part::Link
                && share.name.starts_with(ports)
                && share.name.ends_with("to storage")
        });
        let links: f64 = out.map(|share| share.utilisation).sum();
        Some(links * f64::from(run.seconds.1) / self.took_s(run, what)?)
    }

    /// I/Os of the drives of a pool for one of the hosts.
    pub fn back_end(&self, run: Run, pool: &str) -> Option<f64> {
        let shares = self.of(run)?.shares.iter();
        let of_pool = |share: &&Share| share.part == Part::Drives && share.name.starts_with(pool);
        let drives: f64 = shares.filter(of_pool).map(|share| share.per_s).sum();
        Some(drives / self.iops(run)?)
    }

    /// Utilisation, percent, of the part whose name begins so; the mean over several.
    pub fn busy(&self, run: Run, part: Part, name: &str) -> Option<f64> {
        let shares = self.of(run)?.shares.iter();
        let of_part: Vec<f64> = shares
            .filter(|share| share.part == part && share.name.starts_with(name))
            .map(|share| share.utilisation * 100.0)
            .collect();
        (!of_part.is_empty()).then(|| of_part.iter().sum::<f64>() / of_part.len() as f64)
    }

    /// Operations per second of a VM in whole seconds of the run, warm-up included.
    pub fn vm_iops(&self, run: Run, vm: &str, seconds: Range<usize>) -> Option<f64> {
        let mut vms = self.of(run)?.load.vms.iter();
        let of_vm = &vms.find(|of| of.name == vm)?.seconds;
        let all = of_vm.get(seconds.clone())?.iter();
        let operations: u64 = all.map(|second| second.reads + second.writes).sum();
        Some(operations as f64 / seconds.len() as f64)
    }

    /// What was told to take a time, by its beginning.
    pub fn undertook(&self, run: Run, what: &str) -> Option<&Undertook> {
        let mut all = self.of(run)?.undertook.iter();
        all.find(|undertook| undertook.what.starts_with(what))
    }

    /// Bytes of the first disks of all VMs.
    pub fn first_disks_bytes(&self, run: Run) -> Option<u64> {
        let vms = self.of(run)?.load.vms.iter();
        Some(vms.filter_map(|vm| vm.disk_bytes.first()).sum())
    }

    /// Mean response time of random I/O.
    pub fn random_ms(&self, run: Run) -> Option<f64> {
        load_factor::response_ms(&self.of(run)?.load, Capped::Mean)
    }

    /// The processor of a host for a thousand I/Os a second of it, points, of four hosts alike.
    pub fn host_points_each(&self, run: Run) -> Option<f64> {
        let of_host = self.iops(run)? / 4.0 / 1e3;
        Some(self.busy(run, Part::Host, "")? / of_host)
    }

    pub fn host_points(&self, iscsi: Run, fc: Run) -> Option<f64> {
        Some(self.busy(iscsi, Part::Host, "")? - self.busy(fc, Part::Host, "")?)
    }
}
