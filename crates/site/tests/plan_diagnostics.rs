//! Every way a plan can be wrong, each with the exact message.
//!
//! Each case changes one place of a right file; what comes out is compared whole, so a case
//! also shows what else one mistake makes wrong: nothing, unless a name is gone that others use.

use site::SiteErrorKind;
use site::plan::parse;

/// A right file. Line numbers in the cases below count from its first line.
const GOOD: &str = r#"[site]
name = "test"
[run]
warmup = "10 s"
measure = "50 s"
[[controller]]
name = "a"
model = "ashlar"
partner = "b"
ports = [{ network = "san", count = 2 }]
[[controller]]
name = "b"
model = "ashlar"
ports = [{ network = "fc" }]
[[bus]]
name = "shelf"
kind = "sas-6g-x4"
[[drives]]
name = "sas"
model = "sas-10k-600"
count = 12
bus = "shelf"
[[pool]]
name = "data"
controller = "a"
stripe_unit = "64 KiB"
groups = [{ level = "5", drives = 5, from = "sas", count = 2 }]
spares = [{ from = "sas", count = 2 }]
[[network]]
name = "san"
kind = "ethernet"
speed = "10 Gb/s"
mtu = 9000
uplink = { to = "core", links = 2 }
[[network]]
name = "core"
kind = "ethernet"
speed = "40 Gb/s"
[[network]]
name = "fc"
kind = "fibre-channel"
speed = "8 Gb/s"
[[host]]
name = "esx"
count = 2
cores = 16
clock_ghz = 2.4
memory = "192 GiB"
initiator = "iscsi"
balance = "ip-hash"
ports = [{ network = "san", count = 3 }]
[[vm_group]]
name = "mix"
profile = "hetero10"
hosts = ["esx"]
pools = ["data"]
scale = 0.5
[[event]]
at = "30 s"
what = "drive-fails"
drive = "sas-03"
"#;

/// What reading `text` says, one line each.
fn messages(text: &str) -> Vec<String> {
    match parse("t.toml", text, &[]) {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert_eq!(error.kind, SiteErrorKind::Invalid);
            error.to_string().lines().map(str::to_owned).collect()
        }
    }
}

/// Replaces `from`, which is there exactly once, by `to` and compares.
fn case(from: &str, to: &str, expected: &[&str]) {
    assert_eq!(GOOD.matches(from).count(), 1, "{from:?} is there once");
    let text = GOOD.replace(from, to);
    assert_eq!(messages(&text), expected, "{from:?} -> {to:?}");
}

macro_rules! cases {
    ($($name:ident: $from:expr => $to:expr, [$($expected:expr),* $(,)?];)*) => {
        $(#[test]
        fn $name() {
            case($from, $to, &[$($expected),*]);
        })*
    };
}

#[test]
fn the_right_file_is_right() {
    assert_eq!(messages(GOOD), [""; 0]);
}

#[test]
fn an_empty_file_says_what_a_plan_needs() {
    let mut expected =
        vec!["t.toml:1: site is missing: give a table [site] with a name".to_owned()];
    for missing in [
        "pool is missing: give one or more tables [[pool]]",
        "drive is missing: give one or more tables [[drive]], or lots of drives [[drives]]",
        "vm_group is missing: give the load: one or more tables [[vm_group]] with a profile, or \
         [[vm]] with the profile and role of a VM",
    ] {
        expected.push(format!("t.toml:1: {missing}"));
    }
    assert_eq!(messages(""), expected);
}

