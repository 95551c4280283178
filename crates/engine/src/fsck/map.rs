//! The check of pages and their owners: every mapped page lies in a zone that is in use, at a place
//! that its level has room for. Several volumes, and several places of a volume, may share it: only
//! the maps name the owners, so nothing contradicts that.

use super::report::{Run, Severity};
use super::subject::Subject;
use crate::drives::{PageNumbers, zone_capacity};
use crate::meta::{State, VolumeCore};
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, PhysPage};
use std::collections::{BTreeMap, BTreeSet};

/// Nobody's page.
const FREE: (u32, u32) = (u32::MAX, 0);

/// Who has each page of the zones in use.
#[derive(Default)]
pub(super) struct Owners {
    /// By zone, by page of the zone: volume and page of the volume.
    zones: BTreeMap<u32, Vec<(u32, u32)>>,
    /// Names of the volumes.
    names: Vec<String>,
    page_bytes: u64,
    numbers: PageNumbers,
}

impl Owners {
    /// Whose a physical page is; `None` when it is not there.
    fn of(&self, phys: PhysPage) -> Option<&(u32, u32)> {
        let (zone, inside) = self.numbers.place(phys)?;
        self.zones.get(&zone)?.get(inside as usize)
    }

    /// That a physical page is there.
    fn find(&self, phys: PhysPage) -> Result<(), String> {
        let Some((zone, inside)) = self.numbers.place(phys) else {
            return Err(format!("it lies at page {phys}, which no zone has"));
        };
        let Some(pages) = self.zones.get(&zone) else {
            return Err(format!("it lies in zone {zone}, which is not in use"));
        };
        match pages.get(inside as usize) {
            None => Err(format!(
                "it lies at page {inside} of zone {zone}, which has {}",
                pages.len()
            )),
            // Others may have it, too, and at any place of theirs.
            Some(_) => Ok(()),
        }
    }

    fn claim(&mut self, phys: PhysPage, (volume, page): (u32, PageIndex)) {
        let Some((zone, inside)) = self.numbers.place(phys) else {
            return;
        };
        let pages = self.zones.get_mut(&zone);
        if let Some(owner) = pages.and_then(|pages| pages.get_mut(inside as usize)) {
            // Page numbers of a volume have 32 bits in the format.
            *owner = (volume, page.0 as u32);
        }
    }

    fn owner(&self, zone: u32, block: u64) -> Option<(u32, u32)> {
        let page = block / (self.page_bytes / BLOCK_BYTES as u64);
        let owner = *self.zones.get(&zone)?.get(page as usize)?;
        (owner != FREE).then_some(owner)
    }

    /// Whether a block of a zone belongs to a mapped page.
    pub fn is_mapped(&self, zone: u32, block: u64) -> bool {
        self.owner(zone, block).is_some()
    }

    /// Whose block it is, and where there.
    pub fn place(&self, zone: u32, block: u64) -> Option<Run> {
        let (volume, page) = self.owner(zone, block)?;
        let inside = block * BLOCK_BYTES as u64 % self.page_bytes;
        Some(Run {
            subject: format!("volume '{}'", self.names.get(volume as usize)?),
            at: u64::from(page) * self.page_bytes + inside,
            len: BLOCK_BYTES as u64,
        })
    }
}

/// Looks at zones and maps.
pub(super) fn check<W: World>(subject: &Subject<W>, state: &State) -> Owners {
    let mut owners = Owners {
        page_bytes: subject.drives.page_bytes(),
        numbers: subject.drives.numbers().clone(),
        ..Owners::default()
    };
    check_zones(subject, state, &mut owners);
    let mut names: BTreeSet<String> = BTreeSet::new();
    for core in state.volumes.values() {
        let place = format!("volume '{}'", core.name);
        if !core.ready.get() {
            let text = "its creation was cut short: the next opening drops it";
            subject.say(Severity::Note, place, text);
            continue;
        }
        // One in the trash has a name for its return only, one that is on its way here for
        // when it is, and one that is hidden has one for nobody.
        let is_called = !core.properties.is_trashed() && !core.is_out_of_sight();
        if is_called && !names.insert(core.name.to_string()) {
            subject.say(
                Severity::Damage,
                place,
                "there are two volumes of this name",
            );
        }
        check_volume(subject, core, &mut owners);
    }
    check_backings(subject, state, &mut owners);
    check_promises(subject, state, &owners);
    subject.count(|counts| {
        counts.volumes = owners.names.len() as u64;
        counts.zones = owners.zones.len() as u64;
    });
    owners
}

