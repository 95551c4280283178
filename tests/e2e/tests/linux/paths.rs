//! Two portals are two paths to one disk, and a dead one costs nothing.

use crate::site;
use e2e::guest::{Cable, Guest, in_own_network};

/// What `multipath -ll` says once it has `count` lines with `words`.
fn map_with(host: &mut Guest, count: usize, words: &str) -> String {
    host.tell(&format!(
        "wait_until '[ $(map | grep -c \"{words}\") = {count} ]'; map"
    ))
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
            println!("{map}");
            assert_eq!(map.matches("prio=50 status=active").count(), 1, "{map}");
            assert!(map.contains("hwhandler='1 alua'"), "{map}");

            host.order("start_load /dev/mapper/mpatha");
            for cable in [&one, &two] {
                cable.cut();
                let map = map_with(&mut host, 1, "failed faulty running");
                println!("{map}");
                assert_eq!(map.matches("active ready running").count(), 1, "{map}");
                host.tell("load_goes_on");
                cable.mend();
                let map = map_with(&mut host, 2, "active ready running");
                println!("{map}");
                host.tell("load_goes_on");
            }
            host.order("end_load");
        },
    );
}
