//! Copies that go by reading and writing, between volumes that are somewhere else: each piece
//! is read while the one before it is written, and no more is held.

use super::bench::{Bench, bytes, sense, with_bench};
use super::lists::{receive, with_list, xcopy};
use base::{Payload, Slice, Uuid, VolumeOffset};
use engine::volume::{Alteration, Altered, AvailableSpace, CancelToken, Mapping, VolumeIo};
use engine::{Disk, IoError, IoErrorKind, Provisioning, VolumeInfo, World};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use scsi::{Identity, LogicalUnit, Nexus, Response};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

const MIB: u64 = 1 << 20;
/// Blocks of each volume.
const BLOCKS: u64 = 4 * MIB / 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    ReadBegins(u64),
    ReadEnds(u64),
    WriteBegins(u64),
    WriteEnds(u64),
}
use Event::{ReadBegins, ReadEnds, WriteBegins, WriteEnds};

/// A volume in RAM that takes its time, says what it does, and fails where it is told to.
struct Remote {
    info: VolumeInfo,
    world: SimWorld,
    data: RefCell<Vec<u8>>,
    log: Rc<RefCell<Vec<Event>>>,
    /// Reads and writes that reach this byte fail.
    bad: Cell<Option<(u64, IoErrorKind)>>,
    /// Stopped by the write that begins here, when it ends.
    stops: RefCell<Option<(u64, CancelToken)>>,
}

impl Remote {
    fn check(&self, at: VolumeOffset, len: usize) -> Result<(), IoError> {
        match self.bad.get() {
            Some((byte, kind)) if (at.0..at.0 + len as u64).contains(&byte) => Err(IoError {
                kind,
                at: VolumeOffset(byte),
                context: String::new(),
            }),
            _ => Ok(()),
        }
    }

    async fn pause(&self, micros: u64) {
        self.world.sleep(Duration::from_micros(micros)).await;
    }

    fn says(&self, event: Event) {
        self.log.borrow_mut().push(event);
    }
}

impl VolumeIo for Remote {
    fn info(&self) -> VolumeInfo {
        self.info.clone()
    }

    fn resized(&self, _: u64) {}

    fn converted(&self, _: Provisioning) {}

    fn read(&self, at: VolumeOffset, len: usize) -> LocalBoxFuture<'_, Result<Payload, IoError>> {
        let read = async move {
            self.says(ReadBegins(at.0 / MIB));
            self.pause(50).await;
            self.check(at, len)?;
            let data = self.data.borrow();
            let from = at.0 as usize;
            let read = self.world.buffers().copy_of(&data[from..from + len]);
            self.says(ReadEnds(at.0 / MIB));
            Ok(read.freeze().into())
        };
        read.boxed_local()
    }

    fn write(&self, at: VolumeOffset, data: Slice) -> LocalBoxFuture<'_, Result<(), IoError>> {
        let write = async move {
            self.says(WriteBegins(at.0 / MIB));
            self.pause(80).await;
            self.check(at, data.len())?;
            let from = at.0 as usize;
            self.data.borrow_mut()[from..from + data.len()].copy_from_slice(data.bytes().unwrap());
            self.says(WriteEnds(at.0 / MIB));
            if let Some((place, cancel)) = &*self.stops.borrow()
                && *place == at.0
            {
                cancel.stop();
            }
            Ok(())
        };
        write.boxed_local()
    }

    fn alter(
        &self,
        _: VolumeOffset,
        _: Alteration,
    ) -> LocalBoxFuture<'_, Result<Altered, IoError>> {
        unreachable!("copies do not")
    }

    fn memo(&self) -> Vec<u8> {
        Vec::new()
    }

    fn keep_memo(&self, _: Vec<u8>) -> LocalBoxFuture<'_, Result<(), IoError>> {
        unreachable!("copies do not")
    }

    fn flush(&self) -> LocalBoxFuture<'_, Result<(), IoError>> {
        async { Ok(()) }.boxed_local()
    }

    fn clear(&self, _: VolumeOffset, _: u64) -> LocalBoxFuture<'_, Result<(), IoError>> {
        unreachable!("all of it is mapped")
    }

    fn room(&self) -> LocalBoxFuture<'_, Result<AvailableSpace, IoError>> {
        async { Ok(AvailableSpace::default()) }.boxed_local()
    }

    fn mapping(&self, at: VolumeOffset) -> LocalBoxFuture<'_, Result<Mapping, IoError>> {
        let len_bytes = self.info.size_bytes - at.0;
        let is_mapped = true;
        async move {
            Ok(Mapping {
                is_mapped,
                len_bytes,
            })
        }
        .boxed_local()
    }

    fn copy_beside(
        &self,
        _: Uuid,
        _: (VolumeOffset, VolumeOffset),
        _: u64,
        _: CancelToken,
    ) -> LocalBoxFuture<'_, Result<Option<u64>, IoError>> {
        async { Ok(None) }.boxed_local()
    }
}

