//! A target: which logical unit stands at which LUN, and who is connected.
//!
//! Changes to the map, resizes and resets become unit attentions on every I_T
//! nexus but the one that asked (SAM-5 clause 5.14).

use crate::nexus::Nexus;
use crate::sense::Attention;
use crate::unit::LogicalUnit;
use base::{BufPool, Uuid};
use engine::World;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

/// Largest LUN: what flat addressing can carry (SAM-5 clause 4.7.7.3).
pub const LUN_MAX: u16 = 0x3fff;

/// A target device with one target port.
pub struct Target<W: World> {
    name: String,
    buffers: BufPool,
    units: RefCell<BTreeMap<u16, Rc<LogicalUnit<W>>>>,
    nexuses: RefCell<Vec<Weak<Nexus<W>>>>,
}

impl<W: World> Target<W> {
    /// A target called `name` (an iSCSI qualified name) without logical units.
    /// Parameter data is put into `buffers`.
    pub fn new(name: &str, buffers: BufPool) -> Rc<Self> {
        Rc::new(Target {
            name: name.to_owned(),
            buffers,
            units: RefCell::default(),
            nexuses: RefCell::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn buffers(&self) -> &BufPool {
        &self.buffers
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
        self.units.borrow_mut().insert(lun, Rc::new(unit));
        for nexus in self.connected() {
            nexus.raise(lun, Attention::PowerOn);
        }
        self.inventory_changed();
        true
    }

    /// Takes the logical unit at `lun` away. Its commands in flight end by
    /// themselves.
    pub fn unmap(&self, lun: u16) -> Option<Rc<LogicalUnit<W>>> {
        let unit = self.units.borrow_mut().remove(&lun)?;
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

    /// Tells every nexus that the pool of these volumes is above its soft threshold;
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

    /// Logical unit reset: every nexus but `by` hears of it. The caller has
    /// ended the tasks of the logical unit before.
    pub fn unit_reset(&self, lun: u16, by: &Nexus<W>) {
        if self.units.borrow().contains_key(&lun) {
            for nexus in self.connected() {
                if !std::ptr::eq(Rc::as_ptr(&nexus), by) {
                    nexus.raise(lun, Attention::BusDeviceReset);
                }
            }
        }
    }

    /// Target reset, warm or cold: as a reset of every logical unit.
    pub fn target_reset(&self, by: &Nexus<W>) {
        for lun in self.luns() {
            self.unit_reset(lun, by);
        }
    }

    /// A new I_T nexus. It ends when the last reference is dropped.
    pub fn connect(self: &Rc<Self>) -> Rc<Nexus<W>> {
        let nexus = Rc::new(Nexus::new(Rc::clone(self)));
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

    fn connected(&self) -> Vec<Rc<Nexus<W>>> {
        self.nexuses
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}
