//! A logical unit: a volume, the names that initiators know it by, and its agreements with them.

use crate::erasure::Erasure;
use crate::reservation::{NexusId, Reservations, Unreadable};
use crate::retries::Queue;
use crate::sense::{Format, Sense};
use base::{BLOCK_BYTES, SECTOR_BYTES, Uuid};
use engine::qos::Account;
use engine::{Disk, IoError, Provisioning, World};
use futures_channel::oneshot;
use futures_util::lock::{Mutex, MutexGuard};
use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::sync::Arc;

/// Company part of the NAA designator. The locally administered bit is set: it
/// is nobody's registered identifier, and the hundred bits behind it come from
/// the volume's UUID.
const LOCAL_COMPANY_ID: [u8; 3] = [0x02, 0xa5, 0x41];

/// What a volume is called in SCSI. Follows from its UUID alone, so it stays
/// over restarts, renames, moves between targets and pools of any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Unit serial number (VPD page 80h): the UUID as 32 hexadecimal digits.
    pub serial: String,
    /// NAA IEEE Registered Extended designator (SPC-4 clause 7.8.6.6.5).
    pub naa: [u8; 16],
}

impl Identity {
    /// The identity of the volume with this UUID.
    pub fn of(uuid: Uuid) -> Self {
        let bytes = uuid.as_bytes();
        // The version and variant digits of a UUID are the same in every one;
        // the designator has room for 25 of the other thirty digits.
        let digits = (0..32)
            .filter(|digit| *digit != 12 && *digit != 16)
            .map(|digit| (bytes[digit / 2] >> (4 * (1 - digit % 2))) & 0xf);
        let [a, b, c] = LOCAL_COMPANY_ID;
        let head = [6, a >> 4, a & 0xf, b >> 4, b & 0xf, c >> 4, c & 0xf];
        let mut naa = [0; 16];
        for (place, digit) in head.into_iter().chain(digits).take(32).enumerate() {
            naa[place / 2] |= digit << (4 * (1 - place % 2));
        }
        Identity {
            serial: format!("{:032x}", uuid.as_u128()),
            naa,
        }
    }
}

/// A persistent registration, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The nexus that registered the key.
    pub nexus: NexusId,
    /// The reservation key that it registered.
    pub key: u64,
    /// Whether the reservation is his, too.
    pub is_holder: bool,
}

/// A volume as a direct-access block device.
pub struct LogicalUnit<W: World> {
    /// Where it is may change, what it is does not.
    volume: RefCell<Disk<W>>,
    uuid: Uuid,
    identity: Identity,
    reservations: RefCell<Reservations>,
    /// Held by the one who changes reservations.
    reserving: Mutex<()>,
    mode: Cell<Mode>,
    erasure: Cell<Erasure>,
    /// The same as it is on record.
    kept_erasure: Cell<Erasure>,
    /// Of 65,536.
    erased: Cell<u16>,
    /// Held by what erases it.
    erasing: Mutex<()>,
    /// Nobody is shown it any more.
    hidden: Cell<bool>,
    /// Commands that are under way.
    working: Cell<usize>,
    /// Told when none is.
    idle: RefCell<Vec<oneshot::Sender<()>>>,
    may_sanitize: Cell<bool>,
    may_affect_others: Cell<bool>,
    blocks_per_physical: Cell<u32>,
    out_of_room: Queue,
    /// Of the limits of the volume; none where nobody can set one.
    account: OnceCell<Arc<Account>>,
}

/// Mode parameters that initiators can change (SPC-4 clause 7.5.8), where they may affect
/// others. All of them see the same; a reset takes them back.
///
/// They are shared and fixed unless the export allows changes, instead of one set for each I_T
/// nexus. Linux, Windows and ESXi read WP and D_SENSE and set neither, and Linux's own target
/// (LIO) lets nobody change them. An SWP of one nexus would protect from nothing, besides: the
/// host that sets it writes on by its other path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    /// D_SENSE: sense data comes as descriptors.
    pub(crate) descriptor_sense: bool,
    /// SWP: nothing is written.
    pub(crate) write_protected: bool,
}

/// A command that is under way, until it is dropped.
pub(crate) struct Working<'a, W: World>(&'a LogicalUnit<W>);

impl<W: World> Drop for Working<'_, W> {
    fn drop(&mut self) {
        let left = self.0.working.get() - 1;
        self.0.working.set(left);
        if left == 0 {
            for waits in self.0.idle.take() {
                // Nobody may wait any more.
                let _ = waits.send(());
            }
        }
    }
}

