//! The default timeouts of products, with sources.

use super::outage::{Outage, Service};
use std::time::Duration;

/// A failover cluster: nodes that watch each other and take over each other's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverCluster {
    /// Time from one heartbeat to the next.
    pub heartbeat: Duration,
    /// Missed heartbeats until a node counts as lost.
    pub misses: u32,
    /// To arbitrate for disk or witness, so that two nodes never own it.
    pub arbitration: Duration,
    /// To give up storage that no path leads to any more.
    pub path_removal: Duration,
}

impl FailoverCluster {
    /// Windows Server 2008 R2 to 2012 R2: a heartbeat each second, five misses (Microsoft,
    /// "Tuning Failover Cluster Network Thresholds", 2012). Arbitration: a node that does not
    /// own the witness waits six seconds before it may lock it (ArbitrationDelay of the share
    /// witness); "7 seconds are added to the failover time" by arbitrating for a pool's disks
    /// (Arbitrate of a storage pool). The longer one is taken. MPIO keeps a disk without a
    /// path for 20 s (PDORemovePeriod, "Configuring MPIO Timers").
    pub const WINDOWS: FailoverCluster = FailoverCluster {
        heartbeat: Duration::from_secs(1),
        misses: 5,
        arbitration: Duration::from_secs(7),
        path_removal: Duration::from_secs(20),
    };

    /// The node that has the service loses its power.
    pub fn node_lost(&self, service: &Service) -> Outage {
        Outage::default()
            .then("missed heartbeats", self.heartbeat * self.misses)
            .then("arbitration", self.arbitration)
            .then("online", service.online)
            .then("recovery", service.recovery)
    }

    /// The node that has the service loses all paths to its disks, and goes on itself.
    pub fn storage_lost(&self, service: &Service) -> Outage {
        Outage::default()
            .then("paths given up", self.path_removal)
            .then("offline", service.offline)
            .then("online", service.online)
            .then("recovery", service.recovery)
    }

    /// The service is moved on purpose.
    pub fn planned(&self, service: &Service) -> Outage {
        Outage::default()
            .then("offline", service.offline)
            .then("online", service.online)
    }
}

/// A hypervisor that starts the machines of a lost host elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HypervisorRestart {
    /// Until a host counts as lost.
    pub declared: Duration,
    /// Until its locks on files may be broken, from the failure on.
    pub lock_expiry: Duration,
    /// To list the machines, find hosts for them and ask those to start them.
    pub placement: Duration,
}

impl HypervisorRestart {
    /// vSphere 5 HA with heartbeat datastores: a host that is no master counts as dead at 18 s
    /// (15 s without such datastores); finding out what to restart where "can easily take
    /// 10-15 seconds", of which the middle is taken (D. Epping, "vSphere Clustering Deepdive"
    /// and yellow-bricks.com). A lock of VMFS may be
    /// broken once its owner's heartbeat has not changed "for up to 16s" (Broadcom, article
    /// 330024).
    pub const VSPHERE_5: HypervisorRestart = HypervisorRestart {
        declared: Duration::from_secs(18),
        lock_expiry: Duration::from_secs(16),
        placement: Duration::from_millis(12_500),
    };

    /// The host of the machine that has the service loses its power.
    pub fn host_lost(&self, service: &Service, boot: Duration) -> Outage {
        Outage::default()
            .then("host declared dead", self.declared)
            .lasting_until("locks expire", self.lock_expiry)
            .then("placement", self.placement)
            .then("boot", boot)
            .then("online", service.online)
            .then("recovery", service.recovery)
    }
}

/// I/Os of a boot of Windows 7 with what starts by itself, 16 % of them writes, in 330 s on one
/// hard disk drive (H. Klein, "Remarks on Windows Disk and File IO During System Boot", 2013).
/// Another count is 70,000 in two to three minutes (ThinIO, "The bootstorm chestnut"). No count
/// of a server was found.
pub const WINDOWS_BOOT_IOS: u32 = 62_000;

/// SQL Server sets checkpoints so that recovery takes "approximately 1 minute or less" (recovery
/// interval 0; Microsoft, "Understanding Recovery Performance in SQL Server").
pub const SQL_SERVER_RECOVERY_MOST: Duration = Duration::from_secs(60);

/// SQL Server's recovery from a crash at an instant that has nothing to do with checkpoints:
/// the log since the last one is anything up to the most, on the average a half. Derived.
pub const SQL_SERVER_RECOVERY_MEAN: Duration = Duration::from_secs(30);
