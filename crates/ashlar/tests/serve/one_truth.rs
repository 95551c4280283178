//! What the array keeps of itself counts; a site file is applied to it, when somebody says so.

use crate::array::{Home, SECOND_POOL, SITE, Serving};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const OF_SITE: &str = "iqn.2026-11.dev.ashlar:a";
const OF_API: &str = "iqn.2026-11.dev.ashlar:b";

fn site_file(serving: &Serving, what: &str, home: &Home) -> (i32, Vec<Value>) {
    let path = home.site();
    let mut args = vec!["site", what, "--json", path.to_str().unwrap()];
    if what == "apply" {
        args.push("--yes");
    }
    let output = serving.run(&args);
    let text = String::from_utf8(output.stdout).unwrap();
    let code = output.status.code().unwrap();
    (code, serde_json::from_str(&text).unwrap())
}

#[test]
fn what_earlier_servers_kept_is_taken_over_and_counts_before_the_site_file() {
    let home = Home::new(SITE);
    drop(home.serve());
    fs::remove_file(home.file("ashlar-configuration.json")).unwrap();
    let data = fs::read_to_string(home.file("ashlar-data.json")).unwrap();
    let of_before = data.replace("\"is_configured\": true", "\"is_configured\": false");
    assert_ne!(of_before, data);
    fs::write(home.file("ashlar-data.json"), of_before).unwrap();
    let exports = json!([{
        "target": OF_API, "volumes": ["v0"], "initiators": ["iqn.2026-11.test:one"],
        "hosts": ["esx1"],
    }]);
    let host = json!({ "name": "esx1", "initiators": ["iqn.2026-11.test:esx1"], "chap": null });
    let hosts = json!({ "hosts": [host], "groups": [] });
    for (name, content) in [("exports", exports), ("hosts", hosts)] {
        let record = json!({ "format": 1, "content": content }).to_string();
        fs::write(home.file(&format!("ashlar-{name}.json")), record).unwrap();
    }
    let serving = home.serve();
    let left_out = format!("target {OF_SITE} of the site file is left out: volume v0 is behind");
    home.wait_log(&left_out);
    let list = |serving: &Serving| ["export", "host"].map(|what| serving.json(&[what, "list"]));
    let [exports, hosts] = list(&serving);
    assert_eq!(exports.as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &exports[0]["target"],
            &exports[0]["initiators"],
            &exports[0]["hosts"]
        ),
        (
            &json!(OF_API),
            &json!(["iqn.2026-11.test:one"]),
            &json!(["esx1"])
        )
    );
    drop(serving);
    // Once taken over, the old records don't count.
    fs::write(home.file("ashlar-exports.json"), "{").unwrap();
    assert_eq!(list(&home.serve()), [exports, hosts]);
}

#[test]
fn a_site_file_is_shown_and_applied_while_it_serves() {
    let home = Home::new(SITE);
    let serving = home.serve();
    assert_eq!(site_file(&serving, "diff", &home), (0, Vec::new()));
    let more = "[[volume]]\nname = \"v1\"\npool = \"p0\"\nsize = \"4M\"\n\
                tags = { vm = \"web\" }\n\
                [[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:esx1\"]\n\
                [[export]]\ntarget = \"iqn.2026-11.dev.ashlar:b\"\nvolumes = [\"v1\"]\n\
                hosts = [\"esx1\"]\naffect_others = true\n";
    let one = "initiators = [\"iqn.2026-11.test:one\"]";
    home.set_site(&(SITE.replace("initiators = \"any\"", one) + more));
    let wanted = [
        ("create", "volume v1", "4 MiB in pool p0"),
        ("create", "host esx1", "initiators iqn.2026-11.test:esx1"),
        (
            "change",
            "target iqn.2026-11.dev.ashlar:a",
            "initiators any becomes iqn.2026-11.test:one",
        ),
        (
            "create",
            "target iqn.2026-11.dev.ashlar:b",
            "volumes v1; hosts esx1; portals all; affecting others allowed; physical block bytes 4096",
        ),
    ];
    let wanted = wanted
        .map(|(action, what, how)| json!({ "action": action, "what": what, "how": how }))
        .to_vec();
    assert_eq!(site_file(&serving, "diff", &home), (3, wanted.clone()));
    // Nobody is asked, and nobody said yes.
    let path = home.site();
    let (code, said) = serving.refused(&["site", "apply", path.to_str().unwrap()]);
    assert!(code == 2 && said.contains("--yes"), "{said}");
    assert_eq!(site_file(&serving, "diff", &home).1, wanted);
    assert_eq!(site_file(&serving, "apply", &home), (0, wanted));
    assert_eq!(site_file(&serving, "diff", &home), (0, Vec::new()));
    assert_eq!(site_file(&serving, "apply", &home), (0, Vec::new()));
    let v1 = serving.json(&["volume", "show", "v1"]);
    assert_eq!(v1["tags"]["vm"], "web");
    let exports = serving.json(&["export", "list"]);
    let may = ["a", "b"].map(|name| {
        let target = format!("iqn.2026-11.dev.ashlar:{name}");
        serving.json(&["export", "show", &target])["may_affect_others"].clone()
    });
    assert_eq!(may, [json!(false), json!(true)]);
    assert_eq!(serving.stop("KILL").code(), None);
    // What the file does not say any more stays, and is shown.
    home.set_site(SITE);
    let serving = home.serve();
    assert_eq!(serving.json(&["export", "list"]), exports);
    let (code, found) = site_file(&serving, "diff", &home);
    let kept = found.iter().filter(|one| one["action"] == "keep");
    assert_eq!((code, found.len(), kept.count()), (3, 4, 3));
}

