//! Models of drives that a file describes itself: what is read of them, and what is wrong with
//! them, with line and key.

use site::Diagnostic;
use site::plan::{self, MeasuredCurve};

const SITE: &str = r#"site = { name = "s" }
[[drive]]
name = "d"
file = "d.img"
size = "1 GiB"
model = "here"
[[pool]]
name = "p"
level = "simple"
drives = ["d"]
[[host]]
name = "h"
cores = 4
[[vm_group]]
name = "g"
profile = "rand-4k-read"
hosts = ["h"]
pools = ["p"]
"#;

const MODEL: &str = r#"[[drive_model]]
name = "here"
capacity = "2 GiB"
rotational = true
shared = true
sizes = ["4 KiB", "1 MiB"]
reads = [[1000, 1900.5, 3000], [100]]
read_spread = [0.5, 1, 1.5]
writes = [[500], [50]]
durable_writes = [[250, 300], [25]]
flushes = [900, 1000]
durable_write_share = 0.4
"#;

/// What is wrong with the whole file when this is replaced: the line, the key and what was found.
fn wrong(from: &str, to: &str) -> Vec<(usize, String, String)> {
    let text = format!("{SITE}{MODEL}");
    assert!(text.contains(from), "{from}");
    let Err(error) = plan::parse("t.toml", &text.replace(from, to), &[]) else {
        panic!("{to} is taken");
    };
    let told = |one: Diagnostic| (one.line, one.key, one.found);
    error.diagnostics.into_iter().map(told).collect()
}

#[test]
fn a_drive_gets_the_model_of_its_file() {
    let plan = plan::parse("t.toml", &format!("{SITE}{MODEL}"), &[]);
    let plan = plan.unwrap().base;
    let model = plan.lots[0].measured.as_ref().expect("the drive's model");
    assert_eq!((model.name.as_str(), model.line), ("here", 19));
    assert_eq!(model.capacity_bytes, Some(2 << 30));
    assert!(model.rotational && model.shared);
    let curve = |len_bytes, per_s: &[f64]| MeasuredCurve {
        len_bytes,
        per_s: per_s.to_vec(),
    };
    let reads = [
        curve(4096, &[1000.0, 1900.5, 3000.0]),
        curve(1 << 20, &[100.0]),
    ];
    assert_eq!(model.reads.curves, reads);
    assert_eq!(model.reads.spread, [0.5, 1.0, 1.5]);
    assert_eq!(model.durable_writes.curves[0], curve(4096, &[250.0, 300.0]));
    assert_eq!(model.writes.spread, [1.0], "not said: all alike");
    assert_eq!(model.durable_write_share, 0.4);
}

#[test]
fn a_drive_of_another_model_does_not_get_it() {
    let text = format!("{SITE}{MODEL}").replace("model = \"here\"", "model = \"sata-1000\"");
    let plan = plan::parse("t.toml", &text, &[]).unwrap().base;
    assert_eq!(plan.lots[0].measured, None);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (from, to, line, key) in [
        ("2 GiB", "2 PiB", 21, "drive_model.capacity"),
        (
            "rotational = true",
            "rotational = 1",
            22,
            "drive_model.rotational",
        ),
        ("[900, 1000]", "900", 29, "drive_model.flushes"),
        (
            "[\"4 KiB\", \"1 MiB\"]",
            "[\"1 MiB\", \"4 KiB\"]",
            24,
            "drive_model.sizes",
        ),
        (
            "[[1000, 1900.5, 3000], [100]]",
            "[[1000, 0], [100]]",
            25,
            "drive_model.reads",
        ),
        (
            "[[1000, 1900.5, 3000], [100]]",
            "[[1000], []]",
            25,
            "drive_model.reads",
        ),
        (
            "[[1000, 1900.5, 3000], [100]]",
            "[[1000]]",
            25,
            "drive_model.reads",
        ),
        (
            "[[1000, 1900.5, 3000], [100]]",
            "1000",
            25,
            "drive_model.reads",
        ),
        ("[0.5, 1, 1.5]", "[0, 1]", 26, "drive_model.read_spread"),
        ("writes = [[500], [50]]\n", "", 19, "drive_model.writes"),
        (
            "[[250, 300], [25]]",
            "[[250, 1e12], [25]]",
            28,
            "drive_model.durable_writes",
        ),
        (
            "durable_write_share = 0.4",
            "durable_write_share = 0",
            30,
            "drive_model.durable_write_share",
        ),
        ("shared", "common", 23, "drive_model.common"),
    ] {
        let found = wrong(from, to);
        let [(at, of, _)] = found.as_slice() else {
            panic!("{to}: {found:?}");
        };
        assert_eq!((*at, of.as_str()), (line, key), "{to}");
    }
}

#[test]
fn two_models_of_a_name_are_refused() {
    let found = wrong(MODEL, &format!("{MODEL}{MODEL}"));
    let expected = (
        31,
        "drive_model.name".to_owned(),
        "\"here\", as on line 19".to_owned(),
    );
    assert_eq!(found, [expected]);
}

/// The array ignores what is only modelled.
#[test]
fn a_file_with_a_model_can_be_served() {
    let drive = "[[drive]]\nname = \"d\"\nfile = \"d.img\"\nsize = \"1 GiB\"\n";
    let pool = "[[pool]]\nname = \"p\"\nlevel = \"simple\"\ndrives = [\"d\"]\n";
    let served = "site = { name = \"s\" }\n[[portal]]\naddress = \"127.0.0.1:3260\"\n";
    site::parse("t.toml", &format!("{served}{drive}{pool}{MODEL}")).unwrap();
}