/// That what backs pages is there, and has no backing itself. What backs a page that nobody
/// has is left over from before it was given back.
fn check_backings<W: World>(subject: &Subject<W>, state: &State, owners: &mut Owners) {
    for (phys, backing) in state.backings.iter() {
        let owner = owners.of(phys).copied();
        let Some((volume, page)) = owner.filter(|owner| *owner != FREE) else {
            continue;
        };
        let say = |severity, text| {
            let name = owners.names.get(volume as usize);
            let run = Run {
                subject: format!("volume '{}'", name.map_or("", String::as_str)),
                at: u64::from(page) * owners.page_bytes,
                len: owners.page_bytes,
            };
            subject.findings.borrow_mut().push_run(severity, run, text);
        };
        match owners.of(backing).copied() {
            None => {
                let text = format!("the rest of it lies at page {backing}, which is not there");
                say(Severity::Loss, text);
            }
            Some(_) if state.backings.get(backing).is_some() => {
                let text = "the rest of it lies in a page whose rest lies elsewhere".to_owned();
                say(Severity::Damage, text);
            }
            Some(FREE) => owners.claim(backing, (volume, PageIndex(u64::from(page)))),
            Some(_) => {}
        }
    }
}

/// That the pages promised to thick volumes are free: in zones in use, or, where no other
/// lane may have them, in the others.
fn check_promises<W: World>(subject: &Subject<W>, state: &State, owners: &Owners) {
    let cores = state.volumes.values().filter(|core| core.ready.get());
    let promised: u64 = cores
        .map(|core| core.promise(owners.page_bytes).pages)
        .sum();
    let free = |pages: &Vec<(u32, u32)>| pages.iter().filter(|owner| **owner == FREE).count();
    let mut left: u64 = owners.zones.values().map(|pages| free(pages) as u64).sum();
    if subject.drives.lane().registry.lanes() == 1 {
        for group in subject
            .drives
            .groups()
            .iter()
            .filter(|group| !group.leaves())
        {
            let zones = group.numbers.zone_range();
            let unused = zones.filter(|zone| !state.zones.contains_key(zone)).count() as u64;
            let identity = subject.drives.identity();
            left += unused * zone_capacity(group.protection(), group.drives(), identity);
        }
    }
    if promised > left {
        let text = format!("thick volumes are promised {promised} pages, and {left} are free");
        subject.say(Severity::Damage, subject.metadata(), text);
    }
}

fn check_zones<W: World>(subject: &Subject<W>, state: &State, owners: &mut Owners) {
    let mut uses = BTreeSet::new();
    let lane = subject.drives.lane();
    let zones = state.zones.keys().copied();
    if let Err(taken) = lane.registry.open(lane.index, zones) {
        subject.say(Severity::Loss, subject.metadata(), taken.to_string());
    }
    for (number, zone) in &state.zones {
        let (of, moved) = ((zone.level, zone.incarnation), state.moved.get(number));
        let made = subject.drives.take_up_zone(*number, of, moved);
        match made {
            Ok(made) => {
                let pages = made.pages(owners.page_bytes) as usize;
                owners.zones.insert(*number, vec![FREE; pages]);
            }
            Err(what) => subject.say(Severity::Loss, subject.metadata(), what),
        }
        if !uses.insert(zone.incarnation) || zone.incarnation >= state.next_incarnation {
            let text = format!(
                "zone {number} has incarnation {}, which another has or that was not given out yet",
                zone.incarnation
            );
            subject.say(Severity::Damage, subject.metadata(), text);
        }
    }
}

fn check_volume<W: World>(subject: &Subject<W>, core: &VolumeCore, owners: &mut Owners) {
    let volume = owners.names.len() as u32;
    owners.names.push(core.name.to_string());
    let pages = core.size_bytes.get().div_ceil(owners.page_bytes);
    for (page, phys) in core.map.borrow().iter() {
        subject.count(|counts| counts.mapped_pages += 1);
        let say = |severity, text| {
            let run = Run {
                subject: format!("volume '{}'", core.name),
                at: page.0 * owners.page_bytes,
                len: owners.page_bytes,
            };
            let mut findings = subject.findings.borrow_mut();
            findings.push_run(severity, run, text);
        };
        if page.0 >= pages {
            say(
                Severity::Damage,
                "this page is mapped and lies past the volume's end".to_owned(),
            );
        }
        if let Err(text) = owners.find(phys) {
            say(Severity::Loss, text);
            continue;
        }
        owners.claim(phys, (volume, page));
    }
}
