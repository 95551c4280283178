//! Pools that were made by earlier versions open, with what they held, and can do what
//! came later.
//!
//! `pools/before-snapshots.tar.zst` is of commit 37f7d3d, the last one without snapshots,
//! names that change, and promises: its two drive files, sparse, as they were when the server
//! was killed with writes in its log. The site file that it was made with is [`SITE`] with
//! `provisioning = "thick"` for `thick` and drives of 96 MiB; then, by qemu-io: `write -P 1 0 1M`
//! and `write -P 2 300k 5k` to LUN 0, `write -P 3 100k 64k` to LUN 1.

use e2e::array::{Array, TARGET};
use e2e::program;
use e2e::qemu_io::{Run, verify};

const KIB: u64 = 1 << 10;

const SITE: &str = r#"
[site]
name = "old"
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "d0"
file = "d0.img"
size = "96 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "96 MiB"
[[pool]]
name = "p"
level = "10"
log = "1 MiB"
drives = ["d0", "d1"]
[[volume]]
name = "thin"
pool = "p"
size = "4 MiB"
[[volume]]
name = "thick"
pool = "p"
size = "2 MiB"
provisioning = "thick"
[[export]]
target = "iqn.2026-11.dev.ashlar:e2e"
volumes = ["thin", "thick"]
initiators = "any"
"#;

fn run(at: u64, len: u64, value: u8) -> Run {
    Run {
        at: at * KIB,
        len_bytes: len * KIB,
        value,
    }
}

fn check(array: &Array, target: &str) {
    let lun = |lun: usize| format!("{}/{target}/{lun}", array.portal_url());
    let thin = [
        run(0, 300, 1),
        run(300, 5, 2),
        run(305, 1024 - 305, 1),
        run(1024, 3072, 0),
    ];
    verify(&lun(0), &thin);
    verify(
        &lun(1),
        &[run(0, 100, 0), run(100, 64, 3), run(164, 1884, 0)],
    );
}

#[test]
fn a_pool_made_before_there_were_snapshots_opens_and_has_them() {
    let mut array = Array::start_over(SITE, |data| {
        let pool = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/pools/before-snapshots.tar.zst"
        );
        let data = data.to_str().unwrap();
        program::run("tar", &["--zstd", "-xf", pool, "-C", data]).ok();
    });
    array.apply_site();
    check(&array, TARGET);
    let names = ["thin", "thick"];
    for name in names {
        let snapshot = format!("{name}@then");
        array.command(&["snapshot", "create", &snapshot]).ok();
        let clone = format!("of-{name}");
        array.command(&["volume", "clone", &snapshot, &clone]).ok();
        array.command(&["volume", "tag", name, "age=old"]).ok();
    }
    let target = "iqn.2026-11.dev.ashlar:clones";
    let create = [
        "export", "create", "--any", target, "--volume", "of-thin", "--volume", "of-thick",
    ];
    array.command(&create).ok();
    let write = ["-f", "raw", "-c", "write -P 9 0 2M", &array.lun_url(0)];
    assert!(program::run("qemu-io", &write).ok().contains("wrote"));
    check(&array, target);

    array.kill();
    array.start_again();
    check(&array, target);
    verify(&array.lun_url(0), &[run(0, 2048, 9), run(2048, 2048, 0)]);
    let list = array.json(&["volume", "list", "--tag", "age=old"]);
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
    assert_eq!(array.stop().code(), Some(0));
    let (code, said) = array.fsck();
    assert_eq!(code, Some(0), "{said}");
}
