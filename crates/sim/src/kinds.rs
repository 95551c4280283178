//! Kinds of runs that no seed draws ([`Theme::is_on_request`]): what needs many things at
//! once to come up is made common in them, so that a planted bug is found soon.

use crate::config::{Config, Theme};
use base::{BLOCK_BYTES, Prng};
use engine::Level;
use engine::pool::life::health::Limits;
use engine::raid::Geometry;
use std::collections::BTreeSet;

/// What a kind asks of the pool that is drawn; what it does not ask for is drawn as ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    /// Drives fail within the budget.
    pub damage: bool,
    /// They do not.
    pub sound: bool,
    /// Those that fail take turns.
    pub turns: bool,
    /// More than one group.
    pub groups: bool,
    /// One group, and no spare: few labels tell of anything.
    pub alone: bool,
    /// Groups leave.
    pub leave: bool,
    /// More than one lane.
    pub lanes: bool,
    /// Groups stay as they are, so that lanes have to lend.
    pub lends: bool,
    /// At least so many spares.
    pub spares: u64,
    /// The most zones of a drive, for each lane.
    pub zones: Option<u64>,
    /// Level and drives of its groups.
    pub shape: Option<(Level, u64)>,
}

impl Kind {
    pub(crate) fn of(themes: &BTreeSet<Theme>) -> Kind {
        let has = |theme| themes.contains(&theme);
        let turns = has(Theme::Turns) || has(Theme::Losses);
        let few = has(Theme::Conversions) || has(Theme::Clones);
        Kind {
            damage: turns || has(Theme::Departures) || has(Theme::Lends) || has(Theme::Lanes),
            sound: has(Theme::Rebuilds) || few,
            turns,
            groups: has(Theme::Departures),
            alone: has(Theme::Losses),
            leave: has(Theme::Departures),
            lanes: has(Theme::Lanes) || has(Theme::Lends),
            lends: has(Theme::Lends) || few,
            spares: match has(Theme::Rebuilds) || has(Theme::Lanes) {
                true => 2,
                false => 0,
            },
            zones: match has(Theme::Lends) {
                true => Some(12),
                false => few.then_some(5),
            },
            shape: match () {
                () if has(Theme::Conversions) || has(Theme::Appends) => Some((Level::Simple, 1)),
                () if has(Theme::Clones) => Some((Level::Raid10 { copies: 2 }, 2)),
                () if has(Theme::Losses) || has(Theme::Stripes) || has(Theme::Rebuilds) => {
                    Some((Level::Raid5, 3))
                }
                () if has(Theme::Departures) => Some((Level::Raid10 { copies: 2 }, 2)),
                () => None,
            },
        }
    }
}

impl Config {
    /// What else a kind asks for: requests, and how drives are.
    pub(crate) fn suit_kind(&mut self, seed: &Prng) {
        let prng = &mut seed.stream("kind");
        if self.has(Theme::Losses) || self.has(Theme::Clones) {
            // Something is over while something else goes on.
            let uneven = |slowdown: &mut u32| *slowdown = *prng.pick(&[1, 1, 5, 30]);
            self.slowdown.iter_mut().for_each(uneven);
        }
        if self.has(Theme::Losses) {
            // Drives are lost once or twice in a run, and have to be under load then.
            self.operations = self.operations.min(300);
            (self.clients, self.reads_of_100, self.hasty) = (8, 30, false);
        }
        if self.has(Theme::Rebuilds) {
            // What it excuses.
            self.themes.insert(Theme::Outages);
        }
        let whole = [Theme::Rebuilds, Theme::Conversions, Theme::Clones];
        self.beyond &= !whole.into_iter().any(|theme| self.has(theme));
        if self.has(Theme::Appends) {
            self.hasty = true;
            self.clients = 8;
            self.reads_of_100 = 10;
            (self.hot_spots, self.volumes) = (2, self.volumes.min(2));
            self.request_sectors_max = 8;
            self.whole_pages_of_8 = 0;
            (self.cache_bytes, self.scans_of_100) = (0, 0);
        }
        if self.has(Theme::Stripes) {
            self.hot_spots = 2;
            self.clients = self.clients.max(4);
        }
        if self.has(Theme::Lanes) {
            self.hasty = false;
            self.operations = self.operations.max(800);
        }
        if self.has(Theme::Departures) {
            // As long as it takes a group to leave.
            (self.think_us_max, self.pause_us_max) = (50_000, 100_000);
            self.clients = self.clients.max(4);
            (self.reads_of_100, self.hasty) = (30, false);
        }
        if self.has(Theme::Lends) {
            // What all want together is nearly what there is.
            let volumes = self.capacity_about() / 4;
            self.volume_bytes_max = volumes.max(64 << 10);
            self.volumes = self.volumes.min(5);
            (self.conversions_of_16, self.deletions_of_16) = (4, 6);
            self.shrinks_of_16 = 0;
            self.pause_us_max = 3_000;
        }
        if self.has(Theme::Conversions) {
            (self.conversions_of_16, self.deletions_of_16) = (6, 1);
            (self.clones_of_16, self.copies_of_8) = (4, 0);
            (self.clears_of_8, self.whole_pages_of_8) = (4, 6);
            self.volume_bytes_max = 6 * u64::from(self.pool.page_bytes);
            self.volumes = self.volumes.min(3);
            self.pause_us_max = 50;
        }
        if self.has(Theme::Clones) {
            (self.clones_of_16, self.deletions_of_16) = (6, 6);
            (self.fill_pause_us, self.pause_us_max) = (20, 50);
            (self.reads_of_100, self.whole_pages_of_8) = (60, 6);
            (self.clients, self.hot_spots) = (8, 1);
            self.volumes = self.volumes.min(3);
            (self.cache_bytes, self.sums_blocks) = (0, 1);
        }
        if self.has(Theme::Scans) {
            self.scans_of_100 = 30;
            self.cache_bytes = 4 << 20;
            self.sums_blocks = 1000;
        }
    }

    /// Whether a kind strikes victims by itself, and nothing else does.
    pub(crate) fn strikes_by_kind(&self) -> bool {
        self.has(Theme::Lends) || self.has(Theme::Departures)
    }

    /// Limits of drives' health, where a kind depends on them.
    pub(crate) fn health_of_kind(&self) -> Option<Limits> {
        // What is slow has to be waited for.
        self.has(Theme::Lends).then(Limits::default)
    }

    /// About the bytes that volumes can have, where a kind says how many zones there are.
    fn capacity_about(&self) -> u64 {
        let zone = self.pool.zone_bytes.unwrap_or(1 << 20);
        let shape = Geometry::of(self.pool.level, self.drives_of_group, BLOCK_BYTES as u64);
        let columns = shape.map_or(1, |shape| shape.data_columns() * shape.spans) as u64;
        12 * u64::from(self.lanes) * self.groups as u64 * columns * zone
    }

    /// On which rare paths of the engine boots are cut, in runs that have one of those
    /// kinds: names, how often they are passed at most, the most polls after that, as a
    /// power of two.
    pub(crate) fn cuts(&self) -> Option<(&'static [&'static str], u64, u64)> {
        let cuts: [(Theme, &'static [&'static str], u64, u64); 3] = [
            (Theme::Losses, &["drive expelled", "drive given up"], 1, 7),
            (Theme::Departures, &["log copy moved", "group left"], 2, 10),
            (Theme::Stripes, &["whole stripes go around the log"], 64, 13),
        ];
        let mut of_run = cuts.into_iter().filter(|(theme, ..)| self.has(*theme));
        of_run
            .next()
            .map(|(_, marks, passes, polls)| (marks, passes, polls))
    }
}
