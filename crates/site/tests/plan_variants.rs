//! What variants and settings make of a plan.

use site::plan::{Carries, Described, NetworkKind, Plan, Setting, parse};
use toml::Value;

const SITE: &str = r#"[site]
name = "test"
[[controller]]
name = "a"
model = "ashlar"
ports = [{ network = "san", count = 2 }]
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
groups = [{ level = "5", drives = 5, from = "sas" }, { level = "6", drives = 4, from = "sas" }]
[[network]]
name = "san"
kind = "ethernet"
speed = "10 Gb/s"
[[host]]
name = "esx"
cores = 16
clock_ghz = 2.4
memory = "192 GiB"
ports = [{ network = "san" }]
[[vm_group]]
name = "mix"
profile = "hetero10"
hosts = ["esx"]
pools = ["data"]
"#;

fn described(more: &str, settings: &[&str]) -> Described {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|text| Setting::parse(text).unwrap_or_else(|what| panic!("{what}")))
        .collect();
    parse("t.toml", &format!("{SITE}{more}"), &settings).unwrap_or_else(|error| panic!("{error}"))
}

fn changed(setting: &str) -> Plan {
    described("", &[setting]).base
}

fn refused(setting: &str) -> String {
    let setting = Setting::parse(setting).unwrap_or_else(|what| panic!("{what}"));
    match parse("t.toml", SITE, &[setting]) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_variant_changes_what_it_says_and_nothing_else() {
    let text = "[[variant]]\nname = \"jumbo\"\nset = { \"network.san.mtu\" = 9000, \"vm_group.mix.count\" = 3 }\n";
    let described = described(text, &[]);
    let [variant] = described.variants.as_slice() else {
        panic!("one variant")
    };
    assert_eq!((variant.name.as_str(), variant.line), ("jumbo", 34));
    let mut plan = variant.plan.clone();
    assert_eq!(
        plan.networks[0].kind,
        NetworkKind::Ethernet { mtu_bytes: 9000 }
    );
    assert_eq!(plan.vm_groups[0].count, 3);
    // Put back, it is the site of the file, but for the lines.
    plan.networks[0].kind = described.base.networks[0].kind;
    plan.vm_groups[0].count = 1;
    assert_eq!(without_lines(plan), without_lines(described.base));
}

fn without_lines(mut plan: Plan) -> Plan {
    plan.controllers.iter_mut().for_each(|it| it.line = 0);
    plan.buses.iter_mut().for_each(|it| it.line = 0);
    plan.lots.iter_mut().for_each(|it| it.line = 0);
    plan.pools.iter_mut().for_each(|it| it.line = 0);
    plan.networks.iter_mut().for_each(|it| it.line = 0);
    plan.hosts.iter_mut().for_each(|it| it.line = 0);
    plan.vm_groups.iter_mut().for_each(|it| it.line = 0);
    plan.events.iter_mut().for_each(|it| it.line = 0);
    plan
}

#[test]
fn vary_makes_a_variant_of_each_value_after_those_with_names() {
    let text = "[[vary]]\nkey = \"network.san.mtu\"\nvalues = [1500, 9000]\n\
        [[vary]]\nkey = \"pool.data.groups.1.level\"\nvalues = [\"10\"]\n\
        [[variant]]\nname = \"more\"\nset = { \"vm_group.mix.count\" = 2 }\n";
    let described = described(text, &[]);
    let names: Vec<&str> = described.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "more",
            "network.san.mtu = 1500",
            "network.san.mtu = 9000",
            "pool.data.groups.1.level = 10"
        ]
    );
    let groups = &described.variants[3].plan.pools[0].groups;
    assert_eq!(groups[0].level, site::Level::Raid5);
    assert_eq!(groups[1].level, site::Level::Raid10 { copies: 2 });
}

#[test]
fn a_table_under_a_new_name_is_added_and_one_under_a_known_name_replaced() {
    let text = "[[variant]]\nname = \"two\"\n[variant.set]\n\
        \"network.lan\" = { kind = \"ethernet\", speed = \"1 Gb/s\", carries = \"lan\" }\n\
        \"network.san\" = { kind = \"ethernet\", speed = \"25 Gb/s\" }\n\
        event = [{ at = \"40 s\", what = \"drain\", host = \"esx\" }]\n";
    let described = described(text, &[]);
    let plan = &described.variants[0].plan;
    let networks: Vec<(&str, u64, Carries)> = plan
        .networks
        .iter()
        .map(|n| (n.name.as_str(), n.bits_per_s / 1_000_000_000, n.carries))
        .collect();
    assert_eq!(
        networks,
        [("san", 25, Carries::Storage), ("lan", 1, Carries::Lan)]
    );
    assert_eq!(plan.events.len(), 1);
    assert_eq!(described.base.events.len(), 0);
    // By number, the place is taken as it is.
    let plan = changed("pool.data.groups.1={ level = \"10\", drives = 2, from = \"sas\" }");
    assert_eq!(
        plan.pools[0].groups[1].level,
        site::Level::Raid10 { copies: 2 }
    );
}

