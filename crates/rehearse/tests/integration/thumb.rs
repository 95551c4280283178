//! The classical arithmetic, with the worked example that it was published with.

use rehearse::plan::demand::Demand;
use rehearse::plan::thumb::{self, PoolThumb};
use site::Level;
use site::plan::Plan;
use workload::profile::{Compute, DiskProfile, Limits, Mix, Pacing, Profile, Stream, VmProfile};

fn profile(mix: Mix, pacing: Pacing) -> Profile {
    Profile {
        name: "p".into(),
        vms: vec![VmProfile {
            name: "VM01".into(),
            role: "one".into(),
            compute: Compute::UNTOLD,
            disks: vec![DiskProfile::gigabytes(100)],
            streams: vec![Stream::alone(mix, pacing, &[1])],
        }],
        limits: Limits::default(),
    }
}

/// A plan of one pool with `groups`, on lots of each kind.
fn plan(groups: &str, vm_group: &str) -> Plan {
    let text = format!(
        "[site]\nname = \"t\"\n\
         [[controller]]\nname = \"a\"\nmodel = \"ashlar\"\nports = [{{ network = \"n\" }}]\n\
         [[bus]]\nname = \"b\"\nkind = \"pcie\"\n\
         [[drives]]\nname = \"sas\"\nmodel = \"sas-10k-600\"\ncount = 40\nbus = \"b\"\n\
         [[drives]]\nname = \"flash\"\nmodel = \"slc-100\"\ncount = 5\nbus = \"b\"\n\
         [[drives]]\nname = \"nvme\"\nmodel = \"nvme-7680\"\ncount = 5\nbus = \"b\"\n\
         [[pool]]\nname = \"data\"\ncontroller = \"a\"\ngroups = [{groups}]\n\
         [[network]]\nname = \"n\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"\n\
         [[host]]\nname = \"h\"\ncores = 4\nclock_ghz = 2\nmemory = \"64 GiB\"\nports = [{{ network = \"n\" }}]\n\
         [[vm_group]]\nname = \"vms\"\nprofile = \"p\"\nhosts = [\"h\"]\npools = [\"data\"]\n{vm_group}\n"
    );
    let described = site::plan::parse("t.toml", &text, &[]);
    described.unwrap_or_else(|error| panic!("{error}")).base
}

fn of(groups: &str, vm_group: &str, mix: Mix, pacing: Pacing) -> PoolThumb {
    let plan = plan(groups, vm_group);
    let profile = profile(mix, pacing);
    let demand = Demand::of(&plan, &|_| Ok(profile.clone()));
    thumb::pools(&plan, &demand).remove(0)
}

fn open(per_second: f64) -> Pacing {
    Pacing::Open { per_second }
}

const SAS: &str = "{ level = \"5\", drives = 5, from = \"sas\", count = 8 }";
const FLASH: &str = "{ level = \"5\", drives = 5, from = \"flash\" }";

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= expected * 1e-9,
        "{found}, not {expected}"
    );
}

#[test]
fn penalties_are_those_of_the_levels() {
    let writes = |level| thumb::back_end_per_s(level, 0.0, 1.0);
    assert_eq!(Level::ALL.map(writes), [1.0, 2.0, 3.0, 4.0, 4.0, 6.0]);
    assert_eq!(thumb::back_end_per_s(Level::Raid6, 7.0, 0.0), 7.0);
}

/// 25,000 host I/Os at 9 : 1 are 32,500 of a RAID 5; 40 drives of 10k and 5 of flash give 6,000
/// and 17,500.
#[test]
fn the_worked_example() {
    let thumb = of(SAS, "", Mix::new(8192, 100, 90), open(25_000.0));
    close(thumb.reads_per_s, 22_500.0);
    close(thumb.writes_per_s, 2_500.0);
    close(thumb.back_end_per_s, 32_500.0);
    close(thumb.drives_per_s.unwrap(), 6_000.0);
    close(thumb.utilisation.unwrap(), 32_500.0 / 6_000.0);
    let flash = of(FLASH, "", Mix::new(8192, 100, 90), open(1.0));
    close(flash.drives_per_s.unwrap(), 17_500.0);
    let both = of(
        &format!("{SAS}, {FLASH}"),
        "",
        Mix::new(8192, 100, 90),
        open(25_000.0),
    );
    close(both.drives_per_s.unwrap(), 23_500.0);
    close(both.back_end_per_s, 32_500.0);
    assert_eq!(
        both.sentence,
        "Pool \"data\": 25000 host I/Os a second (22500 reads, 2500 writes) are 32500 of the drives, \
         138 % of the 23500 that the rule of thumb gives them; 66 % is planned at most."
    );
}

