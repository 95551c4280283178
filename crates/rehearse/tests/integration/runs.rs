//! Whole runs of a small site: repeated runs, other seeds, other hardware, failures.

use crate::common::{TINY, plan, profile, run};
use rehearse::rig::Rig;
use rehearse::run::confidence::estimate;
use rehearse::run::share::{Part, Share};
use rehearse::{Outcome, RehearseErrorKind};
use site::plan::{Setting, parse};

fn iops(outcome: &Outcome) -> f64 {
    outcome.load.total.reads_per_s + outcome.load.total.writes_per_s
}

fn share<'a>(outcome: &'a Outcome, part: Part, name: &str) -> &'a Share {
    let mut shares = outcome.shares.iter();
    shares
        .find(|share| share.part == part && share.name == name)
        .unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let plan = plan(&[]);
    let (first, again) = (run(&plan, 7).unwrap(), run(&plan, 7).unwrap());
    assert_eq!(first.trace_hash, again.trace_hash);
    assert_eq!(first.load, again.load);
    assert_eq!(first.shares, again.shares);
    let other = run(&plan, 8).unwrap();
    assert_ne!(first.trace_hash, other.trace_hash);
    assert!(first.operations > 100, "{} operations", first.operations);
}

/// The log is in a cache of its own here, so that the arms work on data only.
#[test]
fn slices_that_are_spread_use_the_stroke_and_cost_seeks() {
    let reads = "vm_group.vm.profile=\"sqlio-8k\"";
    let placed = |placement| {
        let set = format!("controller.ctl1.placement={placement:?}");
        run(&plan(&[reads, &set]), 7).unwrap()
    };
    let (spread, packed) = (placed("spread"), placed("outside-in"));
    let stroke = |outcome: &Outcome| {
        let pool = share(outcome, Part::Drives, "data, SAS 10k");
        pool.stroke.unwrap()
    };
    // Some 14 zones of a drive, which hold 10 GB, and the parts of the stroke that these are in.
    assert!(stroke(&packed) < 0.05, "{}", stroke(&packed));
    assert!((0.1..0.3).contains(&stroke(&spread)), "{}", stroke(&spread));
    assert!(iops(&spread) < 0.8 * iops(&packed));
    let usual = run(&plan(&[reads]), 7).unwrap();
    assert_eq!(packed.trace_hash, usual.trace_hash);
}

/// Whole stripes cost a drive write for each column and no reads: less than one drive command for
/// each host write of 8 KiB, as units are 64 KiB. In place a write of RAID 5 costs four.
#[test]
fn writes_that_go_anywhere_read_nothing_and_make_whole_stripes() {
    let back_end = |writes| {
        let set = format!("controller.ctl1.writes={writes:?}");
        let window = ["run.warmup=\"20 s\"", "run.measure=\"20 s\""];
        let cache = "controller.ctl1.write_cache=\"64 MiB\"";
        let plan = plan(&[window[0], window[1], cache, &set]);
        let outcome = run(&plan, 7).unwrap();
        let drives = share(&outcome, Part::Drives, "data, SAS 10k").per_s;
        drives / iops(&outcome)
    };
    let (anywhere, in_place) = (back_end("anywhere"), back_end("in-place"));
    // A third of the I/Os are writes.
    assert!((0.6..0.9).contains(&anywhere), "{anywhere}");
    assert!(in_place > 1.5, "{in_place}");
}

#[test]
fn vms_use_what_their_disks_hold() {
    let reads = "vm_group.vm.profile=\"sqlio-8k\"";
    let thin = "vm_group.vm.provisioning=\"thin\"";
    let of_host_and_drives = |filled| {
        let set = format!("vm_group.vm.filled={filled}");
        let cache = "controller.ctl1.cache=\"none\"";
        let outcome = run(&plan(&[reads, thin, cache, &set]), 7).unwrap();
        let drives = share(&outcome, Part::Drives, "data, SAS 10k").per_s;
        (iops(&outcome), drives)
    };
    let (host, drives) = of_host_and_drives(20);
    assert!((0.9..1.1).contains(&(drives / host)), "{drives} of {host}");
    // Of disks that hold nothing, nothing comes from a drive.
    assert!(of_host_and_drives(0).1 < 1.0);
}

