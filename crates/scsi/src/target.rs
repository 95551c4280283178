//! A target: its logical units by LUN, and the initiators that are connected.
//!
//! Changes to the map, resizes and resets become unit attentions on every I_T nexus
//! (SAM-5 clause 5.14).

use crate::commands::sanitize;
use crate::erasure::Erasure;
use crate::nexus::Nexus;
use crate::ports::{AccessState, Ports};
use crate::reservation::{DueAttention, InitiatorPort, NexusId};
use crate::sense::Attention;
use crate::unit::LogicalUnit;
use base::{BufPool, Uuid};
use engine::World;
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

/// Largest LUN: what flat addressing can carry (SAM-5 clause 4.7.7.3).
pub const LUN_MAX: u16 = 0x3fff;

/// A target device with its ports and logical units.
pub struct Target<W: World> {
    name: String,
    world: W,
    ports: RefCell<Ports>,
    units: RefCell<BTreeMap<u16, Rc<LogicalUnit<W>>>>,
    nexuses: RefCell<Vec<Weak<Nexus<W>>>>,
}

impl<W: World> Target<W> {
    /// A target called `name` (an iSCSI qualified name) without logical units.
    pub fn new(name: &str, world: W) -> Rc<Self> {
        Rc::new(Target {
            name: name.to_owned(),
            world,
            ports: RefCell::default(),
            units: RefCell::default(),
            nexuses: RefCell::default(),
        })
    }

    /// Its iSCSI qualified name, which is its identity.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameter data is put into these.
    pub(crate) fn buffers(&self) -> &BufPool {
        self.world.buffers()
    }

    pub(crate) fn world(&self) -> &W {
        &self.world
    }

