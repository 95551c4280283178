//! What holds when nothing is under way.

use super::groups::has;
use super::places::Tenants;
use super::request::{Outcome, Request};
use super::{Boot, OTHER, POOL, START};
use array::control::{ArrayError, KnownDrive, names};
use engine::World;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use std::time::Duration;

/// What the array tells is on record after so many looks, so far apart.
const LOOKS: u32 = 200;
const LOOK_PAUSE: Duration = Duration::from_millis(150);

impl Boot {
    /// Nothing is under way: the array tells of the drives that it should, and so does its record.
    pub(super) async fn settle(&self, when: &str) {
        let books = &self.books;
        let mut why = String::new();
        for _ in 0..LOOKS {
            if books.failure.borrow().is_some() {
                return;
            }
            match self.look().await {
                Ok((info, told)) => {
                    let known = self.known_drives();
                    let kept = books.records.roster.kept();
                    if self.array.known_drives() == kept && is_noted(&known, &info, &told) {
                        return self.observe(when, &info, &told).await;
                    }
                    why = "the record does not say what the array says".to_owned();
                }
                Err(error) => why = format!("looking at it: {error}"),
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
        books.fail(&self.world, format!("{when}: {why}"));
    }

    async fn observe(&self, when: &str, info: &PoolInfo, told: &[KnownDrive]) {
        let books = &self.books;
        let mut under_way = books.under_way.take();
        if when == START {
            let all = under_way.iter_mut();
            all.for_each(|(_, outcome)| outcome.forget_failure());
        }
        books.note_unwritten();
        let some_unwritten = books.some_unwritten.take();
        let wrong = self.check_offers(info, &under_way);
        let asked = (&under_way[..], some_unwritten);
        let found = books.oracle.borrow_mut().observe(info, told, asked);
        if let Err(what) = wrong.and(found) {
            let what = format!("{when}: {what}; after {under_way:?}");
            books.fail(&self.world, what);
        }
        if let Err(what) = self.check_others().await {
            books.fail(&self.world, format!("{when}: {what}; after {under_way:?}"));
        }
        self.check_places(when, info).await;
    }

    /// That drives of others are as they were, and that the other pool has its drive.
    async fn check_others(&self) -> Result<(), String> {
        let shelf = &self.books.places.shelf;
        if let Some(changed) = shelf.changed() {
            return Err(format!("{changed}, a drive of others, is changed"));
        }
        let (_, info) = self.array.pool(OTHER).await.map_err(said)?;
        let is_whole = |member: &MemberInfo| member.state == MemberState::Healthy;
        let named = self
            .books
            .site
            .pool(OTHER)
            .map(|pool| pool.drives().count());
        match info.spares.is_empty()
            && Some(info.members.len()) == named
            && info.members.iter().all(is_whole)
        {
            true => Ok(()),
            false => Err(format!("pool {OTHER} is {info:?}")),
        }
    }

    /// That the pool has no drive that it must not have, and that nothing is left of refused ones.
    fn check_offers(&self, info: &PoolInfo, asked: &[(Request, Outcome)]) -> Result<(), String> {
        for (request, outcome) in asked {
            for offer in request.offers() {
                let name = &offer.drive.name;
                if offer.is_barred() && has(info, name) {
                    return Err(format!("{:?} is part of the pool", offer.drive));
                }
                let is_there = names(info).any(|known| known == name);
                let wrong = self.books.places.wrong_with(offer);
                if let Some(wrong) = wrong.filter(|_| outcome.is_refused() && !is_there) {
                    return Err(wrong);
                }
            }
        }
        Ok(())
    }

    /// Each drive of the pool is on record. Notes those that stay there after their group has left.
    async fn check_places(&self, when: &str, info: &PoolInfo) {
        let (books, places) = (&self.books, self.array.places());
        let is_on_record = |name: &String| places.find_of(POOL, name).is_some();
        // Where one has failed, another may be on record by now.
        let is_used = |member: &&MemberInfo| member.state != MemberState::Failed;
        let mut members = info.members.iter().chain(&info.spares).filter(is_used);
        if let Some(member) = members.find(|member| !is_on_record(&member.name)) {
            let what = format!("{when}: {} is on no record", member.name);
            return books.fail(&self.world, what);
        }
        // Who can't write the record leaves that to the next start.
        if books.records.fail_one_of > 0 {
            return;
        }
        let left = books.oracle.borrow().groups().left().clone();
        let (mut stay, mut behind) = (Vec::new(), None);
        for _ in 0..LOOKS {
            let info = match self.look().await {
                Ok((info, _)) => info,
                Err(error) => return books.fail(&self.world, format!("looking at it: {error}")),
            };
            // One that is not wiped is not free.
            let is_wiped = |name: &&String| names(&info).all(|one| one != *name);
            let named = left.iter().filter(|name| is_on_record(name));
            stay = named.filter(is_wiped).cloned().collect();
            behind = self.behind(&info);
            if stay.is_empty() && behind.is_none() {
                return;
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
        if let Some(name) = behind {
            let what = format!("{when}: the settings name an old place of {name}");
            return books.fail(&self.world, what);
        }
        // No failure before the array is mended: seed 30322 shows that they may stay there.
        let what = format!("{when}: {stay:?} have left with their groups, and are on record");
        self.world.note(|| what);
    }

    /// A drive of the pool that the settings name at another place than its own, if none of its name
    /// waits for a place.
    fn behind(&self, info: &PoolInfo) -> Option<String> {
        let places = self.array.places();
        let all = || info.members.iter().chain(&info.spares);
        let is_alone = |name: &str| all().filter(|one| one.name == name).count() == 1;
        let is_elsewhere = |member: &&MemberInfo| {
            let at = places.find_of(POOL, &member.name).map(|place| place.path);
            let named = places.named_of(POOL, &member.name);
            is_alone(&member.name) && named.is_some_and(|named| Some(named.path) != at)
        };
        let mut used = info
            .members
            .iter()
            .filter(|member| member.state != MemberState::Failed);
        used.find(is_elsewhere).map(|member| member.name.clone())
    }

    /// The drives of the pool that the roster has.
    fn known_drives(&self) -> Vec<KnownDrive> {
        let mut known = self.array.known_drives();
        known.retain(|drive| drive.pool == POOL);
        known
    }

    /// Who has which places; none when the array does not say.
    pub(super) async fn tenants(&self) -> Option<Tenants> {
        let (info, departed) = self.look().await.ok()?;
        let place_of = |member: &MemberInfo| {
            let place = self.array.places().find_of(POOL, &member.name)?;
            Some((member.name.clone(), place.path))
        };
        let is_used = |member: &&MemberInfo| {
            let mut groups = info.groups.iter();
            let is_leaving = groups.any(|group| group.index == member.group && group.leaving);
            !is_leaving && matches!(member.state, MemberState::Healthy | MemberState::Spare)
        };
        let all = info.members.iter().chain(&info.spares);
        Some(Tenants {
            users: all.clone().filter(is_used).filter_map(place_of).collect(),
            taken: all.filter_map(place_of).collect(),
            departed,
            others: self.array.places().of_pool(OTHER),
        })
    }

    /// The pool, and the failed drives that have no place in it any more.
    async fn look(&self) -> Result<(PoolInfo, Vec<KnownDrive>), ArrayError> {
        let (_, info) = self.array.pool(POOL).await?;
        let told = self.array.departed_failures(&info);
        Ok((info, told))
    }
}

/// Whether the roster has all drives of a pool, and those that are told of, and no others.
fn is_noted(known: &[KnownDrive], info: &PoolInfo, told: &[KnownDrive]) -> bool {
    let members: Vec<&MemberInfo> = info.members.iter().chain(&info.spares).collect();
    let is_known = |member: &&MemberInfo| {
        let uuid = member.uuid.to_string();
        let is_out = member.state == MemberState::Failed;
        let mut known = known.iter();
        known.any(|drive| {
            drive.uuid == uuid && drive.group == member.group && drive.failure.is_some() == is_out
        })
    };
    let are_told = told.iter().all(|drive| known.contains(drive));
    are_told && members.iter().all(is_known) && known.len() == members.len() + told.len()
}

fn said(error: ArrayError) -> String {
    error.to_string()
}