/// Nothing is waited for: a window of two seconds would fill no part of them.
#[test]
fn caches_begin_as_after_a_long_time() {
    let of_host_on_drives = |filled: u8, cache: &str| {
        let set = format!("vm_group.vm.filled={filled}");
        let cache = format!("controller.ctl1.cache={cache:?}");
        let reads = "vm_group.vm.profile=\"sqlio-8k\"";
        let outcome = run(&plan(&[reads, &set, &cache]), 7).unwrap();
        share(&outcome, Part::Drives, "data, SAS 10k").per_s / iops(&outcome)
    };
    // Of 10 GB memory holds a twelfth; of 1 GB all.
    let part = of_host_on_drives(100, "1 GiB");
    assert!((0.87..0.95).contains(&part), "{part}");
    let nothing = of_host_on_drives(10, "2 GiB");
    assert!(nothing < 0.2, "{nothing}");
}

const SKEWED: &str = r#"
[[profile]]
name = "skewed"
disk = "40 GiB"
streams = [{ name = "reads", rate = 200, reads = 100, random = 100, hot = 90, sizes = ["8 KiB"], outstanding = 64 }]
"#;

/// Hot places are those of the run: a tenth of 40 GiB has nine tenths of the reads, and memory a fortieth of all.
#[test]
fn caches_begin_with_what_is_hot_in_the_run() {
    let site = TINY
        .replace("profile = \"rand-8k-67\"", "profile = \"skewed\"")
        .replace("outstanding = 8", "")
        + SKEWED;
    let cache = Setting::parse("controller.ctl1.cache=\"1 GiB\"").unwrap();
    let plan = parse("skewed.toml", &site, &[cache]).unwrap().base;
    let outcome = run(&plan, 7).unwrap();
    let of_reads = share(&outcome, Part::Drives, "data, SAS 10k").per_s / iops(&outcome);
    assert!(of_reads < 0.5, "{of_reads}");
}

/// A controller without a write cache copies what it logs for drives, and that takes its processor; also when
/// the first of these drives has failed.
#[test]
fn the_log_on_drives_takes_the_processor() {
    let settings = [
        "vm_group.vm.profile=\"rand-8k-write\"",
        "vm_group.vm.outstanding=1",
        "controller.ctl1.write_cache=\"none\"",
    ];
    let rig = Rig::build(&plan(&settings), 7, &profile).unwrap();
    let first = rig.pools[0].lanes[0].info().log_drives[0].clone();
    let fails = format!("event=[{{ at = \"100 ms\", what = \"drive-fails\", drive = {first:?} }}]");
    let write_ms = |per_log_kib_us: &str, more: &[&str]| {
        let cost = format!("controller.ctl1.per_log_kib_us={per_log_kib_us}");
        let settings: Vec<&str> = settings
            .iter()
            .chain(more)
            .copied()
            .chain([&*cost])
            .collect();
        let outcome = run(&plan(&settings), 7).unwrap();
        outcome.load.total.write.response.mean_ms
    };
    // Two copies of 8 KiB, or one, at 0.5 ms for each KiB.
    let more_ms = write_ms("500", &[]) - write_ms("0", &[]);
    assert!((7.0..16.0).contains(&more_ms), "{more_ms}");
    let more_ms = write_ms("500", &[&fails]) - write_ms("0", &[&fails]);
    assert!((2.0..16.0).contains(&more_ms), "{more_ms}");
}

/// An interval holds the mean of many runs 19 times of 20: of five intervals, one may miss it.
#[test]
fn seeds_agree_within_what_their_interval_says() {
    let plan = plan(&[]);
    let figures: Vec<f64> = (1..=30)
        .map(|seed| iops(&run(&plan, seed).unwrap()))
        .collect();
    let mean = estimate(&figures).mean;
    let of_six: Vec<_> = figures.chunks(6).map(estimate).collect();
    let mut held = 0;
    for few in &of_six {
        let half = few.half_width.unwrap();
        assert!(half > 0.0 && half < few.mean / 10.0, "{few:?}");
        held += usize::from((few.mean - mean).abs() <= half);
    }
    assert!(held >= 4, "{mean} of {of_six:?}");
}

