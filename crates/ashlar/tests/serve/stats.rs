//! Statistics by command: what a host did is in the table and in the JSON, since the start and
//! between two answers.

use crate::array::{Home, SITE, Serving};
use serde_json::Value;
use std::process::{Command, Stdio};

const NAME: &str = "iqn.2026-11.test:host";

/// Has a host write and read 64 KiB in pieces of 4 KiB, one behind the other.
fn work(serving: &Serving) {
    let image = format!(
        "driver=iscsi,transport=tcp,portal={},target=iqn.2026-11.dev.ashlar:a,lun=0,\
         initiator-name={NAME}",
        serving.portal
    );
    let pieces = (0..16).flat_map(|at| [("write", at), ("read", at)]);
    let commands: Vec<String> = pieces
        .map(|(what, at)| format!("{what} -q {} 4096", at * 4096))
        .collect();
    let mut command = Command::new("qemu-io");
    command.args(["--image-opts", "-t", "none"]);
    for line in &commands {
        command.args(["-c", line]);
    }
    let status = command.arg(image).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

fn one(of: &Value) -> &Value {
    let rows = of.as_array().unwrap();
    assert_eq!(rows.len(), 1, "{of:#}");
    &rows[0]
}

fn lines(serving: &Serving, args: &[&str]) -> Vec<String> {
    let output = serving.run(args);
    assert!(output.status.success(), "{args:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_host_did_is_shown_by_volume_and_by_initiator() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let before = serving.json(&["stats", "volumes"]);
    assert_eq!(one(&before)["io"]["commands"], 0);
    assert_eq!(one(&before)["io"]["reads"]["latency"]["p99_ns"], 0);
    work(&serving);
    // The session ends a moment after its host has.
    serving.wait(&["session", "list"], |all| *all == Value::Array(Vec::new()));

    let volumes = serving.json(&["stats", "volumes", "v0"]);
    let volume = one(&volumes);
    assert_eq!(
        (&volume["name"], &volume["sessions"]),
        (&"v0".into(), &0.into())
    );
    let io = &volume["io"];
    for way in ["reads", "writes"] {
        let flow = &io[way];
        assert!(flow["commands"].as_u64().unwrap() >= 16, "{flow:#}");
        let sizes = flow["sizes"].as_array().unwrap();
        let of_4k = sizes
            .iter()
            .find(|size| size["from_bytes"] == 4096)
            .unwrap();
        assert!(of_4k["commands"].as_u64().unwrap() >= 16, "{flow:#}");
        let buckets = flow["latency"]["buckets"].as_array().unwrap();
        let all: u64 = buckets
            .iter()
            .map(|b| b["commands"].as_u64().unwrap())
            .sum();
        assert_eq!(Value::from(all), flow["commands"]);
        let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|of| flow["latency"][of].as_u64());
        assert!(p50 > Some(0) && p50 <= p99 && p99 <= max, "{flow:#}");
    }
    assert_eq!(io["writes"]["commands"], 16);
    assert_eq!(io["writes"]["bytes"], 65_536);
    assert_eq!(io["writes"]["random"], 1);
    assert_eq!(io["errors"], 0);
    let initiators = serving.json(&["stats", "initiators"]);
    let initiator = one(&initiators);
    assert_eq!(initiator["name"], NAME);
    assert_eq!(initiator["io"]["writes"], io["writes"]);
    assert_eq!(
        serving.json(&["stats", "sessions"]),
        Value::Array(Vec::new())
    );

    let table = lines(&serving, &["stats", "volumes"]);
    assert_eq!(table.len(), 2, "{table:?}");
    let heads: Vec<_> = table[0].split_whitespace().collect();
    let expected = "VOLUME RD/S WR/S RDMB/S WRMB/S RD_MS WR_MS P99_MS QUEUE SIZE RND% RD% UNMAP \
                    WSAME ATS OFFLOAD ERR CONFL";
    assert_eq!(heads.join(" "), expected);
    assert!(
        table[1].starts_with("v0 ") && table[1].contains(" KiB "),
        "{table:?}"
    );
    let table = lines(&serving, &["stats", "volumes", "--latencies"]);
    let words =
        |line: &String| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let heads = "VOLUME COMMAND COUNT MEAN P50 P95 P99 MAX";
    assert_eq!(words(&table[0]).join(" "), heads);
    // Reads and writes; of others there were none.
    assert_eq!(table.len(), 3, "{table:?}");
    assert_eq!(words(&table[1])[..2], ["v0", "read"]);
    assert_eq!(words(&table[2])[..3], ["v0", "write", "16"]);
    let longest: f64 = words(&table[2])[7].parse().unwrap();
    assert!(longest > 0.0, "{table:?}");
    // Nothing was done in this time; what was before is not shown.
    let args = ["stats", "initiators", "--interval", "1", "--count", "2"];
    let tables = lines(&serving, &args);
    assert_eq!(tables.len(), 4, "{tables:?}");
    for row in [&tables[1], &tables[3]] {
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells[..4], [NAME, "0.0", "0.0", "0.00"], "{row}");
        assert_eq!(cells[5..12], ["-"; 7], "{row}");
    }
    let between = serving.json(
        &args[..4]
            .iter()
            .chain(&["--count", "1"])
            .copied()
            .collect::<Vec<_>>(),
    );
    let between = one(&between);
    assert_eq!(between["io"]["commands"], 0);
    let over_ms = between["over_ms"].as_u64().unwrap();
    assert!((900..).contains(&over_ms), "{over_ms}");
}

#[test]
fn what_is_not_there_is_refused() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for (args, kind, expected) in [
        (
            &["stats", "volumes", "none"][..],
            "not_found",
            "volume none",
        ),
        (&["stats", "initiators", NAME], "not_found", "of initiator"),
        (&["stats", "sessions", "7"], "not_found", "session 7"),
        (&["stats", "volumes", "--count", "1"], "wrong", "--interval"),
        (
            &["stats", "volumes", "--interval", "0"],
            "wrong",
            "0 is not in",
        ),
    ] {
        let (found, said) = serving.refusal(args);
        assert!(
            found == kind && said.contains(expected),
            "{args:?}: {found} {said}"
        );
    }
}
