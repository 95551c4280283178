//! Reads of a drive: of hosts, which may make way for others and leave a late drive, and of work in the
//! background, in turns.

use super::Member;
use crate::drive::{Drive as _, DriveError, DriveErrorKind};
use crate::drives::overdue::Newcomer;
use crate::drives::turns::Turn;
use crate::drives::vitals::{Kind, Outcome, Patience, bump};
use crate::world::World;
use base::{Buf, DriveOffset};
use futures_util::future::{Either, select};
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

/// How a read goes about its drive.
#[derive(Clone, Copy, Debug)]
struct Manner {
    patience: Patience,
    /// On a disk others make way for it.
    is_of_hosts: bool,
    /// On a disk it makes way for others. Nothing may be locked meanwhile: a slow path reads dozens of blocks
    /// one after the other.
    makes_way: bool,
}

impl Manner {
    fn of_hosts(patience: Patience) -> Self {
        Manner {
            patience,
            is_of_hosts: true,
            makes_way: false,
        }
    }
}

impl<W: World> Member<W> {
    /// Reads into `buf`.
    ///
    /// # Errors
    /// What the drive said; the drive stays in use.
    pub async fn read(&self, at: DriveOffset, buf: Buf) -> Result<Buf, DriveError> {
        bump(&self.vitals.reads);
        self.read_uncounted(at, buf).await
    }

    /// Reads into `buf`. `None` when `patience` has an end and the drive is late: then
    /// nothing is known to be wrong with what lies there.
    pub async fn read_patiently(
        &self,
        at: DriveOffset,
        buf: Buf,
        patience: Patience,
    ) -> Option<Result<Buf, DriveError>> {
        bump(&self.vitals.reads);
        self.read_or_leave(at, buf, Manner::of_hosts(patience))
            .await
    }

    /// As [`Member::read_patiently`], of a read with nothing locked whose drive may be late. On a disk it
    /// makes way for old commands.
    pub async fn read_in_line(&self, at: DriveOffset, buf: Buf) -> Option<Result<Buf, DriveError>> {
        bump(&self.vitals.reads);
        let manner = Manner {
            makes_way: true,
            ..Manner::of_hosts(Patience::Leaves)
        };
        self.read_or_leave(at, buf, manner).await
    }

    /// Reads a block to see how the drive fares; not counted among the reads.
    ///
    /// # Errors
    /// What the drive said.
    pub async fn probe(&self, at: DriveOffset, buf: Buf) -> Result<(), DriveError> {
        self.read_uncounted(at, buf).await.map(drop)
    }

    /// Reads for the pool's own sake; not counted among the reads.
    ///
    /// # Errors
    /// What the drive said.
    pub async fn read_uncounted(&self, at: DriveOffset, buf: Buf) -> Result<Buf, DriveError> {
        let len = buf.len() as u64;
        let manner = Manner::of_hosts(Patience::Waits);
        let read = self.read_or_leave(at, buf, manner).await;
        read.unwrap_or_else(|| Err(self.given_up(("read", at, len))))
    }

    /// Reads for work in the background: on a disk in turns, behind commands of hosts that are older than
    /// a patience. Without one, it waits for nobody. Nor does it once hosts wait for what is read: then it
    /// is `wanted`.
    ///
    /// # Errors
    /// As of [`Member::read`].
    pub async fn read_in_turn(
        &self,
        (at, len): (DriveOffset, usize),
        patience: Option<Duration>,
        wanted: impl Future<Output = ()>,
    ) -> Result<Buf, DriveError> {
        let turn = self.turn((len as u64, patience), wanted).await;
        let buf = self.world.buffers().data(len);
        bump(&self.vitals.reads);
        let manner = Manner {
            is_of_hosts: turn.is_none(),
            ..Manner::of_hosts(Patience::Waits)
        };
        let read = self.read_or_leave(at, buf, manner).await;
        if self.world.planted("turn of a read that has ended is kept") {
            std::mem::forget(turn);
        }
        read.unwrap_or_else(|| Err(self.given_up(("read", at, len as u64))))
    }

    /// Waits for a turn; none without a patience, if it is no disk, or if hosts wait for this.
    pub(super) async fn turn(
        &self,
        (bytes, patience): (u64, Option<Duration>),
        wanted: impl Future<Output = ()>,
    ) -> Option<Turn<'_>> {
        let patience = patience.filter(|_| self.is_rotational())?;
        let sleep = async |time| self.world.sleep(time).await;
        let turns = self.overdue.turns();
        let turn = turns.turn((bytes, patience), &self.overdue, || self.world.now(), sleep);
        let Either::Left((turn, _)) = select(pin!(turn), pin!(wanted)).await else {
            self.world
                .reached("work in the background that a host waits for");
            return None;
        };
        if turn.halted {
            self.world
                .reached("work in the background halts for commands");
        }
        Some(turn)
    }

    async fn read_or_leave(
        &self,
        at: DriveOffset,
        buf: Buf,
        manner: Manner,
    ) -> Option<Result<Buf, DriveError>> {
        let operation = ("read", at, buf.len() as u64);
        let drive = match self.drive(operation) {
            Ok(drive) => drive,
            Err(error) => return Some(Err(error)),
        };
        let held = Cell::new(None);
        let reading = pin!(async {
            if manner.makes_way {
                self.make_way(Newcomer::Read, &drive, &held).await;
            }
            let _command = manner.is_of_hosts.then(|| self.begins(&drive));
            drive.read(at, buf).await
        });
        let (kind, now) = ((Kind::Read, manner.patience), || self.world.now());
        let run = self
            .vitals
            .run_held(kind, (now, Some(&held)), reading, |(_, r)| r.is_err());
        let read = match run.await {
            Outcome::Done((buf, outcome)) => outcome.map(|()| buf),
            Outcome::GivenUp => Err(self.given_up(operation)),
            Outcome::Late => return None,
        };
        if let Err(error) = &read {
            let at = match error.kind {
                DriveErrorKind::Media => &self.damaged_at,
                _ => &self.silent_at,
            };
            at.set(Some(self.world.now()));
        }
        Some(read)
    }
}