/// Two volumes at LUN 5 and 6.
struct Streams {
    bench: Bench,
    nexus: Rc<Nexus<SimWorld>>,
    source: Rc<Remote>,
    destination: Rc<Remote>,
    log: Rc<RefCell<Vec<Event>>>,
}

fn with_streams(test: impl AsyncFnOnce(&Streams)) {
    with_bench(async |bench| {
        let log = Rc::new(RefCell::new(Vec::new()));
        let of = bench.volume("a").info();
        let remote = |tag: u64| {
            let remote = Rc::new(Remote {
                info: VolumeInfo {
                    uuid: Uuid::from_u128(u128::from(tag) << 64 | 0x5eed),
                    size_bytes: BLOCKS * 512,
                    ..of.clone()
                },
                world: bench.world.clone(),
                data: RefCell::new(bytes(tag, BLOCKS)),
                log: Rc::clone(&log),
                bad: Cell::default(),
                stops: RefCell::default(),
            });
            let disk: Disk<SimWorld> = Disk::There(Rc::clone(&remote) as _);
            assert!(bench.own.map(tag as u16, LogicalUnit::new(disk).unwrap()));
            remote
        };
        let (source, destination) = (remote(5), remote(6));
        let nexus = bench.connect(&bench.own, "iqn.host");
        bench.run(&nexus, 0, &[0; 6], &[]).await;
        let streams = Streams {
            bench,
            nexus,
            source,
            destination,
            log,
        };
        test(&streams).await;
    });
}

impl Streams {
    /// EXTENDED COPY of one segment; 0 is the source, 1 the destination.
    async fn copy(
        &self,
        segment: (u16, u16, u16, u64, u64),
        cancel: Option<CancelToken>,
    ) -> Response {
        let naa = |remote: &Remote| Identity::of(remote.info.uuid).naa.to_vec();
        let list = xcopy(&[naa(&self.source), naa(&self.destination)], &[segment]);
        let mut cdb = [0; 16];
        cdb[..14].copy_from_slice(&with_list(0, 0, &list));
        let (lun, data) = (scsi::lun::encode(0), self.bench.data(&list));
        self.log.borrow_mut().clear();
        self.nexus
            .execute_until(lun, cdb.into(), data, cancel)
            .await
    }

    /// Bytes that RECEIVE COPY STATUS says were copied.
    async fn copied(&self) -> u32 {
        let said = self
            .bench
            .run(&self.nexus, 0, &receive(0, 1, 64), &[])
            .await;
        u32::from_be_bytes(said.data.to_vec()[8..12].try_into().unwrap())
    }

    /// The first so many bytes of the destination are the source's, the others its own.
    fn has_only(&self, copied: u64) {
        let (expected, own) = (bytes(5, BLOCKS), bytes(6, BLOCKS));
        let at = copied as usize;
        assert!(self.destination.data.borrow()[..at] == expected[..at]);
        assert!(self.destination.data.borrow()[at..] == own[at..]);
    }
}

/// INFORMATION of fixed format, if it is valid.
fn information(response: &Response) -> Option<u32> {
    let bytes = response.sense[3..7].try_into().unwrap();
    (response.sense[0] & 0x80 != 0).then_some(u32::from_be_bytes(bytes))
}

#[test]
fn a_piece_is_read_while_the_one_before_it_is_written_and_no_more_are_held() {
    with_streams(async |streams| {
        let copied = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&copied), (0, 0, 0));
        streams.has_only(4 * MIB);
        let log = streams.log.borrow();
        let expected = [
            vec![ReadBegins(0), ReadEnds(0)],
            vec![WriteBegins(0), ReadBegins(1), ReadEnds(1), WriteEnds(0)],
            vec![WriteBegins(1), ReadBegins(2), ReadEnds(2), WriteEnds(1)],
            vec![WriteBegins(2), ReadBegins(3), ReadEnds(3), WriteEnds(2)],
            vec![WriteBegins(3), WriteEnds(3)],
        ];
        assert_eq!(*log, expected.concat());
    });
}

