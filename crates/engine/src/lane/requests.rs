//! Requests of lanes for zones of other lanes.
//!
//! A lane asks for a write that finds no page, or to promise pages to a thick volume. Every other
//! lane lends a zone or says no.
//!
//! Invariants:
//! - Writes rank before promises. Of one kind, the request that has waited longest ranks first.
//! - A lane with a promise of its own does not answer promises that rank behind it. With a write of
//!   its own it lends nothing (`pool::maintenance::lend`).
//! - A lent zone is for the request that ranks first, also one of the lender. Until that request ends,
//!   only its lane can take the zone, and lanes whose own requests rank before it.
//! - When a lane takes a zone, what others answered its requests is void: these ask again. What the
//!   lane itself answered is void, too: it may have a zone to lend now.
//!
//! **No exchange without end.** A zone is lent only to a request that ranks before every request of
//! its lender. So as long as no request begins or ends, a zone never comes back to a lane that lent
//! it. When nothing is left to lend, every lane says no to the request that ranks first. So that
//! request ends: by its pages, or refused. Then the next one ranks first.
//!
//! **Full only when no lane could lend.** A request is refused when all other lanes have said no
//! since its lane, or they, took a zone. Zones that a lane has collected for a promise are not lost
//! to promises behind it: that lane answers when its own promise has ended.

use std::collections::{BTreeMap, BTreeSet};

/// The use of a requested zone. Writes rank before promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A write waits for a page.
    Write,
    /// Pages are to be promised to a thick volume.
    Promise,
}

/// The purpose of a request, and its number. What is less ranks first.
pub(super) type Rank = (Purpose, u64);

#[derive(Debug)]
struct Request {
    lane: u16,
    /// Its waiter has looked since its lane took a zone, and found too little.
    is_asking: bool,
    /// Lanes that have said no since its lane, or they, took a zone.
    refused: BTreeSet<u16>,
}

/// All requests of a pool.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: BTreeMap<Rank, Request>,
    next: u64,
    /// Zones that nobody has, and the request that each is for.
    lent: BTreeMap<u32, Rank>,
    /// Lanes that answer no more. Their requests count all the same: a lane that is being closed
    /// waits for its writes.
    silent: BTreeSet<u16>,
}

impl Requests {
    pub fn begin(&mut self, lane: u16, purpose: Purpose) -> Rank {
        let rank = (purpose, self.next);
        self.next += 1;
        let request = Request {
            lane,
            is_asking: true,
            refused: BTreeSet::new(),
        };
        self.waiting.insert(rank, request);
        rank
    }

    pub fn end(&mut self, rank: Rank) {
        self.waiting.remove(&rank);
    }

    /// Requests of a lane, the first one first.
    fn of(&self, lane: u16) -> impl Iterator<Item = Rank> {
        let of_lane = self.waiting.iter();
        let of_lane = of_lane.filter(move |(_, request)| request.lane == lane);
        of_lane.map(|(rank, _)| *rank)
    }

    pub fn has_write(&self, lane: u16) -> bool {
        self.of(lane).any(|(purpose, _)| purpose == Purpose::Write)
    }

    /// Whether a zone is for a request of another lane that ranks before all of this one.
    pub fn is_for_another(&self, lane: u16, zone: u32) -> bool {
        let Some(rank) = self.lent.get(&zone) else {
            return false;
        };
        let receiver = self.waiting.get(rank);
        receiver.is_some_and(|request| request.lane != lane)
            && self.of(lane).next().is_none_or(|own| *rank < own)
    }

    /// A lane has taken a zone, lent or not.
    pub fn note_taken(&mut self, lane: u16, zone: u32) {
        self.lent.remove(&zone);
        for request in self.waiting.values_mut() {
            request.refused.remove(&lane);
            if request.lane == lane {
                request.is_asking = false;
                request.refused.clear();
            }
        }
    }

