//! The open disks of one VM: links to targets, and the place of each disk on them.

use super::SharedCounters;
use super::clock::Clock;
use super::link::Link;
use crate::endpoint::{self, CONNECT_TIMEOUT, Completion, Interest, OpenOptions, Request};
use crate::endpoint::{TargetError, TargetErrorKind};
use crate::os;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::outcome::Outage;
use workload::pattern::Pattern;
use workload::plan::{DiskShare, Plan};
use workload::profile::{IO_GRAIN_BYTES, VmProfile};
use workload::url::TargetUrl;

/// Endpoints are serviced at least this often, so that they notice time passing.
const SERVICE_EVERY: Duration = Duration::from_millis(100);

const FILL_BYTES: u32 = 256 << 10;
const FILL_OUTSTANDING: usize = 8;

/// The disks of one VM.
pub struct Disks {
    links: Vec<Link>,
    disks: Vec<Disk>,
    outstanding_max: usize,
    writes: u64,
    interests: Vec<Interest>,
    revents: Vec<i16>,
    /// How losses are outlived; without, the first one is an error.
    outlive: Option<Outlive>,
    /// Links that were lost since they were asked for.
    lost: Vec<usize>,
}

struct Outlive {
    clock: Clock,
    within: Duration,
}

#[derive(Clone, Copy)]
struct Disk {
    link: usize,
    start_bytes: u64,
    bytes: u64,
    /// Of the target.
    block_bytes: u64,
}

impl Disks {
    /// Opens the targets of VM `index` of the plan.
    pub fn open(plan: &Plan, index: usize, pattern: Arc<Pattern>) -> Result<Disks, TargetError> {
        let vm = &plan.profile.vms[index];
        let options = OpenOptions {
            writes: vm.writes() || plan.fill,
            outstanding_max: vm.outstanding_max(),
            pattern,
            timeout: CONNECT_TIMEOUT,
        };
        let mut disks = Disks {
            links: Vec::new(),
            disks: Vec::new(),
            outstanding_max: vm.outstanding_max(),
            writes: 0,
            interests: Vec::new(),
            revents: Vec::new(),
            outlive: None,
            lost: Vec::new(),
        };
        for place in &plan.vms[index].disks {
            let needed = vm.bytes_needed(disks.disks.len());
            let disk = disks.place(vm, place, needed, &options)?;
            disks.disks.push(disk);
        }
        Ok(disks)
    }

    fn place(
        &mut self,
        vm: &VmProfile,
        place: &DiskShare,
        needed: u64,
        options: &OpenOptions,
    ) -> Result<Disk, TargetError> {
        let open = self.links.iter().position(|link| *link.url() == place.url);
        let link = match open {
            Some(open) => open,
            None => {
                let endpoint = endpoint::open(&place.url, options)?;
                let link = Link::new(place.url.clone(), options.clone(), endpoint);
                self.links.push(link);
                self.links.len() - 1
            }
        };
        let geometry = self.links[link].geometry();
        let refused = |kind, detail| Err(TargetError::new(kind, &place.url, detail));
        if !IO_GRAIN_BYTES.is_multiple_of(geometry.block_bytes.max(1)) {
            let detail = format!(
                "its block of {} bytes does not divide {IO_GRAIN_BYTES}, which profiles use",
                geometry.block_bytes
            );
            return refused(TargetErrorKind::Protocol, detail);
        }
        let (start_bytes, bytes) = place.extent(geometry.capacity_bytes);
        if bytes < needed {
            let sizes = [geometry.capacity_bytes, bytes, needed].map(site::human);
            let [capacity, share, least] = sizes;
            let detail = format!(
                "is too small: {capacity}, of which VM {} gets {share} for a disk and needs at \
                 least {least}",
                vm.name
            );
            return refused(TargetErrorKind::Capacity, detail);
        }
        Ok(Disk {
            link,
            start_bytes,
            bytes,
            block_bytes: u64::from(geometry.block_bytes.max(1)),
        })
    }

    /// Capacity of each disk in bytes.
    pub fn capacities_bytes(&self) -> Vec<u64> {
        self.disks.iter().map(|disk| disk.bytes).collect()
    }

    /// The URL of the target that holds a disk.
    pub fn url(&self, disk: usize) -> &TargetUrl {
        self.links[self.disks[disk].link].url()
    }

    /// Hands an operation to its target, in whole blocks of it: what a trace has in
    /// sectors is widened where they are smaller.
    pub fn submit(&mut self, token: u64, operation: &Operation) -> Result<(), TargetError> {
        let Disk {
            link,
            start_bytes,
            bytes,
            block_bytes,
        } = self.disks[operation.disk];
        let first = operation.offset_bytes / block_bytes * block_bytes;
        let end = operation.offset_bytes + u64::from(operation.bytes);
        let end = end.next_multiple_of(block_bytes);
        assert!(
            end <= bytes,
            "an operation until {end} on a disk of {bytes} bytes"
        );
        if operation.kind == Kind::Write {
            self.writes += 1;
        }
        let request = Request {
            token,
            kind: operation.kind,
            offset_bytes: start_bytes + first,
            bytes: (end - first) as u32,
            sequence: self.writes,
        };
        self.send(link, request)
    }

