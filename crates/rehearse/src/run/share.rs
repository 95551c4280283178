//! The utilisation of every part in the measured window, from which bottlenecks are read.

use crate::rig::Rig;
use crate::rig::vm::VmRig;
use model::hdd::STROKE_PARTS;
use model::station::Snapshot;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Duration;

/// What kind of thing is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The virtual processors of a VM, for its transactions.
    Vm,
    /// A host's processor, for I/O.
    Host,
    /// A port or a link between networks, one direction.
    Link,
    /// A controller's processor, all cores together.
    Controller,
    /// The way between a controller and its partner.
    Interconnect,
    /// A bus to drives, one direction.
    Bus,
    /// All drives of a pool that are alike.
    Drives,
    /// A single drive, spares included.
    Drive,
}

impl Part {
    /// All kinds, in the order of an I/O.
    pub const ALL: [Part; 8] = [
        Part::Vm,
        Part::Host,
        Part::Link,
        Part::Controller,
        Part::Interconnect,
        Part::Bus,
        Part::Drives,
        Part::Drive,
    ];

    /// As reports write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Vm => "processor of VM",
            Part::Host => "host processor",
            Part::Link => "link",
            Part::Controller => "controller processor",
            Part::Interconnect => "interconnect",
            Part::Bus => "bus",
            Part::Drives => "drives of pool",
            Part::Drive => "drive",
        }
    }
}

/// How busy one thing was.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The kind of part, which tells parts of equal names apart.
    pub part: Part,
    /// The part's name: unique among parts of its kind.
    pub name: String,
    /// Busy time over time, from 0 to 1.
    pub utilisation: f64,
    /// Jobs per second in the window; 0 for links, which count no jobs.
    pub per_s: f64,
    /// Mean time of a job at work, milliseconds; zero where it is not known.
    pub service_ms: f64,
    /// Mean time of a job waiting there, milliseconds; zero where it is not known.
    pub waiting_ms: f64,
    /// The part of the stroke that the arm worked on, from 0 to 1; none without an arm.
    pub stroke: Option<f64>,
}

/// What everything did until an instant.
pub struct Meter {
    /// VMs with transactions, by name.
    vms: Vec<(String, Snapshot)>,
    hosts: Vec<Snapshot>,
    controllers: Vec<Snapshot>,
    buses: Vec<Snapshot>,
    lanes: Vec<(Part, String, Duration)>,
    drives: Vec<DriveMeter>,
    at: base::Time,
}

struct DriveMeter {
    pool: String,
    name: String,
    busy: Duration,
    parts: u32,
    /// Commands of all drives that share the device.
    served: u64,
    ended: u64,
    response: Duration,
    by_stroke: Option<[u64; STROKE_PARTS]>,
}

impl Meter {
    /// Reads all meters of a rig.
    pub fn read(rig: &Rig) -> Meter {
        let now = engine::World::now(&rig.world);
        let mut lanes = Vec::new();
        for port in rig.fabric.ports() {
            let [out, back] = port.busy(now);
            lanes.push((Part::Link, format!("{}, to storage", port.name), out));
            lanes.push((Part::Link, format!("{}, from storage", port.name), back));
        }
        for controller in &rig.controllers {
            if let Some(busy) = controller.interconnect_busy(now) {
                lanes.push((Part::Interconnect, controller.name.clone(), busy));
            }
        }
        Meter {
            vms: vms(rig),
            hosts: rig.hosts.iter().map(|host| host.cpu()).collect(),
            controllers: rig.controllers.iter().map(|c| c.cpu()).collect(),
            buses: rig
                .buses
                .iter()
                .flat_map(|bus| bus.lanes(&rig.world))
                .collect(),
            lanes,
            drives: drives(rig),
            at: now,
        }
    }

    /// How busy everything was since an earlier reading of the same rig, in the order of an
    /// I/O: VMs, hosts, links, controllers, buses, drives.
    pub fn shares(&self, earlier: &Meter, rig: &Rig) -> Vec<Share> {
        let seconds = (self.at - earlier.at).as_secs_f64();
        let mut shares = Vec::new();
        of_vms(&self.vms, &earlier.vms, &mut shares);
        let names = rig.hosts.iter().map(|host| host.name.as_str());
        stations(Part::Host, names, &self.hosts, &earlier.hosts, &mut shares);
        let lane = |((part, name, now), (_, _, before)): (
            &(Part, String, Duration),
            &(Part, String, Duration),
        )| Share {
            part: *part,
            name: name.clone(),
            utilisation: ratio(now.saturating_sub(*before).as_secs_f64(), seconds),
            per_s: 0.0,
            service_ms: 0.0,
            waiting_ms: 0.0,
            stroke: None,
        };
        let lanes: Vec<Share> = self.lanes.iter().zip(&earlier.lanes).map(lane).collect();
        shares.extend(
            lanes
                .iter()
                .filter(|share| share.part == Part::Link)
                .cloned(),
        );
        let names = rig.controllers.iter().map(|c| c.name.as_str());
        let (now, before) = (&self.controllers, &earlier.controllers);
        stations(Part::Controller, names, now, before, &mut shares);
        shares.extend(lanes.into_iter().filter(|share| share.part != Part::Link));
        let names: Vec<String> = rig.buses.iter().flat_map(|bus| bus.lane_names()).collect();
        let names = names.iter().map(String::as_str);
        stations(Part::Bus, names, &self.buses, &earlier.buses, &mut shares);
        let drives = self.drives.iter().zip(&earlier.drives);
        let drives: Vec<(&str, Share)> = drives
            .map(|(now, before)| (now.pool.as_str(), drive(now, before, seconds)))
            .collect();
        shares.extend(of_pools(&drives));
        shares.extend(drives.into_iter().map(|(_, share)| share));
        shares
    }
}

