//! A start of the array, as the server makes it.

use super::places::Places;
use super::{Books, Boot, OTHER, POOL};
use crate::control::{PORTAL, Start, look_late, settings};
use crate::pools::bays::SimBays;
use crate::pools::request::draw_pool;
use crate::pools::shelf::DATA;
use crate::shards::Shards;
use array::openings::Openings;
use base::Prng;
use engine::Level;
use site::{Group, Site};
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

/// What the first start finds: a site file with the pool, which can lose a drive, and another one.
///
/// # Errors
/// It breaks a rule of a site file.
pub(super) fn first_site(prng: &mut Prng, places: &Places) -> Result<Site, String> {
    let mut site = settings(&[], &[], &[PORTAL.into()])?;
    let (level, drives) = *prng.pick(&[(Level::Raid10 { copies: 2 }, 2), (Level::Raid5, 3)]);
    for (name, level, drives) in [(POOL, level, drives), (OTHER, Level::Simple, 1)] {
        let mut names = Vec::new();
        for _ in 0..drives {
            let bay = places.take_device().ok_or("there are too few drives")?;
            names.push(bay.name.clone());
            site.drives.push(bay.drive());
        }
        let group = Group::of_data(level, names);
        site.pools.push(draw_pool(prng, name, group));
    }
    Ok(site)
}

impl Boot {
    /// Starts the array; nothing where a record could not be written.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        shards: &Shards,
        first: bool,
    ) -> Result<Option<Boot>, String> {
        // To read the record is to forget them.
        books.note_unwritten();
        let start = Start::new(world, &books.records, first);
        // What is left of a first start that is cut short is for the run of pools to find.
        let start = match first {
            true => start.without_failures(),
            false => start,
        };
        let began_unix_s = start.runtime().unix_s();
        let bays = Arc::new(SimBays::new(world, &books.places.shelf));
        let openings = Arc::new(Openings::new(bays, start.made(), DATA.into()));
        let file = first.then_some(&books.site);
        match start.bring_up(shards, &openings, file).await {
            Ok((array, site)) => {
                look_late(world, (&openings, &array), site);
                Ok(Some(Boot {
                    world: world.clone(),
                    books: Rc::clone(books),
                    array,
                    openings,
                }))
            }
            Err(error) if books.records.failed_unix_s() >= began_unix_s => {
                world.note(|| format!("no start: {error}"));
                Ok(None)
            }
            Err(error) => Err(format!("the start: {error}")),
        }
    }
}
