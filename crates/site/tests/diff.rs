//! The difference between a site and what exists.

use site::diff::{ExistingVolume, Step, volumes};
use site::{Provisioning, parse};

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
    let plan = volumes(&site, &there).unwrap();
    assert!(plan.steps.is_empty() && plan.kept.is_empty(), "{plan:?}");
}

#[test]
fn missing_volumes_are_created_small_ones_grown_others_kept() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("b", 4, Provisioning::Thick),
        existing("old", 1, Provisioning::Thin),
    ];
    let plan = volumes(&site, &there).unwrap();
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
fn every_conflict_is_named_and_nothing_is_planned() {
    let site = parse("t", SITE).unwrap();
    let there = [
        existing("a", 16, Provisioning::Thin),
        existing("b", 8, Provisioning::Thin),
    ];
    let conflicts = volumes(&site, &there).unwrap_err();
    let messages: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "volume a: the site says 8 MiB, what exists is 16 MiB; a volume doesn't shrink: put \
             its size into the site file, or delete it first",
            "volume b: the site says thick, what exists is thin; provisioning is settled at \
             creation: put what exists into the site file",
        ]
    );
}

#[test]
fn a_volume_in_another_pool_is_a_conflict() {
    let site = parse("t", SITE).unwrap();
    let mut elsewhere = existing("a", 8, Provisioning::Thin);
    elsewhere.pool = "q".into();
    let there = [elsewhere, existing("b", 8, Provisioning::Thick)];
    let conflicts = volumes(&site, &there).unwrap_err();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        (conflicts[0].wanted.as_str(), conflicts[0].existing.as_str()),
        ("pool p", "in pool q")
    );
}