    /// Requests that `lender` is to answer now, the first one first.
    fn asking(&self, lender: u16) -> impl Iterator<Item = Rank> {
        let promise = self.of(lender).find(|rank| rank.0 == Purpose::Promise);
        let others = self.waiting.iter();
        let open = others.filter(move |(rank, request)| {
            let is_open = request.is_asking && !request.refused.contains(&lender);
            is_open && request.lane != lender && promise.is_none_or(|own| **rank < own)
        });
        open.map(|(rank, _)| *rank)
    }

    /// Whether `lender` is to answer a request.
    pub fn is_wanted_of(&self, lender: u16) -> bool {
        self.asking(lender).next().is_some()
    }

    /// `lender` has emptied a zone. A request of its own has come meanwhile, if there is one.
    pub fn lend(&mut self, lender: u16, zone: u32) {
        let first = self.asking(lender).chain(self.of(lender)).min();
        if let Some(rank) = first {
            self.lent.insert(zone, rank);
        }
    }

    /// `lender` has no zone to lend.
    pub fn refuse(&mut self, lender: u16) {
        let ranks: Vec<Rank> = self.asking(lender).collect();
        for rank in ranks {
            if let Some(request) = self.waiting.get_mut(&rank) {
                request.refused.insert(lender);
            }
        }
    }

    /// The waiter has found too little: the request asks from now on. Whether all others, of so many
    /// lanes, have said no.
    pub fn is_refused(&mut self, rank: Rank, lanes: u16) -> bool {
        let Some(request) = self.waiting.get_mut(&rank) else {
            return true;
        };
        request.is_asking = true;
        let answers = |lane| !request.refused.contains(&lane) && !self.silent.contains(&lane);
        !(0..lanes).any(|lane| lane != request.lane && answers(lane))
    }

    pub fn fall_silent(&mut self, lane: u16) {
        self.silent.insert(lane);
    }
}

#[cfg(test)]
mod tests {
    use super::Purpose::{Promise, Write};
    use super::*;
    use crate::lane::LaneRegistry;
    use base::Prng;

    /// Lanes that have said which zones they have: lane 0 the first, lane 1 the second, and so on.
    fn registry(lanes: u16) -> LaneRegistry {
        let registry = LaneRegistry::new(lanes);
        for lane in 0..lanes {
            registry.open(lane, [u32::from(lane)].into_iter()).unwrap();
        }
        registry
    }

    /// A lane empties a zone for others.
    fn lend(registry: &LaneRegistry, lane: u16, zone: u32) {
        registry.lend_zone(lane, zone);
        registry.give_zone_back(lane, zone);
    }

    #[test]
    fn nobody_waits_for_a_lane_that_answers_no_more() {
        let registry = registry(3);
        let first = registry.request_zone(0, Write);
        registry.refuse_zone(2);
        assert!(!first.is_refused());
        registry.fall_silent(1);
        assert!(first.is_refused());
        let second = registry.request_zone(0, Write);
        assert!(!second.is_refused(), "lane 2 is asked again");
        registry.fall_silent(2);
        assert!(second.is_refused());
    }

    #[test]
    fn who_asks_hears_from_all_others() {
        let registry = registry(3);
        let request = registry.request_zone(0, Write);
        assert!(!registry.is_wanted_of(0));
        assert!(registry.is_wanted_of(1));
        registry.refuse_zone(1);
        assert!(!registry.is_wanted_of(1) && registry.is_wanted_of(2));
        assert!(!request.is_refused());
        registry.refuse_zone(2);
        assert!(request.is_refused());
        // A zone that came since is a reason to ask again.
        registry.give_zone_back(1, 1);
        assert_eq!(registry.take_zone(0, 0..3), Some(1));
        assert!(!registry.is_wanted_of(2), "the waiter has not looked yet");
        assert!(!request.is_refused());
        assert!(registry.is_wanted_of(2));
        drop(request);
        assert!(!registry.is_wanted_of(2));
    }

    #[test]
    fn a_lane_that_is_being_closed_has_its_writes_answered() {
        let registry = registry(2);
        registry.fall_silent(0);
        let request = registry.request_zone(0, Write);
        assert!(registry.is_wanted_of(1));
        lend(&registry, 1, 1);
        assert_eq!(registry.take_zone(1, 0..2), None);
        assert_eq!(registry.take_zone(0, 0..2), Some(1));
        assert!(!request.is_refused());
        registry.refuse_zone(1);
        assert!(request.is_refused());
    }

