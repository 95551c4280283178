//! Numbers of pages: each group takes as many as its drives can hold, pools of older versions keep
//! theirs, and no two groups ever have one together.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes, content, end, media, spec, thin};
use base::{DriveOffset, VolumeOffset};
use engine::fsck::{self, Options};
use engine::label::{Label, SLOT_BYTES, SLOT_OFFSETS, Slot, Spacing};
use engine::pool::planned_capacity_bytes;
use engine::{
    Drive, GroupRole, Lane, Level, NamedDrive, PoolError, PoolErrorKind, PoolSpec, World,
};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

const TB: u64 = 1_000_000_000_000;
const RAID10: Level = Level::Raid10 { copies: 2 };

/// Pages of the volume `v`: enough for every group to have several zones in use.
const PAGES: usize = 64;

fn spaced(spacing: Spacing) -> PoolSpec {
    PoolSpec {
        spacing,
        ..spec("pool", RAID10)
    }
}

/// The newest label on a drive, and its format version.
async fn label(world: &SimWorld, drive: &Rc<Media>) -> (u32, Label) {
    let drive = SimDrive::adversarial(world, drive);
    let mut newest = None;
    for at in SLOT_OFFSETS {
        let (buf, read) = drive
            .read(DriveOffset(at), world.buffers().bytes(SLOT_BYTES))
            .await;
        read.unwrap();
        let slot = buf.bytes().unwrap();
        let version = u32::from_le_bytes(slot[12..16].try_into().unwrap());
        if let Slot::Label(label) = Label::decode(slot) {
            let found = (label.generation, version, *label);
            newest = newest
                .into_iter()
                .chain([found])
                .max_by_key(|found| found.0);
        }
    }
    let (_, version, label) = newest.unwrap();
    (version, label)
}

/// That every group has numbers enough for its pages at any level, and none that another has.
fn numbers_are_apart(label: &Label) {
    let mut ends = (0, 0);
    for group in &label.groups {
        let numbers = group.numbers;
        let (zones, pages) = (numbers.zone_range(), numbers.page_range());
        assert!(zones.start >= ends.0 && pages.start >= ends.1, "{label:?}");
        ends = (zones.end, pages.end);
        let bytes = u64::from(group.drives) * label.pool.zone_bytes;
        let held = bytes / u64::from(label.pool.page_bytes);
        assert!(u64::from(numbers.zone_pages) >= held, "{label:?}");
        assert_eq!(
            pages.end - pages.start,
            u64::from(numbers.zones) * u64::from(numbers.zone_pages)
        );
    }
}

async fn write_all(pool: &Lane<SimWorld>, tag: u64) {
    let volume = pool.volume("v").unwrap();
    let data = content(pool.world(), tag, PAGES * PAGE);
    volume.write(VolumeOffset(0), data).await.unwrap();
}

async fn holds(pool: &Lane<SimWorld>, tag: u64) {
    let volume = pool.volume("v").unwrap();
    let read = volume.read(VolumeOffset(0), PAGES * PAGE).await.unwrap();
    assert!(read.to_vec() == bytes(tag, PAGES * PAGE));
}

