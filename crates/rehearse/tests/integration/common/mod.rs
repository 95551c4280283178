//! A site of six drives and one host, rehearsed for seconds.

use rehearse::plan::profiles::find;
use rehearse::{Outcome, RehearseError};
use site::plan::{Described, Plan, Setting, parse};
use std::fs::File;
use std::io::BufReader;
use workload::profile::Profile;

/// The workload of a name, with traces from files.
pub fn profile(name: &str) -> Result<Profile, String> {
    find(name, |path| Ok(Box::new(BufReader::new(File::open(path)?))))
}

/// Runs `plan` once.
pub fn run(plan: &Plan, seed: u64) -> Result<Outcome, RehearseError> {
    rehearse::run(plan, seed, &profile)
}

/// The site's file.
pub const TINY: &str = r#"
[site]
name = "tiny"
about = "Six drives <script>alert('&')</script>"

[run]
warmup = "500 ms"
measure = "2 s"

[[controller]]
name = "ctl1"
model = "ps6110"
partner = "ctl2"
ports = [{ network = "san", count = 2 }]

[[controller]]
name = "ctl2"
model = "ps6110"
partner = "ctl1"
ports = [{ network = "san", count = 2 }]

[[bus]]
name = "shelf"
kind = "sas-6g-x4"

[[drives]]
name = "sas"
model = "sas-10k-600"
count = 6
bus = "shelf"

[[pool]]
name = "data"
controller = "ctl1"
groups = [{ level = "5", drives = 5, from = "sas" }]
spares = [{ from = "sas", count = 1 }]

[[network]]
name = "san"
kind = "ethernet"
speed = "10 Gb/s"

[[host]]
name = "esx"
cores = 8
clock_ghz = 2.4
memory = "64 GiB"
balance = "round-robin"
ports = [{ network = "san", count = 2 }]

[[vm_group]]
name = "vm"
profile = "rand-8k-67"
hosts = ["esx"]
pools = ["data"]
outstanding = 8
"#;

/// The site with `settings`, each `KEY=VALUE`.
pub fn described(settings: &[&str]) -> Described {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|setting| Setting::parse(setting).unwrap())
        .collect();
    match parse("tiny.toml", TINY, &settings) {
        Ok(described) => described,
        Err(error) => panic!("{error}"),
    }
}

/// The plan of that.
pub fn plan(settings: &[&str]) -> Plan {
    described(settings).base
}