    #[test]
    fn requests_of_one_lane_end_one_by_one() {
        let registry = registry(2);
        let first = registry.request_zone(0, Write);
        let second = registry.request_zone(0, Write);
        drop(first);
        assert!(registry.is_wanted_of(1));
        registry.refuse_zone(1);
        let third = registry.request_zone(0, Write);
        assert!(second.is_refused() && !third.is_refused());
    }

    #[test]
    fn a_lent_zone_is_for_the_lane_that_asks_as_long_as_it_does() {
        let registry = registry(3);
        let lend = || lend(&registry, 1, 1);
        let request = registry.request_zone(0, Write);
        lend();
        assert_eq!(registry.take_zone(1, 0..3), None);
        assert_eq!(registry.take_zone(2, 0..3), None);
        assert_eq!(registry.take_zone(2, 0..4), Some(3), "one that nobody had");
        assert_eq!(registry.take_zone(0, 0..3), Some(1));
        drop(request);
        // Nobody asks any more.
        registry.give_zone_back(0, 1);
        assert_eq!(registry.take_zone(1, 0..3), Some(1));
        let request = registry.request_zone(0, Write);
        lend();
        assert_eq!(registry.take_zone(1, 0..3), None);
        drop(request);
        let again = registry.request_zone(0, Write);
        assert_eq!(registry.take_zone(1, 0..3), Some(1));
        drop(again);
        lend();
        assert_eq!(registry.take_zone(2, 0..3), Some(1), "it is for nobody");
    }

    #[test]
    fn a_lent_zone_goes_to_a_write_before_promises_and_to_those_by_age() {
        let registry = registry(3);
        let promise = registry.request_zone(0, Promise);
        let write = registry.request_zone(2, Write);
        let second = registry.request_zone(2, Promise);
        lend(&registry, 1, 1);
        assert_eq!(registry.take_zone(0, 0..3), None);
        assert_eq!(registry.take_zone(2, 0..3), Some(1));
        drop(write);
        assert!(!second.is_refused(), "it asks from now on");
        lend(&registry, 2, 1);
        assert_eq!(
            registry.take_zone(2, 0..3),
            None,
            "the other has waited longer"
        );
        assert_eq!(registry.take_zone(0, 0..3), Some(1));
        drop(promise);
    }

    #[test]
    fn a_lane_keeps_what_it_has_for_its_own_write_and_its_own_older_promise() {
        let registry = registry(2);
        let older = registry.request_zone(0, Promise);
        let younger = registry.request_zone(1, Promise);
        assert!(registry.is_wanted_of(1) && !registry.is_wanted_of(0));
        registry.refuse_zone(0);
        assert!(!younger.is_refused(), "lane 0 answers later");
        registry.refuse_zone(1);
        assert!(older.is_refused());
        drop(older);
        assert!(registry.is_wanted_of(0));
        // A write came while lane 0 emptied its zone.
        let write = registry.request_zone(0, Write);
        lend(&registry, 0, 0);
        assert_eq!(registry.take_zone(1, 0..2), None);
        assert_eq!(registry.take_zone(0, 0..2), Some(0));
        drop(write);
    }

    /// A request of a lane, and the zones that it needs.
    type Waiter = (Rank, u16, usize);

    /// Lanes that lend whole zones, in any order of steps.
    struct Pool {
        prng: Prng,
        requests: Requests,
        /// Zones that are free, of each lane and of nobody.
        spare: Vec<BTreeSet<u32>>,
        free: BTreeSet<u32>,
        waiters: Vec<Waiter>,
        zones: usize,
        /// Zones lent since a request began or ended.
        lent: usize,
        refusals: u64,
    }