impl<W: World> LogicalUnit<W> {
    /// The logical unit that shows `volume`, with the reservations that it was left with, and
    /// being erased where that has not ended.
    ///
    /// # Errors
    /// Its memo can't be understood.
    pub fn new(volume: impl Into<Disk<W>>) -> Result<Self, Unreadable> {
        let volume = volume.into();
        let uuid = volume.info().uuid;
        let memo = volume.memo();
        let (erasure, memo) = Erasure::of_memo(&memo)?;
        let reservations = Reservations::of_memo(memo)?;
        Ok(LogicalUnit {
            volume: RefCell::new(volume),
            uuid,
            identity: Identity::of(uuid),
            reservations: RefCell::new(reservations),
            reserving: Mutex::new(()),
            mode: Cell::default(),
            erasure: Cell::new(erasure),
            kept_erasure: Cell::new(erasure),
            erased: Cell::new(0),
            erasing: Mutex::new(()),
            hidden: Cell::new(false),
            working: Cell::new(0),
            idle: RefCell::default(),
            may_sanitize: Cell::new(false),
            may_affect_others: Cell::new(false),
            blocks_per_physical: Cell::new((BLOCK_BYTES / SECTOR_BYTES) as u32),
            out_of_room: Queue::default(),
            account: OnceCell::new(),
        })
    }

    /// Initiators are told that physical blocks are so long, for those that want them short.
    ///
    /// # Panics
    /// When it is no power of two from 512 to 4096.
    pub fn set_physical_block(&self, bytes: u32) {
        let blocks = bytes / SECTOR_BYTES as u32;
        assert!(
            bytes.is_power_of_two() && (1..=8).contains(&blocks),
            "physical blocks of {bytes} bytes"
        );
        self.blocks_per_physical.set(blocks);
    }