/// `run` checks the laws and gives no outcome when one is broken; here are those that can be
/// seen from outside.
#[test]
fn figures_keep_the_laws() {
    // Beside a pool that nobody uses.
    let idle = r#"pool.idle={ controller = "ctl1", groups = [{ level = "simple", drives = 1, from = "sas" }] }"#;
    let outcome = run(&plan(&["drives.sas.count=7", idle]), 3).unwrap();
    let total = &outcome.load.total;
    // Eight under way at all times, in each of the VM's 16 workers' places.
    let by_law = total.queue_length_by_littles_law;
    let difference = (total.queue_length - by_law).abs() / total.queue_length;
    assert!(difference < 0.02, "{} and {by_law}", total.queue_length);
    for share in &outcome.shares {
        assert!((0.0..=1.0001).contains(&share.utilisation), "{share:?}");
        assert!(share.utilisation.is_sign_positive(), "{share:?}");
    }
    // A drive is busy for what its commands took.
    let drive = share(&outcome, Part::Drive, "sas-00");
    let busy = drive.per_s * drive.service_ms / 1e3;
    assert!((busy - drive.utilisation).abs() < 0.01, "{drive:?}");
    let stages: u128 = outcome.stages.ns.iter().sum();
    let mean_ms = stages as f64 / 1e6 / outcome.stages.count as f64;
    let (read, write) = (&total.read.service, &total.write.service);
    let sum = read.mean_ms * read.count as f64 + write.mean_ms * write.count as f64;
    let measured = sum / (read.count + write.count) as f64;
    assert!(
        (mean_ms - measured).abs() / measured < 0.02,
        "{mean_ms} and {measured}"
    );
}

#[test]
fn every_part_that_is_drawn_has_its_figure() {
    let outcome = run(&plan(&[]), 1).unwrap();
    let layout = &outcome.layout;
    assert_eq!(layout.hosts[0].vms, ["vm-VM01"]);
    for ports in [&layout.hosts[0].ports, &layout.controllers[1].ports] {
        assert_eq!(ports.len(), 2);
        for port in ports {
            share(&outcome, Part::Link, &format!("{port}, to storage"));
            share(&outcome, Part::Link, &format!("{port}, from storage"));
        }
    }
    share(&outcome, Part::Host, &layout.hosts[0].name);
    share(&outcome, Part::Controller, &layout.controllers[0].name);
    share(&outcome, Part::Bus, &layout.buses[0].lanes[0]);
    let pool = &layout.pools[0];
    share(&outcome, Part::Drives, &pool.kinds[0]);
    assert_eq!(
        (pool.drives.len(), pool.spares.as_slice()),
        (5, &["sas-05".to_owned()][..])
    );
    for drive in pool.drives.iter().chain(&pool.spares) {
        share(&outcome, Part::Drive, drive);
    }
}

#[test]
fn a_link_that_goes_down_sends_its_commands_over_the_other() {
    let down = r#"event=[{ at = "100 ms", what = "link-down", host = "esx", network = "san" }]"#;
    let (whole, broken) = (run(&plan(&[]), 1).unwrap(), run(&plan(&[down]), 1).unwrap());
    let busy = |outcome: &Outcome, number: u8| {
        let name = format!("esx san {number}, from storage");
        share(outcome, Part::Link, &name).utilisation
    };
    assert!(busy(&whole, 1) > 0.0 && busy(&whole, 2) > 0.0);
    assert_eq!(busy(&broken, 1), 0.0);
    assert!(busy(&broken, 2) > 1.5 * busy(&whole, 2));
    assert_eq!(broken.load.total.failed, 0);
    assert!(iops(&broken) > 0.8 * iops(&whole));
    assert!(
        broken
            .told
            .iter()
            .any(|told| told.text.contains("goes down"))
    );
}