    impl Pool {
        fn new(mut prng: Prng) -> Pool {
            let lanes = prng.between(2, 5) as usize;
            let mut spare = vec![BTreeSet::new(); lanes];
            let zones = prng.between(1, 12) as u32;
            for zone in 0..zones {
                spare[prng.below(lanes as u64) as usize].insert(zone);
            }
            Pool {
                prng,
                requests: Requests::default(),
                spare,
                free: BTreeSet::new(),
                waiters: Vec::new(),
                zones: zones as usize,
                lent: 0,
                refusals: 0,
            }
        }

        fn lane(&mut self) -> u16 {
            self.prng.below(self.spare.len() as u64) as u16
        }

        fn begin(&mut self) {
            let lane = self.lane();
            let (purpose, zones) = match self.prng.chance(1, 2) {
                true => (Write, 1),
                false => (Promise, self.prng.between(1, 6) as usize),
            };
            let others = self.waiters.iter();
            let promises = others.filter(|(rank, other, _)| (rank.0, *other) == (Promise, lane));
            // They are made one at a time.
            if purpose == Write || promises.count() == 0 {
                let rank = self.requests.begin(lane, purpose);
                self.waiters.push((rank, lane, zones));
                self.lent = 0;
            }
        }

        fn take(&mut self, lane: u16) {
            let requests = &self.requests;
            let mine = |zone: &u32| !requests.is_for_another(lane, *zone);
            if let Some(zone) = self.free.iter().copied().find(mine) {
                self.free.remove(&zone);
                self.requests.note_taken(lane, zone);
                self.spare[usize::from(lane)].insert(zone);
            }
        }

        fn end(&mut self, at: usize) {
            let (rank, ..) = self.waiters.remove(at);
            self.requests.end(rank);
            self.lent = 0;
        }

        /// A waiter looks for zones. What it needs is in use from then on.
        fn look(&mut self) {
            let Some(at) = self
                .prng
                .below(1 + self.waiters.len() as u64)
                .checked_sub(1)
            else {
                return;
            };
            let (at, lanes) = (at as usize, self.spare.len() as u16);
            let (rank, lane, zones) = self.waiters[at];
            self.take(lane);
            let here = &mut self.spare[usize::from(lane)];
            if here.len() >= zones {
                let used: Vec<u32> = here.iter().copied().take(zones).collect();
                used.iter().for_each(|zone| assert!(here.remove(zone)));
                self.end(at);
            } else if self.requests.is_refused(rank, lanes) {
                // No lane could, and none is for a request behind this one.
                let mut others = self.spare.iter().enumerate();
                let could =
                    others.find(|(other, spare)| *other != usize::from(lane) && !spare.is_empty());
                assert_eq!(could, None, "{:?}", self.waiters);
                let mut free = self.free.iter();
                assert!(free.all(|zone| self.requests.is_for_another(lane, *zone)));
                self.refusals += 1;
                self.end(at);
            }
        }

        fn answer(&mut self) {
            let lane = self.lane();
            if !self.requests.is_wanted_of(lane) {
                return;
            }
            let mut writes = self.waiters.iter();
            let has_write = writes.any(|(rank, of, _)| (rank.0, *of) == (Write, lane));
            let here = &mut self.spare[usize::from(lane)];
            match here.first().copied() {
                None => self.requests.refuse(lane),
                Some(_) if has_write => {}
                Some(zone) => {
                    here.remove(&zone);
                    self.free.insert(zone);
                    self.requests.lend(lane, zone);
                    self.lent += 1;
                    assert!(self.lent < self.zones * self.spare.len());
                }
            }
        }
    }

    #[test]
    fn every_request_ends_and_is_refused_only_when_no_lane_could_lend() {
        let mut refusals = 0;
        for seed in 0..2000 {
            let mut pool = Pool::new(Prng::from_seed(seed));
            for _ in 0..pool.prng.between(1, 10) {
                pool.begin();
            }
            let mut steps = 0;
            while !pool.waiters.is_empty() {
                match pool.prng.below(8) {
                    0 if steps < 200 => pool.begin(),
                    0..4 => pool.look(),
                    _ => pool.answer(),
                }
                steps += 1;
                assert!(steps < 20_000, "{seed}: {:?}", pool.waiters);
            }
            refusals += pool.refusals;
        }
        assert!(refusals > 1000, "{refusals}");
    }
}
