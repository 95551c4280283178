//! A crash at the very end of a move: which pool serves the volume at the next start, and
//! what is said when that can't be told.

use crate::array::{Home, SECOND_POOL, SITE};
use engine::pool::OtherPool;
use engine::volume::VolumeIo;
use engine::{Lane, NamedDrive};
use serde_json::{Value, json};
use std::fs;
use std::rc::Rc;
use world_real::{RealDrive, RealWorld};

pub async fn open(world: &RealWorld, home: &Home, files: &[&str]) -> Lane<RealWorld> {
    let drive = |file: &&str| NamedDrive {
        name: (*file).to_owned(),
        drive: RealDrive::open(world, &home.file(file)).unwrap(),
    };
    let drives = files.iter().map(drive).collect();
    Lane::open(world.clone(), drives).await.unwrap()
}

fn other(pool: &Lane<RealWorld>) -> OtherPool {
    let info = pool.info();
    OtherPool {
        uuid: info.uuid,
        name: info.name,
    }
}

/// Both pools, as a crash leaves them just after `v0` has arrived in `p1`.
fn just_arrived() -> Home {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    assert!(home.serve().stop("TERM").success());
    let moved = world_real::run(|world| async move {
        let p0 = open(&world, &home, &["d0.img", "d1.img"]).await;
        let p1 = open(&world, &home, &["e0.img"]).await;
        let there = p0.volume("v0").unwrap();
        let (info, properties, from) = (there.info(), there.properties(), other(&p0));
        let copy = p1.begin_arrival(&info, &properties, &from).await.unwrap();
        let to: Rc<dyn VolumeIo> = Rc::new(copy);
        let (volume, mirror) = p0.begin_departure("v0", to, None).await.unwrap();
        volume.copy_to(&mirror).await.unwrap();
        let arrive = async |info, properties| p1.arrive(&info, &properties).await;
        let (uuid, to) = (info.uuid, other(&p1));
        p0.hand_over(uuid, &to, arrive).await.unwrap();
        home
    });
    moved.unwrap()
}

fn places(list: &Value) -> Vec<(&str, &Value)> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| (one["pool"].as_str().unwrap(), &one["withheld_for"]))
        .collect()
}

#[test]
fn with_both_pools_the_volume_is_where_it_arrived() {
    let home = just_arrived();
    let serving = home.serve();
    assert_eq!(
        places(&serving.json(&["volume", "list"])),
        [("p1", &Value::Null)]
    );
    let parts = ["volume v0", "write pool = \"p1\""];
    assert!(home.has_logged("INFO", &parts), "{}", home.log());
    // And back, by command.
    let job = serving.json(&["volume", "move", "v0", "--pool", "p0"]);
    assert_eq!(
        (&job["state"], &job["to_pool"]),
        (&json!("done"), &json!("p0"))
    );
    assert!(job["stall_us"].is_u64(), "{job:#}");
    assert_eq!(serving.stop("KILL").code(), None);
    let serving = home.serve();
    assert_eq!(
        places(&serving.json(&["volume", "list"])),
        [("p0", &Value::Null)]
    );
    assert_eq!(serving.json(&["job", "show", "1"]), job);
}

#[test]
fn without_the_new_pool_it_is_withheld_until_that_is_there_or_given_up() {
    let home = just_arrived();
    fs::rename(home.file("e0.img"), home.file("away.img")).unwrap();
    let serving = home.serve();
    let withheld = [("p0", &json!("p1"))];
    assert_eq!(places(&serving.json(&["volume", "list"])), withheld);
    let events = serving.events(false).join("\n");
    assert!(events.contains("volume move v0 --abandon"), "{events}");
    assert_eq!(
        serving.refused(&["volume", "convert", "v0", "--thick"]).0,
        6
    );
    assert_eq!(serving.stop("KILL").code(), None);

    // What the site file wants of it can't be yet.
    let larger = SITE.replace("\"8 MiB\"", "\"16 MiB\"");
    home.set_site(&larger);
    let serving = home.serve();
    assert_eq!(places(&serving.json(&["volume", "list"])), withheld);
    let path = home.site();
    let (code, said) = serving.refused(&["site", "apply", "--yes", path.to_str().unwrap()]);
    assert!(code == 1 && said.contains("volume v0: "), "{said}");
    assert_eq!(serving.stop("KILL").code(), None);

    // Given back, it is all there.
    fs::rename(home.file("away.img"), home.file("e0.img")).unwrap();
    let serving = home.serve();
    serving.apply(&home);
    let all = serving.json(&["volume", "list"]);
    assert_eq!(places(&all), [("p1", &Value::Null)]);
    assert_eq!(all[0]["size_bytes"], 16 << 20);
}

#[test]
fn a_move_that_is_given_up_leaves_the_volume_as_it_was() {
    let home = just_arrived();
    fs::rename(home.file("e0.img"), home.file("away.img")).unwrap();
    let serving = home.serve();
    let served = serving.json(&["volume", "move", "v0", "--abandon"]);
    assert_eq!(
        (&served["pool"], &served["withheld_for"]),
        (&json!("p0"), &Value::Null)
    );
    serving.done(&["volume", "convert", "v0", "--thick"]);
    assert_eq!(serving.refused(&["volume", "move", "v0", "--abandon"]).0, 6);
    assert_eq!(serving.stop("KILL").code(), None);

    // The other pool comes back: what it has is old by now, and goes.
    fs::rename(home.file("away.img"), home.file("e0.img")).unwrap();
    let serving = home.serve();
    assert_eq!(
        places(&serving.json(&["volume", "list"])),
        [("p0", &Value::Null)]
    );
    let moved = serving.json(&["volume", "move", "v0", "--pool", "p1"]);
    assert_eq!(moved["state"], "done");
}

#[test]
fn a_degraded_pool_takes_a_volume_by_force_only() {
    let home = Home::new(&format!("{SITE}{SECOND_POOL}"));
    let serving = home.serve();
    serving.done(&["volume", "create", "w", "--pool", "p1", "--size", "4 MiB"]);
    serving.done(&["drive", "fail", "--yes", "d1"]);
    let wanted = ["volume", "move", "w", "--pool", "p0"];
    let (code, said) = serving.refused(&wanted);
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("pool p0 is degraded"), "{said}");
    assert_eq!(serving.json(&["job", "list"]), json!([]));
    serving.done(&[&wanted[..], &["--force"]].concat());
    assert_eq!(serving.json(&["volume", "show", "w"])["pool"], "p0");
}

#[test]
fn what_can_not_move_is_told_why() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["volume", "clone", "v0", "w"]);
    serving.done(&["snapshot", "create", "w@a"]);
    serving.done(&["snapshot", "create", "w@b"]);
    // An unknown pool is said before anything that could be mended.
    let (kind, said) = serving.refusal(&["volume", "move", "w", "--pool", "no"]);
    assert_eq!(kind, "not_found", "{said}");
    assert!(
        said.contains("pool no") && said.contains("the only one"),
        "{said}"
    );
    let create = [
        "pool", "create", "p9", "--level", "simple", "--size", "64 MiB", "n.img",
    ];
    serving.done(&create);
    let (kind, said) = serving.refusal(&["volume", "move", "w", "--pool", "no"]);
    assert_eq!(kind, "not_found", "{said}");
    assert!(said.contains("pool no") && said.contains("to p9"), "{said}");
    let (kind, said) = serving.refusal(&["volume", "move", "w", "--pool", "p9"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(
        said.contains("w@a, w@b") && said.contains("--leave-snapshots"),
        "{said}"
    );
}
