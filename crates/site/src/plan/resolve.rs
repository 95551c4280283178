//! From what a file says to a plan: drives by their names become lots, VMs become groups of one,
//! and hardware that the file does not say is assumed.
//!
//! Invariant: whatever is assumed is named in [`Plan::assumed`], with the key that would say it.

use super::assumed::{self, Assumed};
use super::drive_model::DriveModel;
use super::types::{Bus, DriveShare, Groups, Layout, Lot, Plan};
use super::vms;
use crate::diagnostic::Diagnostic;
use crate::read::{DriveRow, PoolRow, Rows};
use crate::references::{one_of, push};
use crate::table::Row;
use crate::types::{DriveSource, Group};

/// A plan that is not yet checked.
pub(super) struct Resolved {
    pub(super) plan: Plan,
    /// Of `plan.pools`, the lines of the groups.
    pub(super) group_lines: Vec<Vec<usize>>,
}

/// The plan of `rows`; what can't be modelled goes to `found`.
pub(super) fn resolve(rows: &Rows, found: &mut Vec<Diagnostic>) -> Resolved {
    let mut assumed = Assumed::default();
    let networks = assumed::networks(rows, &mut assumed);
    let controllers = assumed::controllers(rows, &networks, &mut assumed);
    let buses = assumed::buses(rows, &mut assumed);
    let bus = buses.first().map_or("", |bus| bus.name.as_str());
    let owner = controllers.first().map_or("", |one| one.name.as_str());
    let mut drives = Drives::new(rows, bus, found);
    drives.buses_of_lots();
    drives.names(&buses);
    let pools = rows.pools.iter().map(|pool| drives.layout(pool, owner));
    let (pools, group_lines) = pools.unzip();
    drives.assume(buses.len(), &mut assumed);
    let mut lots = drives.lots;
    let drive_models = rows.hardware.drive_models.clone();
    for lot in &mut lots {
        lot.measured = DriveModel::named(&drive_models, &lot.model);
    }
    assumed::owners(rows, &controllers, &mut assumed);
    let hosts = assumed::hosts(rows, (&controllers, &networks), &mut assumed);
    let vm_groups = vms::groups(rows, &hosts, &mut assumed);
    let plan = Plan {
        name: rows.name.clone(),
        about: rows.about.clone(),
        run: rows.hardware.run.clone(),
        controllers,
        buses,
        lots,
        pools,
        networks,
        hosts,
        vm_groups,
        drive_models,
        profiles: rows.hardware.loads.profiles.clone(),
        events: rows.hardware.events.clone(),
        capture: rows.hardware.loads.capture.clone(),
        measured: rows.hardware.loads.measured.clone(),
        assumed: assumed.list,
    };
    Resolved { plan, group_lines }
}

