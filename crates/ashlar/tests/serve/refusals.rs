//! What stands in the way of serving is said, with an exit code, and nothing is
//! changed.

use crate::array::{Home, SITE, ashlar, said};
use std::fs;
use std::net::TcpListener;

#[test]
fn a_wrong_site_file_is_refused_whole() {
    let wrong = SITE
        .replace("level = \"10\"", "level = \"7\"")
        .replace("8 MiB", "8 MiX");
    let home = Home::new(&wrong);
    let (code, said) = home.refused();
    assert_eq!(code, 2);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].contains("site.toml:17: pool.level: found \"7\"; allowed: "),
        "{said}"
    );
    assert!(
        lines[1].contains("site.toml:22: volume.size: found \"8 MiX\"; allowed: "),
        "{said}"
    );
    assert!(!home.data().exists(), "nothing is made");
}

#[test]
fn a_site_file_that_is_not_there_is_named() {
    let home = Home::new(SITE);
    fs::remove_file(home.site()).unwrap();
    let (code, said) = home.refused();
    assert_eq!(code, 2);
    assert!(said.contains("site.toml: can't read"), "{said}");
}

#[test]
fn a_second_server_on_the_same_data_is_told_of_the_first() {
    let home = Home::new(SITE);
    let first = home.serve();
    let (code, said) = home.refused();
    assert_eq!(code, 1);
    let owner = format!(
        "another ashlar serve (process {}) is using it",
        first.process()
    );
    assert!(said.contains(&owner), "{said}");
    assert_eq!(first.json(&["status"])["health"], "ok", "the first goes on");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = Home::new(SITE);
    let output = home
        .command()
        .args(["--portal", &address])
        .output()
        .unwrap();
    let (code, text) = said(output);
    assert_eq!(code, 1);
    assert!(
        text.contains(&format!("portal {address}: Address")),
        "{text}"
    );
    let output = home.command().args(["--api", &address]).output().unwrap();
    let (code, text) = said(output);
    assert_eq!(code, 1);
    assert!(
        text.contains(&format!("API address http://{address}: Address")),
        "{text}"
    );
    assert_eq!(home.listing(), [], "nothing is made");
}

#[test]
fn an_api_on_the_network_is_refused() {
    let home = Home::new(SITE);
    let (code, text) = said(
        home.command()
            .args(["--api", "0.0.0.0:0"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, 2);
    assert!(
        text.contains("--api: found \"0.0.0.0:0\"; allowed: \"unix:\""),
        "{text}"
    );
    assert!(!home.data().exists());
}

#[test]
fn damaged_records_are_named_and_never_taken_for_empty() {
    let home = Home::new(SITE);
    drop(home.serve());
    for name in ["ashlar-data.json", "ashlar-configuration.json"] {
        let whole = fs::read(home.file(name)).ok();
        fs::write(home.file(name), "{").unwrap();
        let (code, said) = home.refused();
        assert_eq!(code, 1);
        assert!(
            said.contains(&format!("{name}: can't understand it")),
            "{said}"
        );
        match whole {
            Some(whole) => fs::write(home.file(name), whole).unwrap(),
            None => fs::remove_file(home.file(name)).unwrap(),
        }
    }
    drop(home.serve());
}

#[test]
fn what_a_running_array_accepted_is_no_reason_not_to_start() {
    let home = Home::new(SITE);
    let first = home.serve();
    first.done(&[
        "volume", "create", "made", "--pool", "p0", "--size", "1 MiB",
    ]);
    first.done(&[
        "export",
        "create",
        "--any",
        "iqn.2026-11.dev.ashlar:b",
        "--volume",
        "made",
    ]);
    drop(first);
    let more = "[[volume]]\nname = \"made\"\npool = \"p0\"\nsize = \"1 MiB\"\n";
    home.set_site(
        &SITE
            .replace("[[export]]", &format!("{more}[[export]]"))
            .replace("volumes = [\"v0\"]", "volumes = [\"v0\", \"made\"]"),
    );
    let second = home.serve();
    let behind = |target: &str| second.json(&["export", "show", target])["luns"].clone();
    assert_eq!(behind("iqn.2026-11.dev.ashlar:b")[0]["volume"], "made");
    assert_eq!(
        behind("iqn.2026-11.dev.ashlar:a").as_array().unwrap().len(),
        1
    );
    home.wait_log("differ in 1 thing:");
    let site = home.site();
    let site = site.to_str().unwrap();
    let shown = second.run(&["site", "diff", site]);
    assert_eq!(shown.status.code(), Some(3));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let how = "change  target iqn.2026-11.dev.ashlar:a ";
    assert!(shown.contains(how), "{shown}");
    let (code, said) = second.refused(&["site", "apply", "--yes", site]);
    let why = "made is LUN 0";
    assert!(code == 1 && said.contains(why), "{said}");
}

#[test]
fn a_data_directory_that_cannot_be_one_is_named() {
    let home = Home::new(SITE);
    fs::write(home.data(), "a file").unwrap();
    let (code, said) = home.refused();
    assert_eq!(code, 1);
    assert!(said.contains("data: can't make"), "{said}");
}

#[test]
fn a_command_line_that_is_wrong_has_its_own_code() {
    for args in [
        &["serve"][..],
        &["volume"],
        &["volume", "create", "x"],
        &["no-such-command"],
    ] {
        assert_eq!(
            ashlar().args(args).output().unwrap().status.code(),
            Some(2),
            "{args:?}"
        );
    }
}