#[test]
fn what_can_not_be_applied_is_said_and_the_rest_is_done() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&[
        "host",
        "create",
        "mine",
        "--initiator",
        "iqn.2026-11.test:x",
    ]);
    let more = "[[volume]]\nname = \"v1\"\npool = \"p0\"\nsize = \"4 MiB\"\n\
                [[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:x\"]\n";
    home.set_site(&format!("{SITE}{more}"));
    let (code, found) = site_file(&serving, "apply", &home);
    assert_eq!((code, found.len()), (1, 2), "{found:?}");
    assert_eq!(
        (&found[0]["what"], &found[0]["failed"]),
        (&json!("volume v1"), &Value::Null)
    );
    let why = found[1]["failed"].as_str().unwrap();
    assert!(
        found[1]["what"] == "host esx1" && why.contains("of host mine"),
        "{found:?}"
    );
    serving.done(&["volume", "show", "v1"]);
    let path = home.site();
    fs::write(&path, "[site]\nname = 1\n").unwrap();
    let (code, said) = serving.refused(&["site", "diff", path.to_str().unwrap()]);
    assert!(
        code == 2 && said.contains("site.toml:2: site.name"),
        "{said}"
    );
}

#[test]
fn a_renamed_volume_is_followed_by_every_later_start_and_application() {
    let home = Home::new(SITE);
    let serving = home.serve();
    serving.done(&["volume", "rename", "v0", "web"]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let renamed = json!({
        "action": "keep", "what": "volume v0",
        "how": "is called web now: write that name in the site file",
    });
    for _ in 0..2 {
        let serving = home.serve();
        assert_eq!(
            site_file(&serving, "diff", &home),
            (0, vec![renamed.clone()])
        );
        assert_eq!(site_file(&serving, "apply", &home), (0, Vec::new()));
        let volumes = serving.json(&["volume", "list"]);
        assert_eq!(volumes.as_array().unwrap().len(), 1, "{volumes}");
        assert_eq!(serving.stop("KILL").code(), None);
    }
}

#[test]
fn without_its_record_nobody_can_log_in_until_somebody_says_so() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let initiator = "iqn.2026-11.test:one";
    serving.done(&["export", "change", OF_SITE, "--initiator", initiator]);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let record = home.file("ashlar-configuration.json");
    let away = home.file("away.json");
    fs::rename(&record, &away).unwrap();
    let serving = home.serve();
    let status = serving.json(&["status"]);
    assert_eq!(status["health"], "attention", "{status}");
    assert!(status["why"].to_string().contains("was lost"), "{status}");
    assert_eq!(serving.json(&["export", "list"]), json!([]));
    home.wait_log("nobody can log");
    assert_eq!(
        serving.json(&["volume", "list"]).as_array().unwrap().len(),
        1
    );
    assert_eq!(serving.stop("KILL").code(), None);
    // So it stays; and put back, it counts.
    let serving = home.serve();
    assert_eq!(serving.json(&["export", "list"]), json!([]));
    assert_eq!(serving.stop("TERM").code(), Some(0));
    fs::rename(&away, &record).unwrap();
    let serving = home.serve();
    let export = serving.json(&["export", "show", OF_SITE]);
    assert_eq!(export["initiators"], json!([initiator]));
    drop(serving);
    // With its drives in another data directory it is the same.
    let other = Home::new(SITE);
    fs::create_dir(other.data()).unwrap();
    for drive in ["d0.img", "d1.img"] {
        fs::rename(home.file(drive), other.file(drive)).unwrap();
    }
    let serving = other.serve();
    assert_eq!(serving.json(&["export", "list"]), json!([]));
    assert_eq!(
        serving.json(&["volume", "list"]).as_array().unwrap().len(),
        1
    );
    serving.apply(&other);
    assert_eq!(
        serving.json(&["export", "show", OF_SITE])["initiators"],
        "any"
    );
}