/// Makes lots of drives that have names of their own.
struct Drives<'a> {
    rows: &'a Rows,
    /// The bus of drives that name none.
    bus: &'a str,
    lots: Vec<Lot>,
    without_model: Vec<&'a str>,
    lots_without_bus: Vec<&'a str>,
    without_bus: Vec<&'a str>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Drives<'a> {
    fn new(rows: &'a Rows, bus: &'a str, found: &'a mut Vec<Diagnostic>) -> Drives<'a> {
        Drives {
            rows,
            bus,
            lots: rows.hardware.lots.clone(),
            without_model: Vec::new(),
            lots_without_bus: Vec::new(),
            without_bus: Vec::new(),
            found,
        }
    }

    /// The bus of each lot that the file describes.
    fn buses_of_lots(&mut self) {
        for (lot, said) in self.lots.iter_mut().zip(&self.rows.hardware.lots) {
            if lot.bus.is_empty() {
                lot.bus = self.bus.to_owned();
                self.lots_without_bus.push(&said.name);
            }
        }
    }

    /// Reports drives with a bus that is not there, or with the name of a drive of a lot.
    fn names(&mut self, buses: &[Bus]) {
        for row in &self.rows.drives {
            let there = |bus: &String| buses.iter().any(|one| one.name == *bus);
            if let Some(bus) = row.item.bus.as_ref().filter(|bus| !there(bus)) {
                let line = row.line("bus").unwrap_or(row.header_line());
                let allowed = one_of("bus", buses.iter().map(|bus| bus.name.as_str()));
                let what = format!("{bus:?}, which no bus has");
                push(self.found, line, "drive.bus", what, allowed);
            }
            let name = &row.item.drive.name;
            let mut lots = self.rows.hardware.lots.iter();
            if let Some(lot) = lots.find(|lot| lot.has_drive(name)) {
                let line = row.line("name").unwrap_or(row.header_line());
                let what = format!("{name:?}, as a drive of lot {:?}", lot.name);
                let allowed = "one that no other drive has".to_owned();
                push(self.found, line, "drive.name", what, allowed);
            }
        }
    }

    /// A pool, with the lines of its groups.
    fn layout(&mut self, row: &'a Row<PoolRow>, owner: &str) -> (Layout, Vec<usize>) {
        let PoolRow {
            pool,
            more,
            modelled,
        } = &row.item;
        let (mut groups, mut lines) = (Vec::new(), Vec::new());
        for said in &modelled.groups {
            groups.push(said.item.clone());
            lines.push(said.header_line());
        }
        let later = more.iter().map(|row| row.header_line());
        let at = std::iter::once(row.line("drives").unwrap_or(row.header_line())).chain(later);
        for ((place, group), line) in pool.groups.iter().enumerate().zip(at) {
            if !group.drives.is_empty() {
                let name = format!("{} group {place}", pool.name);
                groups.push(self.group(name, line, group));
                lines.push(line);
            }
        }
        let mut spares = modelled.spares.clone();
        if !pool.spares.is_empty() {
            let name = format!("{} spares", pool.name);
            let line = row.line("spares").unwrap_or(row.header_line());
            let (from, count) = self.lot(name, line, &pool.spares);
            spares.push(DriveShare { from, count });
        }
        let layout = Layout {
            name: pool.name.clone(),
            line: row.header_line(),
            controller: modelled.controller.clone().unwrap_or(owner.to_owned()),
            groups,
            spares,
            stripe_unit_bytes: pool.stripe_unit_bytes,
            page_bytes: pool.page_bytes,
            log_bytes: pool.log_bytes,
            lanes: pool.lanes,
        };
        (layout, lines)
    }

    fn group(&mut self, name: String, line: usize, group: &'a Group) -> Groups {
        let (from, drives) = self.lot(name, line, &group.drives);
        Groups {
            level: group.level,
            spread: group.spread,
            role: group.role,
            drives,
            count: 1,
            from,
        }
    }

    /// A lot of these drives: its name, and how many they are.
    fn lot(&mut self, name: String, line: usize, drives: &'a [String]) -> (String, u16) {
        let all = drives.iter().filter_map(|name| self.named(name));
        let all: Vec<&'a Row<DriveRow>> = all.collect();
        let first = all.iter().find(|row| row.has("model")).or(all.first());
        let line_of_model = first.map(|row| row.line("model").unwrap_or(row.header_line()));
        let all: Vec<&'a DriveRow> = all.into_iter().map(|row| &row.item).collect();
        let model = |row: &&'a DriveRow| row.model.as_deref().unwrap_or(assumed::DRIVE_MODEL);
        let bus = |row: &&'a DriveRow| row.bus.as_deref().unwrap_or(self.bus).to_owned();
        let (models, buses) = (alike(all.iter().map(model)), alike(all.iter().map(bus)));
        let size = |row: &&'a DriveRow| match row.drive.source {
            DriveSource::File { size_bytes, .. } => Some(size_bytes),
            DriveSource::Device { .. } => None,
        };
        self.lots.push(Lot {
            name: name.clone(),
            line: line_of_model.unwrap_or(line),
            model: models.first().map_or("", |model| *model).to_owned(),
            count: drives.len() as u32,
            bus: buses.first().cloned().unwrap_or_default(),
            names: drives.to_vec(),
            drive_bytes: all.iter().filter_map(size).min(),
            measured: None,
        });
        for (several, what) in [(models.len() > 1, "models"), (buses.len() > 1, "buses")] {
            if several {
                let found = format!("drives of several {what}");
                let allowed = format!("drives of one of the {what} in a group, and of spares");
                push(self.found, line, "pool.drives", found, allowed);
            }
        }
        let name_of = |row: &&'a DriveRow| row.drive.name.as_str();
        let without = |is: fn(&&DriveRow) -> bool| all.iter().filter(move |row| is(row));
        self.without_model
            .extend(without(|row| row.model.is_none()).map(name_of));
        self.without_bus
            .extend(without(|row| row.bus.is_none()).map(name_of));
        (name, u16::try_from(drives.len()).unwrap_or(u16::MAX))
    }

    fn named(&self, name: &str) -> Option<&'a Row<DriveRow>> {
        let mut all = self.rows.drives.iter();
        all.find(|row| row.item.drive.name == name)
    }

    /// Says which drives are modelled as usual.
    fn assume(&self, buses: usize, assumed: &mut Assumed) {
        if !self.without_model.is_empty() {
            let model = assumed::DRIVE_MODEL;
            let of = assumed::listed(&self.without_model);
            assumed.say("drive.model", format!("\"{model}\", for {of}"));
        }
        // The only bus is no guess.
        for (key, without) in [
            ("drives.bus", &self.lots_without_bus),
            ("drive.bus", &self.without_bus),
        ] {
            if !without.is_empty() && buses > 1 {
                let (bus, of) = (self.bus, assumed::listed(without));
                assumed.say(key, format!("\"{bus}\", for {of}"));
            }
        }
    }
}

/// Each of several once, in their order.
fn alike<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
