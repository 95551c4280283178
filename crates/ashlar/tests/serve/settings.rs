//! What a site file can say, said while the array serves: settings, portals, discovery. It stays
//! over restarts and kills, and comes back as a site file.

use crate::array::{Home, SECOND_POOL, SITE, Serving, ashlar, said};
use crate::commands::request;
use crate::strangers::{is_root, open_directory, said_to};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Makes a pool of two new files.
pub const CREATE: [&str; 9] = [
    "pool", "create", "new", "--level", "10", "--size", "64 MiB", "n0.img", "n1.img",
];

/// A header of curl.
const JSON: &str = "content-type: application/json";

/// Names of the pools that are open.
pub fn pools(serving: &Serving) -> Vec<Value> {
    let pools = serving.json(&["pool", "list"]);
    let pools = pools.as_array().unwrap().iter();
    pools.map(|pool| pool["name"].clone()).collect()
}

/// Starts it without a site file.
fn serve_alone(home: &Home) -> Serving {
    let mut command = ashlar();
    command.arg("serve").arg("--data").arg(home.data());
    command.args(["--api", "127.0.0.1:0"]);
    Serving::start(command, &home.log_file())
}

#[test]
fn a_pool_is_made_and_is_there_after_a_kill_without_the_site_file() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    serving.done(&["volume", "create", "v9", "--pool", "new", "--size", "4 MiB"]);
    drop(serving);
    let serving = serve_alone(&home);
    assert_eq!(pools(&serving), ["new", "p0"]);
    assert_eq!(serving.json(&["volume", "show", "v9"])["pool"], "new");
    let drive = serving.json(&["drive", "show", "n1"]);
    assert_eq!(
        (&drive["pool"], &drive["capacity_bytes"]),
        (&json!("new"), &json!(64 << 20))
    );
    // The site file knows nothing of it, and takes nothing away.
    serving.apply(&home);
    assert!(serving.stop("TERM").success());
    assert_eq!(pools(&home.serve()), ["new", "p0"]);
}

#[test]
fn a_first_start_needs_a_site_file() {
    let home = Home::new(SITE);
    let mut command = ashlar();
    command.arg("serve").arg("--data").arg(home.data());
    let (code, said) = said(command.output().unwrap());
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("no array") && said.contains("--site"),
        "{said}"
    );
    assert!(!home.data().exists(), "nothing is left of the start");
    // Not even where the directories above it were missing; what was there before stays.
    for (data, is_there) in [("data/a/b", false), ("data", true)] {
        let data = home.data().with_file_name(data);
        if is_there {
            fs::create_dir(&data).unwrap();
        }
        let mut command = ashlar();
        command.arg("serve").arg("--data").arg(&data);
        assert_eq!(self::said(command.output().unwrap()).0, 1);
        assert_eq!(home.data().exists(), is_there, "{}", data.display());
    }
}