    /// Sends a request; where that shows that its link is lost, it waits there.
    fn send(&mut self, link: usize, request: Request) -> Result<(), TargetError> {
        let Err(error) = self.links[link].submit(request) else {
            return Ok(());
        };
        self.lose(link, error)?;
        self.links[link].submit(request)
    }

    /// From now on a target that is lost is opened again, if that succeeds within `within`.
    pub fn outlive_losses(&mut self, clock: Clock, within: Duration) {
        self.outlive = (!within.is_zero()).then_some(Outlive { clock, within });
    }

    fn lose(&mut self, link: usize, error: TargetError) -> Result<(), TargetError> {
        let Some(outlive) = &self.outlive else {
            return Err(error);
        };
        self.links[link].lose(&error, outlive.clock.now(), outlive.within)?;
        self.lost.push(link);
        Ok(())
    }

    /// A link that was lost since the last call.
    pub fn take_lost(&mut self) -> Option<usize> {
        self.lost.pop()
    }

    /// Whether a request was under way to a link when it was lost, and does not wait there.
    pub fn was_lost(&self, link: usize, token: u64, operation: &Operation) -> bool {
        self.disks[operation.disk].link == link && !self.links[link].is_waiting(token)
    }

    /// So many requests were under way to a link when it was lost.
    pub fn count_lost(&mut self, link: usize, operations: u64) {
        self.links[link].count_lost(operations);
    }

    /// Unit attentions since the last call, with the token of the request and the target.
    pub fn attentions(&mut self) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        for link in &mut self.links {
            // Asked in every turn of the loop, and there is hardly ever one.
            for (token, what) in link.attentions() {
                all.push((token, format!("{}: {what}", link.url())));
            }
        }
        all
    }

    /// Targets that are away.
    pub fn away(&self) -> u64 {
        self.links.iter().filter(|link| link.is_away()).count() as u64
    }

    /// All outages so far.
    pub fn outages(&self) -> Vec<Outage> {
        self.links.iter().flat_map(Link::outages).cloned().collect()
    }

    /// Starts what was submitted.
    pub fn flush(&mut self) -> Result<(), TargetError> {
        for link in 0..self.links.len() {
            if let Err(error) = self.links[link].flush() {
                self.lose(link, error)?;
            }
        }
        Ok(())
    }

    /// Waits up to `timeout` for completions and appends them.
    pub fn wait(
        &mut self,
        timeout: Duration,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        self.interests.clear();
        self.interests.extend(self.links.iter().map(Link::interest));
        let timeout = timeout.min(SERVICE_EVERY);
        if let Err(error) = os::wait(&self.interests, timeout, &mut self.revents) {
            let detail = format!("cannot wait for its descriptor: {error}");
            let first = self.links[0].url();
            return Err(TargetError::new(TargetErrorKind::Lost, first, detail));
        }
        let idle = timeout == SERVICE_EVERY;
        for link in 0..self.links.len() {
            let revents = self.revents[link];
            if revents == 0 && !idle {
                continue;
            }
            if self.links[link].is_away() {
                self.resume(link)?;
            } else if let Err(error) = self.links[link].service(revents, completions) {
                self.lose(link, error)?;
            }
        }
        Ok(())
    }

    /// Goes on with a link that is back, if it is.
    fn resume(&mut self, link: usize) -> Result<(), TargetError> {
        let Some(outlive) = &self.outlive else {
            return Ok(());
        };
        for request in self.links[link].resume(outlive.clock.now())? {
            self.send(link, request)?;
        }
        self.flush()
    }

    /// Writes every disk once.
    pub fn fill(&mut self, shared: &SharedCounters) -> Result<(), TargetError> {
        let total: u64 = self.disks.iter().map(|disk| disk.bytes).sum();
        shared.fill_bytes.fetch_add(total, Ordering::Relaxed);
        let depth = FILL_OUTSTANDING.min(self.outstanding_max);
        let mut completions = Vec::new();
        for disk in 0..self.disks.len() {
            let bytes = self.disks[disk].bytes;
            let (mut next, mut outstanding) = (0, 0);
            while (next < bytes || outstanding > 0) && !shared.stop.load(Ordering::Relaxed) {
                while next < bytes && outstanding < depth {
                    let size = u64::from(FILL_BYTES).min(bytes - next);
                    let operation = Operation {
                        at: base::Time(0),
                        disk,
                        kind: Kind::Write,
                        offset_bytes: next,
                        bytes: size as u32,
                    };
                    self.submit(next, &operation)?;
                    next += size;
                    outstanding += 1;
                }
                self.flush()?;
                self.wait(SERVICE_EVERY, &mut completions)?;
                for Completion { token, outcome } in completions.drain(..) {
                    outstanding -= 1;
                    if let Err(answer) = outcome {
                        let detail = format!("filling failed at byte {token}: {answer}");
                        return Err(TargetError::new(
                            TargetErrorKind::Lost,
                            self.url(disk),
                            detail,
                        ));
                    }
                    let written = u64::from(FILL_BYTES).min(bytes - token);
                    shared.filled_bytes.fetch_add(written, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}