#[test]
fn all_mistakes_come_at_once_in_the_order_of_lines() {
    let text = GOOD.replace("count = 12", "count = 0");
    let text = text.replace("mtu = 9000", "mtu = 1");
    let text = text.replace("scale = 0.5", "scale = nan");
    let lines: Vec<String> = messages(&text)
        .iter()
        .map(|message| {
            message
                .split(": found")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(
        lines,
        [
            "t.toml:21: drives.count",
            "t.toml:33: network.mtu",
            "t.toml:57: vm_group.scale"
        ]
    );
}

#[test]
fn too_many_variants_are_refused() {
    let values: Vec<String> = (1500..1757).map(|mtu| mtu.to_string()).collect();
    let text = format!(
        "{GOOD}[[vary]]\nkey = \"network.san.mtu\"\nvalues = [{}]\n",
        values.join(", ")
    );
    assert_eq!(
        messages(&text),
        ["t.toml:1: variant: found 257 variants; allowed: 256 at most"]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = site::plan::load(std::path::Path::new("no/such/plan.toml"), &[]).unwrap_err();
    assert_eq!(error.kind, SiteErrorKind::Unreadable);
    let message = error.to_string();
    assert!(
        message.starts_with("no/such/plan.toml: ") && message.contains("No such file"),
        "{message}"
    );
}

proptest::proptest! {
    #[test]
    fn never_panics_on_a_damaged_file(at in 0..GOOD.len(), len in 0usize..40, junk in ".{0,12}") {
        let mut text = GOOD.to_owned();
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &junk);
        let _ = parse("t.toml", &text, &[]);
        let _ = site::plan::purposes(&text);
    }

    #[test]
    fn never_panics_on_any_text(text in ".{0,200}") {
        let _ = parse("t.toml", &text, &[]);
        let _ = site::plan::purposes(&text);
    }

    // Any key, and a value of any kind for it.
    #[test]
    fn never_panics_on_any_setting(
        key in "(network|pool|host|vm_group|event|drives|variant|site)(\\.(san|data|esx|mix|0|sas|ports|groups|mtu|count|x|)){0,4}",
        value in "(-?[0-9]{1,20}|[0-9.]{1,6}|true|\"[a-z0-9 /]{0,8}\"|\\[\\]|\\[\\{\\}\\]|\\{ name = \"a\" \\}|.{0,8})",
    ) {
        if let Ok(setting) = site::plan::Setting::parse(&format!("{key}={value}")) {
            let _ = parse("t.toml", GOOD, &[setting]);
        }
    }
}

mod values {
    //! Every value with its own rule.
    use super::case;

    cases! {
        syntax: "[run]\n" => "[run\n",
            ["t.toml:3: syntax: found unclosed table, expected `]`; allowed: TOML 1.1 (toml.io)",
             "t.toml:11: syntax: found duplicate key; allowed: TOML 1.1 (toml.io)"];
        unknown_key: "count = 12" => "count = 12\nraid = 5",
            ["t.toml:22: drives.raid: found a key that isn't known; allowed: name, model, count, bus"];
        unknown_table: "[[bus]]" => "[[shelves]]\nname = \"x\"\n[[bus]]",
            ["t.toml:15: shelves: found a key that isn't known; allowed: site, api, images, chap, limits, portal, drive, pool, volume, group, host, host_group, export, vm, run, controller, bus, drives, drive_model, network, vm_group, event, profile, capture, measured, variant, vary"];
        no_site: "[site]\nname = \"test\"\n" => "",
            ["t.toml:1: site is missing: give a table [site] with a name"];
        site_as_list: "[site]" => "[[site]]",
            ["t.toml:1: site: found a list; allowed: a table [site]"];
        site_without_name: "name = \"test\"\n" => "",
            ["t.toml:1: site.name is missing: give 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        site_about: "name = \"test\"\n" => "name = \"test\"\nabout = 7\n",
            ["t.toml:3: site.about: found the number 7; allowed: a sentence"];
        run_unit_missing: "warmup = \"10 s\"" => "warmup = \"10\"",
            ["t.toml:4: run.warmup: found \"10\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        run_time_as_number: "warmup = \"10 s\"" => "warmup = 10",
            ["t.toml:4: run.warmup: found the number 10; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        run_time_negative: "warmup = \"10 s\"" => "warmup = \"-10 s\"",
            ["t.toml:4: run.warmup: found \"-10 s\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        run_time_nan: "warmup = \"10 s\"" => "warmup = \"nan s\"",
            ["t.toml:4: run.warmup: found \"nan s\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        run_time_too_long: "warmup = \"10 s\"" => "warmup = \"31 d\"",
            ["t.toml:4: run.warmup: found \"31 d\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        run_measure_nothing: "measure = \"50 s\"" => "measure = \"0 s\"",
            ["t.toml:5: run.measure: found \"0 s\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d, above zero"];
        run_limit_nothing: "measure = \"50 s\"" => "measure = \"50 s\"\nlimit = \"0 ms\"",
            ["t.toml:6: run.limit: found \"0 ms\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d, above zero"];
        run_seeds_none: "measure = \"50 s\"" => "measure = \"50 s\"\nseeds = 0",
            ["t.toml:6: run.seeds: found the number 0; allowed: a whole number from 1 to 100"];
        run_seed_negative: "measure = \"50 s\"" => "measure = \"50 s\"\nseed = -1",
            ["t.toml:6: run.seed: found the number -1; allowed: a whole number from 0 to 65535"];
        controller_without_model: "name = \"a\"\nmodel = \"ashlar\"\n" => "name = \"a\"\n",
            ["t.toml:6: controller.model is missing: give a controller model's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        controller_cores_none: "partner = \"b\"" => "cores = 0",
            ["t.toml:9: controller.cores: found the number 0; allowed: a whole number from 1 to 1024"];
        controller_cache_without_unit: "partner = \"b\"" => "cache = \"64\"",
            ["t.toml:9: controller.cache: found \"64\"; allowed: \"none\", or a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\""];
        controller_cost_negative: "partner = \"b\"" => "per_command_us = -1",
            ["t.toml:9: controller.per_command_us: found the number -1; allowed: microseconds: a number, zero or above"];
        controller_cost_nan: "partner = \"b\"" => "per_command_us = nan",
            ["t.toml:9: controller.per_command_us: found the number nan; allowed: microseconds: a number, zero or above"];
        controller_cost_infinite: "partner = \"b\"" => "per_kib_us = inf",
            ["t.toml:9: controller.per_kib_us: found the number inf; allowed: microseconds: a number, zero or above"];
        controller_without_ports: "partner = \"b\"\nports = [{ network = \"san\", count = 2 }]\n" => "partner = \"b\"\n",
            ["t.toml:6: controller.ports is missing: give a list of ports, such as { network = \"san\", count = 2 }"];
        controller_ports_no_list: "ports = [{ network = \"san\", count = 2 }]" => "ports = 2",
            ["t.toml:10: controller.ports: found the number 2; allowed: a list of ports, such as { network = \"san\", count = 2 }"];
        controller_ports_none: "ports = [{ network = \"san\", count = 2 }]" => "ports = [{ network = \"san\", count = 0 }]",
            ["t.toml:10: controller.ports.count: found the number 0; allowed: a whole number from 1 to 64"];
        controller_ports_of_nothing: "ports = [{ network = \"san\", count = 2 }]" => "ports = [{ count = 2 }]",
            ["t.toml:10: controller.ports.network is missing: give a network's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        bus_without_kind: "kind = \"sas-6g-x4\"\n" => "",
            ["t.toml:15: bus.kind is missing: give a bus model's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        drives_none: "count = 12" => "count = 0",
            ["t.toml:21: drives.count: found the number 0; allowed: a whole number from 1 to 20000"];
        drives_negative: "count = 12" => "count = -12",
            ["t.toml:21: drives.count: found the number -12; allowed: a whole number from 1 to 20000"];
        drives_half: "count = 12" => "count = 1.5",
            ["t.toml:21: drives.count: found the number 1.5; allowed: a whole number from 1 to 20000"];
        drives_too_many: "count = 12" => "count = 20001",
            ["t.toml:21: drives.count: found the number 20001; allowed: a whole number from 1 to 20000"];
        pool_without_groups: "groups = [{ level = \"5\", drives = 5, from = \"sas\", count = 2 }]\n" => "",
            ["t.toml:23: pool.level is missing: give \"10\" (mirrored pairs, striped), \"10x3\" (three copies, striped), \"5\" (one parity), \"50\" (RAID 5 sets, striped), \"6\" (two parities) or \"simple\" (one drive, no protection)",
             "t.toml:23: pool.drives is missing: give a list of: a drive's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        pool_level_unknown: "level = \"5\"" => "level = \"7\"",
            ["t.toml:27: pool.groups.level: found \"7\"; allowed: \"10\" (mirrored pairs, striped), \"10x3\" (three copies, striped), \"5\" (one parity), \"50\" (RAID 5 sets, striped), \"6\" (two parities) or \"simple\" (one drive, no protection)"];
        pool_level_as_number: "level = \"5\"" => "level = 5",
            ["t.toml:27: pool.groups.level: found the number 5; allowed: \"10\" (mirrored pairs, striped), \"10x3\" (three copies, striped), \"5\" (one parity), \"50\" (RAID 5 sets, striped), \"6\" (two parities) or \"simple\" (one drive, no protection)"];
        pool_group_of_nothing: "drives = 5," => "drives = 0,",
            ["t.toml:27: pool.groups.drives: found the number 0; allowed: a whole number from 1 to 64"];
        pool_groups_none: "from = \"sas\", count = 2 }]\nspares" => "from = \"sas\", count = 0 }]\nspares",
            ["t.toml:27: pool.groups.count: found the number 0; allowed: a whole number from 1 to 1000"];
        pool_group_key: "drives = 5," => "drives = 5, raid = 5,",
            ["t.toml:27: pool.groups.raid: found a key that isn't known; allowed: level, drives, count, from, role, stripe_width, distributed_spares"];
        pool_spares_none: "spares = [{ from = \"sas\", count = 2 }]" => "spares = [{ from = \"sas\", count = 0 }]",
            ["t.toml:28: pool.spares.count: found the number 0; allowed: a whole number from 1 to 1000"];
        pool_spares_no_list: "spares = [{ from = \"sas\", count = 2 }]" => "spares = 2",
            ["t.toml:28: pool.spares: found the number 2; allowed: a list, not empty, of: a drive's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit; or tables, such as { from = \"sas\", count = 2 }"];
        pool_stripe_unit_odd: "stripe_unit = \"64 KiB\"" => "stripe_unit = \"65 KiB\"",
            ["t.toml:26: pool.stripe_unit: found \"65 KiB\"; allowed: a power of two from \"4 KiB\" to \"1 MiB\""];
        pool_page_too_large: "stripe_unit = \"64 KiB\"" => "page = \"32 MiB\"",
            ["t.toml:26: pool.page: found \"32 MiB\"; allowed: a power of two from \"4 KiB\" to \"16 MiB\""];
        network_kind: "name = \"san\"\nkind = \"ethernet\"" => "name = \"san\"\nkind = \"token-ring\"",
            ["t.toml:31: network.kind: found \"token-ring\"; allowed: \"ethernet\" or \"fibre-channel\""];
        network_without_kind: "name = \"san\"\nkind = \"ethernet\"\n" => "name = \"san\"\n",
            ["t.toml:29: network.kind is missing: give \"ethernet\" or \"fibre-channel\""];
        network_speed_without_unit: "speed = \"10 Gb/s\"" => "speed = \"10\"",
            ["t.toml:32: network.speed: found \"10\"; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_speed_as_number: "speed = \"10 Gb/s\"" => "speed = 10",
            ["t.toml:32: network.speed: found the number 10; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_speed_bytes: "speed = \"10 Gb/s\"" => "speed = \"10 GB/s\"",
            ["t.toml:32: network.speed: found \"10 GB/s\"; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_speed_none: "speed = \"10 Gb/s\"" => "speed = \"0 Gb/s\"",
            ["t.toml:32: network.speed: found \"0 Gb/s\"; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_speed_negative: "speed = \"10 Gb/s\"" => "speed = \"-1 Gb/s\"",
            ["t.toml:32: network.speed: found \"-1 Gb/s\"; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_speed_infinite: "speed = \"10 Gb/s\"" => "speed = \"inf Gb/s\"",
            ["t.toml:32: network.speed: found \"inf Gb/s\"; allowed: a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\""];
        network_mtu_too_small: "mtu = 9000" => "mtu = 575",
            ["t.toml:33: network.mtu: found the number 575; allowed: bytes of a frame of Ethernet, a whole number from 576 to 9216"];
        network_mtu_of_fibre_channel: "speed = \"8 Gb/s\"" => "speed = \"8 Gb/s\"\nmtu = 9000",
            ["t.toml:43: network.mtu: found the number 9000; allowed: bytes of a frame of Ethernet, a whole number from 576 to 9216"];
        controller_placement: "partner = \"b\"" => "partner = \"b\"\nplacement = \"inside-out\"",
            ["t.toml:10: controller.placement: found \"inside-out\"; allowed: \"outside-in\" or \"spread\""];
        controller_writes: "partner = \"b\"" => "partner = \"b\"\nwrites = \"log\"",
            ["t.toml:10: controller.writes: found \"log\"; allowed: \"in-place\" or \"anywhere\""];
        network_carries: "mtu = 9000" => "carries = \"vmotion\"",
            ["t.toml:33: network.carries: found \"vmotion\"; allowed: \"storage\" or \"lan\" or \"both\""];
        network_switches: "mtu = 9000" => "switches = 17",
            ["t.toml:33: network.switches: found the number 17; allowed: a whole number from 0 to 16"];
        network_uplink_no_table: "uplink = { to = \"core\", links = 2 }" => "uplink = \"core\"",
            ["t.toml:34: network.uplink: found \"core\"; allowed: a table [uplink]"];
        network_uplink_no_links: "uplink = { to = \"core\", links = 2 }" => "uplink = { to = \"core\", links = 0 }",
            ["t.toml:34: network.uplink.links: found the number 0; allowed: a whole number from 1 to 64"];
        hosts_none: "count = 2\ncores" => "count = 0\ncores",
            ["t.toml:45: host.count: found the number 0; allowed: a whole number from 1 to 10000"];
        host_of_no_cores: "cores = 16\n" => "cores = 0\n",
            ["t.toml:46: host.cores: found the number 0; allowed: a whole number from 1 to 1024"];
        host_clock_none: "clock_ghz = 2.4" => "clock_ghz = 0",
            ["t.toml:47: host.clock_ghz: found the number 0; allowed: a number from 0.1 to 10"];
        host_clock_nan: "clock_ghz = 2.4" => "clock_ghz = nan",
            ["t.toml:47: host.clock_ghz: found the number nan; allowed: a number from 0.1 to 10"];
        host_clock_infinite: "clock_ghz = 2.4" => "clock_ghz = inf",
            ["t.toml:47: host.clock_ghz: found the number inf; allowed: a number from 0.1 to 10"];
        host_clock_in_mhz: "clock_ghz = 2.4" => "clock_ghz = 2400",
            ["t.toml:47: host.clock_ghz: found the number 2400; allowed: a number from 0.1 to 10"];
        host_memory_without_unit: "memory = \"192 GiB\"" => "memory = 192",
            ["t.toml:48: host.memory: found the number 192; allowed: a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\""];
        host_memory_none: "memory = \"192 GiB\"" => "memory = \"0 GiB\"",
            ["t.toml:48: host.memory: found \"0 GiB\"; allowed: a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\""];
        host_numa_nodes: "memory = \"192 GiB\"" => "memory = \"192 GiB\"\nnuma_nodes = 0",
            ["t.toml:49: host.numa_nodes: found the number 0; allowed: a whole number from 1 to 64"];
        host_witness: "memory = \"192 GiB\"" => "memory = \"192 GiB\"\nwitness = \"yes\"",
            ["t.toml:49: host.witness: found \"yes\"; allowed: true or false"];
        host_initiator_unknown: "initiator = \"iscsi\"" => "initiator = \"fcoe\"",
            ["t.toml:49: host.initiator: found \"fcoe\"; allowed: \"iscsi\" or \"iscsi-adapter\" or \"fibre-channel\" or \"nfs\" or \"none\""];
        host_balance_unknown: "balance = \"ip-hash\"" => "balance = \"random\"",
            ["t.toml:50: host.balance: found \"random\"; allowed: \"round-robin\" or \"least-queue\" or \"port\" or \"mac\" or \"ip-hash\""];
        host_addresses_none: "balance = \"ip-hash\"" => "addresses = 0",
            ["t.toml:50: host.addresses: found the number 0; allowed: a whole number from 1 to 256"];
        host_lun_queue: "balance = \"ip-hash\"" => "lun_queue = 4097",
            ["t.toml:50: host.lun_queue: found the number 4097; allowed: a whole number from 1 to 4096"];
        host_without_ports: "ports = [{ network = \"san\", count = 3 }]\n" => "",
            ["t.toml:43: host.balance: found a group of links over one port; allowed: two ports or more, or balance = \"round-robin\""];
        vm_group_without_profile: "profile = \"hetero10\"\n" => "",
            ["t.toml:52: vm_group.profile is missing: give a workload profile's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit, or \"trace:FILE\" (\"trace:FILE,FORMAT\")"];
        vm_group_roles_empty: "scale = 0.5" => "roles = []",
            ["t.toml:57: vm_group.roles: found an empty list; allowed: a list of names: VMs of the profile, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        vm_group_roles_not_names: "scale = 0.5" => "roles = [\"web server\"]",
            ["t.toml:57: vm_group.roles: found a list; allowed: a list of names: VMs of the profile, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        vm_group_count_none: "scale = 0.5" => "count = 0",
            ["t.toml:57: vm_group.count: found the number 0; allowed: a whole number from 1 to 10000"];
        vm_group_scale_none: "scale = 0.5" => "scale = 0",
            ["t.toml:57: vm_group.scale: found the number 0; allowed: a number above zero, at most 1000"];
        vm_group_scale_negative: "scale = 0.5" => "scale = -0.5",
            ["t.toml:57: vm_group.scale: found the number -0.5; allowed: a number above zero, at most 1000"];
        vm_group_scale_nan: "scale = 0.5" => "scale = nan",
            ["t.toml:57: vm_group.scale: found the number nan; allowed: a number above zero, at most 1000"];
        vm_group_scale_infinite: "scale = 0.5" => "scale = inf",
            ["t.toml:57: vm_group.scale: found the number inf; allowed: a number above zero, at most 1000"];
        vm_group_filled: "scale = 0.5" => "filled = 101",
            ["t.toml:57: vm_group.filled: found the number 101; allowed: a whole number from 0 to 100, in percent"];
        vm_group_adapter: "scale = 0.5" => "adapter = \"ide\"",
            ["t.toml:57: vm_group.adapter: found \"ide\"; allowed: \"lsi-sas\" or \"pvscsi\" or \"vmbus\" or \"virtio\" or \"none\""];
        vm_group_luns: "scale = 0.5" => "luns = 0",
            ["t.toml:57: vm_group.luns: found the number 0; allowed: \"per-disk\", \"per-vm\", or a number of datastores from 1 to 256"];
        vm_group_luns_word: "scale = 0.5" => "luns = \"shared\"",
            ["t.toml:57: vm_group.luns: found \"shared\"; allowed: \"per-disk\", \"per-vm\", or a number of datastores from 1 to 256"];
        vm_group_provisioning: "scale = 0.5" => "provisioning = \"lazy\"",
            ["t.toml:57: vm_group.provisioning: found \"lazy\"; allowed: \"thin\" or \"thick\""];
        vm_group_outstanding: "scale = 0.5" => "outstanding = 0",
            ["t.toml:57: vm_group.outstanding: found the number 0; allowed: a whole number from 1 to 4096"];
        vm_group_memory_without_unit: "scale = 0.5" => "memory = \"4\"",
            ["t.toml:57: vm_group.memory: found \"4\"; allowed: a number above zero and a unit (KiB, MiB, GiB, TiB, PiB, or K, M, G, T, P for short; decimal kB, MB, GB, TB, PB; or B), such as \"4 GiB\""];
        event_without_time: "at = \"30 s\"\n" => "",
            ["t.toml:58: event.at is missing: give a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        event_time_without_unit: "at = \"30 s\"" => "at = \"30\"",
            ["t.toml:59: event.at: found \"30\"; allowed: a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d"];
        event_unknown: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"earthquake\"",
            ["t.toml:60: event.what: found \"earthquake\"; allowed: \"drive-fails\", \"host-fails\", \"controller-fails\", \"link-down\", \"link-up\", \"snapshot\", \"restore\", \"clone\", \"move-storage\", \"boot-storm\", \"drain\", \"live-migration\", \"limit-iops\" or \"add-cpu\""];
        event_of_nothing: "what = \"drive-fails\"\ndrive = \"sas-03\"\n" => "",
            ["t.toml:58: event.what is missing: give \"drive-fails\", \"host-fails\", \"controller-fails\", \"link-down\", \"link-up\", \"snapshot\", \"restore\", \"clone\", \"move-storage\", \"boot-storm\", \"drain\", \"live-migration\", \"limit-iops\" or \"add-cpu\""];
        event_without_its_thing: "drive = \"sas-03\"\n" => "",
            ["t.toml:58: event.drive is missing: give a drive's name, 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit"];
        event_with_a_key_of_another: "drive = \"sas-03\"" => "drive = \"sas-03\"\nhost = \"esx1\"",
            ["t.toml:62: event.host: found a key that isn't known; allowed: at, drive, what"];
        event_offload: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"clone\"\nvm_group = \"mix\"\noffload = 1",
            ["t.toml:62: event.offload: found the number 1; allowed: true or false"];
        limit_zero: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = 0",
            ["t.toml:59: vm_group.limit_iops: found the number 0; allowed: I/Os per second, a whole number from 1 to 1000000"];
        limit_negative: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = -5",
            ["t.toml:59: vm_group.limit_iops: found the number -5; allowed: I/Os per second, a whole number from 1 to 1000000"];
        limit_nan: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = nan",
            ["t.toml:59: vm_group.limit_iops: found the number nan; allowed: I/Os per second, a whole number from 1 to 1000000"];
        limit_fraction: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = 0.5",
            ["t.toml:59: vm_group.limit_iops: found the number 0.5; allowed: I/Os per second, a whole number from 1 to 1000000"];
        limit_huge: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = 1000001",
            ["t.toml:59: vm_group.limit_iops: found the number 1000001; allowed: I/Os per second, a whole number from 1 to 1000000"];
        limit_text: "scale = 0.5" => "scale = 0.5\nadapter = \"vmbus\"\nlimit_iops = \"50\"",
            ["t.toml:59: vm_group.limit_iops: found \"50\"; allowed: I/Os per second, a whole number from 1 to 1000000"];
        event_limit_negative: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"mix\"\niops = -1",
            ["t.toml:62: event.iops: found the number -1; allowed: I/Os per second, a whole number from 1 to 1000000, or 0 or \"none\" for no limit"];
        event_limit_nan: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"mix\"\niops = nan",
            ["t.toml:62: event.iops: found the number nan; allowed: I/Os per second, a whole number from 1 to 1000000, or 0 or \"none\" for no limit"];
        event_limit_word: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"mix\"\niops = \"off\"",
            ["t.toml:62: event.iops: found \"off\"; allowed: I/Os per second, a whole number from 1 to 1000000, or 0 or \"none\" for no limit"];
        event_limit_of_nothing: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"mix\"",
            ["t.toml:58: event.iops is missing: give I/Os per second, a whole number from 1 to 1000000, or 0 or \"none\" for no limit"];
        event_clones_none_at_once: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"clone\"\nvm_group = \"mix\"\nat_once = 0",
            ["t.toml:62: event.at_once: found the number 0; allowed: a whole number from 1 to 64"];
        event_moves_no_disk: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"move-storage\"\nvm_group = \"mix\"\nto = \"data\"\ndisks = 0",
            ["t.toml:63: event.disks: found the number 0; allowed: disks of each VM, a whole number from 1 to 256"];
        event_clones_none: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"clone\"\nvm_group = \"mix\"\nvms = 0",
            ["t.toml:62: event.vms: found the number 0; allowed: a whole number from 1 to 1000"];
    }
}

mod references {
    //! Rules that need more than one value.
    use super::case;

    cases! {
        controller_twice: "name = \"b\"\nmodel" => "name = \"a\"\nmodel",
            ["t.toml:6: controller.partner: found \"b\", which no controller has; allowed: the name of a controller (such as a)",
             "t.toml:11: controller.name: found \"a\", as on line 6; allowed: one that no other controller has"];
        bus_twice: "[[drives]]" => "[[bus]]\nname = \"shelf\"\nkind = \"pcie\"\n[[drives]]",
            ["t.toml:18: bus.name: found \"shelf\", as on line 15; allowed: one that no other bus has"];
        lot_twice: "[[pool]]" => "[[drives]]\nname = \"sas\"\nmodel = \"m\"\ncount = 1\nbus = \"shelf\"\n[[pool]]",
            ["t.toml:23: drives.name: found \"sas\", as on line 18; allowed: one that no other lot of drives has",
             "t.toml:23: drives.count: found 1 drive, of which pools take 12; allowed: 12 or more"];
        network_twice: "name = \"core\"\n" => "name = \"san\"\n",
            ["t.toml:29: network.uplink: found \"core\", which no network has; allowed: the name of a network (such as fc, san)",
             "t.toml:35: network.name: found \"san\", as on line 29; allowed: one that no other network has"];
        vm_group_twice: "[[event]]" => "[[vm_group]]\nname = \"mix\"\nprofile = \"hetero10\"\nhosts = [\"esx\"]\npools = [\"data\"]\n[[event]]",
            ["t.toml:58: vm_group.name: found \"mix\", as on line 52; allowed: one that no other VM group has"];
        host_twice: "[[vm_group]]" => "[[host]]\nname = \"esx\"\ncores = 1\nclock_ghz = 1\nmemory = \"1 GiB\"\nports = [{ network = \"san\" }]\n[[vm_group]]",
            ["t.toml:53: host.name: found \"esx\", as on line 44; allowed: one that no other host has"];
        host_of_a_numbered_name: "[[vm_group]]" => "[[host]]\nname = \"esx2\"\ncores = 1\nclock_ghz = 1\nmemory = \"1 GiB\"\nports = [{ network = \"san\" }]\n[[vm_group]]",
            ["t.toml:52: host.name: found a host called \"esx2\", as from line 43; allowed: one that no other host has, with its number"];
        partner_is_itself: "partner = \"b\"" => "partner = \"a\"",
            ["t.toml:6: controller.partner: found itself; allowed: another controller"];
        partner_unknown: "partner = \"b\"" => "partner = \"c\"",
            ["t.toml:6: controller.partner: found \"c\", which no controller has; allowed: the name of a controller (such as a, b)"];
        controller_port_nowhere: "ports = [{ network = \"san\", count = 2 }]" => "ports = [{ network = \"sun\" }]",
            ["t.toml:6: controller.ports: found \"sun\", which no network has; allowed: the name of a network (such as core, fc, san)"];
        lot_without_bus: "bus = \"shelf\"" => "bus = \"shelf2\"",
            ["t.toml:18: drives.bus: found \"shelf2\", which no bus has; allowed: the name of a bus (such as shelf)"];
        pool_of_no_controller: "controller = \"a\"" => "controller = \"c\"",
            ["t.toml:23: pool.controller: found \"c\", which no controller has; allowed: the name of a controller (such as a, b)"];
        pool_of_no_drives: "drives = 5, from = \"sas\"" => "drives = 5, from = \"nvme\"",
            ["t.toml:27: pool.groups.from: found \"nvme\", which no lot of drives has; allowed: the name of a lot of drives (such as sas)"];
        spares_of_no_drives: "spares = [{ from = \"sas\", count = 2 }]" => "spares = [{ from = \"nvme\" }]",
            ["t.toml:23: pool.spares.from: found \"nvme\", which no lot of drives has; allowed: the name of a lot of drives (such as sas)"];
        lot_too_small: "count = 12" => "count = 11",
            ["t.toml:18: drives.count: found 11 drives, of which pools take 12; allowed: 12 or more"];
        level_that_cannot_have_them: "level = \"5\", drives = 5" => "level = \"10\", drives = 5",
            ["t.toml:27: pool.groups.drives: found 5 drives; allowed: an even number of drives, 2 to 32, for level \"10\""];
        level_of_too_few: "level = \"5\", drives = 5" => "level = \"6\", drives = 3",
            ["t.toml:27: pool.groups.drives: found 3 drives; allowed: 4 to 32 drives for level \"6\""];
        level_without_sets: "level = \"5\", drives = 5" => "level = \"50\", drives = 5",
            ["t.toml:27: pool.groups.drives: found 5 drives; allowed: 6 to 32 drives that make equal sets of 3 or more for level \"50\" (6, 8, 9, 10, 12, …)"];
        page_below_stripe_unit: "stripe_unit = \"64 KiB\"" => "stripe_unit = \"64 KiB\"\npage = \"32 KiB\"",
            ["t.toml:27: pool.page: found a page of 32 KiB, smaller than a stripe unit of 64 KiB; allowed: a page of one or more stripe units"];
        uplink_nowhere: "to = \"core\"" => "to = \"care\"",
            ["t.toml:29: network.uplink: found \"care\", which no network has; allowed: the name of a network (such as core, fc, san)"];
        uplink_to_itself: "to = \"core\"" => "to = \"san\"",
            ["t.toml:29: network.uplink: found \"san\", from where the way leads back here; allowed: networks without a loop"];
        uplinks_in_a_ring: "speed = \"40 Gb/s\"" => "speed = \"40 Gb/s\"\nuplink = { to = \"san\" }",
            ["t.toml:29: network.uplink: found \"core\", from where the way leads back here; allowed: networks without a loop",
             "t.toml:35: network.uplink: found \"san\", from where the way leads back here; allowed: networks without a loop"];
        fibre_channel_speed: "speed = \"8 Gb/s\"" => "speed = \"10 Gb/s\"",
            ["t.toml:39: network.speed: found 10000 Mb/s of Fibre Channel; allowed: 1, 2, 4, 8, 16 or 32 Gb/s"];
        host_port_nowhere: "ports = [{ network = \"san\", count = 3 }]" => "ports = [{ network = \"sun\", count = 2 }]",
            ["t.toml:43: host.ports: found \"sun\", which no network has; allowed: the name of a network (such as core, fc, san)"];
        link_group_over_one_port: "ports = [{ network = \"san\", count = 3 }]" => "ports = [{ network = \"san\" }]",
            ["t.toml:43: host.balance: found a group of links over one port; allowed: two ports or more, or balance = \"round-robin\""];
        link_group_with_ports_for_other_things: "ports = [{ network = \"san\", count = 3 }]" => "ports = [{ network = \"san\" }, { network = \"lan\", count = 2 }]\n[[network]]\nname = \"lan\"\nkind = \"ethernet\"\nspeed = \"1 Gb/s\"\ncarries = \"lan\"",
            ["t.toml:43: host.balance: found a group of links over one port; allowed: two ports or more, or balance = \"round-robin\""];
        fibre_channel_on_ethernet: "initiator = \"iscsi\"" => "initiator = \"fibre-channel\"",
            ["t.toml:43: host.initiator: found \"san\", which can't carry that; allowed: initiator = \"fibre-channel\" on Fibre Channel, any other on Ethernet"];
        iscsi_on_fibre_channel: "ports = [{ network = \"san\", count = 3 }]" => "ports = [{ network = \"san\", count = 2 }, { network = \"fc\" }]",
            ["t.toml:43: host.initiator: found \"fc\", which can't carry that; allowed: initiator = \"fibre-channel\" on Fibre Channel, any other on Ethernet"];
        host_that_reaches_nothing: "ports = [{ network = \"san\", count = 2 }]" => "ports = [{ network = \"fc\", count = 2 }]",
            ["t.toml:52: vm_group.hosts: found host \"esx\", which has no network for storage in common with controller \"a\"; allowed: hosts that reach the controllers of its pools"];
        network_that_carries_no_storage: "mtu = 9000" => "mtu = 9000\ncarries = \"lan\"",
            ["t.toml:53: vm_group.hosts: found host \"esx\", which has no network for storage in common with controller \"a\"; allowed: hosts that reach the controllers of its pools"];
        vm_group_without_hosts: "hosts = [\"esx\"]\n" => "",
            ["t.toml:52: vm_group.hosts is missing: give the name of a host (such as esx)"];
        vm_group_without_pools: "pools = [\"data\"]\n" => "",
            ["t.toml:52: vm_group.pools: found both or neither of pools and disk_pools; allowed: one of the two"];
        vm_group_with_both_pools: "pools = [\"data\"]" => "pools = [\"data\"]\ndisk_pools = [\"data\"]",
            ["t.toml:52: vm_group.pools: found both or neither of pools and disk_pools; allowed: one of the two"];
        vm_group_on_unknown_host: "hosts = [\"esx\"]" => "hosts = [\"esx1\"]",
            ["t.toml:52: vm_group.hosts: found \"esx1\", which no host has; allowed: the name of a host (such as esx)"];
        vm_group_on_unknown_pool: "pools = [\"data\"]" => "pools = [\"datum\"]",
            ["t.toml:52: vm_group.pools: found \"datum\", which no pool has; allowed: the name of a pool (such as data)"];
        vm_group_on_unknown_disk_pool: "pools = [\"data\"]" => "disk_pools = [\"data\", \"datum\"]",
            ["t.toml:52: vm_group.pools: found \"datum\", which no pool has; allowed: the name of a pool (such as data)"];
        event_after_the_end: "at = \"30 s\"" => "at = \"60 s\"",
            ["t.toml:58: event.at: found 60 s; allowed: a time of the run, before 60 s"];
        event_of_unknown_drive: "drive = \"sas-03\"" => "drive = \"sas-12\"",
            ["t.toml:58: event.drive: found \"sas-12\", which no drive has; allowed: the name of a drive (such as sas-00, sas-01, sas-02, sas-03, sas-04, sas-05, sas-06, sas-07, sas-08, sas-09, sas-10, sas-11)"];
        event_of_unknown_host: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"host-fails\"\nhost = \"esx\"",
            ["t.toml:58: event.host: found \"esx\", which no host has; allowed: the name of a host (such as esx1, esx2)"];
        event_of_unknown_controller: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"controller-fails\"\ncontroller = \"c\"",
            ["t.toml:58: event.controller: found \"c\", which no controller has; allowed: the name of a controller (such as a, b)"];
        event_of_unknown_network: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"link-down\"\nhost = \"esx1\"\nnetwork = \"sun\"",
            ["t.toml:58: event.network: found \"sun\", which no network has; allowed: the name of a network (such as core, fc, san)"];
        event_of_unknown_link_host: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"link-up\"\nhost = \"esx9\"\nnetwork = \"san\"",
            ["t.toml:58: event.host: found \"esx9\", which no host has; allowed: the name of a host (such as esx1, esx2)"];
        event_of_unknown_block: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"boot-storm\"\nvm_group = \"web\"",
            ["t.toml:58: event.vm_group: found \"web\", which no VM group has; allowed: the name of a VM group (such as mix)"];
        snapshot_of_unknown_block: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"snapshot\"\nvm_group = \"web\"",
            ["t.toml:58: event.vm_group: found \"web\", which no VM group has; allowed: the name of a VM group (such as mix)"];
        restore_of_unknown_block: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"restore\"\nvm_group = \"web\"",
            ["t.toml:58: event.vm_group: found \"web\", which no VM group has; allowed: the name of a VM group (such as mix)"];
        limit_of_unknown_block: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"web\"\niops = 50",
            ["t.toml:58: event.vm_group: found \"web\", which no VM group has; allowed: the name of a VM group (such as mix)"];
        limit_of_raw_luns: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"limit-iops\"\nvm_group = \"mix\"\niops = 50",
            ["t.toml:58: event.vm_group: found a limit of VM group \"mix\", whose disks are raw LUNs; allowed: disks that a hypervisor hands out: with adapter \"lsi-sas\", \"pvscsi\", \"vmbus\" or \"virtio\""];
        limit_in_the_plan_of_raw_luns: "scale = 0.5" => "scale = 0.5\nlimit_iops = 50",
            ["t.toml:52: vm_group.limit_iops: found a limit of VM group \"mix\", whose disks are raw LUNs; allowed: disks that a hypervisor hands out: with adapter \"lsi-sas\", \"pvscsi\", \"vmbus\" or \"virtio\""];
        move_to_unknown_pool: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"move-storage\"\nvm_group = \"mix\"\nto = \"datum\"",
            ["t.toml:58: event.to: found \"datum\", which no pool has; allowed: the name of a pool (such as data)"];
        drain_of_unknown_host: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"drain\"\nhost = \"esx3\"",
            ["t.toml:58: event.host: found \"esx3\", which no host has; allowed: the name of a host (such as esx1, esx2)"];
    }
}

mod old_names {
    //! Keys of older files, with the change to make.
    use super::{GOOD, case, messages};
    use site::plan::{Setting, parse};

    cases! {
        of_vm_groups: "[[vm_group]]" => "[[block]]",
            ["t.toml:52: block: found the old name of vm_group; allowed: vm_group in its place"];
        of_the_key_of_an_event: "what = \"drive-fails\"\ndrive = \"sas-03\"" => "what = \"snapshot\"\nblock = \"mix\"",
            ["t.toml:61: event.block: found the old name of vm_group; allowed: vm_group in its place"];
        in_a_variant: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"block.mix.count\" = 2 }\n",
            ["t.toml:62: variant \"v\": found \"block\" is the old name of \"vm_group\": write \"vm_group.mix.count\"; allowed: a change that leaves the site possible"];
        in_vary: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[vary]]\nkey = \"block.mix.count\"\nvalues = [2]\n",
            ["t.toml:62: variant \"block.mix.count = 2\": found \"block\" is the old name of \"vm_group\": write \"vm_group.mix.count\"; allowed: a change that leaves the site possible"];
    }

    #[test]
    fn each_of_several_tables_is_named() {
        let text = GOOD.replace("[[vm_group]]", "[[block]]\n[[block]]");
        let lines: Vec<String> = messages(&text);
        let lines: Vec<&str> = lines.iter().map(|line| &line[..15]).collect();
        assert_eq!(lines, ["t.toml:52: bloc", "t.toml:53: bloc"]);
    }

    #[test]
    fn in_a_setting() {
        let setting = Setting::parse("block.mix.count=2").unwrap();
        let error = parse("t.toml", GOOD, &[setting]).unwrap_err();
        assert!(
            error.to_string().contains("write \"vm_group.mix.count\""),
            "{error}"
        );
    }
}

mod variants {
    //! Changes that lead nowhere, or to a site that can't be.
    use super::case;

    cases! {
        variant_into_nowhere: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network.sun.mtu\" = 1500 }\n",
            ["t.toml:62: variant \"v\": found there is no \"sun\" in \"network.sun.mtu\"; allowed: a change that leaves the site possible"];
        variant_below_a_value: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network.san.mtu.x\" = 1500 }\n",
            ["t.toml:62: variant \"v\": found \"network.san.mtu.x\" leads into no table; allowed: a change that leaves the site possible"];
        variant_of_no_place_in_a_list: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"pool.data.groups.7\" = 1 }\n",
            ["t.toml:62: variant \"v\": found there is no \"7\" in \"pool.data.groups.7\"; allowed: a change that leaves the site possible"];
        variant_of_a_key_not_known: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network.san.mtv\" = 1500 }\n",
            ["t.toml:62: variant \"v\": found network.mtv: a key that isn't known; allowed: name, kind, carries, speed, mtu, switches, uplink; allowed: a change that leaves the site possible"];
        variant_with_a_wrong_value: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network.san.mtu\" = 70000 }\n",
            ["t.toml:62: variant \"v\": found network.mtu: the number 70000; allowed: bytes of a frame of Ethernet, a whole number from 576 to 9216; allowed: a change that leaves the site possible"];
        variant_that_is_not_possible: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"pool.data.groups.0.count\" = 4 }\n",
            ["t.toml:62: variant \"v\": found drives.count: 12 drives, of which pools take 22; allowed: 22 or more; allowed: a change that leaves the site possible"];
        variant_with_several_mistakes: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"vm_group.mix.scale\" = 0, \"vm_group.mix.count\" = 0 }\n",
            ["t.toml:62: variant \"v\": found vm_group.count: the number 0; allowed: a whole number from 1 to 10000 / vm_group.scale: the number 0; allowed: a number above zero, at most 1000; allowed: a change that leaves the site possible"];
        variant_with_an_empty_step: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network..mtu\" = 1500 }\n",
            ["t.toml:62: variant \"v\": found \"network..mtu\" is no key: write TABLE.KEY or TABLE.NAME.KEY; allowed: a change that leaves the site possible"];
        variant_twice: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"network.san.mtu\" = 1500 }\n[[variant]]\nname = \"v\"\nset = { \"network.san.mtu\" = 4000 }\n",
            ["t.toml:65: variant \"v\": found a second one of that name; allowed: each name once"];
        variant_without_name: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nset = { \"network.san.mtu\" = 1500 }\n",
            ["t.toml:62: variant: found something else; allowed: name and set, such as set = { \"network.san.mtu\" = 9000 }"];
        variant_without_set: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\n",
            ["t.toml:62: variant: found something else; allowed: name and set, such as set = { \"network.san.mtu\" = 9000 }"];
        variant_with_more: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { }\nwhy = \"x\"\n",
            ["t.toml:62: variant: found something else; allowed: name and set, such as set = { \"network.san.mtu\" = 9000 }"];
        variant_named_table_of_an_unknown_kind: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[variant]]\nname = \"v\"\nset = { \"netwrok.x\" = { speed = \"1 Gb/s\" } }\n",
            ["t.toml:62: variant \"v\": found netwrok: a key that isn't known; allowed: site, api, images, chap, limits, portal, drive, pool, volume, group, host, host_group, export, vm, run, controller, bus, drives, drive_model, network, vm_group, event, profile, capture, measured, variant, vary; allowed: a change that leaves the site possible"];
        vary_into_nowhere: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[vary]]\nkey = \"network.sun.mtu\"\nvalues = [1500]\n",
            ["t.toml:62: variant \"network.sun.mtu = 1500\": found there is no \"sun\" in \"network.sun.mtu\"; allowed: a change that leaves the site possible"];
        vary_a_wrong_value: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[vary]]\nkey = \"network.san.mtu\"\nvalues = [1500, 1]\n",
            ["t.toml:62: variant \"network.san.mtu = 1\": found network.mtu: the number 1; allowed: bytes of a frame of Ethernet, a whole number from 576 to 9216; allowed: a change that leaves the site possible"];
        vary_twice_the_same: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[vary]]\nkey = \"network.san.mtu\"\nvalues = [1500, 1500]\n",
            ["t.toml:62: variant \"network.san.mtu = 1500\": found a second one of that name; allowed: each name once"];
        vary_without_values: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[[vary]]\nkey = \"network.san.mtu\"\n",
            ["t.toml:62: vary: found something else; allowed: key and values, such as key = \"network.san.mtu\", values = [1500, 9000]"];
        variant_as_table: "drive = \"sas-03\"\n" => "drive = \"sas-03\"\n[variant]\nname = \"v\"\nset = { \"network.san.mtu\" = 1500 }\n",
            ["t.toml:62: variant: found a table; allowed: tables [[variant]]"];
    }
}
