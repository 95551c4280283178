//! POPULATE TOKEN (SBC-3 clause 5.7): a token for the present content of ranges of a logical unit.

use super::desk::Transferred;
use super::ranges::{self, Populate};
use super::{CancelToken, Copier, Outcome, PATIENCE, Representation, stream};
use crate::cdb::Extent;
use crate::commands::transfer::failure;
use crate::nexus::Nexus;
use crate::sense::{Key, Sense};
use crate::unit::LogicalUnit;
use base::SECTOR_BYTES;
use engine::{IoErrorKind, World};
use std::time::Duration;

/// Its service action.
const POPULATE_TOKEN: u8 = 0x10;

/// 55/0D INSUFFICIENT RESOURCES TO CREATE ROD TOKEN.
const NO_ROOM: Sense = Sense {
    key: Key::IllegalRequest,
    code: (0x55, 0x0d),
    ..Sense::NONE
};

impl<W: World> Nexus<W> {
    pub(super) async fn populate_token(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        (list_id, list): (u32, &[u8]),
        cancel: &CancelToken,
    ) -> Outcome {
        let order = match ranges::populate(list, unit.blocks()) {
            Ok(order) => order,
            Err(sense) => return sense.into(),
        };
        let action = (POPULATE_TOKEN, list_id);
        let made =
            self.transfer(
                unit,
                action,
                &order.ranges,
                cancel,
                async |transferred| match transferred.asked_blocks {
                    0 => Ok(()),
                    _ => {
                        let made = self.represent(copier, unit, &order, cancel, transferred);
                        made.await
                    }
                },
            );
        made.await
    }

    /// Makes a token, and says in `transferred` of how much.
    async fn represent(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        order: &Populate,
        cancel: &CancelToken,
        transferred: &mut Transferred,
    ) -> Result<(), Sense> {
        let (now, initiator) = (copier.now(), copier.initiator());
        let (mut has_room, mut left) = (false, Vec::new());
        copier.tokens(&mut |tokens| {
            left = tokens.expire(now);
            let (room, went) = tokens.make_room(&initiator);
            has_room = room;
            left.extend(went);
        });
        if !left.is_empty() {
            copier.release(left);
        }
        if !has_room {
            return Err(NO_ROOM);
        }
        let bytes = |range: &Extent| (range.lba.0 * SECTOR_BYTES as u64, range.bytes());
        let ranges = order.ranges.iter().map(bytes).collect();
        let held = copier.hold(unit.volume(), ranges, cancel.clone());
        let held = stream::within(copier, PATIENCE, cancel, held).await;
        let held = held.map_err(|error| match error.kind {
            // The host copies by itself then.
            IoErrorKind::PoolFull => NO_ROOM,
            _ => failure(&error, Sense::read_error),
        })?;
        transferred.blocks = held.bytes() / SECTOR_BYTES as u64;
        let of = Representation {
            initiator,
            source: unit.uuid(),
            held: held.clone(),
            inactivity: Duration::from_secs(u64::from(order.inactivity_s)),
        };
        let named = (&unit.identity().naa, self.target().name());
        copier.tokens(&mut |tokens| {
            transferred.token = tokens.issue(of.clone(), named, copier.now());
        });
        if transferred.token.is_none() {
            transferred.blocks = 0;
            copier.release(vec![held]);
            return Err(NO_ROOM);
        }
        Ok(())
    }
}
