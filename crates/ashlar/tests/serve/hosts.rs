//! Hosts, host groups, CHAP and portals by command: made, changed, refused, kept over
//! restarts; sessions that lose their admission end; no secret is given back.

use crate::array::{Home, SITE, Serving, make_private};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const TARGET: &str = "iqn.2026-11.dev.ashlar:b";
const HOST: &str = "iqn.2026-11.test:esx1";
const SECRET: &str = "secret-of-esx1";

/// The site without its export, in a directory with a file for each secret.
fn home() -> (Home, tempfile::TempDir) {
    let (site, _) = SITE.split_once("[[export]]").unwrap();
    let secrets = tempfile::tempdir().unwrap();
    fs::write(secrets.path().join("one"), format!("{SECRET}\n")).unwrap();
    fs::write(secrets.path().join("two"), "0x000102030405060708090a0b").unwrap();
    fs::write(secrets.path().join("short"), "short").unwrap();
    for name in ["one", "two", "short"] {
        make_private(&secrets.path().join(name));
    }
    (
        Home::new(&format!("{site}[limits]\nlogout_time = \"1 s\"\n")),
        secrets,
    )
}

/// Exports v0 to a group of one host.
fn export_to_cluster(serving: &Serving) {
    serving.done(&["host", "create", "esx1", "--initiator", HOST]);
    serving.done(&["host-group", "create", "cluster", "esx1"]);
    let export = ["export", "create", TARGET, "--volume", "v0"];
    serving.done(&[&export[..], &["--host-group", "cluster"]].concat());
}

/// What libiscsi says of LUN 0, with a user and a password or without.
fn inquires(serving: &Serving, user: &str) -> bool {
    let url = format!("iscsi://{user}{}/{TARGET}/0", serving.portal);
    let name = format!("--initiator-name={HOST}");
    let output = Command::new("iscsi-inq")
        .args([&name, &url])
        .output()
        .unwrap();
    output.status.success()
}

fn user() -> String {
    format!("esx1%{SECRET}@")
}

