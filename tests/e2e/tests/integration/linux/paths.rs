//! Two portals are two paths to one disk, and a dead one costs nothing.

use super::site;
use e2e::guest::{Cable, Guest, in_own_network};

const MAP: &str = "/dev/mapper/mpatha";

/// What a path is that can be used, and one that cannot, in [`map_with`].
const READY: &str = "active ready running";
const DEAD: &str = "failed faulty running";

/// What `multipath -ll` says once it says of each of these disks what it is to be, and of no
/// other one; printed, too. One look decides: paths may come and go between two, on a
/// machine that is busy.
fn map_with(host: &mut Guest, paths: &[(&str, &str)]) -> String {
    let mut wanted = format!("[ $(grep -c \"[0-9]:[0-9]\" /map) = {} ]", paths.len());
    for (disk, state) in paths {
        wanted += &format!(" && grep -q \" {disk} .* {state}\" /map");
    }
    let map = host.tell(&format!(
        "wait_until 'map >/map; {wanted}' || in_vain=1; cat /map; [ -z \"$in_vain\" ]"
    ));
    println!("{map}");
    map
}

/// Cuts a cable under load and mends it: its path fails, the other one takes all, and it
/// comes back by itself.
fn cut_and_mend(host: &mut Guest, cable: &Cable, other: &Cable) {
    let (path, rest) = (path_by(host, cable), path_by(host, other));
    cable.cut();
    map_with(host, &[(&path, DEAD), (&rest, READY)]);
    host.tell("load_goes_on");
    cable.mend();
    map_with(host, &[(&path, READY), (&rest, READY)]);
    host.tell("load_goes_on");
}

/// Name of the disk behind this cable.
fn path_by(host: &mut Guest, cable: &Cable) -> String {
    let path = host.tell(&format!("path_by {}", cable.array()));
    let path = path.trim().to_owned();
    assert!(path.starts_with("sd"), "no disk by {cable:?}: {path}");
    path
}

/// The multipath map of a host with these cables, once it has both.
fn whole_map(host: &mut Guest, cables: [&Cable; 2]) -> String {
    host.order("multipathd");
    let [one, two] = cables.map(|cable| path_by(host, cable));
    map_with(host, &[(&one, READY), (&two, READY)]);
    // A group of paths becomes the active one by what is read.
    host.tell(&format!(
        "dd if={MAP} of=/dev/null bs=4096 count=1 iflag=direct"
    ));
    map_with(host, &[(&one, READY), (&two, READY)])
}

#[test]
fn io_goes_on_over_the_other_path_when_one_is_cut() {
    in_own_network(
        "linux::paths::io_goes_on_over_the_other_path_when_one_is_cut",
        || {
            let (one, two) = (Cable::lay(1, 2), Cable::lay(2, 2));
            let _array = site::array(&[&one, &two], &[("v", 64)]);
            let cables = [&one, &two];
            let mut host = Guest::boot_initiator(&site::image(), &site::host_name('a'), &cables);
            host.order("expect_dead_paths");
            site::log_in(&mut host, &cables, 2);
            let map = whole_map(&mut host, cables);
            assert!(map.contains("ASHLAR,VIRTUAL DISK"), "{map}");
            assert_eq!(map.matches("prio=50 status=active").count(), 1, "{map}");
            assert!(map.contains("hwhandler='1 alua'"), "{map}");

            host.order(&format!("start_load {MAP}"));
            cut_and_mend(&mut host, &one, &two);
            cut_and_mend(&mut host, &two, &one);
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
    in_own_network("linux::paths::a_reservation_is_held_over_all_paths", || {
        let (one, two) = (Cable::lay(1, 2), Cable::lay(2, 2));
        let _array = site::array(&[&one, &two], &[("v", 64)]);
        let mut host = site::logged_in(&site::image(), 'a', &[&one, &two], 2);
        whole_map(&mut host, [&one, &two]);
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
