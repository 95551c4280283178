//! Lost labels are written again where the drives prove their content, and nowhere else.

use super::bench::{Bench, HASTY, OLD, slowly};
use super::{RAID6, leaving_with};
use engine::label::{Label, Slot, Spacing};
use engine::salvage::{self, Plan};
use engine::{Drive, PoolError, PoolErrorKind, World};
use std::rc::Rc;
use world_sim::{Media, SimWorld};

async fn plan(bench: &Bench, world: &SimWorld) -> Result<Plan<SimWorld>, PoolError> {
    let all = bench.all();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    salvage::plan(world, bench.doors(world, &names)).await
}

fn refusal(bench: &Bench) -> PoolError {
    bench.run(None, async |bench, world| {
        plan(bench, world).await.err().unwrap()
    })
}

/// Carries out what there is to do; a second look finds nothing any more.
fn salvaged(bench: &Bench) -> Vec<String> {
    let steps = bench.run(None, async |bench, world| {
        let plan = plan(bench, world).await.unwrap();
        let steps = plan.steps.clone();
        plan.carry_out(world).await.unwrap();
        steps
    });
    bench.run(None, async |bench, world| {
        let again = plan(bench, world).await.unwrap();
        assert!(again.steps.is_empty(), "{:?}", again.steps);
    });
    steps
}

/// Where a lane's label slots are.
async fn slots(bench: &Bench, world: &SimWorld, lane: u16) -> [u64; 2] {
    let (buf, read) = bench
        .door(world, "d0")
        .drive
        .read(base::DriveOffset(0), world.buffers().bytes(16 << 10))
        .await;
    read.unwrap();
    let Slot::Label(label) = Label::decode(buf.bytes().unwrap()) else {
        panic!("no label");
    };
    let at = u64::from(lane) * label.pool.data_start;
    [at, at + (32 << 10)]
}

/// Wipes the labels of a lane on a drive.
fn wipe(bench: &Bench, name: &str, lane: u16) {
    bench.run(None, async |bench, world| {
        for at in slots(bench, world, lane).await {
            let zeroes = world.buffers().zeroed(16 << 10).freeze();
            let drive = bench.door(world, name).drive;
            drive
                .write_durable(base::DriveOffset(at), zeroes)
                .await
                .unwrap();
        }
    });
}

fn bytes_of(bench: &Bench) -> Vec<Vec<u8>> {
    let read = async |media: &Rc<Media>, world: &SimWorld| {
        let drive = world_sim::SimDrive::adversarial(world, media);
        let len = drive.geometry().capacity_bytes as usize;
        let (buf, read) = drive
            .read(base::DriveOffset(0), world.buffers().bytes(len))
            .await;
        read.unwrap();
        buf.bytes().unwrap().to_vec()
    };
    bench.run(None, async |bench, world| {
        let mut all = Vec::new();
        for (_, media) in bench.all() {
            all.push(read(&media, world).await);
        }
        all
    })
}

fn opens_with_all(bench: &Bench) {
    bench.run(None, async |bench, world| {
        let lanes = bench.open_by_first_lane(world).await.unwrap();
        lanes.holds().await;
        let members = lanes.info().members;
        assert!(
            members
                .iter()
                .all(|m| m.state == engine::MemberState::Healthy)
        );
        lanes.close().await;
    });
}

