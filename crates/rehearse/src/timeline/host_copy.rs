//! A host that copies a disk: it reads each page that is mapped and writes it elsewhere, over
//! its links and with its processor, so many pieces at a time.

use super::Scene;
use crate::parts::disk::DiskRig;
use crate::parts::gate::Gate;
use crate::parts::halt::together;
use crate::parts::limit::IopsLimit;
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::plan::catalog;
use crate::rig::vm::VmRig;
use base::{Time, VolumeOffset};
use engine::Volume;
use site::plan::HostCopy;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use workload::generator::{Kind, Operation};

/// A copy of a disk.
pub(super) struct Copying {
    pub from: Rc<DiskRig>,
    pub to: Rc<DiskRig>,
    pub how: HostCopy,
    /// What lies below is copied, or on its way.
    below: Rc<Cell<u64>>,
    /// Bytes that were copied.
    pub bytes: Rc<Cell<u64>>,
    failure: RefCell<Option<String>>,
}

/// A volume as the host of a VM sees it, beside the VM's own I/O.
pub(super) fn seen(
    scene: &Scene,
    (vm, name): (&VmRig, &str),
    (pool, volume): (&Rc<PoolRig>, Volume<RigWorld>),
) -> Rc<DiskRig> {
    let host = Rc::clone(&vm.host.borrow());
    let acting = pool.controller.serving();
    let lun = scene
        .wiring
        .lun(&host.name, &acting.name, &vm.vm_group, name);
    let size_bytes = volume.size_bytes();
    Rc::new(DiskRig {
        volume: RefCell::new(volume),
        pool: RefCell::new(Rc::clone(pool)),
        host: RefCell::new(host),
        lun: RefCell::new(lun),
        lun_name: name.to_owned(),
        adapter: catalog::adapter(site::plan::Adapter::None),
        // Also what the VM writes meanwhile, which has a queue of its own.
        adapter_gate: Rc::new(Gate::new(COPY_QUEUE)),
        disk_gate: Gate::new(COPY_QUEUE),
        limit: IopsLimit::new(None),
        asks_for_data: vm.disks[0].asks_for_data,
        size_bytes,
        in_use_bytes: size_bytes,
        life: Rc::default(),
        twin: RefCell::default(),
        under_way: Cell::default(),
        never_sent: Cell::default(),
        in_engine: Cell::default(),
    })
}

/// What the host's own queue holds beside that of the LUN: it limits nothing.
const COPY_QUEUE: usize = 4096;

impl Copying {
    pub(super) fn new(
        ends: (Rc<DiskRig>, Rc<DiskRig>),
        how: HostCopy,
        bytes: &Rc<Cell<u64>>,
    ) -> Rc<Copying> {
        Copying::along(ends, how, (Rc::default(), bytes))
    }

    /// The same, which tells where it is.
    pub(super) fn along(
        (from, to): (Rc<DiskRig>, Rc<DiskRig>),
        how: HostCopy,
        (below, bytes): (Rc<Cell<u64>>, &Rc<Cell<u64>>),
    ) -> Rc<Copying> {
        Rc::new(Copying {
            from,
            to,
            how,
            below,
            bytes: Rc::clone(bytes),
            failure: RefCell::default(),
        })
    }

    /// Copies all that is mapped.
    ///
    /// # Errors
    /// Why it ended early.
    pub(super) async fn run(self: &Rc<Self>, scene: &Rc<Scene>) -> Result<(), String> {
        let slots = (0..self.how.outstanding).map(|_| {
            let (copying, scene) = (Rc::clone(self), Rc::clone(scene));
            async move {
                while let Some((at, len)) = copying.next(&scene) {
                    if let Err(why) = copying.piece(&scene.world, at, len).await {
                        copying.failure.borrow_mut().get_or_insert(why);
                    }
                }
            }
        });
        together(&scene.world, slots).await;
        let failure = self.failure.borrow().clone();
        failure.map_or(Ok(()), Err)
    }

    /// The next piece that is mapped; none at the end, and when it has failed.
    fn next(&self, scene: &Scene) -> Option<(u64, u32)> {
        let volume = self.from.volume.borrow().clone();
        let transfer = u64::from(self.how.transfer_bytes);
        loop {
            let at = self.below.get();
            if at >= self.from.size_bytes || self.failure.borrow().is_some() {
                return None;
            }
            if scene.is_over() {
                self.failure.replace(Some("the run has ended".to_owned()));
                return None;
            }
            if self.from.host.borrow().is_down() {
                self.failure
                    .replace(Some("the host that copied lost its power".to_owned()));
                return None;
            }
            let mapping = match volume.mapping(VolumeOffset(at)) {
                Ok(mapping) => mapping,
                Err(error) => {
                    self.failure.replace(Some(error.to_string()));
                    return None;
                }
            };
            // In whole pieces of the disk, so that none is across two.
            let end = (at / transfer + 1) * transfer;
            let to = at + mapping.len_bytes;
            if mapping.is_mapped {
                let end = end.min(to).min(self.from.size_bytes);
                self.below.set(end);
                return Some((at, (end - at) as u32));
            }
            self.below.set(to);
        }
    }

    async fn piece(&self, world: &RigWorld, at: u64, len: u32) -> Result<(), String> {
        let operation = |kind| Operation {
            at: Time(0),
            disk: 0,
            kind,
            offset_bytes: at,
            bytes: len,
        };
        for (disk, kind) in [(&self.from, Kind::Read), (&self.to, Kind::Write)] {
            let done = disk.io(world, &operation(kind)).await;
            done.map_err(|error| error.to_string())?;
        }
        self.bytes.set(self.bytes.get() + u64::from(len));
        Ok(())
    }
}