    /// Its commands keep to the limits of `account` from now on; for good.
    pub fn set_account(&self, account: Arc<Account>) {
        self.account.get_or_init(|| account);
    }

    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.get().map(Arc::as_ref)
    }

    /// Whether initiators may erase all of it with SANITIZE, if it is thin. They may not unless
    /// this is said: one command of any host that is admitted would do it. An erasure that has
    /// begun goes on.
    pub fn set_may_sanitize(&self, may: bool) {
        self.may_sanitize.set(may);
    }

    /// Whether initiators may change its mode pages and reset its target, which affects all of
    /// them. They may not unless this is said.
    pub fn set_may_affect_others(&self, may: bool) {
        self.may_affect_others.set(may);
    }

    /// Whether one initiator may do what affects the others.
    pub(crate) fn may_affect_others(&self) -> bool {
        self.may_affect_others.get()
    }

    /// Whether initiators may erase all of it.
    pub(crate) fn may_sanitize(&self) -> bool {
        self.may_sanitize.get() && self.unmap_blocks().is_some()
    }

    /// Commands that have found no room.
    pub(crate) fn out_of_room(&self) -> &Queue {
        &self.out_of_room
    }

    /// Logical blocks to a physical one, as initiators are told.
    pub(crate) fn blocks_per_physical(&self) -> u32 {
        self.blocks_per_physical.get()
    }

    /// What is reserved.
    pub(crate) fn reservations(&self) -> Ref<'_, Reservations> {
        self.reservations.borrow()
    }

    /// The right to change reservations.
    pub(crate) async fn reserving(&self) -> MutexGuard<'_, ()> {
        self.reserving.lock().await
    }

    /// These hold from now on; first, where that is asked for, they are made durable. The
    /// caller has the right to change them.
    ///
    /// # Errors
    /// They can't be kept: those before hold.
    pub(crate) async fn set_reservations(&self, new: Reservations) -> Result<(), IoError> {
        let (before, memo) = (self.reservations().memo(), new.memo());
        if before != memo {
            let memo = self.kept_erasure.get().memo(memo);
            self.volume().keep_memo(memo).await?;
        }
        let new = new.with_old_of(&self.reservations());
        self.reservations.replace(new);
        Ok(())
    }

    /// Changes reservations of the old kind, which nobody keeps.
    pub(crate) fn with_old_reservation<T>(&self, change: impl FnOnce(&mut Reservations) -> T) -> T {
        change(&mut self.reservations.borrow_mut())
    }

    /// Initiators with a persistent registration, with their keys, and whether they hold a
    /// reservation; its type.
    pub fn registrations(&self) -> (Option<u8>, Vec<Registration>) {
        let reservations = self.reservations();
        let registration = |(nexus, key, is_holder): (&NexusId, u64, bool)| Registration {
            nexus: nexus.clone(),
            key,
            is_holder,
        };
        let all = reservations.holders().map(registration).collect();
        (reservations.held_kind(), all)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode.get()
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.mode.set(mode);
    }

    /// How sense data comes with CHECK CONDITION.
    pub(crate) fn sense_format(&self) -> Format {
        match self.mode().descriptor_sense {
            true => Format::Descriptors,
            false => Format::Fixed,
        }
    }

    /// What has become of the last SANITIZE.
    pub(crate) fn erasure(&self) -> Erasure {
        self.erasure.get()
    }

    /// It is so for commands from now on.
    pub(crate) fn set_erasure(&self, erasure: Erasure) {
        self.erasure.set(erasure);
        self.erased.set(0);
    }

    /// Puts on record what has become of a SANITIZE.
    ///
    /// # Errors
    /// It can't be kept.
    pub(crate) async fn keep_erasure(&self, erasure: Erasure) -> Result<(), IoError> {
        let _right = self.reserving().await;
        let memo = erasure.memo(self.reservations().memo());
        self.volume().keep_memo(memo).await?;
        self.kept_erasure.set(erasure);
        Ok(())
    }

    /// Ends the failure of a SANITIZE, unless another SANITIZE has begun: its record stays then.
    ///
    /// # Errors
    /// It can't be kept.
    pub(crate) async fn leave_failure(&self) -> Result<(), IoError> {
        let _right = self.reserving().await;
        let is_failed = || matches!(self.erasure(), Erasure::Failed { .. });
        // The other one may have been put on record while this one waited.
        if !is_failed() {
            return Ok(());
        }
        let memo = self.reservations().memo();
        self.volume().keep_memo(memo).await?;
        self.kept_erasure.set(Erasure::None);
        if is_failed() {
            self.set_erasure(Erasure::None);
        }
        Ok(())
    }

    /// So much of it is erased.
    pub(crate) fn set_erased(&self, bytes: u64, of_bytes: u64) {
        let part = (u128::from(bytes) << 16) / u128::from(of_bytes.max(1));
        self.erased.set(u16::try_from(part).unwrap_or(u16::MAX));
    }

    /// The right to erase it.
    pub(crate) async fn erasing(&self) -> MutexGuard<'_, ()> {
        self.erasing.lock().await
    }

    /// Whether it holds what hosts wrote, or zeroes.
    ///
    /// # Errors
    /// 04/1B while it is being erased, 31/03 when that has failed.
    pub(crate) fn check_sound(&self) -> Result<(), Sense> {
        match self.erasure() {
            Erasure::None => Ok(()),
            Erasure::Running { .. } => Err(Sense::sanitizing(self.erased.get())),
            Erasure::Failed { .. } => Err(Sense::SANITIZE_FAILED),
        }
    }

    /// Nobody is shown it any more: no command begins, and a SANITIZE stops after its piece.
    pub(crate) fn hide(&self) {
        self.hidden.set(true);
    }

    /// Whether nobody is shown it any more.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden.get()
    }

    /// A command begins; nothing where nobody is shown the unit any more.
    pub(crate) fn begin(&self) -> Option<Working<'_, W>> {
        if self.is_hidden() {
            return None;
        }
        self.working.set(self.working.get() + 1);
        Some(Working(self))
    }

    /// Ends when no command of it is under way and nothing erases it. Its volume may be shown by
    /// another unit then, or get other data: nothing of before follows.
    pub async fn settled(&self) {
        while self.working.get() > 0 {
            let (end, ended) = oneshot::channel();
            self.idle.borrow_mut().push(end);
            // Whoever ends it without a word has gone with the world.
            let _ = ended.await;
        }
        drop(self.erasing().await);
    }

    /// Logical unit reset: what a reset takes back is as it was at the start.
    pub(crate) fn reset(&self) {
        self.mode.set(Mode::default());
        self.with_old_reservation(Reservations::reset);
    }

    /// Blocks that are written whole, also when the power goes, at most.
    pub(crate) fn whole_blocks(&self) -> u32 {
        let bytes = self.volume.borrow().info().whole_bytes_max;
        (bytes / SECTOR_BYTES as u64) as u32
    }

    /// The volume behind it.
    pub fn volume(&self) -> Disk<W> {
        self.volume.borrow().clone()
    }

    /// The volume has moved: it is reached so from now on. Says whether initiators see a
    /// difference, in the grain in which it takes and gives back space.
    ///
    /// # Panics
    /// When it is another volume.
    pub fn relocate(&self, volume: Disk<W>) -> bool {
        assert_eq!(volume.info().uuid, self.uuid, "a unit shows one volume");
        let before = self.unmap_blocks();
        self.volume.replace(volume);
        self.unmap_blocks() != before
    }

    /// Identity of the volume.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The names that SCSI reports for the unit.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Capacity in logical blocks.
    pub fn blocks(&self) -> u64 {
        self.volume.borrow().size_bytes() / SECTOR_BYTES as u64
    }

    /// Whether nobody writes it: a snapshot.
    pub fn is_write_protected(&self) -> bool {
        self.volume.borrow().info().read_only
    }

    /// Blocks that UNMAP gives back together, a page of the pool; `None` for a
    /// thick volume, which keeps all of its pages.
    pub fn unmap_blocks(&self) -> Option<u32> {
        let info = self.volume.borrow().info();
        let blocks = info.page_bytes / SECTOR_BYTES as u64;
        let is_thin = info.provisioning == Provisioning::Thin;
        is_thin.then_some(u32::try_from(blocks).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_designator_is_naa_6_with_a_local_company_and_digits_of_the_uuid() {
        let uuid = Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd);
        let identity = Identity::of(uuid);
        assert_eq!(identity.serial, "0123456789ab4cde8f0123456789abcd");
        let hex: String = identity
            .naa
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "602a541".to_owned() + "0123456789ab" + "cde" + "f012345678"
        );
    }
}
