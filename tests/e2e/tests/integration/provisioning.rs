//! Space that hosts discard is the pool's again; and nothing else changes.

use e2e::array::{Array, LUN_BYTES, TARGET};
use e2e::guest::{Guest, Image, Phase};
use e2e::program;
use e2e::qemu_io::{Run, verify};

const MIB: u64 = 1 << 20;

/// A run in MiB.
fn run(at: u64, len: u64, value: u8) -> Run {
    Run {
        at: at * MIB,
        len_bytes: len * MIB,
        value,
    }
}

/// What `ashlar volume show` says is mapped; printed, too.
fn mapped_bytes(array: &Array, volume: &str, when: &str) -> u64 {
    let shown = array.json(&["volume", "show", volume]);
    let mapped = shown["mapped_bytes"].as_u64().unwrap();
    println!("volume {volume}, {when}: {mapped} bytes mapped");
    mapped
}

/// Has qemu-io do this to a LUN, with permission to discard.
#[track_caller]
fn qemu_io(url: &str, commands: &[&str]) {
    let mut arguments = vec!["-f", "raw", "-d", "unmap"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    arguments.push(url);
    let said = program::run("qemu-io", &arguments).ok();
    // Not every version says so in its exit code.
    assert!(!said.contains("failed"), "{said}");
}

/// The runs without pages, as qemu-img reads them from GET LBA STATUS.
fn holes(url: &str) -> Vec<(u64, u64)> {
    let said = program::run("qemu-img", &["map", "-f", "raw", "--output=json", url]).ok();
    let map: serde_json::Value = serde_json::from_str(&said).unwrap();
    let runs = map.as_array().unwrap().iter();
    let holes = runs.filter(|run| run["data"] == false && run["zero"] == true);
    holes
        .map(|run| {
            (
                run["start"].as_u64().unwrap(),
                run["length"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn discarded_pages_of_a_thin_lun_are_given_back_and_read_as_zeroes() {
    let array = Array::start();
    let url = array.lun_url(0);
    assert_eq!(mapped_bytes(&array, "thin", "new"), 0);
    qemu_io(&url, &["write -P 1 0 16M", "write -P 1 16M 16M"]);
    let full = mapped_bytes(&array, "thin", "32 MiB written");
    assert_eq!(full, 32 * MIB);

    qemu_io(&url, &["discard 4M 8M"]);
    let discarded = mapped_bytes(&array, "thin", "8 MiB discarded");
    assert_eq!(discarded, full - 8 * MIB);
    qemu_io(&url, &["write -z -u 20M 4M"]);
    let zeroed = mapped_bytes(&array, "thin", "4 MiB zeroed");
    assert_eq!(zeroed, discarded - 4 * MIB);

    let kept = [run(0, 4, 1), run(12, 8, 1), run(24, 8, 1)];
    let gone = [run(4, 8, 0), run(20, 4, 0), run(32, 32, 0)];
    verify(&url, &kept);
    verify(&url, &gone);
    let expected = gone.map(|run| (run.at, run.len_bytes));
    assert_eq!(holes(&url), expected);

    // And all of it, so that a new owner may have it.
    qemu_io(&url, &["discard 0 64M"]);
    assert_eq!(mapped_bytes(&array, "thin", "all discarded"), 0);
    qemu_io(&url, &["write -P 3 5M 1M"]);
    verify(&url, &[run(0, 5, 0), run(5, 1, 3), run(6, 58, 0)]);
}

#[test]
fn a_discard_of_less_than_a_page_keeps_its_neighbours() {
    let array = Array::start();
    let url = array.lun_url(0);
    qemu_io(&url, &["write -P 7 0 1M"]);
    // What QEMU doesn't discard it leaves; zeroing it has to be exact.
    qemu_io(
        &url,
        &[
            "discard 4k 4k",
            "write -z -u 300k 1k",
            "write -z 600001 513",
        ],
    );
    let run = |at, len_bytes, value| Run {
        at,
        len_bytes,
        value,
    };
    verify(
        &url,
        &[
            run(0, 4096, 7),
            run(8192, 300 * 1024 - 8192, 7),
            run(300 * 1024, 1024, 0),
            run(301 * 1024, 600_001 - 301 * 1024, 7),
            run(600_001, 513, 0),
            run(600_514, MIB - 600_514, 7),
        ],
    );
    assert_eq!(mapped_bytes(&array, "thin", "parts of pages gone"), MIB);
}

#[test]
fn a_thick_lun_is_zeroed_and_keeps_its_pages() {
    let array = Array::start();
    let url = array.lun_url(1);
    let set_aside = || {
        let space = array.json(&["volume", "space", "thick"]);
        space["mapped_bytes"].as_u64().unwrap() + space["promised_bytes"].as_u64().unwrap()
    };
    assert_eq!(set_aside(), LUN_BYTES[1]);
    qemu_io(
        &url,
        &["write -P 5 0 12M", "discard 1M 2M", "write -z -u 4M 4M"],
    );
    verify(
        &url,
        &[run(0, 1, 5), run(3, 1, 5), run(4, 4, 0), run(8, 4, 5)],
    );
    assert_eq!(set_aside(), LUN_BYTES[1], "zeroed in part");
    assert_eq!(holes(&url), []);
}

/// Two lanes on two shards behind one target: one of the volumes is reached by way of
/// the other shard.
#[test]
fn a_volume_of_another_shard_gives_space_back_just_so() {
    let mut site = "[site]\nname = \"far\"\nshards = 2\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    [[portal]]\naddress = \"127.0.0.1:0\"\n[[pool]]\nname = \"p\"\n\
                    level = \"10\"\nlanes = 2\ndrives = [\"d0\", \"d1\"]\n"
        .to_owned();
    for name in ["d0", "d1"] {
        site +=
            &format!("[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"256 MiB\"\n");
    }
    let array = Array::start_with(&site);
    for name in ["a", "b"] {
        let create = ["volume", "create", name, "--pool", "p", "--size", "32 MiB"];
        array.command(&create).ok();
    }
    let export = [
        "export", "create", "--any", TARGET, "--volume", "a", "--volume", "b",
    ];
    array.command(&export).ok();
    for (lun, name) in ["a", "b"].into_iter().enumerate() {
        let url = array.lun_url(lun);
        qemu_io(
            &url,
            &["write -P 1 0 8M", "discard 2M 3M", "write -z -u 6M 1M"],
        );
        assert_eq!(mapped_bytes(&array, name, "half given back"), 4 * MIB);
        verify(&url, &[run(0, 2, 1), run(2, 3, 0), run(5, 1, 1)]);
        verify(&url, &[run(6, 1, 0), run(7, 1, 1), run(8, 24, 0)]);
        let expected = [(2, 3), (6, 1), (8, 24)].map(|(at, len)| (at * MIB, len * MIB));
        assert_eq!(holes(&url), expected);
    }
}

/// ext4 in a guest: what `rm` and `fstrim` free there is free in the pool.
#[test]
fn fstrim_in_a_guest_gives_space_back() {
    let image = Image::build();
    let mut array = Array::start();
    let url = array.lun_url(2);
    Guest::boot(&image, &url, Phase::Fill).wait_for("FILLED");
    let full = mapped_bytes(&array, "guest", "64 MiB in files");
    assert!(full >= 64 * MIB, "{full}");

    let mut guest = Guest::boot(&image, &url, Phase::Trim);
    guest.wait_for("TRIMMED");
    let kept = guest.checksums();
    assert_eq!(kept.len(), 1, "one file stays: {kept:?}");
    drop(guest);
    let trimmed = mapped_bytes(&array, "guest", "56 MiB of them removed and trimmed");
    // Pages that hold something still stay whole.
    assert!(trimmed + 52 * MIB <= full, "{full} bytes, then {trimmed}");

    // What is there still is there after a crash, and clean.
    array.kill();
    array.start_again();
    assert_eq!(mapped_bytes(&array, "guest", "after a crash"), trimmed);
    let mut guest = Guest::boot(&image, &array.lun_url(2), Phase::Check);
    guest.wait_for("CHECKED");
    assert_eq!(guest.checksums(), kept);
}