/// A session by name; gives its connection, or the status that refuses it.
fn session(serving: &Serving) -> Result<TcpStream, (u8, u8)> {
    let mut stream = TcpStream::connect(&serving.portal).unwrap();
    // Whoever waits for an end that does not come is to fail, and not to hang.
    let patience = Duration::from_secs(60);
    stream.set_read_timeout(Some(patience)).unwrap();
    let keys = format!("InitiatorName={HOST}\0TargetName={TARGET}\0");
    let mut bytes = vec![0; 48];
    (bytes[0], bytes[1], bytes[7]) = (0x43, 0x87, keys.len() as u8);
    bytes.extend(keys.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    stream.write_all(&bytes).unwrap();
    let mut header = [0; 48];
    stream.read_exact(&mut header).unwrap();
    let mut text = vec![0; usize::from(header[7]).next_multiple_of(4)];
    stream.read_exact(&mut text).unwrap();
    match (header[36], header[37]) {
        (0, 0) => Ok(stream),
        status => Err(status),
    }
}

/// The response to a task management function: 0 is done, 6 is not authorized
/// (RFC 7143, clause 11.6.1).
fn task_management(stream: &mut TcpStream, function: u8) -> u8 {
    let mut request = [0; 48];
    (request[0], request[1], request[19]) = (0x42, 0x80 | function, 1);
    request[20..24].fill(0xff);
    stream.write_all(&request).unwrap();
    let mut answer = [0; 48];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!((answer[0] & 0x3f, answer[19]), (0x22, 1), "{answer:?}");
    answer[2]
}

/// The events of asynchronous messages that come before a connection is closed.
fn parting(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest.chunks(48).map(|header| header[36]).collect()
}

fn path(dir: &tempfile::TempDir, name: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_host_with_chap_is_kept_and_its_secret_never_given() {
    let (home, secrets) = home();
    let serving = home.serve();
    let (one, two) = (path(&secrets, "one"), path(&secrets, "two"));
    let create = ["host", "create", "esx1", "--initiator", HOST];
    let chap = ["--chap-name", "esx1", "--chap-secret-file", &one];
    let mutual = ["--mutual-name", "array", "--mutual-secret-file", &two];
    let made = serving.json(&[&create[..], &chap, &mutual].concat());
    assert_eq!(made["chap"]["name"], "esx1");
    assert_eq!(made["chap"]["mutual_name"], "array");
    serving.done(&["host-group", "create", "cluster", "esx1"]);
    let export = ["export", "create", TARGET, "--volume", "v0"];
    let export = serving.json(&[&export[..], &["--host-group", "cluster"]].concat());
    assert_eq!(export["initiators"].as_array().unwrap().len(), 0);
    assert!(inquires(&serving, &user()));
    assert!(!inquires(&serving, "") && !inquires(&serving, "esx1%wrong-wrong-wrong@"));
    let file = home.file("ashlar-configuration.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(serving.stop("TERM").success());

    let serving = home.serve();
    assert!(inquires(&serving, &user()), "after a restart");
    let hosts = serving.json(&["host", "list"]);
    assert_eq!(hosts[0]["host_groups"][0], "cluster");
    for said in [
        hosts.to_string(),
        serving.json(&["export", "list"]).to_string(),
        serving.json(&["host", "show", "esx1"]).to_string(),
        String::from_utf8(serving.run(&["host", "list"]).stdout).unwrap(),
        home.log(),
    ] {
        assert!(!said.contains(SECRET) && !said.contains("0x0001"), "{said}");
    }
    // What a site file says counts when it is applied.
    let (site, _) = SITE.split_once("[[export]]").unwrap();
    let other = "[[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:other\"]\n";
    drop(serving);
    home.set_site(&format!("{site}{other}"));
    let serving = home.serve();
    assert_eq!(serving.json(&["host", "list"]), hosts);
    let there = home.site();
    let there = there.to_str().unwrap();
    let shown = serving.run(&["site", "diff", there]);
    assert_eq!(shown.status.code(), Some(3));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let how = "initiators iqn.2026-11.test:esx1 becomes iqn.2026-11.test:other; CHAP esx1, mutual \
               array becomes none";
    assert!(shown.contains(how) && !shown.contains(SECRET), "{shown}");
    assert_eq!(serving.json(&["host", "list"]), hosts, "it only shows");
    serving.done(&["site", "apply", "--yes", there]);
    let applied = serving.json(&["host", "show", "esx1"]);
    assert_eq!(
        (&applied["initiators"][0], &applied["chap"]),
        (&"iqn.2026-11.test:other".into(), &serde_json::Value::Null)
    );
    assert!(!inquires(&serving, &user()));
    let create = ["host", "change", "esx1", "--add", HOST];
    serving.done(&[&create[..], &chap, &mutual].concat());
    drop(serving);
    // A secret that is none doesn't let anybody in.
    home.set_site(site);
    let damaged = fs::read_to_string(&file)
        .unwrap()
        .replace("0x7365637265742d6f662d", "0x61");
    fs::write(&file, damaged).unwrap();
    let (code, said) = home.refused();
    assert!(
        code == 1 && said.contains("CHAP secret of host esx1"),
        "{said}"
    );
}

#[test]
fn sessions_that_lose_their_admission_end() {
    let (home, secrets) = home();
    let serving = home.serve();
    assert!(
        !home.log().contains("has secrets"),
        "its site file has none"
    );
    export_to_cluster(&serving);
    let one = path(&secrets, "one");
    let chap = ["--chap-name", "esx1", "--chap-secret-file", &one];
    let other = "iqn.2026-11.test:other";
    let again = ["host", "change", "esx1", "--add", HOST, "--remove", other];
    for (change, back) in [
        (
            &["host", "change", "esx1", "--add", other, "--remove", HOST][..],
            &again[..],
        ),
        (
            &[&["host", "change", "esx1"][..], &chap].concat(),
            &["host", "change", "esx1", "--no-chap"],
        ),
        (
            &[
                "export",
                "change",
                TARGET,
                "--no-host-groups",
                "--initiator",
                other,
            ],
            &[
                "export",
                "change",
                TARGET,
                "--no-initiators",
                "--host-group",
                "cluster",
            ],
        ),
        (
            &[&["export", "change", TARGET][..], &chap].concat(),
            &["export", "change", TARGET, "--no-chap"],
        ),
    ] {
        let stream = session(&serving).unwrap();
        assert_eq!(
            serving.json(&["session", "list"]).as_array().unwrap().len(),
            1
        );
        serving.done(change);
        assert_eq!(
            serving.json(&["session", "list"]).as_array().unwrap().len(),
            0
        );
        assert_eq!(parting(stream), [1, 2], "{change:?}");
        let status = session(&serving).unwrap_err();
        let proof = change.contains(&"--chap-name");
        assert_eq!(status, if proof { (2, 1) } else { (2, 3) }, "{change:?}");
        serving.done(back);
    }
    // A change that concerns others leaves it alone.
    let stream = session(&serving).unwrap();
    serving.done(&["host", "change", "esx1", "--add", other]);
    serving.done(&["export", "change", TARGET, "--any"]);
    serving.done(&["host-group", "add", "cluster", "esx1"]);
    assert_eq!(
        serving.json(&["session", "list"]).as_array().unwrap().len(),
        1
    );
    serving.done(&["export", "delete", "--yes", TARGET]);
    assert_eq!(parting(stream), [1, 2]);
}

#[test]
fn what_can_t_be_is_refused_and_changes_nothing() {
    let (home, secrets) = home();
    let serving = home.serve();
    let [one, two, short] = ["one", "two", "short"].map(|name| path(&secrets, name));
    export_to_cluster(&serving);
    let before = ["host", "host-group", "export"].map(|what| serving.json(&[what, "list"]));
    let chap = |secret| ["--chap-name", "n", "--chap-secret-file", secret];
    let to = |base: &[&'static str], more: &[&str]| -> Vec<String> {
        base.iter()
            .chain(more)
            .map(|word| (*word).to_owned())
            .collect()
    };
    let other = "iqn.2026-11.test:other";
    let same = ["--mutual-name", "m", "--mutual-secret-file", &one];
    for (args, expected) in [
        (
            to(&["host", "create", "esx1", "--initiator", other], &[]),
            "there is a host esx1 already",
        ),
        (
            to(&["host", "create", "esx2", "--initiator", HOST], &[]),
            "would be of host",
        ),
        (
            to(&["host", "create", "a/b", "--initiator", other], &[]),
            "a/b",
        ),
        (
            to(&["host", "create", "x", "--initiator", "IQN.x"], &[]),
            "initiators: found \"IQN.x\"",
        ),
        (
            to(
                &["host", "create", "x", "--initiator", other],
                &chap(&short),
            ),
            "chap.secret: found text of 5 bytes; allowed: a secret of 12 to 255 bytes",
        ),
        (
            to(
                &["host", "create", "x", "--initiator", other],
                &[&chap(&one)[..], &same].concat(),
            ),
            "the mutual secret of m also proves an initiator",
        ),
        (
            to(&["host", "change", "esx1", "--remove", HOST], &[]),
            "would have nothing left",
        ),
        (
            to(&["host", "change", "esx1", "--remove", other], &[]),
            "does not have",
        ),
        (
            to(&["host", "change", "none", "--no-chap"], &[]),
            "there is no host none",
        ),
        (
            to(&["host", "delete", "esx1"], &[]),
            "host esx1 is in host group cluster",
        ),
        (
            to(&["host-group", "delete", "cluster"], &[]),
            "admits host group cluster",
        ),
        (
            to(&["host-group", "create", "g", "none"], &[]),
            "there is no host none",
        ),
        (
            to(&["host-group", "remove", "cluster", "esx1"], &[]),
            "would have nothing left",
        ),
        (
            to(&["export", "change", TARGET, "--host", "none"], &[]),
            "there is no host none",
        ),
        (
            to(&["export", "change", TARGET, "--host-group", "g"], &[]),
            "there is no host group g",
        ),
        (
            to(&["export", "change", TARGET, "--no-host-groups"], &[]),
            "nobody may log in",
        ),
        (
            to(
                &["export", "change", TARGET, "--portal", "127.0.0.1:1"],
                &[],
            ),
            "the array has no portal 127.0.0.1:1",
        ),
        (
            to(&["export", "change", TARGET, "--portal", "here"], &[]),
            "portals: found \"here\"",
        ),
        (
            to(
                &["host", "create", "x", "--initiator", other],
                &chap("/none"),
            ),
            "/none: ",
        ),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (code, said) = serving.refused(&args);
        assert!(code != 0 && said.contains(expected), "{args:?}: {said}");
        assert!(!said.contains(SECRET), "{said}");
    }
    let after = ["host", "host-group", "export"].map(|what| serving.json(&[what, "list"]));
    assert_eq!(before, after);
    // A secret of ours that is one of theirs elsewhere is refused from both sides.
    serving.done(
        &to(&["host", "change", "esx1"], &chap(&one))
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    let mutual = ["--mutual-name", "m", "--mutual-secret-file", &one];
    let change = to(
        &["export", "change", TARGET],
        &[&chap(&two)[..], &mutual].concat(),
    );
    let (kind, said) = serving.refusal(&change.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("secret of m"), "{said}");
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let (home, secrets) = home();
    let serving = home.serve();
    serving.done(&["host", "create", "esx1", "--initiator", HOST]);
    let one = path(&secrets, "one");
    let change = [
        "host",
        "change",
        "esx1",
        "--chap-name",
        "n",
        "--chap-secret-file",
    ];
    let change = [&change[..], &[&one]].concat();
    fs::set_permissions(&one, fs::Permissions::from_mode(0o640)).unwrap();
    let (code, said) = serving.refused(&change);
    let why = format!("chmod go= {one}");
    assert!(code == 2 && said.contains(&why), "{said}");
    assert_eq!(
        serving.json(&["host", "show", "esx1"])["chap"],
        serde_json::Value::Null
    );
    make_private(std::path::Path::new(&one));
    serving.done(&change);
    let show = String::from_utf8(serving.run(&["host", "show", "esx1"]).stdout).unwrap();
    assert!(show.contains("\ngroups      -\n"), "{show}");
}

#[test]
fn what_the_site_file_described_is_changed_as_anything_else() {
    let hosts = "[[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:esx1\"]\n\
                 [[host_group]]\nname = \"cluster\"\nhosts = [\"esx1\"]\n\
                 [chap]\ndiscovery = { name = \"all\", secret = \"to-discover-with\" }\n";
    let home = Home::new(&format!("{SITE}hosts = [\"esx1\"]\n{hosts}"));
    let site = home.site();
    let allow = |mode| fs::set_permissions(&site, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o644);
    let (code, said) = home.refused();
    let why = "has secrets, and others can read it: chmod go= ";
    assert!(code == 2 && said.contains(why), "{said}");
    allow(0o600);
    let serving = home.serve();
    let export = serving.json(&["export", "show", "iqn.2026-11.dev.ashlar:a"]);
    assert_eq!(export["hosts"][0], "esx1");
    for args in [
        &["host", "change", "esx1", "--add", "iqn.2026-11.test:other"][..],
        &["host-group", "delete", "cluster"],
        &[
            "export",
            "change",
            "iqn.2026-11.dev.ashlar:a",
            "--no-initiators",
        ],
    ] {
        serving.done(args);
    }
    let now = ["host", "host-group", "export"].map(|what| serving.json(&[what, "list"]));
    assert_eq!(now[2][0]["initiators"], serde_json::json!([]));
    drop(serving);
    // The site file still says that anybody may log in.
    let serving = home.serve();
    let then = ["host", "host-group", "export"].map(|what| serving.json(&[what, "list"]));
    assert_eq!(now, then);
    let list = |user: &str| {
        let url = format!("iscsi://{user}{}", serving.portal);
        let output = Command::new("iscsi-ls")
            .args(["-i", HOST, &url])
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    assert!(list("all%to-discover-with@").contains("iqn.2026-11.dev.ashlar:a"));
    assert!(!list("").contains("iqn."));
}

#[test]
fn one_portal_instead_of_all_does_not_show_what_is_limited_to_others() {
    let (without, _) = SITE.split_once("[[export]]").unwrap();
    let portal = "[[portal]]\naddress = \"[::1]:0\"\n";
    let home = Home::new(&format!("{without}{portal}"));
    let serving = home.serve();
    let export = ["export", "create", TARGET, "--volume", "v0", "--any"];
    serving.done(&[&export[..], &["--portal", "[::1]:0"]].concat());
    drop(serving);
    let mut command = home.command();
    command.args(["--portal", "127.0.0.1:0"]);
    let serving = Serving::start(command, &home.log_file());
    assert_eq!(session(&serving).unwrap_err(), (2, 3));
    home.wait_log("limited to [::1]:0: --portal 127.0.0.1:");
    serving.done(&["export", "change", TARGET, "--all-portals"]);
    session(&serving).unwrap();
}

#[test]
fn an_export_whose_portal_has_gone_is_named() {
    let (without, _) = SITE.split_once("[[export]]").unwrap();
    let host = "[[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:esx1\"]\n";
    let portal = "[[portal]]\naddress = \"[::1]:0\"\n";
    let home = Home::new(&format!("{without}{host}{portal}"));
    let serving = home.serve();
    let export = [
        "export", "create", TARGET, "--volume", "v0", "--host", "esx1",
    ];
    let made = serving.json(&[&export[..], &["--portal", "[::1]:0"]].concat());
    assert_eq!(made["portals"][0], "[::1]:0");
    assert_eq!(
        session(&serving).unwrap_err(),
        (2, 3),
        "through the other portal"
    );
    let (_, said) = serving.refused(&["portal", "remove", "[::1]:0", "--yes"]);
    let line = format!("target {TARGET} is limited to it");
    assert!(said.contains(&line), "{said}");
    drop(serving);
    // A record that says so, however that came.
    let file = home.file("ashlar-configuration.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let less = kept.replace("\\n[[portal]]\\naddress = \\\"[::1]:0\\\"\\n", "");
    assert_ne!(less, kept, "{kept}");
    std::fs::write(&file, less).unwrap();
    let serving = home.serve();
    let line = format!("target {TARGET}: the array has no portal [::1]:0");
    home.wait_log(&line);
    let export = serving.json(&["export", "show", TARGET]);
    assert_eq!(
        (&export["hosts"][0], &export["portals"][0]),
        (&"esx1".into(), &"[::1]:0".into())
    );
    assert_eq!(session(&serving).unwrap_err(), (2, 3), "it is not wider");
    serving.done(&["export", "change", TARGET, "--all-portals"]);
    drop(session(&serving).unwrap());
}

#[test]
fn who_may_log_in_has_to_be_said() {
    let unsaid = SITE.replace("initiators = \"any\"\n", "");
    assert_ne!(unsaid, SITE);
    let home = Home::new(&unsaid);
    let (code, said) = home.refused();
    let why = "export.initiators is missing: give who may log in";
    assert!(code == 2 && said.contains(why), "{said}");
    home.set_site(SITE);
    let serving = home.serve();
    let size = ["--pool", "p0", "--size", "1 MiB"];
    serving.done(&[&["volume", "create", "w"][..], &size].concat());
    let create = ["export", "create", TARGET, "--volume", "w"];
    let (kind, said) = serving.refusal(&create);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("admit any"), "{said}");
    // A secret says how to log in, and not who may.
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), SECRET).unwrap();
    let file = secret.path().to_str().unwrap();
    let chap = ["--chap-name", "a", "--chap-secret-file", file];
    let (kind, said) = serving.refusal(&[&create[..], &chap].concat());
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("admit any"), "{said}");
    assert_eq!(session(&serving).unwrap_err(), (2, 3));
    serving.done(&[&create[..], &["--any"]].concat());
    session(&serving).unwrap();
}

#[test]
fn what_initiators_may_do_is_changed_while_they_are_logged_in() {
    const TARGET_WARM_RESET: u8 = 6;
    let (home, _secrets) = home();
    let serving = home.serve();
    export_to_cluster(&serving);
    let mut stream = session(&serving).unwrap();
    assert_eq!(task_management(&mut stream, TARGET_WARM_RESET), 6);
    let change = |option| serving.json(&["export", "change", TARGET, option]);
    let changed = change("--affect-others");
    assert_eq!(changed["may_affect_others"], true);
    assert_eq!(changed["may_sanitize"], false);
    assert_eq!(changed["host_groups"][0], "cluster", "access stays");
    assert_eq!(task_management(&mut stream, TARGET_WARM_RESET), 0);
    assert_eq!(change("--sanitize")["may_sanitize"], true);
    assert_eq!(change("--no-affect-others")["may_affect_others"], false);
    assert_eq!(task_management(&mut stream, TARGET_WARM_RESET), 6);
    drop(serving);
    let serving = home.serve();
    let kept = serving.json(&["export", "show", TARGET]);
    assert_eq!(kept["may_sanitize"], true, "{kept}");
    // And by a site file.
    let file = home.file("new.toml");
    let file = file.to_str().unwrap();
    let shown = serving.run(&["site", "show"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("sanitize = true\n"), "{shown}");
    let other = shown.replace("sanitize = true\n", "affect_others = true\n");
    fs::write(file, other).unwrap();
    serving.done(&["site", "apply", file, "--yes"]);
    let kept = serving.json(&["export", "show", TARGET]);
    let may = [&kept["may_sanitize"], &kept["may_affect_others"]];
    assert_eq!(may, [false, true], "{kept}");
    let mut stream = session(&serving).unwrap();
    assert_eq!(task_management(&mut stream, TARGET_WARM_RESET), 0);
}

#[test]
fn a_portal_goes_to_another_group_and_its_sessions_end() {
    let (home, _secrets) = home();
    let serving = home.serve();
    export_to_cluster(&serving);
    let groups = || {
        let portals = serving.json(&["portal", "list"]);
        let portals = portals.as_array().unwrap().iter();
        let groups = portals.map(|one| one["group"].as_u64().unwrap());
        groups.collect::<Vec<_>>()
    };
    serving.done(&["portal", "add", "127.0.0.2:0"]);
    let stream = session(&serving).unwrap();
    let regroup = ["portal", "change", "127.0.0.2:0", "--group", "7", "--yes"];
    serving.done(&regroup);
    assert_eq!(groups(), [1, 7]);
    let sessions = || serving.json(&["session", "list"]);
    assert_eq!(sessions().as_array().unwrap().len(), 1, "of another portal");
    // Asked first, and by a site file.
    let (code, _) = serving.refused(&regroup[..5]);
    assert_eq!(code, 2);
    let file = home.file("new.toml");
    let file = file.to_str().unwrap();
    let shown = serving.run(&["site", "show"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    let address = "address = \"127.0.0.1:0\"\n";
    let (before, after) = shown.split_once(address).unwrap();
    let (_, after) = after.split_once("group = 1\n").unwrap_or(("", after));
    fs::write(file, format!("{before}{address}group = 5\n{after}")).unwrap();
    let found = serving.run(&["site", "diff", file, "--json"]);
    assert_eq!(found.status.code(), Some(3));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found[0]["what"], "portal 127.0.0.1:0", "{found}");
    assert_eq!(found[0]["action"], "change");
    serving.done(&["site", "apply", file, "--yes"]);
    assert_eq!(groups(), [5, 7]);
    assert_eq!(parting(stream), [1, 2]);
    assert_eq!(sessions(), serde_json::json!([]));
    session(&serving).unwrap();
    let elsewhere = ["portal", "change", "127.0.0.9:1", "--group", "2", "--yes"];
    let (code, _) = serving.refused(&elsewhere[..5]);
    assert_eq!(code, 5, "before anybody is asked");
    let (code, said) = serving.refused(&elsewhere);
    assert!(code == 5 && said.contains("127.0.0.9:1"), "{code} {said}");
}
