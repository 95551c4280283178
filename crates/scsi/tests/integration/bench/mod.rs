//! A target over a small pool on simulated drives.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test uses a part of it, and fails where it is unfit"
)]

pub mod pool;

use base::{Prng, Slice};
use engine::{Disk, Lane, Provisioning, VolumeSpec, World};
use pool::{Made, with_pool};
use scsi::{InitiatorPort, LogicalUnit, Nexus, Response, Target};
use std::rc::Rc;
use world_sim::{Media, SimWorld};

pub const TARGET: &str = "iqn.2026-11.dev.ashlar:test";
pub const PAGE_BYTES: usize = pool::PAGE_BYTES as usize;
pub const PAGE_BLOCKS: u32 = PAGE_BYTES as u32 / 512;
pub const VOLUME_BLOCKS: u32 = 8 * PAGE_BLOCKS;

/// What a test has to play with.
pub struct Bench {
    pub world: SimWorld,
    pub media: Rc<Media>,
    pub pool: Lane<SimWorld>,
    pub target: Rc<Target<SimWorld>>,
}

/// Runs `test` over a pool of one drive with the thin volume `v` of eight pages
/// at LUN 0.
pub fn with_bench(test: impl AsyncFnOnce(Bench)) {
    with_pool(4 << 20, 8, async |made| {
        let Made { world, media, pool } = made;
        let volume = pool
            .create_volume(thin("v", u64::from(VOLUME_BLOCKS) * 512))
            .await
            .unwrap();
        let target = Target::new(TARGET, world.clone());
        assert!(target.map(0, unit(volume)));
        test(Bench {
            world,
            media,
            pool,
            target,
        })
        .await;
    });
}

pub fn thin(name: &str, size_bytes: u64) -> VolumeSpec {
    VolumeSpec {
        name: name.to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
    }
}

/// A unit that shows `volume`.
pub fn unit(volume: impl Into<Disk<SimWorld>>) -> LogicalUnit<SimWorld> {
    LogicalUnit::new(volume).unwrap()
}

/// A port of the initiator called `number`.
pub fn port(number: u8) -> InitiatorPort {
    let name = format!("iqn.2026-11.dev.ashlar:host{number}");
    InitiatorPort::new(&name, [0x80, 0, 0, 0, 0, number])
}

impl Bench {
    /// A nexus of this initiator.
    pub fn connect(&self, number: u8) -> Rc<Nexus<SimWorld>> {
        self.target.connect(port(number), 1)
    }

    /// A nexus that has heard of power on.
    pub async fn settled(&self) -> Rc<Nexus<SimWorld>> {
        self.settled_as(1).await
    }

    /// The same, of this initiator.
    pub async fn settled_as(&self, number: u8) -> Rc<Nexus<SimWorld>> {
        let nexus = self.connect(number);
        let first = self.run(&nexus, &[0; 6], &[]).await;
        assert_eq!(sense(&first), (6, 0x29, 0));
        nexus
    }

    pub fn data(&self, bytes: &[u8]) -> Slice {
        self.world.buffers().copy_of(bytes).freeze()
    }

    /// Runs a command at LUN 0.
    pub async fn run(&self, nexus: &Nexus<SimWorld>, cdb: &[u8], data_out: &[u8]) -> Response {
        self.run_at(nexus, 0, cdb, data_out).await
    }

    pub async fn run_at(
        &self,
        nexus: &Nexus<SimWorld>,
        lun: u16,
        cdb: &[u8],
        data_out: &[u8],
    ) -> Response {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        nexus
            .execute(scsi::lun::encode(lun), whole, self.data(data_out))
            .await
    }

    /// Runs a command that has to end well; gives its data-in.
    pub async fn good(&self, nexus: &Nexus<SimWorld>, cdb: &[u8], data_out: &[u8]) -> Vec<u8> {
        let response = self.run(nexus, cdb, data_out).await;
        assert_eq!(
            (response.status, &response.sense[..]),
            (0, &[][..]),
            "CDB {cdb:02x?}"
        );
        response.data.to_vec()
    }
}

/// Sense key, additional sense code and qualifier.
pub fn sense(response: &Response) -> (u8, u8, u8) {
    assert_eq!(response.status, 2, "CHECK CONDITION");
    (
        response.sense[2] & 0xf,
        response.sense[12],
        response.sense[13],
    )
}

/// The address in INFORMATION, if it is valid.
pub fn information(response: &Response) -> Option<u32> {
    let bytes = response.sense[3..7].try_into().unwrap();
    (response.sense[0] & 0x80 != 0).then_some(u32::from_be_bytes(bytes))
}

/// A ten-byte CDB with address and length.
pub fn ten(opcode: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// A twelve-byte CDB with address and length.
pub fn twelve(opcode: u8, lba: u32, blocks: u32) -> [u8; 12] {
    let mut cdb = [0; 12];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[6..10].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// A sixteen-byte CDB with address and length.
pub fn sixteen(opcode: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// Reproducible bytes, different for each `tag`.
pub fn bytes(tag: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Prng::from_seed(tag).fill(&mut bytes);
    bytes
}
