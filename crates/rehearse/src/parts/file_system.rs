//! The file system of a NAS head, between the files of its clients and the pool that holds them.
//!
//! A block of its map tells where so many blocks of data lie (indirect blocks: McKusick, Joy, Leffler
//! and Fabry, "A Fast File System for UNIX", ACM TOCS 2(3), 1984). A read needs the block of the map first: from
//! the head's memory, or from a drive. A write changes it. Heads keep their metadata on two volumes (vendors'
//! administration guides), so such a write makes two more, which the write cache takes as it takes data. It
//! gathers those to one block of the map, as the engine gathers what is written over.
//!
//! The map takes of the controller's memory what it needs, and data have the rest. If it needs more than there
//! is, reads of the map miss memory at random, in the ratio of what is not there. Who reads at random finds
//! no block of the map more often than another.
//!
//! Who reads in order finds the block of the map that the read before brought.
//!
//! Left out: inodes and directories, which are few, and a journal on drives, as the write cache survives a power cut.
//! What the array copies by itself, as it moves a volume, changes no map. Writers that change one block of the map do so one
//! after the other.
//!
//! Invariants: the maps of a volume's data lie in its own lane, so what a lane owes is all of what its writes
//! asked for. Maps are as large as what volumes hold.

use super::world::RigWorld;
use base::{BLOCK_BYTES, Prng, VolumeOffset};
use engine::{IoError, Lane, Provisioning, Volume, VolumeInfo, VolumeSpec, World};
use futures_util::future::join;
use model::controller::FileSystem;
use site::human;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Volumes that have the maps.
const COPIES: u64 = 2;

/// Identity of a volume for life.
type Identity = base::Uuid;

/// The file system of a pool.
pub struct FileSystemRig {
    model: FileSystem,
    lanes: Vec<Maps>,
    /// Where the map of each volume begins.
    places: RefCell<BTreeMap<Identity, Place>>,
    /// Draws whether memory has a block of the map.
    prng: RefCell<Prng>,
}

/// The map of a volume.
#[derive(Clone, Copy)]
struct Place {
    lane: usize,
    /// Its first block in the maps of the lane.
    first: u64,
    /// The block that was looked up last.
    last: Option<u64>,
}

/// The maps of all volumes of a lane.
struct Maps {
    /// Two, with the same blocks.
    copies: [Volume<RigWorld>; 2],
    /// Blocks of each copy.
    blocks: u64,
    /// The first block that no volume has.
    next: Cell<u64>,
    /// Parts of them that memory has not, of one.
    missing: f64,
    /// Bytes of changes so far.
    written_bytes: Cell<u64>,
}

/// What a volume holds, bytes: all of it where nothing was written yet.
fn held_bytes(info: &VolumeInfo) -> u64 {
    match info.mapped_bytes {
        0 => info.size_bytes,
        mapped_bytes => mapped_bytes,
    }
}

impl FileSystemRig {
    /// One for all volumes that the pool has by now.
    ///
    /// # Errors
    /// A sentence that names the pool, also where it has too little room.
    pub async fn make(
        lanes_of_pool: &[Lane<RigWorld>],
        model: FileSystem,
        prng: Prng,
    ) -> Result<FileSystemRig, String> {
        let mut lanes = Vec::new();
        for lane in lanes_of_pool {
            lanes.push(Maps::make(lane, model).await?);
        }
        Ok(FileSystemRig {
            model,
            lanes,
            places: RefCell::default(),
            prng: RefCell::new(prng),
        })
    }

