//! The order of a start: from records, a site file and drives to an array that is what they say.
//!
//! 1. [`described`] says what the array is to be.
//! 2. [`BeforeStart::open_pools`] ends what the stop before has left of pools, and opens those that are
//!    there.
//! 3. The caller makes a control plane over them.
//! 4. [`PoolsOpen::configure`] settles the pools, makes what is missing, and has the array be what its
//!    record says, or at first the site file.
//! 5. [`late_rounds`] looks for what was missing.
//!
//! Invariants:
//! - The site file is applied once, at the first start. One that is cut short is completed by the next.
//!   Later ones change nothing but that they make pools that are missing.
//! - A pool is made after the pools that are there are settled, and before any volume; nothing is shown
//!   before all volumes are there that can be.
//! - A volume that was renamed is not made anew under the name that the site file says.

mod configuration;
mod error;
mod late;
mod volumes;

pub use configuration::described;
pub use error::{StartError, StartErrorKind};
pub use late::late_rounds;

use crate::control::{AddedDrive, Basis, Configuration, ControlPlane, Roster, Settled};
use crate::openings::{KeptRecords, KnownPools, Opened, Openings, homes};
use crate::records::Store;
use crate::shard::ShardHandle;
use crate::site_file::{self, Action};
use engine::World;
use site::Site;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a start knows before it looks at a drive.
pub struct BeforeStart<'a> {
    /// The site file, if there is one.
    pub file: Option<Site>,
    /// What the array is to be ([`described`]).
    pub described: Site,
    /// The configuration on record.
    pub kept: Option<Configuration>,
    /// Exports and hosts as a version of before has kept them, if it has, or why they can't be read.
    pub of_before: Option<Result<Configuration, String>>,
    /// What keeps the configuration.
    pub store: &'a dyn Store<Configuration>,
    /// The drives that the API added, and what keeps them.
    pub added: (Vec<AddedDrive>, &'a dyn Store<Vec<AddedDrive>>),
    /// Where the records of configuration and of hosts are, for messages.
    pub files: RecordFiles<'a>,
}

/// Where records are, for messages.
#[derive(Clone, Copy)]
pub struct RecordFiles<'a> {
    /// That of the configuration, which is there from the first start on.
    pub configuration: &'a Path,
    /// Hosts, of versions of before.
    pub hosts: &'a Path,
}

/// A start whose pools are open, as far as they can be.
#[must_use = "an array over them shows nothing before it is configured"]
pub struct PoolsOpen<'a> {
    file: Option<Site>,
    /// What the array is to be, without pools that are no more.
    pub described: Site,
    kept: Option<Configuration>,
    of_before: Option<Result<Configuration, String>>,
    /// The drives that the API added.
    pub added: Vec<AddedDrive>,
    files: RecordFiles<'a>,
    opened: Opened,
}

impl<'a> BeforeStart<'a> {
    /// Ends the destroying of pools that was cut short, takes back the making of others, and opens
    /// those that are there.
    ///
    /// # Errors
    /// Every drive that stands in the way of making a pool; a record can't be written, or a shard has
    /// stopped.
    pub async fn open_pools<W: World>(
        mut self,
        openings: &Openings<W>,
        shards: &[ShardHandle<W>],
        roster: &Roster,
    ) -> Result<PoolsOpen<'a>, StartError> {
        let records = KeptRecords {
            described: &mut self.described,
            configuration: self.kept.as_mut(),
            store: self.store,
            added: &mut self.added.0,
            drives: self.added.1,
        };
        let gone = openings.forget_gone(&shards[0], records).await?;
        let known = KnownPools {
            site: &self.described,
            made: &openings.made().now(),
            added: &self.added.0,
            failed: &roster.failed(),
        };
        let is_kept = (self.kept.is_some(), self.of_before.is_some());
        let opened = openings.open_all(&known, (roster, &gone), shards, is_kept);
        Ok(PoolsOpen {
            opened: opened.await?,
            file: self.file,
            described: self.described,
            kept: self.kept,
            of_before: self.of_before,
            added: self.added.0,
            files: self.files,
        })
    }
}