#[test]
fn a_read_error_ends_it_behind_what_was_written() {
    with_streams(async |streams| {
        let bad = 2 * MIB + 5 * 512;
        streams.source.bad.set(Some((bad, IoErrorKind::Media)));
        let failed = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&failed), (0x0a, 0x0d, 0x01));
        // Two MiB of four were not written; the source could not read this block.
        assert_eq!(information(&failed), Some((2 * MIB / 512) as u32));
        assert_eq!(failed.sense[8..10], [18, 0]);
        let said = &failed.sense[19..];
        assert_eq!((said[0], said[2], said[12]), (0xf0, 3, 0x11));
        assert_eq!(said[3..7], ((bad / 512) as u32).to_be_bytes());
        assert_eq!(failed.sense[15..18], [0x80, 0, 16], "its CSCD descriptor");
        assert_eq!(streams.copied().await, 2 << 20);
        streams.has_only(2 * MIB);
        assert!(!streams.log.borrow().contains(&WriteBegins(2)));
        // The first piece of all: nothing was written, and nothing is said of a residual.
        streams.source.bad.set(Some((0, IoErrorKind::Media)));
        let failed = streams.copy((0, 1, 9, 0, 0), None).await;
        assert_eq!((sense(&failed).0, information(&failed)), (0x0a, None));
    });
}

#[test]
fn a_full_pool_ends_it_where_there_was_no_room() {
    with_streams(async |streams| {
        let bad = Some((MIB + 9, IoErrorKind::PoolFull));
        streams.destination.bad.set(bad);
        let failed = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&failed), (7, 0x27, 0x07));
        assert_eq!(streams.copied().await, 1 << 20);
        streams.has_only(MIB);
        assert_eq!(streams.bench.room.asked.get(), 1);
        // What could not be read ahead meanwhile is not what it ended for.
        let unread = Some((2 * MIB, IoErrorKind::Media));
        streams.source.bad.set(unread);
        let failed = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&failed), (7, 0x27, 0x07));
        assert_eq!(streams.copied().await, 1 << 20);
        // With room again it goes on where it was.
        streams.source.bad.set(None);
        let destination = Rc::clone(&streams.destination);
        let room = async move {
            destination.bad.set(None);
            true
        };
        *streams.bench.room.next.borrow_mut() = Some(room.boxed_local());
        let copied = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&copied), (0, 0, 0));
        let begun = |event| {
            streams
                .log
                .borrow()
                .iter()
                .filter(|one| **one == event)
                .count()
        };
        assert_eq!([0, 1, 2].map(|n| begun(WriteBegins(n))), [1, 2, 1]);
        assert_eq!(streams.copied().await, 4 << 20);
        // What comes after the initiator may have gone another way is of no use.
        streams.destination.bad.set(bad);
        let (destination, world) = (Rc::clone(&streams.destination), streams.bench.world.clone());
        let room = async move {
            world.sleep(Duration::from_secs(6)).await;
            destination.bad.set(None);
            true
        };
        *streams.bench.room.next.borrow_mut() = Some(room.boxed_local());
        let failed = streams.copy((0, 1, BLOCKS as u16, 0, 0), None).await;
        assert_eq!(sense(&failed), (7, 0x27, 0x07));
        streams.has_only(4 * MIB);
    });
}

#[test]
fn a_piece_that_was_read_ahead_of_a_stop_is_not_written() {
    with_streams(async |streams| {
        let cancel = CancelToken::default();
        let stop = Some((MIB, cancel.clone()));
        *streams.destination.stops.borrow_mut() = stop;
        let ended = streams
            .copy((0, 1, BLOCKS as u16, 0, 0), Some(cancel))
            .await;
        assert_eq!(sense(&ended), (0x0a, 0, 0));
        assert_eq!(information(&ended), Some((2 * MIB / 512) as u32));
        assert_eq!(streams.copied().await, 2 << 20);
        streams.has_only(2 * MIB);
    });
}

#[test]
fn ranges_of_one_volume_that_overlap_are_read_before_they_are_written_over() {
    for (from, to) in [(700, 0), (0, 700), (3, 2), (2, 3), (2048, 0), (0, 2048)] {
        with_streams(async |streams| {
            let mut expected = bytes(5, BLOCKS);
            let blocks = 5000;
            let copied = streams.copy((0, 0, blocks, from, to), None).await;
            assert_eq!(sense(&copied), (0, 0, 0));
            let (from, to) = (from as usize * 512, to as usize * 512);
            expected.copy_within(from..from + usize::from(blocks) * 512, to);
            assert!(*streams.source.data.borrow() == expected, "{from} to {to}");
        });
    }
}