/// Links of the host go down and come up at these times, milliseconds.
fn links(events: &[(u32, &str)]) -> String {
    let events: Vec<String> = events
        .iter()
        .map(|(ms, what)| {
            format!(r#"{{ at = "{ms} ms", what = "{what}", host = "esx", network = "san" }}"#)
        })
        .collect();
    format!("event=[{}]", events.join(", "))
}

#[test]
fn what_a_group_of_links_sent_over_a_dead_one_goes_over_one_that_lives() {
    let down = links(&[(100, "link-down")]);
    for rule in ["port", "mac", "ip-hash"] {
        let rule = format!("host.esx.balance=\"{rule}\"");
        let whole = run(&plan(&[&rule]), 1).unwrap();
        let broken = run(&plan(&[&rule, &down]), 1).unwrap();
        let busy = |outcome: &Outcome| {
            [1, 2].map(|number| {
                let name = format!("esx san {number}, from storage");
                share(outcome, Part::Link, &name).utilisation
            })
        };
        assert!(matches!(busy(&whole), [one, 0.0] if one > 0.0), "{rule}");
        assert!(
            matches!(busy(&broken), [0.0, other] if other > 0.0),
            "{rule}"
        );
        assert!(iops(&broken) > 0.8 * iops(&whole), "{rule}");
    }
}

#[test]
fn with_all_links_down_operations_wait_and_are_late() {
    // Between them 600 of the 2,000 ms that are measured.
    let gone = [(1000, "link-down"), (1000, "link-down")];
    let back = [(1600, "link-up")];
    for rule in ["round-robin", "least-queue", "ip-hash"] {
        let rule = format!("host.esx.balance=\"{rule}\"");
        let whole = run(&plan(&[&rule]), 1).unwrap();
        let dark = run(&plan(&[&rule, &links(&[&gone[..], &back].concat())]), 1).unwrap();
        let slowest = |outcome: &Outcome| outcome.load.total.read.response.max_ms;
        assert!(slowest(&whole) < 300.0, "{rule}: {}", slowest(&whole));
        assert!(
            (590.0..900.0).contains(&slowest(&dark)),
            "{rule}: {}",
            slowest(&dark)
        );
        assert_eq!(dark.load.total.failed, 0, "{rule}");
        let left = iops(&dark) / iops(&whole);
        assert!((0.5..0.95).contains(&left), "{rule}: {left}");
        // For good: what waits ends with the run. A quarter of the time is left, and in it
        // more than a quarter of the I/Os: the log takes writes faster while it fills.
        let dead = run(&plan(&[&rule, &links(&gone)]), 1).unwrap();
        let left = iops(&dead) / iops(&whole);
        assert!((0.2..0.4).contains(&left), "{rule}: {left}");
        assert!(slowest(&dead) > 1400.0, "{rule}: {}", slowest(&dead));
    }
}

#[test]
fn a_drive_that_fails_is_told_and_the_spare_takes_its_place() {
    let fails = r#"event=[{ at = "600 ms", what = "drive-fails", drive = "sas-02" }]"#;
    let outcome = run(&plan(&[fails]), 1).unwrap();
    assert_eq!(
        outcome.load.total.failed, 0,
        "RAID 5 makes up for one drive"
    );
    assert!(iops(&outcome) > 0.0);
    let told = outcome
        .told
        .iter()
        .find(|told| told.text.contains("sas-02"));
    assert_eq!(told.unwrap().at.as_millis(), 600);
    assert_eq!(
        share(&run(&plan(&[]), 1).unwrap(), Part::Drive, "sas-05").per_s,
        0.0
    );
    assert!(
        share(&outcome, Part::Drive, "sas-05").per_s > 0.0,
        "the spare has work"
    );
}

#[test]
fn a_slower_network_shows_as_slower() {
    let fast = run(&plan(&["vm_group.vm.profile=seq-read-256k"]), 1).unwrap();
    let slow = [
        "vm_group.vm.profile=seq-read-256k",
        "network.san.speed=\"100 Mb/s\"",
    ];
    let slow = run(&plan(&slow), 1).unwrap();
    assert!(
        iops(&slow) < iops(&fast) / 2.0,
        "{} and {}",
        iops(&slow),
        iops(&fast)
    );
    // Two links of 100 Mb/s, less what frames take of them.
    let megabytes = slow.load.total.megabytes_per_s;
    assert!((20.0..25.0).contains(&megabytes), "{megabytes} MB/s");
    let found = rehearse::findings::bottleneck::finding(&slow);
    assert_eq!(found.first.unwrap().part, Part::Link);
}

#[test]
fn what_no_model_knows_is_refused_with_its_line() {
    for (right, wrong, line_of, allowed) in [
        (
            "model = \"sas-10k-600\"",
            "model = \"tape\"",
            "[[drives]]",
            "nl-sas-1000",
        ),
        (
            "kind = \"sas-6g-x4\"",
            "kind = \"string\"",
            "[[bus]]",
            "sas-6g-x4",
        ),
        (
            "profile = \"rand-8k-67\"",
            "profile = \"idle\"",
            "[[vm_group]]",
            "hetero10",
        ),
        (
            "profile = \"rand-8k-67\"",
            "profile = \"rand-8k-67\"\nroles = [\"DB\"]",
            "[[vm_group]]",
            "VM01",
        ),
    ] {
        let text = TINY.replace(right, wrong);
        assert_ne!(text, TINY);
        let plan = site::plan::parse("tiny.toml", &text, &[]).unwrap().base;
        let refused = run(&plan, 1).unwrap_err();
        assert_eq!(refused.kind, RehearseErrorKind::Site);
        let line = text.lines().position(|line| line == line_of).unwrap() + 1;
        assert_eq!(refused.line, Some(line), "{wrong}: {refused}");
        assert!(refused.context.contains(allowed), "{refused}");
    }
    let text = TINY.replacen("model = \"ps6110\"", "model = \"abacus\"", 1);
    let plan = site::plan::parse("tiny.toml", &text, &[]).unwrap().base;
    let refused = run(&plan, 1).unwrap_err();
    assert!(
        refused.line.is_some() && refused.context.contains("ps6110"),
        "{refused}"
    );
}

/// The interactive response time law: N = X (R + Z), for loops that think for Z.
#[test]
fn closed_loops_think_between_operations() {
    let outcome = run(&plan(&["vm_group.vm.think=\"30 ms\""]), 1).unwrap();
    let total = &outcome.load.total;
    let per_s = total.reads_per_s + total.writes_per_s;
    let response_s = total.queue_length / per_s;
    let loops = per_s * (response_s + 0.030);
    assert!((loops - 8.0).abs() < 0.08, "{loops} loops of 8");
    let without = run(&plan(&[]), 1).unwrap().load.total;
    assert!(per_s < 0.6 * (without.reads_per_s + without.writes_per_s));
}

/// What a host did in a tenth of a second, in the format of the MSR Cambridge traces.
fn trace_of_a_hundred_writes() -> String {
    let line = |index: u64| {
        let (ticks, offset) = (128_166_372_000_000_000 + index * 10_000, index * 8192);
        format!("{ticks},host,0,Write,{offset},8192,500\n")
    };
    (0..100).map(line).collect()
}

#[test]
fn a_trace_is_replayed_at_its_own_times_and_scaled() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("host.csv");
    std::fs::write(&file, trace_of_a_hundred_writes()).unwrap();
    let profile = format!("vm_group.vm.profile=\"trace:{}\"", file.display());
    let settings = [
        profile.as_str(),
        "run.warmup=\"0 ms\"",
        "run.measure=\"1 s\"",
    ];
    let outcome = run(&plan(&settings), 1).unwrap();
    assert_eq!(
        (outcome.operations, outcome.load.total.writes_per_s),
        (100, 100.0)
    );
    let twice = [
        &settings[..],
        &["vm_group.vm.scale=2", "run.measure=\"50 ms\""],
    ]
    .concat();
    // Fifty milliseconds hold all of it at twice its speed.
    assert_eq!(run(&plan(&twice), 1).unwrap().operations, 100);
    std::fs::write(&file, "nonsense\n").unwrap();
    let refused = run(&plan(&settings), 1).unwrap_err();
    assert_eq!(refused.kind, RehearseErrorKind::Site);
    assert!(refused.context.contains("host.csv:1"), "{refused}");
}

/// Checksums that have no room in RAM are read from the drives, and so are their copies.
#[test]
fn memory_for_checksums_saves_reads_of_drives() {
    let commands_per_io = |memory: &str| {
        let memory = format!("controller.ctl1.checksum_memory={memory}");
        let settings = [
            "controller.ctl1.model=ashlar",
            "controller.ctl2.model=ashlar",
            "vm_group.vm.profile=rand-8k-90",
            memory.as_str(),
        ];
        let outcome = run(&plan(&settings), 3).unwrap();
        let drives = outcome.shares.iter().filter(|of| of.part == Part::Drive);
        drives.map(|drive| drive.per_s).sum::<f64>() / iops(&outcome)
    };
    // A VM's disk of 300 GB has 300 MB of them.
    let (with_few, with_all) = (commands_per_io("64 MiB"), commands_per_io("1 GiB"));
    assert!(with_few > 1.5 * with_all, "{with_few} and {with_all}");
}