#[test]
fn scale_and_count_multiply_the_rate() {
    let thumb = of(
        SAS,
        "scale = 0.5\ncount = 3",
        Mix::new(8192, 100, 100),
        open(100.0),
    );
    close(thumb.back_end_per_s, 150.0);
}

#[test]
fn loops_are_as_deep_as_in_a_run() {
    let profile = profile(Mix::new(8192, 100, 67), Pacing::Closed { outstanding: 16 });
    let deep = |vm_group: &str| {
        let demand = Demand::of(&plan(SAS, vm_group), &|_| Ok(profile.clone()));
        let vm = &demand.vms[0];
        (vm.outstanding_max, vm.disks[0].flows[0].outstanding)
    };
    assert_eq!(deep(""), (16, Some(16.0)));
    assert_eq!(deep("scale = 0.5"), (8, Some(8.0)));
    assert_eq!(deep("scale = 1.5\noutstanding = 4"), (6, Some(6.0)));
    assert_eq!(deep("scale = 0.01"), (1, Some(1.0)));
}

#[test]
fn medium_operations_want_a_fifth_more_and_large_ones_bandwidth() {
    let reads = |bytes| of(SAS, "", Mix::new(bytes, 100, 100), open(100.0));
    close(reads(16 << 10).back_end_per_s, 100.0);
    close(reads(20 << 10).back_end_per_s, 120.0);
    close(reads(32 << 10).back_end_per_s, 120.0);
    close(reads(64 << 10).back_end_per_s, 120.0);
    let large = reads(128 << 10);
    close(large.large_bytes_per_s, 100.0 * 131_072.0);
    assert_eq!(large.back_end_per_s, 0.0);
    close(
        large.drives_bytes_per_s,
        40.0 * model::hdd::Hdd::SAS_10K.inner_bytes_per_s as f64,
    );
    close(
        large.utilisation.unwrap(),
        large.large_bytes_per_s / large.drives_bytes_per_s,
    );
    assert!(
        large.sentence.contains("13 MB/s of large"),
        "{}",
        large.sentence
    );
    // A stripe of four data drives has a fifth drive for parity.
    let writes = of(SAS, "", Mix::new(128 << 10, 0, 0), open(100.0));
    close(writes.large_bytes_per_s, 100.0 * 131_072.0 * 1.25);
}

#[test]
fn volumes_lie_on_groups_by_their_room() {
    let groups = "{ level = \"10\", drives = 4, from = \"sas\" }, { level = \"5\", drives = 5, from = \"sas\" }";
    let thumb = of(groups, "", Mix::new(8192, 100, 0), open(90.0));
    // Two and four data drives: a third of the writes cost 2, two thirds 4.
    close(thumb.back_end_per_s, 30.0 * 2.0 + 60.0 * 4.0);
}

#[test]
fn closed_loops_have_no_rate_and_new_flash_no_rule() {
    let closed = of(
        SAS,
        "",
        Mix::new(8192, 100, 67),
        Pacing::Closed { outstanding: 16 },
    );
    assert!(closed.closed);
    assert_eq!(
        (closed.back_end_per_s, closed.utilisation),
        (0.0, Some(0.0))
    );
    assert_eq!(
        closed.sentence,
        "Pool \"data\" has closed loops only: the rule of thumb plans no rate for them."
    );
    let nvme = of(
        "{ level = \"5\", drives = 5, from = \"nvme\" }",
        "",
        Mix::new(8192, 100, 100),
        open(10.0),
    );
    assert_eq!((nvme.drives_per_s, nvme.utilisation), (None, None));
    assert!(
        nvme.sentence.contains("no rule of thumb"),
        "{}",
        nvme.sentence
    );
}
