//! The file system of a NAS head: what its maps cost drives.

use crate::common::{plan, profile, run};
use base::VolumeOffset;
use engine::World;
use rehearse::rig::Rig;
use rehearse::run::share::Part;
use rehearse::{Outcome, RehearseErrorKind};

const MAPPED: &str = "controller.ctl1.file_system=\"mapped\"";
const WINDOW: [&str; 2] = ["run.warmup=\"5 s\"", "run.measure=\"10 s\""];

/// Drive commands for each of the host.
fn back_end(settings: &[&str]) -> f64 {
    let settings: Vec<&str> = WINDOW.iter().chain(settings).copied().collect();
    let outcome = run(&plan(&settings), 7).unwrap();
    drive_commands(&outcome) / (outcome.load.total.reads_per_s + outcome.load.total.writes_per_s)
}

fn drive_commands(outcome: &Outcome) -> f64 {
    let mut shares = outcome.shares.iter();
    let data = shares.find(|share| share.part == Part::Drives && share.name == "data, SAS 10k");
    data.unwrap().per_s
}

/// The disk of 10 GB has some 5,000 blocks of map, 20 MiB: memory has all, none or half of them.
#[test]
fn a_read_reads_the_map_as_often_as_memory_has_it_not() {
    let reads = |cache: &str, more: &[&str]| {
        let cache = format!("controller.ctl1.cache={cache:?}");
        let mut settings = vec!["vm_group.vm.profile=\"sqlio-8k\"", &cache];
        settings.extend_from_slice(more);
        back_end(&settings)
    };
    let (plain, none) = (reads("none", &[]), reads("none", &[MAPPED]));
    assert!((0.95..1.05).contains(&plain), "{plain}");
    assert!((1.95..2.05).contains(&none), "{none}");
    let all = reads("64 MiB", &[MAPPED]);
    assert!((0.9..1.05).contains(&all), "{all}");
    let half = reads("10 MiB", &[MAPPED]);
    assert!((1.4..1.6).contains(&half), "{half}");
}

/// RAID 5 has four commands for 8 KiB of data, and for each of two blocks of the map. The log is so small that it
/// gathers next to nothing.
#[test]
fn a_write_changes_two_maps() {
    let writes = |more: &[&str]| {
        let mut settings = vec![
            "vm_group.vm.profile=\"rand-8k-write\"",
            "controller.ctl1.write_cache=\"8 MiB\"",
        ];
        settings.extend_from_slice(more);
        back_end(&settings)
    };
    let (plain, mapped) = (writes(&[]), writes(&[MAPPED]));
    let times = mapped / plain;
    assert!((2.8..3.1).contains(&times), "{mapped} and {plain}");
}

/// A map is as large as what the disk holds: a tenth of it fits where all of it does not.
#[test]
fn a_disk_that_is_filled_a_little_has_a_small_map() {
    let of_filled = |filled: u8| {
        let filled = format!("vm_group.vm.filled={filled}");
        let thin = "vm_group.vm.provisioning=\"thin\"";
        let cache = "controller.ctl1.cache=\"3 MiB\"";
        let reads = "vm_group.vm.profile=\"sqlio-8k\"";
        back_end(&[reads, thin, cache, MAPPED, &filled])
    };
    assert!(of_filled(10) < 1.05, "{}", of_filled(10));
    assert!(of_filled(100) > 1.7, "{}", of_filled(100));
}

/// Each lane has the maps of its own volumes, and writes to two copies.
#[test]
fn lanes_have_maps_of_their_own() {
    let settings = ["pool.data.lanes=4", "vm_group.vm.count=4", MAPPED];
    let rig = Rig::build(&plan(&settings), 7, &profile).unwrap();
    let pool = &rig.pools[0];
    for disk in rig.disks() {
        let volume = disk.volume.borrow().clone();
        let data = rig.world.buffers().data(8192).freeze();
        let written = rig.finish(pool.write(&volume, VolumeOffset(0), data));
        written.unwrap().unwrap();
    }
    let maps = pool.file_system.get().unwrap();
    let written: Vec<u64> = (0..4).map(|lane| maps.written_in(lane)).collect();
    assert_eq!(written, [8192; 4]);
}

/// A gigabyte is left, and the maps of eight disks of 280 GiB take nine.
#[test]
fn maps_need_room_in_the_pool() {
    let full = [
        "vm_group.vm.count=8",
        "vm_group.vm.provisioning=\"thin\"",
        "vm_group.vm.filled=99",
        "vm_group.vm.outstanding=1",
    ];
    assert!(run(&plan(&full), 7).is_ok());
    let settings: Vec<&str> = full.into_iter().chain([MAPPED]).collect();
    let error = run(&plan(&settings), 7).unwrap_err();
    assert_eq!(error.kind, RehearseErrorKind::Site);
    let said = error.to_string();
    assert!(
        said.contains("of the file system of pool \"data\""),
        "{said}"
    );
}

#[test]
fn who_writes_anywhere_has_no_such_file_system() {
    let plan = plan(&[MAPPED, "controller.ctl1.writes=\"anywhere\""]);
    let error = run(&plan, 7).unwrap_err();
    assert_eq!(error.kind, RehearseErrorKind::Site);
    let said = error.to_string();
    assert!(
        said.contains("\"ctl1\"") && said.contains("file_system = \"none\""),
        "{said}"
    );
}
