//! Kinds of runs that only a request selects, never a seed ([`Theme::is_on_request`]).
//!
//! Some bugs need many conditions at once. These runs make the conditions common, so that they find
//! a planted bug soon.

use crate::config::{Config, Theme};
use base::Prng;
use engine::Level;
use engine::pool::maintenance::health::Limits;
use std::collections::BTreeSet;
use std::time::Duration;

/// How much longer a write of a label takes ([`Theme::Labels`]), or of where a log's tail is
/// ([`Theme::Tails`]).
pub(crate) const SLOW_BLOCK: Duration = Duration::from_millis(50);

/// Bytes of a drive for each lane ([`Theme::Lanes`]).
const LANE_BYTES: u64 = 6 << 20;

/// What a kind asks of the pool that is drawn; what it does not ask for is drawn as ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    /// Drives fail within the budget.
    pub damage: bool,
    /// No drive is damaged, whatever is drawn; it overrides `damage`.
    pub sound: bool,
    /// Those that fail take turns.
    pub turns: bool,
    /// As many groups as there can be, and they leave.
    pub leave: bool,
    /// One group, and no spare: few labels tell of anything.
    pub alone: bool,
    /// At least so many spares.
    pub spares: u64,
    /// Number of volumes, instead of that which is drawn.
    pub volumes: Option<u64>,
    /// Level and drives of its groups.
    pub shape: Option<(Level, u64)>,
    /// Its groups have distributed spares.
    pub spread: bool,
}

impl Kind {
    pub(crate) fn of(themes: &BTreeSet<Theme>) -> Kind {
        let has = |theme| themes.contains(&theme);
        let losses = has(Theme::Losses) || has(Theme::Labels);
        let spread = has(Theme::Spread) || has(Theme::SpreadCuts);
        let turns = has(Theme::Turns) || losses || has(Theme::Tails);
        Kind {
            damage: turns || has(Theme::Departures) || spread,
            sound: has(Theme::Rebuilds) || has(Theme::Lanes),
            turns,
            spread,
            leave: has(Theme::Departures),
            alone: losses || has(Theme::Tails) || has(Theme::Lanes),
            spares: if has(Theme::Rebuilds) { 2 } else { 0 },
            volumes: match () {
                () if has(Theme::Appends) => Some(2),
                () if has(Theme::Lanes) => Some(20),
                () => None,
            },
            shape: match () {
                () if has(Theme::Appends) || has(Theme::Lanes) => Some((Level::Simple, 1)),
                () if losses || has(Theme::Rebuilds) => Some((Level::Raid5, 3)),
                () if has(Theme::Tails) => Some((Level::Raid5, 3)),
                () if has(Theme::Departures) => Some((Level::Raid10 { copies: 2 }, 2)),
                () => None,
            },
        }
    }

    /// How many spares there are, of so many drawn.
    pub(crate) fn spares_of(&self, drawn: u64) -> u64 {
        match self.alone {
            true => 0,
            false => drawn.max(self.spares),
        }
    }
}

/// Where slow drives are to be copied: a boot is too short for the usual limits.
const HASTY_HEALTH: Limits = Limits {
    window: Duration::from_millis(20),
    bad_windows: 1,
    quiet_windows: 4,
    errors: 8,
    errors_out: 1_000,
    slow: Duration::from_micros(300),
    ratio: 3,
    operations: 4,
    hung: Duration::from_secs(30),
    hedge: Duration::from_millis(300),
    copied_after: Some(Duration::from_millis(20)),
};

impl Config {
    /// Has slow drives be copied, where drives are copied that can't fail.
    pub(crate) fn suit_copies(&mut self, may_fail: bool) {
        if (self.has(Theme::Copies) || self.has(Theme::CopyCuts)) && !may_fail {
            self.health = HASTY_HEALTH;
        }
    }