#[test]
fn a_host_with_fibre_channel_may_have_ports_in_a_lan() {
    let text = "[[variant]]\nname = \"fc\"\n[variant.set]\n\
        \"network.san\" = { kind = \"fibre-channel\", speed = \"8 Gb/s\" }\n\
        \"network.lan\" = { kind = \"ethernet\", speed = \"1 Gb/s\", carries = \"lan\" }\n\
        \"host.esx.initiator\" = \"fibre-channel\"\n\
        \"host.esx.ports\" = [{ network = \"san\" }, { network = \"lan\" }]\n";
    let host = &described(text, &[]).variants[0].plan.hosts[0];
    assert_eq!(host.ports.len(), 2);
}

#[test]
fn settings_change_the_site_and_its_variants() {
    let text = "[[vary]]\nkey = \"network.san.mtu\"\nvalues = [9000]\n";
    let described = described(
        text,
        &[
            "vm_group.mix.scale=2",
            "run.seeds = 3",
            "site.about=for fun",
        ],
    );
    assert_eq!(described.base.about.as_deref(), Some("for fun"));
    for plan in [&described.base, &described.variants[0].plan] {
        assert_eq!(plan.run.seeds, 3);
        assert_eq!(plan.vm_groups[0].scale, 2.0);
    }
}

#[test]
fn settings_are_read_as_toml_or_as_words() {
    let value = |text: &str| Setting::parse(text).unwrap().value;
    assert_eq!(value("a.b=7"), Value::Integer(7));
    assert_eq!(value("a.b = 0.5 "), Value::Float(0.5));
    assert_eq!(value("a.b=true"), Value::Boolean(true));
    assert_eq!(value("a.b=\"7\""), Value::String("7".to_owned()));
    assert_eq!(value("a.b=10 Gb/s"), Value::String("10 Gb/s".to_owned()));
    assert_eq!(value("a.b="), Value::String(String::new()));
    assert_eq!(value("a.b=x=y"), Value::String("x=y".to_owned()));
    assert_eq!(
        value("a.b=[1, 2]"),
        Value::Array(vec![Value::Integer(1), Value::Integer(2)])
    );
    assert_eq!(Setting::parse(" a.b =7").unwrap().key, "a.b");
    assert_eq!(
        Setting::parse("network.san.mtu").unwrap_err(),
        "\"network.san.mtu\" is no setting: write KEY=VALUE, such as network.san.mtu=9000"
    );
}

#[test]
fn settings_that_lead_nowhere_are_refused() {
    let allowed = "allowed: a key of the site file, and a value that it may have";
    for (setting, what) in [
        (
            "network.sun.mtu=9000",
            "there is no \"sun\" in \"network.sun.mtu\"",
        ),
        ("=9000", "\"\" is no key: write TABLE.KEY or TABLE.NAME.KEY"),
        ("pool=3", "pool: the number 3; allowed: tables [[pool]]"),
        ("site.name.x=3", "\"site.name.x\" leads into no table"),
        ("pool.9={ name = \"x\" }", "there is no \"9\" in \"pool.9\""),
        (
            "pool.data.groups.9=3",
            "there is no \"9\" in \"pool.data.groups.9\"",
        ),
    ] {
        assert_eq!(
            refused(setting),
            format!("t.toml:1: --set: found {what}; {allowed}")
        );
    }
}

/// A variant that is possible without settings and not with them is told, and the rest stays.
#[test]
fn a_variant_that_a_setting_makes_impossible_is_left_out_and_named() {
    let late = r#"
[[variant]]
name = "late"
set = { event = [{ at = "90 s", what = "boot-storm", vm_group = "vms" }] }
"#;
    let late = late.replace("vms", &described("", &[]).base.vm_groups[0].name);
    assert_eq!(described(&late, &[]).variants.len(), 1);
    assert_eq!(described(&late, &[]).impossible, []);
    let shorter = ["run.warmup=\"1 s\"", "run.measure=\"20 s\""];
    let with = described(&late, &shorter);
    assert_eq!((with.variants.len(), with.impossible.len()), (0, 1));
    let lost = &with.impossible[0];
    assert_eq!(lost.key, "variant \"late\"");
    assert!(lost.found.contains("event.at: 90 s"), "{}", lost.found);
    assert!(lost.line > 1);
}
