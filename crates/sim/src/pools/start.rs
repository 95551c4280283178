//! A start of the array, as the server makes it, and what there is before the first.

use super::bays::SimBays;
use super::request::{Wanted, free, wanted};
use super::shelf::{DATA, NAMESAKES, Shelf};
use super::{Books, Boot, NAMES, Oracle, Outcome, Request};
use crate::control::{PORTAL, Start, look_late, settings};
use crate::pool_changes::Door;
use crate::shards::Shards;
use array::bring_up::StartError;
use array::control::ControlPlane;
use array::openings::Openings;
use array::pool::opening::Opening;
use base::{DriveOffset, Prng};
use engine::drive::Drive as _;
use engine::{Level, PoolSpec, World};
use site::Site;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

/// After so long nothing is under way on drives of pools that were closed.
const QUIET: Duration = Duration::from_secs(30);

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

/// Puts on drives what others have there: a pool that is called as one of this array, another one, and
/// something else.
pub(super) async fn make_others(world: &SimWorld, books: &Books) -> Result<(), String> {
    let others = books.shelf.others();
    let shards = Shards::new(world, 2);
    let doors = |range: std::ops::Range<usize>| {
        let door =
            |bay: &Rc<super::shelf::Bay>| Door::from(&(bay.name.clone(), Rc::clone(&bay.media)));
        others[range].iter().map(door).collect::<Vec<Door>>()
    };
    let pools = [
        ("p", Level::Raid10 { copies: 2 }, 0..NAMESAKES),
        ("x", Level::Simple, NAMESAKES..3),
    ];
    for (name, level, range) in pools {
        let spec = PoolSpec {
            stripe_unit_bytes: 8 << 10,
            page_bytes: 8 << 10,
            journal_bytes: Some(16 << 10),
            zone_bytes: Some(64 << 10),
            log_bytes: Some(256 << 10),
            volumes_max: 8,
            nonce: 7,
            ..PoolSpec::new(name, level)
        };
        let lanes = range.len();
        let opening = Opening::new(name.to_owned(), shards.handles[..lanes].to_vec());
        let made = opening.create(&spec, &[(level, doors(range))], &[]).await;
        made.map_err(|error| format!("the pool of others: {error}"))?;
        let closed = opening.close().await;
        closed.map_err(|error| format!("the pool of others: {error}"))?;
    }
    write_something(world, &others[3].media).await?;
    // What is not on media may go with the power, also later; so may what is under way still.
    world.sleep(QUIET).await;
    for bay in others {
        let drive = SimDrive::adversarial(world, &bay.media);
        let flushed = drive.flush().await;
        flushed.map_err(|error| format!("the drive of others: {error}"))?;
    }
    Ok(())
}

/// Puts something on a drive that is no label.
async fn write_something(world: &SimWorld, media: &Rc<Media>) -> Result<(), String> {
    let drive = SimDrive::adversarial(world, media);
    let mut buf = world.buffers().data(4096);
    if let Some(bytes) = buf.bytes_mut() {
        bytes.fill(7);
    }
    let written = drive.write_durable(DriveOffset(4096), buf.freeze()).await;
    written.map_err(|error| format!("the drive of others: {error}"))
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