/// A target gets no LUN before it admits whom the file admits.
#[test]
fn a_volume_is_not_shown_to_those_whom_the_file_does_not_admit() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let host = [
        "host",
        "create",
        "esx1",
        "--initiator",
        "iqn.2026-11.test:x",
    ];
    serving.done(&[&host[..], &["--initiator", "iqn.2026-11.test:y"]].concat());
    let host = [
        "host",
        "create",
        "mine",
        "--initiator",
        "iqn.2026-11.test:z",
    ];
    serving.done(&host);
    // The machine has no such address, so the target can't be limited to it.
    let away = "[[portal]]\naddress = \"192.0.2.1:3260\"\n";
    let volume = "[[volume]]\nname = \"v1\"\npool = \"p0\"\nsize = \"4 MiB\"\n";
    // What is z has another name in the file, so no host becomes as the file says.
    let hosts = "[[host]]\nname = \"esx1\"\ninitiators = [\"iqn.2026-11.test:x\"]\n\
                 [[host]]\nname = \"esx2\"\ninitiators = [\"iqn.2026-11.test:z\"]\n\
                 [[volume]]\nname = \"v2\"\npool = \"p0\"\nsize = \"4 MiB\"\n\
                 [[export]]\ntarget = \"iqn.2026-11.dev.ashlar:b\"\nvolumes = [\"v2\"]\n\
                 hosts = [\"esx1\"]\n";
    let narrow = SITE.replace("[\"v0\"]", "[\"v0\", \"v1\"]").replace(
        "initiators = \"any\"",
        "initiators = [\"iqn.2026-11.test:one\"]\nportals = [\"192.0.2.1:3260\"]",
    );
    home.set_site(&format!("{narrow}{away}{volume}{hosts}"));
    let (code, found) = site_file(&serving, "apply", &home);
    let failed = |what: &str| {
        let one = found.iter().find(|one| one["what"] == what).unwrap();
        one["failed"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(code, 1, "{found:?}");
    assert!(failed("target iqn.2026-11.dev.ashlar:a").contains("no portal"));
    assert!(failed(&format!("target {OF_API}")).contains("names hosts"));
    let exports = serving.json(&["export", "list"]);
    let luns: Vec<&Value> = exports[0]["luns"].as_array().unwrap().iter().collect();
    assert_eq!(exports.as_array().unwrap().len(), 1, "{exports}");
    assert_eq!(luns.len(), 1, "{exports}");
    assert_eq!(exports[0]["initiators"], "any");
}

#[test]
fn a_site_file_that_cannot_be_followed_is_told() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let renamed = SITE.replace("\"p0\"", "\"p9\"");
    home.set_site(&renamed.replace("127.0.0.1:0\"\n[[drive", "127.0.0.1:1\"\n[[drive"));
    let (_, found) = site_file(&serving, "diff", &home);
    let how = |what: &str| {
        let of = found.iter().find(|one| one["what"] == what);
        of.map(|one| one["how"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        how("pool p9").unwrap(),
        "can't be made: drive d0 is of pool p0"
    );
    assert!(how("pool p0").unwrap().contains("not in the"));
    assert!(how("portal 127.0.0.1:1").unwrap().contains("is opened"));
    assert!(
        how("portal 127.0.0.1:0")
            .unwrap()
            .contains("ashlar portal remove")
    );
    // It keeps down itself only.
    home.set_site(&format!("{renamed}{SECOND_POOL}"));
    let path = home.site();
    let (code, said) = serving.refused(&["site", "apply", "--yes", path.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        said.contains("pool p9: ") && said.contains("drive d0"),
        "{said}"
    );
    assert_eq!(serving.json(&["pool", "show", "p1"])["health"], "ok");
    drop(serving);
    let serving = home.serve();
    assert_eq!(serving.json(&["status"])["health"], "ok");
    drop(serving);

    let secret = "[chap]\ndiscovery = { name = \"all\", secret = \"to-discover-with\" }\n";
    home.set_site(&format!("{SITE}{secret}"));
    let serving = home.serve();
    let path = home.site();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    for what in ["check", "diff", "apply"] {
        let (code, said) = serving.refused(&["site", what, path.to_str().unwrap()]);
        assert!(code == 2 && said.contains("chmod go="), "{what}: {said}");
    }
}
