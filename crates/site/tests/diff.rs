//! The difference between a site and what exists.
#![allow(clippy::unwrap_used, reason = "tests")]

use site::diff::{ExistingGroup, ExistingVolume, Step, pool, volumes};
use site::{Group, Level, Provisioning, parse};

const SITE: &str = r#"
[site]
name = "test"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "d0"
file = "d0.img"
size = "1 GiB"
[[pool]]
name = "p"
level = "simple"
drives = ["d0"]
[[volume]]
name = "a"
pool = "p"
size = "8 MiB"
[[volume]]
name = "b"
pool = "p"
size = "8 MiB"
provisioning = "thick"
"#;

fn existing(name: &str, mib: u64, provisioning: Provisioning) -> ExistingVolume {
    ExistingVolume {
        name: name.into(),
        pool: "p".into(),
        size_bytes: mib << 20,
        provisioning,
    }
}

#[test]
fn what_is_there_already_needs_no_step() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("a", 8, Provisioning::Thin),
        existing("b", 8, Provisioning::Thick),
    ];
    let plan = volumes(&site, &there);
    assert!(plan.steps.is_empty() && plan.kept.is_empty(), "{plan:?}");
}

#[test]
fn missing_volumes_are_created_small_ones_grown_others_kept() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("b", 4, Provisioning::Thick),
        existing("old", 1, Provisioning::Thin),
    ];
    let plan = volumes(&site, &there);
    let grow = Step::Grow {
        name: "b".into(),
        pool: "p".into(),
        size_bytes: 8 << 20,
    };
    assert_eq!(
        plan.steps,
        [Step::Create(existing("a", 8, Provisioning::Thin)), grow]
    );
    assert_eq!(plan.kept, [("p".to_owned(), "old".to_owned())]);
}

#[test]
fn what_was_grown_while_it_served_counts_and_is_named() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("a", 16, Provisioning::Thin),
        existing("b", 8, Provisioning::Thick),
    ];
    let plan = volumes(&site, &there);
    assert_eq!(plan.larger, [("a".to_owned(), 16 << 20)]);
    assert_eq!(plan.steps, []);
}

#[test]
fn what_was_converted_while_it_served_counts_and_is_named() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("a", 8, Provisioning::Thin),
        existing("b", 4, Provisioning::Thin),
    ];
    let plan = volumes(&site, &there);
    assert_eq!(plan.steps.len(), 1, "it is grown all the same");
    assert_eq!(plan.converted, [("b".to_owned(), Provisioning::Thin)]);
}

#[test]
fn a_volume_that_was_moved_while_it_served_stays_where_it_is_and_is_named() {
    let site = parse("t", SITE).unwrap();
    let mut elsewhere = existing("a", 4, Provisioning::Thin);
    elsewhere.pool = "q".into();
    let there = [elsewhere, existing("b", 8, Provisioning::Thick)];
    let plan = volumes(&site, &there);
    let grow = Step::Grow {
        name: "a".into(),
        pool: "q".into(),
        size_bytes: 8 << 20,
    };
    assert_eq!(plan.steps, [grow]);
    assert_eq!(plan.moved, [("a".to_owned(), "q".to_owned())]);
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn group(index: u16, level: Level, drives: &[&str]) -> ExistingGroup {
    ExistingGroup {
        index,
        level,
        spread: None,
        role: site::GroupRole::Data,
        drives: names(drives),
        leaves: false,
    }
}

/// A pool of two groups and a spare, as the site file describes it.
fn described() -> site::Pool {
    let group = |level: Level, drives: &[&str]| Group::of_data(level, names(drives));
    let mut pool = parse("t", SITE).unwrap().pools.remove(0);
    pool.groups = vec![
        group(Level::Raid10 { copies: 2 }, &["a", "b", "c", "d"]),
        group(Level::Raid5, &["e", "f", "g"]),
    ];
    pool.spares = names(&["s"]);
    pool
}

#[test]
fn a_pool_as_described_differs_in_nothing() {
    let there = [
        group(0, Level::Raid10 { copies: 2 }, &["a", "b", "c", "d"]),
        group(1, Level::Raid5, &["e", "f", "g"]),
    ];
    assert_eq!(pool(&described(), &there, &names(&["s"])), names(&[]));
}

#[test]
fn what_commands_have_made_of_a_pool_is_named() {
    // One converted with a spare in it, one gone, one new; numbers are not positions.
    let mut leaving = group(1, Level::Raid5, &["e", "f", "g"]);
    leaving.leaves = true;
    let there = [
        group(0, Level::Raid6, &["a", "s", "c", "d"]),
        leaving,
        group(4, Level::Raid5, &["x", "y", "z"]),
    ];
    assert_eq!(
        pool(&described(), &there, &names(&["t"])),
        [
            "group 0 is of level 6, the site file says 10: write level = \"6\" there (what is on \
             the drives counts)",
            "the spare s of the site file is in group 0 by now: write it into drives there, in the \
             place of the drive that it stands in for",
            "group 4 of x, y, z is not in the site file: describe its drives there, and the group \
             as [[pool.group]] of level \"5\"",
            "the spare t is not in the site file: describe it there",
            "the site file lists drive b, which is no drive of the pool: remove it there, or \
             make it one with ashlar pool grow, or ashlar drive add-spare",
        ]
    );
    let there = [group(0, Level::Raid10 { copies: 2 }, &["a", "b", "c", "n"])];
    let lines = pool(&described(), &there, &[]);
    let named = "drive n of group 0 is not in the site file: describe it there";
    assert_eq!((lines.len(), lines[0].as_str()), (6, named), "{lines:?}");
}

#[test]
fn a_drive_that_is_a_spare_by_now_is_named() {
    let there = [
        group(0, Level::Raid10 { copies: 2 }, &["s", "b", "c", "d"]),
        group(1, Level::Raid5, &["e", "f", "g"]),
    ];
    assert_eq!(
        pool(&described(), &there, &names(&["a"])),
        [
            "the spare s of the site file is in group 0 by now: write it into drives there, in the \
             place of the drive that it stands in for",
            "drive a of the site file is a spare by now: write it into spares there",
        ]
    );
}

#[test]
fn a_group_for_the_logs_is_named_as_one() {
    let mut there = [
        group(0, Level::Raid10 { copies: 2 }, &["a", "b", "c", "d"]),
        group(1, Level::Raid5, &["e", "f", "g"]),
        group(2, Level::Raid10 { copies: 2 }, &["x", "y"]),
    ];
    there[2].role = site::GroupRole::Log;
    let lines = pool(&described(), &there, &names(&["s"]));
    assert!(
        lines[0].ends_with("of level \"10\" and role \"log\""),
        "{lines:?}"
    );
    let mut site = described();
    let level = Level::Raid10 { copies: 2 };
    site.groups.push(Group::of_data(level, names(&["x", "y"])));
    let lines = pool(&site, &there, &names(&["s"]));
    let says = "group 2 is for log: write role = \"log\" in the site file";
    assert_eq!(lines, names(&[says]));
}
