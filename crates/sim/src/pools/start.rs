//! A start of the array, as the server makes it.

use super::bays::SimBays;
use super::request::{Wanted, free, wanted};
use super::shelf::{DATA, Shelf};
use super::{Books, Boot, NAMES, Oracle, Outcome, Request};
use crate::control::{PORTAL, Start, look_late, settings};
use crate::shards::Shards;
use array::bring_up::StartError;
use array::control::ControlPlane;
use array::openings::Openings;
use base::Prng;
use site::Site;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

/// What the first start finds: a site file with a pool or two.
///
/// # Errors
/// It breaks a rule of a site file.
pub(super) fn first_site(prng: &mut Prng, shelf: &Shelf, oracle: &Oracle) -> Result<Site, String> {
    let mut site = settings(&[], &[], &[PORTAL.into()])?;
    let mut left = free(oracle, shelf);
    for name in NAMES.into_iter().take(prng.between(1, 2) as usize) {
        if let Some(Wanted { pool, drives, .. }) = wanted(prng, name, left.clone(), &[]) {
            left.retain(|bay| drives.iter().all(|drive| drive.name != bay.name));
            site.pools.push(pool);
            site.drives.extend(drives);
        }
    }
    Ok(site)
}

impl Boot {
    /// Starts the array; nothing where that ends for a reason that there is.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        shards: &Shards,
        last: bool,
    ) -> Result<Option<Boot>, String> {
        let start = Start::new(world, &books.records, last);
        let began_unix_s = start.runtime().unix_s();
        match begin((world, books), shards, &start).await {
            Ok((array, openings)) => {
                let boot = Boot {
                    world: world.clone(),
                    books: Rc::clone(books),
                    array,
                    openings,
                    began_unix_s,
                };
                Ok(Some(boot))
            }
            Err(error) => {
                let is_excused =
                    !books.away().is_empty() || books.records.failed_unix_s() >= began_unix_s;
                world.note(|| format!("no start: {error}"));
                match is_excused {
                    true => Ok(None),
                    false => Err(format!("the start: {error}")),
                }
            }
        }
    }
}

/// The array, over the pools that could be opened.
async fn begin(
    (world, books): (&SimWorld, &Rc<Books>),
    shards: &Shards,
    start: &Start<'_>,
) -> Result<(Arc<ControlPlane<SimWorld>>, Arc<Openings<SimWorld>>), StartError> {
    let is_first = start.found.settings.is_none();
    if is_first {
        books.first_start_begins();
    }
    let bays = Arc::new(SimBays::new(world, &books.shelf));
    let openings = Arc::new(Openings::new(bays, start.made(), DATA.into()));
    let file = is_first.then_some(&books.site);
    let (array, site) = start.bring_up(shards, &openings, file).await?;
    look_late(world, (&openings, &array), site);
    Ok((array, openings))
}

impl Books {
    /// The pools of the site file are about to be made, or may be there.
    fn first_start_begins(&self) {
        let mut under_way = self.under_way.borrow_mut();
        for pool in &self.site.pools {
            if under_way.iter().any(|(other, _)| other.pool() == pool.name) {
                continue;
            }
            let drives = pool.drives().filter_map(|name| self.site.drive(name));
            let wanted = Wanted {
                pool: pool.clone(),
                drives: drives.cloned().collect(),
                is_barred: false,
            };
            under_way.push((Request::Create(wanted), Outcome::Open));
        }
    }
}