/// The processors of VMs that do transactions.
fn vms(rig: &Rig) -> Vec<(String, Snapshot)> {
    let now = engine::World::now(&rig.world);
    let transacts = |vm: &&Rc<VmRig>| vm.profile.has_threads();
    let vms = rig.vms.iter().filter(transacts);
    vms.map(|vm| (vm.name.clone(), vm.vcpus.borrow().snapshot(now)))
        .collect()
}

fn of_vms(now: &[(String, Snapshot)], before: &[(String, Snapshot)], shares: &mut Vec<Share>) {
    let names = now.iter().map(|(name, _)| name.as_str());
    let only = |vms: &[(String, Snapshot)]| -> Vec<Snapshot> {
        vms.iter().map(|(_, snapshot)| *snapshot).collect()
    };
    stations(Part::Vm, names, &only(now), &only(before), shares);
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn stations<'a>(
    part: Part,
    names: impl Iterator<Item = &'a str>,
    now: &[Snapshot],
    before: &[Snapshot],
    shares: &mut Vec<Share>,
) {
    for (name, (now, before)) in names.zip(now.iter().zip(before)) {
        let window = now.since(before);
        let seconds = window.elapsed.as_secs_f64();
        let jobs = window.arrived.max(1) as f64;
        shares.push(Share {
            part,
            name: name.to_owned(),
            utilisation: ratio(window.busy.as_secs_f64(), seconds * window.servers as f64),
            per_s: ratio(window.arrived as f64, seconds),
            service_ms: window.busy.as_secs_f64() * 1e3 / jobs,
            waiting_ms: window.waited.as_secs_f64() * 1e3 / jobs,
            stroke: None,
        });
    }
}

/// What every drive did so far.
fn drives(rig: &Rig) -> Vec<DriveMeter> {
    let mut drives = Vec::new();
    for pool in &rig.pools {
        for drive in &pool.drives {
            let (busy, taken) = (drive.busy(), drive.taken());
            drives.push(DriveMeter {
                pool: format!("{}, {}", pool.name, drive.kind().name()),
                name: drive.name.clone(),
                busy: busy.busy,
                parts: busy.parts,
                served: busy.served,
                ended: taken.ended,
                response: taken.response,
                by_stroke: drive.by_stroke(),
            });
        }
    }
    drives
}

fn drive(now: &DriveMeter, before: &DriveMeter, seconds: f64) -> Share {
    let busy = now.busy.saturating_sub(before.busy).as_secs_f64();
    let ended = now.ended - before.ended;
    let jobs = ended.max(1) as f64;
    let response = (now.response - before.response).as_secs_f64();
    let served = now.served - before.served;
    let service_ms = busy * 1e3 / served.max(1) as f64;
    Share {
        part: Part::Drive,
        name: now.name.clone(),
        utilisation: ratio(busy, seconds * f64::from(now.parts)).min(1.0),
        per_s: ratio(ended as f64, seconds),
        service_ms,
        waiting_ms: (response * 1e3 / jobs - service_ms).max(0.0),
        stroke: now.by_stroke.zip(before.by_stroke).map(stroke),
    }
}

/// The part of the stroke that was used between two readings: of its equal parts those that had
/// a hundredth, at least, of what each would have if all had as many commands.
fn stroke((now, before): ([u64; STROKE_PARTS], [u64; STROKE_PARTS])) -> f64 {
    let counts = now.iter().zip(&before).map(|(now, before)| now - before);
    let all: u64 = counts.clone().sum();
    let is_used = |count: &u64| *count * 100 * STROKE_PARTS as u64 >= all && *count > 0;
    counts.filter(is_used).count() as f64 / STROKE_PARTS as f64
}

/// The drives of each pool that are alike, together.
fn of_pools(drives: &[(&str, Share)]) -> Vec<Share> {
    let mut pools: Vec<&str> = Vec::new();
    for (pool, _) in drives {
        if !pools.contains(pool) {
            pools.push(pool);
        }
    }
    let of_pool = |pool: &&str| {
        let all: Vec<&Share> = drives
            .iter()
            .filter(|(of, _)| of == pool)
            .map(|(_, share)| share)
            // Spares do nothing.
            .filter(|share| share.per_s > 0.0)
            .collect();
        let per_s: f64 = all.iter().map(|share| share.per_s).sum();
        let weighed = |value: fn(&Share) -> f64| {
            let sum: f64 = all.iter().map(|share| value(share) * share.per_s).sum();
            ratio(sum, per_s)
        };
        Share {
            part: Part::Drives,
            name: (*pool).to_owned(),
            utilisation: ratio(
                all.iter().map(|share| share.utilisation).sum(),
                all.len() as f64,
            ),
            per_s,
            service_ms: weighed(|share| share.service_ms),
            waiting_ms: weighed(|share| share.waiting_ms),
            stroke: all
                .iter()
                .any(|share| share.stroke.is_some())
                .then(|| weighed(|share| share.stroke.unwrap_or(0.0))),
        }
    };
    pools.iter().map(of_pool).collect()
}
