//! How many drives more can be lost: of zones, and of the logs. [`Redundancy`] looks at the drives, and
//! changes nothing.
//!
//! Copies of the logs in two spans don't add up: with one drive of each the logs are lost, and no data
//! is. So they count by spans, as data does.

use crate::drives::{Drives, Member, Zone};
use crate::world::World;
use std::rc::Rc;

/// Drives that carry the logs and are lost together with data, or with a log group, when all are lost.
pub(super) struct LogSpan<W: World> {
    /// Its drives, whether they carry the logs or not.
    pub members: Vec<Rc<Member<W>>>,
    /// How many of them do.
    pub carriers: usize,
    /// How many have to, so that one is left as long as the span is.
    wanted: usize,
}

impl<W: World> LogSpan<W> {
    /// Whether a drive lies in it.
    pub fn has(&self, member: &Member<W>) -> bool {
        let at = (member.group(), member.place());
        let mut members = self.members.iter();
        members.any(|other| (other.group(), other.place()) == at)
    }

    /// How many more drives have to carry the logs.
    pub fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.carriers)
    }
}

/// What drives can still be lost.
pub(super) struct Redundancy<'a, W: World> {
    drives: &'a Rc<Drives<W>>,
}

impl<'a, W: World> Redundancy<'a, W> {
    pub(super) fn of(drives: &'a Rc<Drives<W>>) -> Self {
        Redundancy { drives }
    }

    /// As [`Redundancy::redundancy_left`], the worst of all zones, and of the logs.
    pub(super) fn redundancy_left_beside(&self, member: &Member<W>) -> usize {
        let zones = self.drives.zones_of(&self.drives.group(member.group()));
        let left = zones.iter().filter_map(|zone| {
            let place = zone.place_of(member)?;
            Some(self.redundancy_left(zone, &[place]))
        });
        left.chain(self.logs_left_beside(member))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// How many drives more the spans of these places can lose of a zone, the worst of them.
    pub(super) fn redundancy_left(&self, zone: &Zone<W>, places: &[usize]) -> usize {
        let geometry = zone.shape.geometry;
        let left_of = |place: &usize| {
            let places = geometry.span_places(geometry.span_of(*place));
            let is_lost = |place: &usize| !zone.is_readable(*place);
            let lost = places.filter(is_lost).count();
            geometry.redundancy().saturating_sub(lost)
        };
        places.iter().map(left_of).min().unwrap_or(0)
    }

    /// The span on which the logs are safest: while they move, they lie on two.
    pub(super) fn log_span(&self) -> Option<LogSpan<W>> {
        let mut spans: Vec<LogSpan<W>> = Vec::new();
        for carrier in self.drives.log_members() {
            match spans.iter_mut().find(|span| span.has(&carrier)) {
                Some(span) => span.carriers += 1,
                None => spans.extend(self.span_around(&carrier)),
            }
        }
        spans.into_iter().min_by_key(LogSpan::missing)
    }

    /// The span of a drive, the only one of it that carries the logs.
    fn span_around(&self, carrier: &Member<W>) -> Option<LogSpan<W>> {
        let group = self.drives.group(carrier.group());
        let unit = u64::from(self.drives.identity().stripe_unit_bytes);
        let geometry = group.shape_at(group.level(), unit).ok()?;
        let places = match group.spread {
            // Any of its drives meet in some zone.
            Some(_) => 0..group.drives(),
            None => geometry.span_places(geometry.span_of(usize::from(carrier.place()))),
        };
        Some(LogSpan {
            members: places.map(|place| group.place(place)).collect(),
            carriers: 1,
            wanted: geometry.redundancy() + 1,
        })
    }

    /// Whether fewer drives carry the logs than should.
    pub(super) fn logs_are_short(&self) -> bool {
        self.log_span().is_none_or(|span| span.missing() > 0)
    }

    /// How many more of the drives that carry the logs can be lost, where this one lies among them.
    pub(super) fn logs_left_beside(&self, member: &Member<W>) -> Option<usize> {
        let span = self.log_span()?;
        span.has(member).then(|| span.carriers.saturating_sub(1))
    }
}