    /// Finds where bytes of a volume lie.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn look_up(
        &self,
        lanes: &[Lane<RigWorld>],
        volume: &Volume<RigWorld>,
        bytes: Range<u64>,
    ) -> Result<(), IoError> {
        let (maps, blocks) = self.blocks(lanes, volume, &bytes);
        let is_last = |block: &u64| self.is_last(volume, *block);
        for block in blocks.filter(|block| !is_last(block)) {
            if self.prng.borrow_mut().unit() < maps.missing {
                maps.read(block).await?;
            }
        }
        Ok(())
    }

    /// Whether this block of the map was the one that was looked up last for the volume; now it is.
    fn is_last(&self, volume: &Volume<RigWorld>, block: u64) -> bool {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(&volume.info().uuid);
        place.is_some_and(|place| place.last.replace(block) == Some(block))
    }

    /// What a write of these bytes writes besides, bytes.
    pub fn written_bytes(&self, bytes: &Range<u64>) -> u64 {
        let mapped_bytes = self.model.mapped_bytes;
        let blocks = bytes.end.div_ceil(mapped_bytes) - bytes.start / mapped_bytes;
        COPIES * blocks * BLOCK
    }

    /// What a lane wrote to its maps so far, bytes: no host wrote it.
    pub fn written_in(&self, lane: usize) -> u64 {
        self.lanes[lane].written_bytes.get()
    }

    /// Bytes of a volume have been written: changes both maps.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn change(
        &self,
        lanes: &[Lane<RigWorld>],
        volume: &Volume<RigWorld>,
        bytes: Range<u64>,
    ) -> Result<(), IoError> {
        let (maps, blocks) = self.blocks(lanes, volume, &bytes);
        for block in blocks {
            maps.write(block).await?;
        }
        Ok(())
    }

    /// The blocks of the map that bytes of a volume have.
    fn blocks(
        &self,
        lanes: &[Lane<RigWorld>],
        volume: &Volume<RigWorld>,
        bytes: &Range<u64>,
    ) -> (&Maps, Range<u64>) {
        let place = self.place(lanes, volume);
        let mapped_bytes = self.model.mapped_bytes;
        let blocks = bytes.start / mapped_bytes..bytes.end.div_ceil(mapped_bytes);
        let first = place.first;
        (
            &self.lanes[place.lane],
            first + blocks.start..first + blocks.end,
        )
    }

    /// Where the map of a volume begins. One that came later gets the next blocks.
    fn place(&self, lanes: &[Lane<RigWorld>], volume: &Volume<RigWorld>) -> Place {
        let info = volume.info();
        let mut places = self.places.borrow_mut();
        *places.entry(info.uuid).or_insert_with(|| {
            let mut lanes = lanes.iter();
            let lane = lanes.position(|lane| lane.volume(&info.name).is_some());
            // A snapshot is nowhere by name.
            let lane = lane.unwrap_or(0);
            let next = &self.lanes[lane].next;
            let first = next.get();
            next.set(first + held_bytes(&info).div_ceil(self.model.mapped_bytes));
            Place {
                lane,
                first,
                last: None,
            }
        })
    }
}

impl Maps {
    async fn make(lane: &Lane<RigWorld>, model: FileSystem) -> Result<Maps, String> {
        let volumes = lane.volumes().into_iter();
        let blocks = volumes.map(|volume| held_bytes(&volume).div_ceil(model.mapped_bytes));
        let blocks = blocks.sum::<u64>().max(1);
        let map_bytes = blocks * BLOCK;
        let copies = [
            Maps::copy(lane, 1, map_bytes).await?,
            Maps::copy(lane, 2, map_bytes).await?,
        ];
        let cache = &lane.store().cache;
        let memory_bytes = cache.capacity_bytes();
        cache.set_capacity(memory_bytes.saturating_sub(map_bytes));
        Ok(Maps {
            copies,
            blocks,
            next: Cell::new(0),
            missing: map_bytes.saturating_sub(memory_bytes) as f64 / map_bytes as f64,
            written_bytes: Cell::new(0),
        })
    }

    /// A volume that has been written all over.
    async fn copy(
        lane: &Lane<RigWorld>,
        number: u16,
        map_bytes: u64,
    ) -> Result<Volume<RigWorld>, String> {
        let size_bytes = map_bytes.next_multiple_of(1 << 20);
        let refused = |error: String| {
            format!(
                "map {number} of the file system of pool {:?}, {}: {error}; set file_system = \"none\" of \
                 its controller, or plan more drives",
                lane.info().name,
                human(size_bytes)
            )
        };
        let spec = VolumeSpec {
            name: format!("map-{}-{number}", lane.lane()),
            size_bytes,
            provisioning: Provisioning::Thick,
        };
        let made = lane.create_volume(spec).await;
        let volume = made.map_err(|error| refused(error.to_string()))?;
        let laid_out = volume.lay_out(0..size_bytes).await;
        laid_out.map_err(|error| refused(error.to_string()))?;
        Ok(volume)
    }

    /// Maps of volumes that came later, or grew, share the blocks of others: there are as many as at the
    /// beginning.
    fn at(&self, block: u64) -> VolumeOffset {
        VolumeOffset(block % self.blocks * BLOCK)
    }

    /// Reads a block from one of the copies, which share the work.
    async fn read(&self, block: u64) -> Result<(), IoError> {
        let copy = &self.copies[(block % 2) as usize];
        copy.read(self.at(block), BLOCK_BYTES).await.map(drop)
    }

    async fn write(&self, block: u64) -> Result<(), IoError> {
        let [one, other] = &self.copies;
        let write = |copy: &Volume<RigWorld>| {
            let data = copy.world().buffers().data(BLOCK_BYTES).freeze();
            let (copy, at) = (copy.clone(), self.at(block));
            async move { copy.write(at, data).await }
        };
        let written = &self.written_bytes;
        written.set(written.get() + COPIES * BLOCK);
        let (one, other) = join(write(one), write(other)).await;
        one.and(other)
    }
}
