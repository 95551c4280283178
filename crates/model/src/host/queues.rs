//! Virtual disk adapters.

use super::PATH_CYCLES;

/// ESXi's scheduler counts an I/O as one for each 32 KiB that it has begun (Disk.SchedCostUnit,
/// since 5.5; before that any I/O was one).
const ESXI_COST_UNIT_BYTES: Option<u64> = Some(32 << 10);

/// How a VM sees its disks: how much it can have under way, and what that costs the host.
///
/// The guest's own path costs as much as the host's. Emulation comes on top: VMware published
/// that PVSCSI takes 10 to 30 per cent fewer cycles for an I/O than LSI Logic over Fibre
/// Channel ("Performance study of VMware vSphere 4 PVSCSI", VMware performance blog, February
/// 2010). With 20 and no emulation in PVSCSI, LSI's is half a path: (2 + e) × 0.8 = 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// As sites name it.
    pub name: &'static str,
    /// Cycles of the host for an I/O, the guest's path included.
    pub cycles_per_io: u64,
    /// I/Os under way of all disks of the adapter.
    pub queue: u16,
    /// I/Os under way of a disk.
    pub disk_queue: u16,
    /// Bytes of what counts as one I/O of a limit; what is larger counts as several. None
    /// where any I/O counts as one.
    pub limit_unit_bytes: Option<u64>,
}

impl Adapter {
    /// I/Os that one of so many bytes counts as where a virtual disk is limited.
    pub fn limited_ios(&self, bytes: u64) -> u64 {
        let unit = self.limit_unit_bytes.unwrap_or(u64::MAX);
        bytes.div_ceil(unit).max(1)
    }

    /// LSI Logic SAS, emulated. Queues: VMware KB 2053145.
    pub const LSI_SAS: Adapter = Adapter {
        name: "lsi-sas",
        cycles_per_io: PATH_CYCLES + PATH_CYCLES / 2,
        queue: 128,
        disk_queue: 32,
        limit_unit_bytes: ESXI_COST_UNIT_BYTES,
    };
    /// VMware's paravirtual SCSI as it comes: a ring of 8 pages with 32 requests of 128 bytes
    /// each (vmw_pvscsi.c and .h of Linux; VMware KB 2053145).
    pub const PVSCSI: Adapter = Adapter {
        name: "pvscsi",
        cycles_per_io: PATH_CYCLES,
        queue: 256,
        disk_queue: 64,
        limit_unit_bytes: ESXI_COST_UNIT_BYTES,
    };
    /// The same with its largest ring, 32 pages, and the deepest queue of a disk.
    pub const PVSCSI_LARGE: Adapter = Adapter {
        queue: 1_024,
        disk_queue: 254,
        ..Adapter::PVSCSI
    };
    /// Hyper-V's storage over VMBus. Costs as PVSCSI: paravirtual, too. Queue: what the driver
    /// of Linux took at first (storvsc, unchecked).
    pub const VMBUS: Adapter = Adapter {
        name: "vmbus",
        queue: 200,
        disk_queue: 200,
        // Maximum IOPS are "normalized", every 8 K of data counted as one I/O ("Storage
        // Quality of Service for Hyper-V", Windows Server 2012 R2, dn282281).
        limit_unit_bytes: Some(8 << 10),
        ..Adapter::PVSCSI
    };
    /// Virtio with the queue of 128 that QEMU gives it (unchecked). Costs as PVSCSI.
    pub const VIRTIO: Adapter = Adapter {
        name: "virtio",
        queue: 128,
        disk_queue: 128,
        // QEMU's throttling with no iops-size (its docs/throttle.txt).
        limit_unit_bytes: None,
        ..Adapter::PVSCSI
    };
    /// No VM: the application is on the host.
    pub const NONE: Adapter = Adapter {
        name: "none",
        cycles_per_io: 0,
        queue: u16::MAX,
        disk_queue: u16::MAX,
        limit_unit_bytes: None,
    };

    /// All of them as they come.
    pub const ALL: [Adapter; 5] = [
        Adapter::LSI_SAS,
        Adapter::PVSCSI,
        Adapter::VMBUS,
        Adapter::VIRTIO,
        Adapter::NONE,
    ];
}
