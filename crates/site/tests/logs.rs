//! What a site file may say of the logs of pools.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use site::{GroupRole, Level, parse};

/// A pool with more in its table, and tables behind it.
fn site(level: &str, of_pool: &str, behind: &str) -> String {
    let drive =
        |n: usize| format!("[[drive]]\nname = \"d{n}\"\nfile = \"d{n}.img\"\nsize = \"256 MiB\"\n");
    let drives: String = (0..8).map(drive).collect();
    format!(
        "[site]\nname = \"t\"\n[api]\nlisten = \"127.0.0.1:0\"\n[[portal]]\naddress = \
         \"127.0.0.1:3260\"\n{drives}[[pool]]\nname = \"p\"\nlevel = \"{level}\"\n{of_pool}\n{behind}"
    )
}

const FOUR: &str = "drives = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"d7\"]";

fn refusals(text: &str) -> Vec<String> {
    let error = parse("t.toml", text).unwrap_err();
    error.diagnostics.iter().map(ToString::to_string).collect()
}

fn is_refused(text: &str, with: &str) {
    let refusals = refusals(text);
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    assert!(
        refusals[0].contains(with),
        "{with:?} is not in {refusals:#?}"
    );
}

fn log_group(level: &str, drives: &str) -> String {
    format!("[[pool.group]]\nrole = \"log\"\nlevel = \"{level}\"\ndrives = [{drives}]\n")
}

const THREE: &str = "\"d4\", \"d5\", \"d6\"";

#[test]
fn a_group_for_the_logs_is_read_and_written() {
    let text = site("6", FOUR, &log_group("10x3", THREE));
    let read = parse("t.toml", &text).unwrap();
    let group = &read.pools[0].groups[1];
    assert_eq!(
        (group.role, group.level),
        (GroupRole::Log, Level::Raid10 { copies: 3 })
    );
    assert_eq!(read.pools[0].log_group(), Some(1));
    let again = parse("t.toml", &site::text(&read)).unwrap();
    assert_eq!(again.pools[0].groups, read.pools[0].groups);
}

#[test]
fn a_log_group_is_as_strong_as_every_other_one() {
    let four = FOUR.replace("\"d7\"", "\"d6\", \"d7\"");
    let pair = log_group("10", "\"d4\", \"d5\"");
    is_refused(
        &site("6", &four, &pair),
        "pool.group.role: found \"log\" of level \"10\"; allowed: level \"10x3\", beside a group of level \"6\"",
    );
    assert!(parse("t.toml", &site("5", &four, &pair)).is_ok());
    let parity = log_group("5", THREE);
    is_refused(
        &site("5", FOUR, &parity),
        "allowed: level \"10\" or \"10x3\"",
    );
    let single = log_group("simple", "\"d4\"");
    let five = FOUR.replace("\"d7\"", "\"d5\", \"d6\", \"d7\"");
    is_refused(
        &site("10", &five, &single),
        "found \"log\" of level \"simple\"",
    );
}

#[test]
fn a_pool_has_one_log_group() {
    let twice = format!(
        "{}{}",
        log_group("10", "\"d4\", \"d5\""),
        log_group("simple", "\"d6\"")
    );
    is_refused(
        &site("10", FOUR, &twice),
        "one group of role \"log\" in a pool",
    );
    let other = log_group("10x3", THREE).replace("\"log\"", "\"cache\"");
    is_refused(
        &site("6", FOUR, &other),
        "pool.group.role: found \"cache\"; allowed: \"data\", or \"log\"",
    );
}

#[test]
fn a_log_fits_on_the_drives() {
    let all = FOUR.replace("\"d7\"", "\"d4\", \"d5\", \"d6\", \"d7\"");
    let log = |size: &str| site("6", &format!("{all}\nlog = \"{size}\""), "");
    assert!(parse("t.toml", &log("64 MiB")).is_ok());
    is_refused(
        &log("1 GiB"),
        "pool.log: found a log of 1 GiB; allowed: what fits on the drives: drives of 256 MiB are too small for pool 'p'",
    );
    is_refused(&log("512 KiB"), "from \"1 MiB\" to \"16 GiB\"");
    let lanes = site("6", &format!("{all}\nlog = \"64 MiB\"\nlanes = 4"), "");
    is_refused(&lanes, "pool.log: found a log of 64 MiB");
    let small = site("6", FOUR, &log_group("10x3", THREE));
    let small = small.replace(
        "file = \"d5.img\"\nsize = \"256 MiB\"",
        "file = \"d5.img\"\nsize = \"64 MiB\"",
    );
    let wide = small.replace("[[pool.group]]", "log = \"60 MiB\"\n[[pool.group]]");
    is_refused(
        &wide,
        "drives of 64 MiB are too small for the log of pool 'p'",
    );
}

/// Whether the pool is there already, with the log that it was made with, the file does not say.
#[test]
fn a_log_group_fits_where_the_log_of_a_pool_without_one_does() {
    let small = site("6", FOUR, &log_group("10x3", THREE));
    let small = ["d0", "d1", "d2", "d3", "d7"]
        .iter()
        .fold(small, |text, drive| {
            let size = |size: &str| format!("file = \"{drive}.img\"\nsize = \"{size}\"");
            text.replace(&size("256 MiB"), &size("4 GiB"))
        });
    assert!(parse("t.toml", &small).is_ok(), "{:#?}", refusals(&small));
    let wide = small.replace("[[pool.group]]", "log = \"256 MiB\"\n[[pool.group]]");
    is_refused(&wide, "are too small for the log of pool 'p'");
}

#[test]
fn what_a_pool_holds_is_not_said_to_be_less_with_a_log_group() {
    let most = |of_pool: &str, behind: &str| {
        let volume =
            "[[volume]]\nname = \"v\"\npool = \"p\"\nprovisioning = \"thick\"\nsize = \"1 TiB\"\n";
        let text = site(
            "10",
            &format!("{FOUR}{of_pool}"),
            &format!("{behind}{volume}"),
        );
        let refusals = refusals(&text.replace("256 MiB", "8 GiB"));
        let mut most = refusals
            .iter()
            .filter_map(|text| text.split_once("at most"));
        most.next().unwrap().1.to_owned()
    };
    let log = log_group("10", "\"d4\", \"d5\"");
    assert_eq!(most("", &log), most("", ""));
    assert_ne!(most("\nlog = \"512 MiB\"", &log), most("", ""));
}
