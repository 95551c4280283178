//! Limits of volumes: set, shown, kept over a kill, refused where they can't be.

use crate::array::{Home, SITE, Serving};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// Has a host write 64 KiB in pieces of 4 KiB, all at once.
fn write(serving: &Serving) {
    let image = format!(
        "driver=iscsi,transport=tcp,portal={},target=iqn.2026-11.dev.ashlar:a,lun=0,\
         initiator-name=iqn.2026-11.test:host",
        serving.portal
    );
    let mut command = Command::new("qemu-io");
    command.args(["--image-opts", "-t", "none"]);
    for at in 0..16 {
        let piece = format!("aio_write -q {} 4096", at * 4096);
        command.args(["-c", &piece]);
    }
    command.args(["-c", "aio_flush"]);
    let status = command.arg(image).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

/// What is said of a refused command.
fn refused(serving: &Serving, args: &[&str]) -> String {
    let output = serving.run(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_limit_holds_commands_and_outlives_a_kill_and_goes_with_its_volume() {
    let home = Home::new(SITE);
    let serving = home.serve();
    assert_eq!(serving.json(&["qos", "show"]), json!([]));
    let set = serving.json(&["qos", "set", "v0", "--iops", "32", "--io-size", "4 KiB"]);
    assert_eq!(set["limits"], json!({"iops": 32, "io_bytes": 4096}));
    write(&serving);
    let shown = serving.json(&["qos", "show", "v0"]);
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    assert!(
        count(&shown, "held") > 0 && count(&shown, "held_ms") > 0,
        "{shown}"
    );
    assert_eq!((count(&shown, "waiting"), count(&shown, "refused")), (0, 0));
    serving.done(&["volume", "rename", "v0", "w0"]);
    assert_eq!(serving.stop("KILL").code(), None);

    let serving = home.serve();
    let shown = serving.json(&["qos", "show"]);
    assert_eq!(
        (&shown[0]["volume"], &shown[0]["limits"]),
        (&json!("w0"), &set["limits"])
    );
    write(&serving);
    let held = count(&serving.json(&["qos", "show", "w0"]), "held");
    assert!(held > 0, "it counts after the start, too");
    let clone = ["volume", "clone", "w0", "c0"];
    serving.done(&clone);
    assert_eq!(serving.json(&["qos", "show", "c0"])["limits"], json!({}));
    let removed = serving.json(&["qos", "remove", "w0"]);
    assert_eq!(removed["limits"], json!({}));
    write(&serving);
    assert_eq!(count(&serving.json(&["qos", "show", "w0"]), "held"), held);
    let text = serving.run(&["qos", "show", "w0"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("bandwidth") && text.contains("refused"),
        "{text}"
    );
}

#[test]
fn limits_that_cannot_be_are_refused_by_name() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for (args, named) in [
        (vec!["--iops", "0"], "iops"),
        (vec!["--bandwidth", "1 KiB"], "bytes_per_s"),
        (vec!["--iops", "5", "--io-size", "1 GiB"], "io_bytes"),
        (vec!["--iops", "5", "--io-size", "8 KiB"], "io_bytes"),
        (
            vec!["--iops", "5", "--burst-iops", "5", "--burst-seconds", "9"],
            "burst_iops",
        ),
        (
            vec!["--iops", "5", "--burst-iops", "9", "--burst-seconds", "0"],
            "burst_s",
        ),
        (vec!["--iops", "5", "--burst-iops", "9"], "--burst-seconds"),
        (vec!["--io-size", "4 KiB"], "--iops"),
        (vec![], "--iops"),
    ] {
        let args = [vec!["qos", "set", "v0"], args].concat();
        let said = refused(&serving, &args);
        assert!(said.contains(named), "{args:?}: {said}");
    }
    let said = refused(&serving, &["qos", "set", "none", "--iops", "5"]);
    assert!(said.contains("none"), "{said}");
    assert_eq!(serving.json(&["qos", "show"]), json!([]));
}
