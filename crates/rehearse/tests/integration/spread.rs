//! Groups with distributed spares: a plan with one runs, and is planned and advised by what it is.

use crate::common::{TINY, plan, profile, run};
use rehearse::advice;
use rehearse::plan::thumb;

/// The tiny site with six drives in one group: two data drives, parity, and the room of one drive.
const GROUP: &str = "pool.data.groups=[{ level = \"5\", drives = 5, from = \"sas\", \
     stripe_width = 4, distributed_spares = 1 }]";
const NO_SPARES: &str = "pool.data.spares=[]";

#[test]
fn a_drive_that_fails_is_rebuilt_without_a_spare() {
    let fails = "event=[{ at = \"600 ms\", what = \"drive-fails\", drive = \"sas-02\" }]";
    let outcome = run(&plan(&[GROUP, NO_SPARES, fails]), 1).unwrap();
    assert_eq!(outcome.load.total.failed, 0);
    assert!(outcome.load.total.reads_per_s > 0.0);
    let rebuilt = "what group 0 lacks of drive";
    let told = outcome.told.iter().map(|told| told.text.as_str());
    let told: Vec<&str> = told.collect();
    assert!(told.iter().any(|text| text.contains(rebuilt)), "{told:?}");
}

#[test]
fn a_comparison_changes_the_keys() {
    let settings = ["drives=4", "stripe_width=3"].map(|key| format!("pool.data.groups.0.{key}"));
    let narrower = plan(&[GROUP, NO_SPARES, &settings[0], &settings[1]]);
    let spread = narrower.pools[0].groups[0].spread;
    assert_eq!(spread.map(|spread| spread.width), Some(3));
}

#[test]
fn room_and_drives_are_those_of_the_stripes() {
    let spread = plan(&[GROUP, NO_SPARES]);
    let plain = plan(&["pool.data.groups.0.drives=4", NO_SPARES]);
    let bytes = |plan| thumb::group_bytes(plan, &plan.pools[0]);
    // Three of four hold data, and the fifth is spare.
    assert_eq!(bytes(&spread), bytes(&plain));
    // It has an arm all the same.
    let per_s = |plan| thumb::drives_per_s(plan, &plan.pools[0]).unwrap();
    assert_eq!(per_s(&spread), per_s(&plain) * 5.0 / 4.0);
}

#[test]
fn distributed_spares_are_spares() {
    let said = |settings: &[&str]| -> Vec<String> {
        advice::advise(&plan(settings), &profile)
            .iter()
            .filter(|finding| finding.check.name.contains("spare"))
            .map(|finding| finding.what.clone())
            .collect()
    };
    assert_eq!(said(&[GROUP, NO_SPARES]), [""; 0]);
    assert_eq!(
        said(&[NO_SPARES]),
        ["pool \"data\" of 5 drives has no spare"]
    );
    assert!(TINY.contains("count = 6"));
    let wide = "pool.data.groups=[{ level = \"6\", drives = 64, from = \"sas\", stripe_width = 21, \
                distributed_spares = 1 }]";
    assert_eq!(
        said(&["drives.sas.count=64", wide, NO_SPARES]),
        ["pool \"data\" has 1 of 3 spares for 63 drives"]
    );
}

#[test]
fn advice_on_wide_groups_is_of_their_stripes() {
    let wide = |width: u16| {
        let group = format!(
            "pool.data.groups=[{{ level = \"6\", drives = {}, from = \"sas\", stripe_width = {width}, \
             distributed_spares = 2 }}]",
            3 * width + 2
        );
        let plan = plan(&["drives.sas.count=64", &group, NO_SPARES]);
        let found = advice::advise(&plan, &profile).into_iter();
        let found = found.filter(|finding| finding.check.name == "wide-raid6");
        found.map(|finding| finding.what).collect::<Vec<_>>()
    };
    assert_eq!(wide(10), [""; 0]);
    assert_eq!(wide(17), ["pool \"data\" has a RAID 6 stripe of 17 drives"]);
}