#[test]
fn a_pool_that_was_wiped_too_early_has_all_labels_again() {
    for (is_closed, spacing) in [
        (true, Spacing::Own),
        (false, Spacing::Own),
        (true, Spacing::Widest),
    ] {
        let bench = leaving_with(spacing);
        bench.run(Some(HASTY), async |bench, world| {
            let lanes = bench.open(world).await.unwrap();
            lanes.set_rates(slowly());
            lanes.shrink(0).await.unwrap();
            bench.sleep(world, 20).await;
            if is_closed {
                lanes.close().await;
            }
        });
        bench.run(None, async |bench, world| {
            assert!(bench.open_by_first_lane(world).await.is_err());
        });
        let before = bytes_of(&bench);
        bench.run(None, async |bench, world| {
            let plan = plan(bench, world).await.unwrap();
            assert_eq!(plan.steps.len(), 2, "lanes 0 and 1: {:?}", plan.steps);
            assert!(plan.steps[0].contains("group 0") && plan.steps[0].contains("lane 0"));
            assert!(plan.obstacles.is_empty(), "{:?}", plan.obstacles);
        });
        assert!(bytes_of(&bench) == before, "a plan writes nothing");
        salvaged(&bench);
        bench.run(None, async |bench, world| {
            for name in OLD {
                assert!(bench.label(world, name).await.is_some(), "{name}");
            }
            let lanes = bench.open_by_first_lane(world).await.unwrap();
            lanes.holds().await;
            lanes.settled().await;
            lanes.holds().await;
            assert_eq!(lanes.info().groups.len(), 1, "it has left");
            assert_eq!(lanes.told("its drives are free"), 1);
            for name in OLD {
                assert!(bench.has_no_label_at_all(world, name).await, "{name}");
            }
            lanes.close().await;
        });
    }
}

#[test]
fn labels_of_one_lane_are_known_from_those_of_another() {
    for lane in [0, 1] {
        let bench = Bench::new(RAID6, OLD.len(), 1);
        // More than the level could do without.
        for name in &OLD[1..] {
            wipe(&bench, name, lane);
        }
        bench.run(None, async |bench, world| {
            assert!(bench.open(world).await.is_err());
        });
        let steps = salvaged(&bench);
        assert_eq!(steps.len(), 3, "{steps:?}");
        let step = format!("drive 'd1': the label of lane {lane}, generation");
        assert!(steps[0].starts_with(&step), "{steps:?}");
        opens_with_all(&bench);
    }
}

#[test]
fn nothing_is_written_without_proof() {
    let whole = Bench::new(RAID6, OLD.len(), 1);

    // No lane says which drive it is.
    let bench = whole.copy();
    (0..3).for_each(|lane| wipe(&bench, "d1", lane));
    bench.run(None, async |bench, world| {
        let plan = plan(bench, world).await.unwrap();
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        let said = plan.obstacles.join("\n");
        let is_told = |of: &str, part: &str| {
            let mut all = plan.obstacles.iter();
            all.any(|text| text.starts_with(of) && text.contains(part))
        };
        assert!(is_told("lane 2: ", "'d1'"), "{said}");
        assert!(is_told("drive 'd1': ", "no lane"), "{said}");
    });

    // A lane has lost all of its labels.
    let bench = whole.copy();
    OLD.iter().for_each(|name| wipe(&bench, name, 1));
    let error = refusal(&bench);
    assert_eq!(error.kind, PoolErrorKind::Unlabelled);
    assert!(error.context.contains("of lane 1"), "{error}");

    // The labels of the other lanes are old: it was away since.
    let bench = whole.copy();
    let old = whole.copy();
    bench.run(None, async |bench, world| {
        let lanes = bench.open(world).await.unwrap();
        lanes.close().await;
    });
    let snapshot = old.media("d1").snapshot();
    bench.media("d1").restore(&snapshot);
    wipe(&bench, "d1", 0);
    bench.run(None, async |bench, world| {
        let plan = plan(bench, world).await.unwrap();
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    });

    // Two drives are one.
    let bench = whole.copy();
    bench.media("n0").restore(&bench.media("d1").snapshot());
    wipe(&bench, "d1", 0);
    wipe(&bench, "n0", 0);
    let error = refusal(&bench);
    assert!(error.context.contains("the same drive"), "{error}");
}

#[test]
fn labels_are_found_without_any_of_the_first_lane() {
    let bench = Bench::new(RAID6, OLD.len(), 1);
    for name in ["d3", "d2", "d1", "d0"] {
        wipe(&bench, name, 0);
    }
    let error = refusal(&bench);
    assert_eq!(error.kind, PoolErrorKind::Unlabelled);
    assert!(error.context.contains("of lane 0"), "{error}");
}
