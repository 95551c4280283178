//! From what a file says to a plan: drives by their names become lots, VMs become groups of one,
//! and hardware that the file does not say is assumed.
//!
//! Invariant: whatever is assumed is named in [`Plan::assumed`], with the key that would say it.

use super::assumed::{self, Assumed};
use super::types::{Groups, Layout, Lot, Plan, Taken};
use super::vms;
use crate::diagnostic::Diagnostic;
use crate::read::{DriveRow, PoolRow, Rows};
use crate::references::push;
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
    let mut drives = Drives {
        rows,
        bus,
        lots: rows.hardware.lots.clone(),
        without_model: Vec::new(),
        without_bus: Vec::new(),
        found,
    };
    drives.buses_of_lots();
    let pools = rows.pools.iter().map(|pool| drives.layout(pool, owner));
    let (pools, group_lines) = pools.unzip();
    drives.assume(buses.len(), &mut assumed);
    let lots = drives.lots;
    assumed::owners(rows, &controllers, &mut assumed);
    let hosts = assumed::hosts(rows, &controllers, &mut assumed);
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
        events: rows.hardware.events.clone(),
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
    without_bus: Vec<&'a str>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Drives<'a> {
    /// The bus of each lot that the file describes.
    fn buses_of_lots(&mut self) {
        for (lot, said) in self.lots.iter_mut().zip(&self.rows.hardware.lots) {
            if lot.bus.is_empty() {
                lot.bus = self.bus.to_owned();
                self.without_bus.push(&said.name);
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
            spares.push(Taken { from, count });
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
        };
        (layout, lines)
    }

    fn group(&mut self, name: String, line: usize, group: &'a Group) -> Groups {
        let (from, drives) = self.lot(name, line, &group.drives);
        Groups {
            level: group.level,
            drives,
            count: 1,
            from,
        }
    }

    /// A lot of these drives: its name, and how many they are.
    fn lot(&mut self, name: String, line: usize, drives: &'a [String]) -> (String, u16) {
        let all = drives.iter().filter_map(|name| self.named(name));
        let all: Vec<&'a DriveRow> = all.collect();
        let model = |row: &&'a DriveRow| row.model.as_deref().unwrap_or(assumed::DRIVE_MODEL);
        let bus = |row: &&'a DriveRow| row.bus.as_deref().unwrap_or(self.bus).to_owned();
        let (models, buses) = (alike(all.iter().map(model)), alike(all.iter().map(bus)));
        let size = |row: &&'a DriveRow| match row.drive.source {
            DriveSource::File { size_bytes, .. } => Some(size_bytes),
            DriveSource::Device { .. } => None,
        };
        self.lots.push(Lot {
            name: name.clone(),
            line,
            model: models.first().map_or("", |model| *model).to_owned(),
            count: drives.len() as u32,
            bus: buses.first().cloned().unwrap_or_default(),
            names: drives.to_vec(),
            drive_bytes: all.iter().filter_map(size).min(),
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

    fn named(&self, name: &str) -> Option<&'a DriveRow> {
        let mut all = self.rows.drives.iter().map(|row| &row.item);
        all.find(|row| row.drive.name == name)
    }

    /// Says which drives are modelled as usual.
    fn assume(&self, buses: usize, assumed: &mut Assumed) {
        if !self.without_model.is_empty() {
            let model = assumed::DRIVE_MODEL;
            let of = assumed::listed(&self.without_model);
            assumed.say("drive.model", format!("\"{model}\", for {of}"));
        }
        // The only bus is no guess.
        if !self.without_bus.is_empty() && buses > 1 {
            let (bus, of) = (self.bus, assumed::listed(&self.without_bus));
            assumed.say("drive.bus", format!("\"{bus}\", for {of}"));
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
