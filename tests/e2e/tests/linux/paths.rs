//! Two portals are two paths to one disk, and a dead one costs nothing.

use crate::site;
use e2e::guest::{Cable, Guest, in_own_network};

const MAP: &str = "/dev/mapper/mpatha";

/// What `multipath -ll` says once it has `count` lines with `words`; printed, too.
fn map_with(host: &mut Guest, count: usize, words: &str) -> String {
    let map = host.tell(&format!(
        "wait_until '[ $(map | grep -c \"{words}\") = {count} ]'; map"
    ));
    println!("{map}");
    map
}

/// Cuts a cable under load and mends it: its path fails, the other one takes all, and it
/// comes back by itself.
fn cut_and_mend(host: &mut Guest, cable: &Cable) {
    let path = host.tell(&format!("path_by {}", cable.array()));
    assert!(path.starts_with("sd"), "no disk by {cable:?}: {path}");
    cable.cut();
    let map = map_with(host, 1, "failed faulty running");
    let failed = map.lines().find(|line| line.contains("failed faulty"));
    assert!(
        failed.is_some_and(|line| line.contains(&path)),
        "{path} was cut: {map}"
    );
    assert_eq!(map.matches("active ready running").count(), 1, "{map}");
    host.tell("load_goes_on");
    cable.mend();
    map_with(host, 2, "active ready running");
    host.tell("load_goes_on");
}

#[test]
fn io_goes_on_over_the_other_path_when_one_is_cut() {
    in_own_network(
        "paths::io_goes_on_over_the_other_path_when_one_is_cut",
        || {
            let (one, two) = (Cable::lay(1, 2), Cable::lay(2, 2));
            let _array = site::array(&[&one, &two], &[("v", 64)]);
            let mut host = site::logged_in(&site::image(), 'a', &[&one, &two]);
            host.order("multipathd");
            let map = map_with(&mut host, 2, "active ready running");
            assert!(map.contains("ASHLAR,VIRTUAL DISK"), "{map}");
            assert_eq!(map.matches("prio=50 status=active").count(), 1, "{map}");
            assert!(map.contains("hwhandler='1 alua'"), "{map}");

            host.order(&format!("start_load {MAP}"));
            cut_and_mend(&mut host, &one);
            cut_and_mend(&mut host, &two);
            host.order("end_load");

            // The load would have noticed: what it wrote is overwritten under it.
            host.order(&format!("start_load {MAP}"));
            host.order(&format!(
                "dd if=/dev/zero of={MAP} bs=1M count=12 oflag=direct"
            ));
            host.order("! end_load");
            let said = host.said("load:");
            assert!(
                said.iter().any(|line| line.contains("is wrong")),
                "{said:?}"
            );
        },
    );
}

/// Reservations of a host with several paths are registered on all of them.
#[test]
fn a_reservation_is_held_over_all_paths() {
    in_own_network("paths::a_reservation_is_held_over_all_paths", || {
        let (one, two) = (Cable::lay(1, 2), Cable::lay(2, 2));
        let _array = site::array(&[&one, &two], &[("v", 64)]);
        let mut host = site::logged_in(&site::image(), 'a', &[&one, &two]);
        host.order("multipathd");
        map_with(&mut host, 2, "active ready running");
        let register = "--out --register --param-rk=0 --param-sark=0xa1";
        host.tell(&format!("mpathpersist {register} {MAP}"));
        let keys = host.tell(&format!("mpathpersist --in --read-keys {MAP}"));
        assert_eq!(keys.matches("0xa1").count(), 2, "one for each path: {keys}");
        host.tell(&format!(
            "mpathpersist --out --reserve --param-rk=0xa1 --prout-type=5 {MAP}"
        ));
        let held = host.tell(&format!("mpathpersist --in --read-reservation {MAP}"));
        assert!(held.contains("0xa1"), "{held}");
        let write = "dd if=/dev/zero bs=4096 count=1 oflag=direct";
        for cable in [&one, &two] {
            host.tell(&format!("{write} of=/dev/$(path_by {})", cable.array()));
        }
        host.tell(&format!("mpathpersist --out --clear --param-rk=0xa1 {MAP}"));
        let keys = host.tell(&format!("mpathpersist --in --read-keys {MAP}"));
        assert!(!keys.contains("0xa1"), "{keys}");
    });
}
