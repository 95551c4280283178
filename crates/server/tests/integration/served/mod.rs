//! A shard with a RAID 10 pool on four file drives, and a front on a port that
//! the system chooses. Everything is gone when the test ends.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test uses a part of it, and fails where it is unfit"
)]

pub mod initiator;

use engine::pool::{Level, NamedDrive};
use engine::{Lane, PoolSpec, Provisioning, VolumeSpec};
use server::directory::{Access, Directory, Portal, TargetEntry};
use server::front::{Front, FrontLimits, Timeouts};
use server::shard::{SessionInfo, Shard, UnitTraits};
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use world_real::RealDrive;

pub const TARGET: &str = "iqn.2026-11.dev.ashlar:test";
pub const VOLUME_BYTES: u64 = 64 << 20;

pub struct Served {
    pub directory: Arc<Directory>,
    pub shard: Shard,
    /// Shards without a target; they may carry connections.
    pub others: Vec<Shard>,
    pub front: Front,
    pub home: TempDir,
}

impl Served {
    /// One target with a thin volume `v` at LUN 0.
    pub async fn start() -> Served {
        Self::with_limits(limits()).await
    }

    /// As [`Served::start`], beside a shard without a target.
    pub async fn beside_another() -> Served {
        Self::on_shards(2, limits()).await
    }

    pub async fn with_limits(limits: FrontLimits) -> Served {
        Self::on_shards(1, limits).await
    }

    /// As [`Served::start`], at these portals.
    pub async fn at(portals: &[Portal]) -> Served {
        Self::on_shards_at(1, limits(), portals).await
    }

    pub async fn on_shards(count: usize, limits: FrontLimits) -> Served {
        let portal: SocketAddr = "127.0.0.1:0".parse().unwrap();
        Self::on_shards_at(count, limits, &[portal.into()]).await
    }

    /// From now on one initiator may do what affects the others. Nobody is logged in yet.
    pub async fn allow_affecting_others(&self) {
        let traits = UnitTraits {
            may_affect_others: true,
            ..UnitTraits::default()
        };
        let changed = self.shard.handle().call(move |state| async move {
            let (lun, volume) = state.luns(TARGET).remove(0);
            state.unexport(TARGET, lun).await.unwrap();
            state.export_with(TARGET, lun, volume, traits).unwrap();
        });
        changed.await.unwrap();
    }

    async fn on_shards_at(count: usize, limits: FrontLimits, portals: &[Portal]) -> Served {
        let home = tempfile::tempdir().unwrap();
        let shard = Shard::start(0).await.unwrap();
        let paths: Vec<_> = (0..4)
            .map(|at| home.path().join(format!("d{at}")))
            .collect();
        for path in &paths {
            RealDrive::create_file(path, 128 << 20).unwrap();
        }
        let made = shard.handle().call(move |state| async move {
            let drives = paths.iter().enumerate().map(|(at, path)| NamedDrive {
                name: format!("d{at}"),
                drive: RealDrive::open(state.world(), path).unwrap(),
            });
            let drives = drives.collect();
            let spec = PoolSpec::new("p", Level::Raid10 { copies: 2 });
            let pool = Lane::create(state.world().clone(), spec, drives)
                .await
                .unwrap();
            state.add_pool(pool.clone());
            let volume = pool.create_volume(VolumeSpec {
                name: "v".to_owned(),
                size_bytes: VOLUME_BYTES,
                provisioning: Provisioning::Thin,
            });
            state.export(TARGET, 0, volume.await.unwrap()).unwrap();
        });
        made.await.unwrap();
        let directory = Arc::new(Directory::new());
        directory.set_target(TARGET, TargetEntry::open(0));
        let mut others = Vec::new();
        for index in 1..count {
            others.push(Shard::start(index).await.unwrap());
        }
        let all = std::iter::once(&shard).chain(&others);
        let shards = all.map(|shard| shard.handle().clone()).collect();
        let front = Front::open(
            portals,
            (Arc::clone(&directory), server::offload::begin()),
            shards,
            limits,
        )
        .await
        .unwrap();
        Served {
            directory,
            shard,
            others,
            front,
            home,
        }
    }

    /// Says who may log in to the target.
    pub fn allow(&self, access: Access) {
        let shard = 0;
        let entry = TargetEntry { shard, access };
        self.directory.set_target(TARGET, entry);
    }

    pub fn address(&self) -> SocketAddr {
        self.front.portals()[0]
    }

    pub fn portal_url(&self) -> String {
        format!("iscsi://{}", self.address())
    }

    pub fn url(&self, lun: u16) -> String {
        format!("iscsi://{}/{TARGET}/{lun}", self.address())
    }

    pub async fn sessions(&self) -> Vec<SessionInfo> {
        self.shard
            .handle()
            .call(|state| async move { state.sessions() })
            .await
            .unwrap()
    }

    /// Stops everything; no pool may complain.
    pub async fn stop(self) {
        self.directory.close();
        self.front.stop().await;
        let failures = self.shard.stop().await;
        assert!(failures.is_empty(), "{failures:?}");
        for other in self.others {
            assert!(other.stop().await.is_empty());
        }
    }
}

/// Limits as usual, but for initiators that never log out when they are asked to.
pub fn limits() -> FrontLimits {
    let timeouts = Timeouts {
        logout: Duration::from_millis(20),
        ..Timeouts::default()
    };
    FrontLimits {
        timeouts,
        ..FrontLimits::default()
    }
}

/// Runs a program to its end, off the event loop.
pub async fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap();
    ran.unwrap_or_else(|error| panic!("{program} can't be run: {error}"))
}

/// Runs a program that has to succeed, and gives what it printed.
pub async fn succeed(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}:\n{said}\n{complained}"
    );
    said
}
