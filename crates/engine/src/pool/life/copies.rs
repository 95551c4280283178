//! Copies of the metadata and of the logs go to other drives when theirs fail.

use crate::pool::drives::EventKind;
use crate::pool::{Inner, PoolError};
use crate::raid::{Geometry, Member};
use crate::world::World;
use std::rc::Rc;

/// Copies of the metadata, where there are that many drives.
const METADATA_COPIES: usize = 3;

impl<W: World> Inner<W> {
    pub(super) async fn move_copies(self: &Rc<Self>) -> Result<(), PoolError> {
        self.copy_metadata().await?;
        self.copy_logs().await
    }

    /// Whether fewer drives carry metadata or logs than should.
    pub(in crate::pool) fn copies_are_short(&self) -> bool {
        let members = self.drives.members();
        let metadata = members.iter().filter(|m| m.is_whole() && m.metadata());
        if metadata.count() < METADATA_COPIES.min(members.len()) {
            return true;
        }
        let carriers = self.drives.log_members();
        let shape = carriers.first().and_then(|first| self.log_geometry(first));
        shape.is_none_or(|shape| carriers.len() <= shape.redundancy())
    }

    /// The shape of the group that the logs are in.
    fn log_geometry(&self, carrier: &Member<W>) -> Option<Geometry> {
        let group = self.drives.group(carrier.group());
        let unit = u64::from(self.identity().stripe_unit_bytes);
        Geometry::of(group.level(), group.drives(), unit).ok()
    }

    /// Another drive carries the metadata, when too few do.
    async fn copy_metadata(self: &Rc<Self>) -> Result<(), PoolError> {
        let whole: Vec<Rc<Member<W>>> = self
            .drives
            .members()
            .into_iter()
            .filter(|member| member.is_whole())
            .collect();
        let carriers = whole.iter().filter(|member| member.metadata()).count();
        if carriers >= METADATA_COPIES.min(whole.len()) {
            return Ok(());
        }
        let Some(next) = whole.into_iter().find(|member| !member.metadata()) else {
            return Ok(());
        };
        // It gets everything from now on, and all that was before in a checkpoint; the
        // labels say so only then.
        next.set_metadata(true);
        self.checkpoint_to_all().await?;
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached("metadata copy moved");
        self.drives.event(
            EventKind::CopyMoved,
            format!("drive '{}' carries the metadata now", next.name),
        );
        self.wake_life();
        self.check()
    }

    /// Another drive of the same span carries the logs, when too few do.
    async fn copy_logs(self: &Rc<Self>) -> Result<(), PoolError> {
        let carriers = self.drives.log_members();
        let Some(first) = carriers.first() else {
            return Ok(());
        };
        let group = self.drives.group(first.group());
        let Some(geometry) = self.log_geometry(first) else {
            return Ok(());
        };
        if carriers.len() > geometry.redundancy() {
            return Ok(());
        }
        let span = geometry.span_of(usize::from(first.place()));
        let members = geometry.span_places(span).map(|place| group.place(place));
        let next = members
            .into_iter()
            .find(|member| member.is_whole() && !member.log());
        let Some(next) = next else { return Ok(()) };
        for ring in [&self.store.log, &self.store.intents] {
            if let Err(error) = ring.add_member(Rc::clone(&next)).await {
                self.drives.event(
                    EventKind::CopyMoved,
                    format!("drive '{}' can't carry the logs: {error}", next.name),
                );
                return self.check();
            }
        }
        next.set_log(true);
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached("log copy moved");
        self.drives.event(
            EventKind::CopyMoved,
            format!("drive '{}' carries the logs now", next.name),
        );
        self.wake_life();
        self.check()
    }
}