#[test]
fn a_start_without_the_record_of_an_array_names_it() {
    let home = Home::new(SITE);
    assert!(home.serve().stop("TERM").success());
    fs::remove_file(home.file("ashlar-configuration.json")).unwrap();
    let mut command = ashlar();
    command.arg("serve").arg("--data").arg(home.data());
    let (code, said) = said(command.output().unwrap());
    assert_eq!(code, 1, "{said}");
    for part in ["ashlar-configuration.json", "--site", "site apply"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn rates_thresholds_and_cache_stay_after_a_kill() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["pool", "rates", "p0", "--rebuild", "5242881 B", "--full"]);
    serving.done(&["pool", "thresholds", "p0", "--warn", "60", "--alarm", "70"]);
    serving.done(&["pool", "cache", "p0", "3 MiB"]);
    let of = |serving: &Serving| {
        let pool = serving.json(&["pool", "show", "p0"]);
        json!([
            pool["rates"],
            pool["thresholds"],
            pool["cache"]["capacity_bytes"]
        ])
    };
    let before = of(&serving);
    assert_eq!(before[0]["rebuild_bytes_per_s"], (5 << 20) + 1);
    assert_eq!(before[1]["warn_percent"], 60);
    assert_eq!(before[2], 3 << 20);
    drop(serving);
    let serving = home.serve();
    assert_eq!(of(&serving), before);
    let (kind, said) = serving.refusal(&["pool", "rates", "p0", "--scrub", "4 KiB"]);
    assert_eq!(kind, "invalid");
    for part in ["scrub rate", "4 KiB/s", "1 MiB/s", "1 PiB/s"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let odd = r#"{"name": "odd", "pool": "p0", "size_bytes": 1000}"#;
    let said = request(&serving.api, "POST /api/v1/volumes", "", odd);
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    assert!(
        said.contains("1000 B") && !said.contains("size_bytes"),
        "{said}"
    );
    assert_eq!(of(&serving), before);
    // The file says otherwise, and counts when it is applied. Values are exact.
    let (code, said) = shown(&serving, &["site", "diff", home.site().to_str().unwrap()]);
    assert_eq!(code, 3);
    for change in [
        "cache 3 MiB becomes 64 MiB; rebuild_rate 5242881 B/s becomes its default; scrub_rate ",
        "; background full becomes yield; warn_at 60 % becomes its default; alarm_at 70 % becomes ",
    ] {
        assert!(said.contains(change), "{change:?} is not in {said}");
    }
    serving.apply(&home);
    assert_eq!(of(&serving)[0]["rebuild_bytes_per_s"], Value::Null);
    assert_eq!(of(&serving)[2], 64 << 20);
}

/// Exit code and standard output.
fn shown(serving: &Serving, args: &[&str]) -> (i32, String) {
    let output = serving.run(args);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

/// Whether discovery at `portal` names the target.
fn discovers(portal: &str) -> bool {
    let url = format!("iscsi://{portal}");
    let output = Command::new("iscsi-ls").arg(&url).output().unwrap();
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("iqn.2026-11")
}

#[test]
fn portals_open_and_close_while_targets_are_served() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let listed = serving.json(&["portal", "add", "127.0.0.2:0", "--group", "2"]);
    let added = listed.as_array().unwrap().iter();
    let added = added
        .clone()
        .find(|one| one["address"] == "127.0.0.2:0")
        .unwrap()
        .clone();
    assert_eq!(added["group"], 2);
    let at = added["open_at"].as_str().unwrap().to_owned();
    assert!(discovers(&at));
    let (kind, said) = serving.refusal(&["portal", "add", "127.0.0.2:0"]);
    assert_eq!(kind, "exists", "{said}");
    assert!(said.contains("127.0.0.2:0"), "{said}");
    let (kind, said) = serving.refusal(&["portal", "add", &at]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains(&at) && said.contains("in use"), "{said}");
    // An address of documents (RFC 5737), which no machine has.
    let (kind, said) = serving.refusal(&["portal", "add", "192.0.2.1:3260"]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("192.0.2.1:3260"), "{said}");
    let (_, said) = serving.refused(&["portal", "add", "0.0.0.0:0"]);
    assert!(
        said.contains("portal.address: found \"0.0.0.0:0\""),
        "{said}"
    );
    drop(serving);
    let serving = home.serve();
    let listed = serving.json(&["portal", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let at = listed[1]["open_at"].as_str().unwrap().to_owned();
    assert!(discovers(&at));
    serving.done(&["portal", "remove", "127.0.0.2:0", "--yes"]);
    assert!(!discovers(&at));
    assert!(discovers(&serving.portal), "the other one is as it was");
    let (kind, said) = serving.refusal(&["portal", "remove", "127.0.0.1:0", "--yes"]);
    assert_eq!(kind, "busy", "{said}");
    assert!(said.contains("the last one"), "{said}");
    assert!(serving.stop("TERM").success());
    assert_eq!(
        home.serve()
            .json(&["portal", "list"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn settings_change_by_the_rules_of_the_site_file_and_stay() {
    let home = Home::new(SITE);
    let images = tempfile::tempdir().unwrap();
    let path = images.path().join("a.raw");
    fs::write(&path, vec![1u8; 1 << 20]).unwrap();
    let serving = home.serve();
    let import = [
        "volume",
        "import",
        path.to_str().unwrap(),
        "--pool",
        "p0",
        "--name",
        "i",
    ];
    let (_, said) = serving.refused(&import);
    assert!(said.contains("ashlar settings set"), "{said}");
    let directories = format!("images.directories={}", images.path().display());
    serving.done(&[
        "settings",
        "set",
        &directories,
        "site.trash=2d",
        "limits.sessions=20",
    ]);
    serving.done(&import);
    for (setting, why) in [
        ("limits.sessions=0", "limits.sessions: found the number 0"),
        (
            "limits.checksum_memory=512TiB",
            "limits.checksum_memory: found 512 TiB; allowed: at most",
        ),
        ("site.thrash=2d", "site.thrash: found"),
        ("pool.name=x", "a table that holds no settings"),
        ("site.about=x", "a key that only rehearsals use"),
        (
            "nope.a=1",
            "allowed: site.name, site.shards, site.trash, chap.",
        ),
        (
            "nope=1",
            "the settings are site.name, site.shards, site.trash, chap.",
        ),
        ("images.directories=a", "an absolute path"),
        ("trash=1d", "allowed: TABLE.KEY=VALUE"),
    ] {
        let (_, said) = serving.refused(&["settings", "set", setting]);
        assert!(said.contains(why), "{setting}: {said}");
    }
    let settings = serving.json(&["settings", "show"]);
    assert_eq!(settings["site"]["trash"], "2 d");
    drop(serving);
    let serving = home.serve();
    assert_eq!(serving.json(&["settings", "show"]), settings);
    assert_eq!(settings["limits"], json!({"sessions": 20}));
    let (_, table) = shown(&serving, &["settings", "show"]);
    for row in [
        ["limits.sessions", "20", "1024"],
        ["limits.logins", "-", "64"],
        ["site.trash", "2 d", "24 h"],
    ] {
        let mut lines = table.lines().map(|line| line.split_whitespace());
        let is_there = lines.any(|line| line.eq(row.join(" ").split_whitespace()));
        assert!(is_there, "{row:?} is not in {table}");
    }
    serving.done(&[
        "volume", "create", "gone", "--pool", "p0", "--size", "1 MiB",
    ]);
    serving.done(&["volume", "delete", "gone", "--yes"]);
    let (code, said) = serving.refused(&["settings", "set", "site.trash=0"]);
    assert_eq!(code, 2, "what is in the trash would go: {said}");
    serving.done(&[
        "settings",
        "set",
        "limits.sessions=",
        "site.trash=",
        "--yes",
    ]);
    let now = serving.json(&["settings", "show"]);
    assert_eq!(
        (&now["limits"], &now["site"]["trash"]),
        (&Value::Null, &json!("1 d"))
    );
}

#[test]
fn discovery_asks_for_chap_and_asks_no_more() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let secret = home.file("secret");
    fs::write(&secret, "a-secret-of-us\n").unwrap();
    crate::array::make_private(&secret);
    assert!(discovers(&serving.portal));
    let secret = secret.to_str().unwrap();
    serving.done(&[
        "discovery",
        "set-chap",
        "--chap-name",
        "n",
        "--chap-secret-file",
        secret,
    ]);
    assert!(!discovers(&serving.portal));
    drop(serving);
    let serving = home.serve();
    assert!(!discovers(&serving.portal));
    let (code, said) = shown(&serving, &["discovery", "show"]);
    assert_eq!((code, said.as_str()), (0, "chap  n\n"));
    serving.done(&["discovery", "remove-chap"]);
    assert_eq!(serving.json(&["discovery", "show"])["chap"], Value::Null);
    assert!(discovers(&serving.portal));
}

#[test]
fn the_array_comes_back_as_a_site_file_that_makes_the_same() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&CREATE);
    serving.done(&["volume", "create", "v9", "--pool", "new", "--size", "4 MiB"]);
    serving.done(&["volume", "tag", "v9", "vm=web01"]);
    serving.done(&["host", "create", "h", "--initiator", "iqn.2026-11.test:a"]);
    serving.done(&[
        "export",
        "create",
        "iqn.2026-11.dev.ashlar:n",
        "--volume",
        "v9",
        "--host",
        "h",
    ]);
    serving.done(&["portal", "add", "127.0.0.2:0"]);
    serving.done(&["snapshot", "create", "v0@a"]);
    serving.done(&[
        "export",
        "create",
        "iqn.2026-11.dev.ashlar:s",
        "--volume",
        "v0@a",
        "--any",
    ]);
    // LUNs with a gap, and with a snapshot between them.
    let of_a = "iqn.2026-11.dev.ashlar:a";
    for (name, lun) in [("x", "1"), ("y", "2"), ("v0@b", "4"), ("z", "5")] {
        match name.contains('@') {
            true => serving.done(&["snapshot", "create", name]),
            false => serving.done(&["volume", "create", name, "--pool", "p0", "--size", "1 MiB"]),
        }
        serving.done(&["export", "add-lun", of_a, name, "--lun", lun]);
    }
    serving.done(&["export", "remove-lun", of_a, "x", "--yes"]);
    let (code, text) = shown(&serving, &["site", "show"]);
    assert_eq!(code, 0);
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let comments: Vec<&str> = comments.collect();
    assert_eq!(comments.len(), 2, "{text}");
    for (line, parts) in comments
        .iter()
        .zip([[of_a, "LUN 4 ", "v0@b"], [":s", "LUN 0 ", "v0@a"]])
    {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
    home.set_site(&text);
    let (code, said) = shown(&serving, &["site", "diff", home.site().to_str().unwrap()]);
    assert_eq!(code, 0, "{said}\n{text}");
    let other = Home::new(&text);
    let second = other.serve();
    assert_eq!(pools(&second), ["new", "p0"]);
    let shown_luns = second.json(&["export", "show", of_a])["luns"].clone();
    let shown_luns = shown_luns.as_array().unwrap().iter();
    let luns: Vec<_> = shown_luns
        .map(|one| (&one["lun"], &one["volume"]))
        .collect();
    let wanted = [(0, "v0"), (2, "y"), (5, "z")].map(|(lun, name)| (json!(lun), json!(name)));
    assert_eq!(
        luns,
        wanted
            .iter()
            .map(|(lun, name)| (lun, name))
            .collect::<Vec<_>>()
    );
    let (_, again) = shown(&second, &["site", "show"]);
    let without_comments: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(again.lines().collect::<Vec<_>>(), without_comments);
    // With a secret it has to be completed.
    let secret = home.file("secret");
    fs::write(&secret, "a-secret-of-us\n").unwrap();
    crate::array::make_private(&secret);
    let chap = [
        "--chap-name",
        "n",
        "--chap-secret-file",
        secret.to_str().unwrap(),
    ];
    second.done(&[&["host", "change", "h"][..], &chap].concat());
    let (_, text) = shown(&second, &["site", "show"]);
    assert!(
        text.contains("secret = \"not shown\"") && !text.contains("a-secret"),
        "{text}"
    );
    other.set_site(&text);
    let (code, said) = second.refused(&["site", "apply", "--yes", other.site().to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(said.contains("secret: found"), "{said}");
}

#[test]
fn a_site_file_with_more_is_applied_while_it_serves() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let more = SITE.replace(
        "[[portal]]",
        "[images]\ndirectories = [\"/srv\"]\n[[portal]]",
    );
    let more = more.replace("name = \"test\"", "name = \"test\"\ntrash = \"3 d\"");
    home.set_site(&format!(
        "{more}{SECOND_POOL}[[portal]]\naddress = \"127.0.0.2:0\"\n"
    ));
    let (code, said) = shown(&serving, &["site", "diff", home.site().to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    for what in [
        "create  pool p1",
        "create  portal 127.0.0.2:0",
        "setting site.trash",
        "setting images.directories",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    serving.apply(&home);
    assert_eq!(pools(&serving), ["p0", "p1"]);
    assert_eq!(serving.json(&["settings", "show"])["site"]["trash"], "3 d");
    let (code, said) = shown(&serving, &["site", "diff", home.site().to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
}

/// Members of the socket's group may command the array, and not have root's server use any file.
#[test]
fn the_sockets_group_does_not_say_where_files_are() {
    if !is_root() {
        return;
    }
    let home = Home::new(SITE);
    let run = open_directory();
    let socket = run.path().join("api.sock");
    let serving = home.serve_at(&format!("unix:{}", socket.display()));
    let patch = |body| {
        let options = ["-X", "PATCH", "-H", JSON, "-d", body];
        said_to("0", &socket, "settings", &options)
    };
    for body in [
        r#"{"images": {"directories": ["/etc"]}}"#,
        r#"{"api": {"drive_directories": ["/dev"]}}"#,
        r#"{"api": {"listen": null}, "site": {"trash": "2 d"}}"#,
    ] {
        let said = patch(body);
        assert!(said.ends_with("403"), "{body}: {said}");
    }
    assert!(patch(r#"{"site": {"trash": "2 d"}}"#).ends_with("200"));
    assert_eq!(serving.json(&["settings", "show"])["site"]["trash"], "2 d");
}

/// A place where a drive is looked for may be overwritten by a replacement later.
#[test]
fn a_drive_is_looked_for_only_where_its_label_is() {
    let home = Home::new(SITE);
    let serving = home.serve();
    fs::write(home.file("other.img"), vec![7u8; 64 << 20]).unwrap();
    let apply = |place: &str| {
        home.set_site(&SITE.replace("\"d1.img\"", &format!("{place:?}")));
        let site = home.site();
        serving.run(&["site", "apply", "--yes", site.to_str().unwrap()])
    };
    for place in ["other.img", "nothing.img"] {
        let output = apply(place);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no label of"), "{said}");
    }
    assert!(fs::read(home.file("other.img")).unwrap() == vec![7u8; 64 << 20]);
    // A drive that is moved while the array is down is found where the file says.
    assert!(serving.stop("TERM").success());
    fs::rename(home.file("d1.img"), home.file("moved.img")).unwrap();
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "degraded");
    home.set_site(&SITE.replace("d1.img", "moved.img"));
    serving.apply(&home);
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_eq!(
        serving.json(&["drive", "show", "d1"])["path"],
        home.file("moved.img").to_str().unwrap()
    );
}

/// What members of the socket's group may not say by one way, they may not say by another.
#[test]
fn the_sockets_group_moves_no_drive() {
    if !is_root() {
        return;
    }
    let home = Home::new(SITE);
    let serving = home.serve();
    assert!(serving.stop("TERM").success());
    fs::rename(home.file("d1.img"), home.file("moved.img")).unwrap();
    let run = open_directory();
    let socket = run.path().join("api.sock");
    let serving = home.serve_at(&format!("unix:{}", socket.display()));
    let body = json!({ "text": SITE.replace("d1.img", "moved.img") }).to_string();
    let said = said_to("0", &socket, "site/apply", &["-H", JSON, "-d", &body]);
    assert!(said.contains("root may say"), "{said}");
    let (_, site) = shown(&serving, &["site", "show"]);
    assert!(!site.contains("moved.img"), "{site}");
}

/// What the array has accepted, or kept on another machine, does not keep it from starting.
#[test]
fn a_later_start_does_without_what_the_machine_lacks() {
    let home = Home::new(&format!("{SITE}[limits]\nmemory = \"1024 TiB\"\n"));
    let serving = home.serve();
    home.wait_log("limits.memory is 1 PiB");
    let (kind, said) = serving.refusal(&["settings", "set", "limits.memory=512TiB"]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("limits.memory: found 512 TiB;"), "{said}");
    serving.done(&["settings", "set", "site.trash=2d", "--yes"]);
    // An address that another program has at the next start.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    drop(taken);
    serving.done(&["portal", "add", &address]);
    assert!(serving.stop("TERM").success());
    let taken = std::net::TcpListener::bind(&address).unwrap();
    let serving = home.serve();
    let status = serving.json(&["status"]);
    assert_eq!(status["health"], "attention", "{status}");
    let why = status["why"].to_string();
    assert!(why.contains(&format!("portal {address} is")), "{why}");
    drop(taken);
    let is_open = |portals: &serde_json::Value| {
        let all = portals.as_array().unwrap();
        all.len() == 2 && all.iter().all(|portal| portal["open_at"].is_string())
    };
    serving.wait(&["portal", "list"], is_open);
    assert_eq!(serving.json(&["status"])["health"], "ok");
}
