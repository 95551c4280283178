//! Drives that have left their pool leave the record of drives.

use crate::record::Record;
use crate::world::{Array, boot_from, media};
use array::control::{AddedDrive, Configuration};
use base::Prng;
use engine::World;
use engine::pool::NamedDrive;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, SimDrive, SimWorld};

const SPARE: &str = "s";

fn added() -> Vec<AddedDrive> {
    vec![AddedDrive {
        pool: "p".to_owned(),
        name: SPARE.to_owned(),
        path: "/data/s.img".into(),
        is_device: false,
    }]
}

/// Has the pool have a spare, as somebody may have added it before.
async fn add_spare(world: &SimWorld, array: &Array, media: &Rc<Media>) {
    let state = array.shards()[0].clone();
    let drive = send_wrapper::SendWrapper::new(SimDrive::adversarial(world, media));
    let visit = move |state: Rc<array::shard::ShardState<SimWorld>>| async move {
        let named = NamedDrive {
            name: SPARE.to_owned(),
            drive: drive.take(),
        };
        state.lane("p", 0).unwrap().add_spare(named).await
    };
    state.call(visit).await.unwrap().unwrap();
}

async fn let_go(array: &Array) {
    let visit = |_, lane: engine::Lane<SimWorld>| async move { Ok(lane.fail_drive(SPARE).await?) };
    array.with_lane("p", 0, visit).await.unwrap();
}

#[test]
fn a_spare_that_is_let_go_leaves_the_record() {
    let drives = Record::<Vec<AddedDrive>>::new();
    let records = (
        Record::<Configuration>::new() as _,
        Arc::clone(&drives) as _,
        added(),
    );
    let spare = Rc::new(Media::new(
        MediaSpec::new(SPARE, 64 << 20),
        Prng::from_seed(8),
    ));
    boot_from(&media(), 0, records, async |world, array| {
        add_spare(&world, &array, &spare).await;
        array.follow_departures().await;
        assert_eq!(*array.places().added(), added(), "the pool has it");
        let_go(&array).await;
        drives.takes(0);
        array.follow_departures().await;
        assert_eq!(*array.places().added(), added(), "it can't be written");
        drives.takes(1);
        array.follow_departures().await;
        assert_eq!(*array.places().added(), []);
        assert_eq!(drives.kept(), []);
        world.sleep(Duration::from_secs(2)).await;
    });
}