impl PoolsOpen<'_> {
    /// The shards, by index, that the lanes of each pool are on.
    pub fn homes(&self) -> BTreeMap<String, Vec<usize>> {
        homes(&self.opened.plans)
    }

    /// Has an array over the pools be what its configuration and the site file say. Gives the site file,
    /// with the settings that count: late pools may have to be completed by it.
    ///
    /// # Errors
    /// A record can't be read or written, or a shard has stopped. At the first start: what can't be
    /// made or served.
    pub async fn configure<W: World>(
        mut self,
        (array, openings): (&Arc<ControlPlane<W>>, &Openings<W>),
    ) -> Result<Option<Site>, StartError> {
        openings.take_note_of_all(&mut self.opened, array).await?;
        let settled = array.settle().await?;
        array.keep_events();
        if self.file.is_some() {
            site_file::forget(&self.described, array).await?;
        }
        let renamed = site_file::renamed(&self.described, array).await?;
        tell_renamed(&renamed);
        let site = &site_file::follow(&self.described, &renamed);
        self.note_pools((array, openings)).await?;
        let was_cut = self.opened.was_cut;
        self.make((array, openings), site, settled).await?;
        let configured = openings.made().set_configured((site, was_cut)).await;
        configured.map_err(StartError::record)?;
        let Some(file) = self.file else {
            return Ok(None);
        };
        tell_differences(&site_file::follow(&file, &renamed), array).await?;
        Ok(Some(self.described))
    }

    /// Makes the pools and volumes that are missing, and has the array be what it begins with.
    async fn make<W: World>(
        &mut self,
        (array, openings): (&Arc<ControlPlane<W>>, &Openings<W>),
        site: &Site,
        settled: Settled<W>,
    ) -> Result<(), StartError> {
        let kept = (self.kept.take(), self.of_before.take());
        let mut beginning = configuration::begin(site, kept, self.opened.is_lost, self.files)?;
        let is_first = beginning.basis == Basis::New;
        let mut volumes = site_file::plan(site, array).await?;
        if !beginning.configuration.is_complete {
            volumes::withhold_those_of_new_pools(&mut volumes, site);
        }
        let plans = std::mem::take(&mut self.opened.plans);
        openings.make(plans, array.shards()).await?;
        array.note_drives_and_warn().await;
        if self.file.is_some() {
            site_file::tell(&volumes);
        }
        if !beginning.configuration.is_complete {
            volumes::make(volumes, (&self.described, site), array).await?;
        }
        let planted = "first start is complete without the volumes of closed pools";
        beginning.configuration.is_complete |= array.runtime().planted(planted);
        if is_first {
            volumes::tell_overcommitted(array).await?;
        }
        // Without the file, nobody knows which are missing.
        let are_made = self.file.is_some();
        if !are_made && !beginning.configuration.is_complete {
            tracing::warn!(
                "the first start was cut short: start with --site FILE, and Ashlar makes the volumes \
                 of the file that are missing"
            );
        }
        configuration::take_over(beginning, settled, are_made).await
    }

    /// Puts on record what was found of pools: that the configuration is gone, where there was one, and
    /// pools that were made elsewhere.
    async fn note_pools<W: World>(
        &self,
        (array, openings): (&ControlPlane<W>, &Openings<W>),
    ) -> Result<(), StartError> {
        if self.opened.is_lost && self.kept.is_none() {
            let noted = openings.made().note_lost().await;
            noted.map_err(StartError::record)?;
        }
        for plan in &self.opened.plans {
            openings.remember(&plan.spec.name, array).await?;
        }
        Ok(())
    }
}

/// Says in the log which volumes the site file calls by an earlier name.
fn tell_renamed(renamed: &BTreeMap<String, String>) {
    for (was, now) in renamed {
        tracing::warn!(
            "volume {was} of the site file is called {now} now: write that name there, also in \
             exports and groups"
        );
    }
}

/// Differences that the log names one by one.
const DIFFERENCES_NAMED: usize = 8;

/// Says in the log that the site file is another by now.
async fn tell_differences<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<(), StartError> {
    let found = site_file::differences(site, array).await?;
    let to_do = found.iter().filter(|one| one.action != Action::Keep);
    let to_do: Vec<_> = to_do.collect();
    for one in to_do.iter().take(DIFFERENCES_NAMED) {
        tracing::warn!("the site file is not applied: {}: {}", one.what, one.how);
    }
    if !to_do.is_empty() {
        tracing::warn!(
            "the site file and the array differ in {}: `ashlar site diff` shows where, \
             `ashlar site apply` has the array be as the file says",
            site::counted(to_do.len() as u64, "thing")
        );
    }
    Ok(())
}