/// A shelf with a pool of this spacing, and a volume that is full.
fn shelf_of(spacing: Spacing) -> Shelf {
    let shelf = Shelf::new(4);
    let made = shelf.create(spaced(spacing), async |pool| {
        let size = (PAGES * PAGE) as u64;
        pool.create_volume(thin("v", size)).await.unwrap();
        write_all(&pool, 1).await;
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf
}

/// Adds a group of new drives; what is written afterwards lies on both.
async fn grow(pool: &Lane<SimWorld>, level: Level, drives: &[(String, Rc<Media>)]) -> u16 {
    let named = drives.iter().map(|(name, media)| NamedDrive {
        name: name.clone(),
        drive: SimDrive::adversarial(pool.world(), media),
    });
    let group = (level, GroupRole::Data);
    pool.add_group(group, named.collect()).await.unwrap()
}

async fn settled(pool: &Lane<SimWorld>) {
    let is_settled = |pool: &Lane<SimWorld>| {
        let groups = pool.info().groups;
        groups.iter().all(|g| !g.leaving && g.zones_to_empty == 0)
    };
    while !is_settled(pool) {
        pool.world().sleep(Duration::from_millis(100)).await;
    }
}

fn blank(of: &str, count: usize) -> Vec<(String, Rc<Media>)> {
    let name = |n| format!("{of}{n}");
    (0..count)
        .map(|n| (name(n), media(&name(n), DRIVE_BYTES)))
        .collect()
}

/// That an opening and a deep check find all of it whole; the label that they find.
fn checked(shelf: &Shelf, tag: u64) -> (u32, Label) {
    let world = shelf.world();
    let report = fsck::check(&world, shelf.drives(&world), Options { deep: true });
    let report = end(&world, report).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    shelf.open(async |pool| {
        holds(&pool, tag).await;
        pool.close().await.unwrap();
    });
    let world = shelf.world();
    let drive = Rc::clone(&shelf.media.last().unwrap().1);
    let found = end(&world, label(&world, &drive));
    numbers_are_apart(&found.1);
    found
}

#[test]
fn groups_come_and_go_and_never_have_numbers_together() {
    for (spacing, version) in [(Spacing::Own, 7), (Spacing::Widest, 4)] {
        let mut shelf = shelf_of(spacing);
        let (found, first) = checked(&shelf, 1);
        assert_eq!(found, version, "{spacing:?}");
        let zone_pages = match spacing {
            Spacing::Own => 4 * 2,
            Spacing::Widest => 32 * 2,
        };
        assert_eq!(first.groups[0].numbers.zone_pages, zone_pages);

        // Behind it, before it is gone.
        let (added, later) = (blank("a", 4), blank("b", 3));
        shelf.open(async |pool| {
            assert_eq!(grow(&pool, RAID10, &added).await, 1);
            write_all(&pool, 2).await;
            pool.convert_group(1, Level::Raid6).await.unwrap();
            settled(&pool).await;
            holds(&pool, 2).await;
            pool.close().await.unwrap();
        });
        shelf.media.extend(added);
        let (found, second) = checked(&shelf, 2);
        assert_eq!(found, version);
        assert_eq!(second.groups[0].numbers, first.groups[0].numbers);

        // With a gap in front, and one more behind.
        shelf.open(async |pool| {
            pool.remove_group(0).await.unwrap();
            settled(&pool).await;
            while pool.events(0).iter().all(|e| !e.text.contains("has left")) {
                pool.world().sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(grow(&pool, Level::Raid5, &later).await, 2);
            write_all(&pool, 3).await;
            holds(&pool, 3).await;
            pool.close().await.unwrap();
        });
        shelf.media.drain(..4);
        shelf.media.extend(later);
        let (found, third) = checked(&shelf, 3);
        assert_eq!(found, version);
        assert_eq!(third.groups[0].drives, 0);
        for group in 0..2 {
            assert_eq!(third.groups[group].numbers, second.groups[group].numbers);
        }
    }
}

#[test]
fn a_pool_whose_groups_have_numbers_together_is_neither_opened_nor_checked() {
    let mut shelf = shelf_of(Spacing::Own);
    let added = blank("a", 4);
    shelf.open(async |pool| {
        grow(&pool, RAID10, &added).await;
        pool.close().await.unwrap();
    });
    shelf.media.extend(added);
    let world = shelf.world();
    let forge = async {
        for (_, media) in &shelf.media {
            let (_, mut label) = label(&world, media).await;
            label.groups[1].numbers.first_page.0 -= 1;
            let at = SLOT_OFFSETS[(label.generation % 2) as usize];
            let slot = world.buffers().copy_of(&label.encode()).freeze();
            let drive = SimDrive::adversarial(&world, media);
            drive.write_durable(DriveOffset(at), slot).await.unwrap();
        }
    };
    end(&world, forge);
    let (kind, context) = shelf.refusal();
    assert_eq!(kind, PoolErrorKind::Corrupt, "{context}");
    assert!(context.contains("group 1 has numbers"), "{context}");
    let world = shelf.world();
    let report = fsck::check(&world, shelf.drives(&world), Options { deep: false });
    let error = end(&world, report).unwrap_err();
    assert!(error.context.contains("group 1 has numbers"), "{error}");
}

/// What a pool of so many groups of twelve drives of 20 TB holds.
fn planned(spacing: Spacing, page_kib: u32, groups: usize) -> Result<u64, PoolError> {
    let spec = PoolSpec {
        spacing,
        page_bytes: page_kib << 10,
        ..PoolSpec::new("p", Level::Raid6)
    };
    let groups = vec![(Level::Raid6, 12, 20 * TB); groups];
    planned_capacity_bytes(&spec, 1, &groups)
}

#[test]
fn groups_of_large_drives_fit_and_who_does_not_hears_which_page_does() {
    let own = |page_kib, groups| planned(Spacing::Own, page_kib, groups);
    for (page, groups) in [(256, 1), (256, 2), (256, 3), (256, 4), (512, 5)] {
        let data = groups as u64 * 10 * 20 * TB;
        let capacity = own(page, groups).unwrap();
        assert!(
            capacity > data / 10 * 8 && capacity < data,
            "{groups}: {capacity} of {data}"
        );
    }
    let old = planned(Spacing::Widest, 256, 2).unwrap_err();
    assert!(old.context.contains("page of 512 KiB or more"), "{old}");
    for (page, groups, fits, size) in [
        (256, 5, 512, "512 KiB"),
        (256, 10, 1024, "1 MiB"),
        (64, 2, 128, "128 KiB"),
        (4, 1, 64, "64 KiB"),
    ] {
        let error = own(page, groups).unwrap_err();
        assert_eq!(error.kind, PoolErrorKind::TooManyPages);
        assert!(own(fits, groups).is_ok() && own(fits / 2, groups).is_err());
        let advice = format!("choose a page of {size} or more");
        assert!(error.context.ends_with(&advice), "{error}");
    }
}

#[test]
fn metadata_has_room_for_no_more_pages_than_there_are_numbers() {
    let spec = PoolSpec {
        page_bytes: 512 << 10,
        ..PoolSpec::new("p", Level::Raid6)
    };
    let groups = vec![(Level::Raid6, 12, 20 * TB); 5];
    for (lanes, percent) in [(1, 98), (4, 96), (16, 87)] {
        let capacity = planned_capacity_bytes(&spec, lanes, &groups).unwrap();
        let data = 5 * 10 * 20 * TB;
        assert!(
            capacity > data / 100 * percent,
            "{lanes} lanes leave {capacity} of {data}"
        );
    }
}