    /// What else a kind asks for: requests, and how drives are.
    pub(crate) fn suit_kind(&mut self, seed: &Prng) {
        if self.has(Theme::Losses) {
            // Drives are lost once or twice in a run, and have to be under load then; some
            // take so long for a label that others have answered a write.
            self.operations = self.operations.min(300);
            (self.clients, self.reads_of_100, self.hasty) = (16, 60, false);
            let prng = &mut seed.stream("kind");
            let uneven = |slowdown: &mut u32| *slowdown = *prng.pick(&[1, 1, 30]);
            self.slowdown.iter_mut().for_each(uneven);
        }
        if self.has(Theme::Labels) {
            self.operations = self.operations.min(300);
            // Reads find a loss, so that writes do not wait for the labels by themselves.
            (self.clients, self.reads_of_100, self.hasty) = (16, 60, false);
        }
        if self.has(Theme::Tails) {
            (self.clients, self.reads_of_100, self.hasty) = (4, 10, false);
            // Pages are fresh again and again, and what a log has is written again.
            (self.clears_of_8, self.whole_pages_of_8) = (3, 2);
            self.hot_spots = 2;
            self.volume_bytes_max = 128 << 10;
            self.request_sectors_max = 64;
            self.volumes = self.volumes.min(2);
        }
        if self.has(Theme::Rebuilds) {
            // What it excuses.
            self.themes.insert(Theme::Outages);
            self.beyond = false;
            (self.clients, self.reads_of_100, self.hasty) = (8, 30, false);
        }
        if self.has(Theme::Appends) {
            // Batches of one block each, many under way at a time, on one copy of the log.
            self.hasty = true;
            (self.clients, self.reads_of_100, self.scans_of_100) = (8, 10, 0);
            (self.hot_spots, self.request_sectors_max) = (2, 8);
            (self.whole_pages_of_8, self.cache_bytes) = (0, 0);
        }
        if self.has(Theme::Departures) {
            // As long as it takes a group to leave.
            (self.think_us_max, self.pause_us_max) = (50_000, 100_000);
            self.clients = self.clients.max(4);
            (self.reads_of_100, self.hasty) = (30, false);
        }
        self.suit_sound_kind(seed);
    }

    /// As [`Config::suit_kind`], where it is not about faults.
    fn suit_sound_kind(&mut self, seed: &Prng) {
        if self.has(Theme::Scans) {
            self.scans_of_100 = 30;
            self.cache_bytes = 4 << 20;
            self.sums_blocks = 1000;
        }
        if self.has(Theme::Lanes) {
            // What a lane keeps back of so many zones is more than one.
            self.lanes = seed.stream("lanes").between(2, 3) as u16;
            self.drive_bytes.fill(LANE_BYTES * u64::from(self.lanes));
            self.pool.page_bytes = 4096;
            self.pool.stripe_unit_bytes = 8192;
            self.pool.zone_bytes = Some(32 << 10);
            self.pool.log_bytes = Some(256 << 10);
            // Thick volumes come and go, so that the pool is nearly full all the time.
            (self.clients, self.reads_of_100, self.hasty) = (3, 10, false);
            self.operations = self.operations.max(600);
            (self.deletions_of_16, self.conversions_of_16) = (2, 4);
            (self.pause_us_max, self.clones_of_16) = (50, 0);
            self.volume_bytes_max = 1 << 20;
        }
    }

    /// On which rare paths of the engine boots are cut, in runs of some kinds: their names,
    /// how often one may be passed before, and the most polls after it, as a power of two.
    pub(crate) fn cuts(&self) -> Option<(&'static [&'static str], u64, u64)> {
        let lost: &[&str] = &["drive expelled", "drive given up"];
        let copied: &[&str] = &["copy of a drive begins", "copy of a drive ends"];
        let moved: &[&str] = &["place moved to another drive"];
        match () {
            () if self.has(Theme::Losses) => Some((lost, 1, 7)),
            () if self.has(Theme::Labels) => Some((lost, 1, 9)),
            () if self.has(Theme::Tails) => Some((&["log tail moves"], 8, 9)),
            () if self.has(Theme::CopyCuts) => Some((copied, 2, 10)),
            () if self.has(Theme::SpreadCuts) => Some((moved, 3, 9)),
            () if self.has(Theme::LogMoves) => Some((&["log moves to another group"], 2, 9)),
            () if self.has(Theme::Departures) => Some((&["log copy moved", "group left"], 2, 10)),
            () => None,
        }
    }
}