    /// Its ports, in groups.
    pub(crate) fn ports(&self) -> Ref<'_, Ports> {
        self.ports.borrow()
    }

    /// A group of ports gives access in another way from now on. Every nexus but those
    /// of `by` is told.
    pub fn set_access(&self, group: u16, state: AccessState, by: Option<&Nexus<W>>) {
        if !self.ports.borrow_mut().set_access(group, state) {
            return;
        }
        for nexus in self.connected() {
            if by.is_none_or(|by| !std::ptr::eq(Rc::as_ptr(&nexus), by)) {
                for lun in self.luns() {
                    nexus.raise(lun, Attention::AccessStateChanged);
                }
            }
        }
    }

    /// The LUNs that are mapped, ascending.
    pub fn luns(&self) -> Vec<u16> {
        self.units.borrow().keys().copied().collect()
    }

    /// The logical unit at `lun`.
    pub fn unit(&self, lun: u16) -> Option<Rc<LogicalUnit<W>>> {
        self.units.borrow().get(&lun).cloned()
    }

    /// Puts `unit` at `lun`; `false` when the LUN is taken or above [`LUN_MAX`].
    pub fn map(&self, lun: u16, unit: LogicalUnit<W>) -> bool {
        if lun > LUN_MAX || self.units.borrow().contains_key(&lun) {
            return false;
        }
        let unit = Rc::new(unit);
        self.units.borrow_mut().insert(lun, Rc::clone(&unit));
        if matches!(unit.erasure(), Erasure::Running { .. }) {
            // Neither a crash nor a move ends it.
            self.world.spawn(async move {
                // Initiators hear of a failure by their commands.
                sanitize::go_on(&unit).await;
            });
        }
        for nexus in self.connected() {
            nexus.raise(lun, Attention::PowerOn);
        }
        self.inventory_changed();
        true
    }

    /// Takes the logical unit at `lun` away. Its commands in flight end by
    /// themselves, and a SANITIZE stops: [`LogicalUnit::settled`] waits for both. Who shows the volume next
    /// goes on with a SANITIZE.
    pub fn unmap(&self, lun: u16) -> Option<Rc<LogicalUnit<W>>> {
        let unit = self.units.borrow_mut().remove(&lun)?;
        unit.hide();
        for nexus in self.connected() {
            nexus.forget(lun);
        }
        self.inventory_changed();
        Some(unit)
    }

    /// Tells every nexus that the volume with this identity has a new size.
    pub fn resized(&self, volume: Uuid) {
        self.tell(|unit| unit.uuid() == volume, Attention::CapacityChanged);
    }

    /// Tells every nexus that the pool of these volumes is above its warning threshold;
    /// who has a thick one need not know.
    pub fn space_runs_out(&self, volumes: &BTreeSet<Uuid>) {
        let concerned =
            |unit: &LogicalUnit<W>| volumes.contains(&unit.uuid()) && unit.unmap_blocks().is_some();
        self.tell(concerned, Attention::SoftThreshold);
    }

    /// Tells every nexus that the volume with this identity is thin or thick, which it
    /// was not before.
    pub fn converted(&self, volume: Uuid) {
        self.tell(|unit| unit.uuid() == volume, Attention::InquiryChanged);
    }

    fn tell(&self, concerned: impl Fn(&LogicalUnit<W>) -> bool, attention: Attention) {
        let units = self.units.borrow();
        for (lun, _) in units.iter().filter(|(_, unit)| concerned(unit)) {
            for nexus in self.connected() {
                nexus.raise(*lun, attention);
            }
        }
    }

    /// Tells every nexus but `by` of something at `lun`.
    pub(crate) fn tell_others(&self, lun: u16, attention: Attention, by: &Nexus<W>) {
        for nexus in self.connected() {
            if !std::ptr::eq(Rc::as_ptr(&nexus), by) {
                nexus.raise(lun, attention);
            }
        }
    }

    /// Tells each of these nexuses, where it is connected, of something at `lun`.
    pub(crate) fn tell_each(&self, lun: u16, told: &[DueAttention]) {
        for nexus in self.connected() {
            for told in told.iter().filter(|told| told.nexus == *nexus.id()) {
                nexus.raise(lun, told.attention);
            }
        }
    }

    /// Logical unit reset: every nexus hears of it, also the one that asked (SAM-5 clause
    /// 6.3.3). The caller has ended the tasks of the logical unit before.
    pub fn unit_reset(&self, lun: u16) {
        if let Some(unit) = self.unit(lun) {
            unit.reset();
            let planted = self.world.planted("reset told to one only");
            let told = if planted { 1 } else { usize::MAX };
            for nexus in self.connected().into_iter().take(told) {
                nexus.raise(lun, Attention::BusDeviceReset);
            }
        }
    }

    /// Whether one initiator may reset it, and so all that others have running here: where all
    /// of its units allow that.
    pub fn may_be_reset(&self) -> bool {
        let units = self.units.borrow();
        !units.is_empty() && units.values().all(|unit| unit.may_affect_others())
    }

    /// Target reset, warm or cold: as a reset of every logical unit.
    pub fn target_reset(&self) {
        for lun in self.luns() {
            self.unit_reset(lun);
        }
    }

    /// A new I_T nexus, of this initiator port and the target port with this relative
    /// identifier. It ends when the last reference is dropped.
    pub fn connect(self: &Rc<Self>, initiator: InitiatorPort, target_port: u16) -> Rc<Nexus<W>> {
        self.ports.borrow_mut().add(target_port);
        let id = NexusId {
            initiator,
            target_port,
        };
        let nexus = Rc::new(Nexus::new(Rc::clone(self), id));
        for lun in self.luns() {
            nexus.raise(lun, Attention::PowerOn);
        }
        let mut nexuses = self.nexuses.borrow_mut();
        nexuses.retain(|nexus| nexus.strong_count() > 0);
        nexuses.push(Rc::downgrade(&nexus));
        nexus
    }

    fn inventory_changed(&self) {
        for nexus in self.connected() {
            for lun in self.luns() {
                nexus.raise(lun, Attention::LunsChanged);
            }
        }
    }

    pub(crate) fn connected(&self) -> Vec<Rc<Nexus<W>>> {
        self.nexuses
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
