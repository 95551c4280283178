//! Pools of several lanes, which may differ in the drives that they have.

use super::{assert_says, check, raw, run, texts};
use crate::common::{DRIVE_BYTES, Shelf, media, spec};
use engine::fsck::Severity::{Damage, Note};
use engine::label::{Label, Slot};
use engine::lane::LaneSlot;
use engine::{Lane, Level};
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };

/// Two lanes over two drives and a spare, after `use_it`.
fn two_lanes(use_it: impl AsyncFnOnce(&[Lane<SimWorld>])) -> Shelf {
    let mut shelf = Shelf::new(2);
    shelf.media.push(("s0".into(), media("s0", DRIVE_BYTES)));
    run(&shelf, async |world| {
        let mut lanes = Vec::new();
        for lane in LaneSlot::all(2).into_iter().rev() {
            let mut drives = shelf.drives(&world);
            let spares = drives.split_off(2);
            let spec = spec("pool", MIRROR);
            let groups = vec![(MIRROR, drives)];
            let made = Lane::create_lane(world.clone(), lane, spec, groups, spares).await;
            lanes.insert(0, made.unwrap());
        }
        use_it(&lanes).await;
        for lane in lanes {
            lane.close().await.unwrap();
        }
    });
    shelf
}

/// Where the second lane has its first label.
fn second_lane_at(shelf: &Shelf) -> u64 {
    let bytes = raw(shelf, shelf.named("d0"), 0, 16 << 10);
    match Label::decode(&bytes) {
        Slot::Label(label) => label.pool.part().front_bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_spare_that_one_lane_has_let_go_is_no_damage() {
    let whole = two_lanes(async |_| ());
    assert_eq!(check(&whole, true).worst, None);
    for lane in 0..2 {
        let shelf = two_lanes(async |lanes| lanes[lane].fail_drive("s0").await.unwrap());
        let report = check(&shelf, true);
        let text = "it is not a member here, and is one of another lane";
        assert_says(&report, Note, "drive 's0'", text);
        assert_eq!(report.findings.len(), 1, "{:#?}", texts(&report));
    }
    let shelf = two_lanes(async |lanes| {
        for lane in lanes {
            lane.fail_drive("s0").await.unwrap();
        }
    });
    assert_says(&check(&shelf, false), Damage, "drive 's0'", "no label");
}

#[test]
fn a_label_that_one_lane_has_lost_is_damage() {
    for name in ["d1", "s0"] {
        let shelf = two_lanes(async |_| ());
        let at = second_lane_at(&shelf);
        for slot in [at, at + (32 << 10)] {
            super::patch(&shelf, name, slot, &[0; 16 << 10]);
        }
        let report = check(&shelf, false);
        let place = format!("lane 1, drive '{name}'");
        assert_says(&report, Damage, &place, "it has no label");
    }
}
