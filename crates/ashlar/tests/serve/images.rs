//! Jobs by command and by API: what is wrong is refused, and what they say of themselves.

use crate::array::{Home, SITE};
use serde_json::json;
use std::fs;

fn home_with_images() -> (Home, tempfile::TempDir) {
    let images = tempfile::tempdir().unwrap();
    let text = format!("[images]\ndirectories = [{:?}]\n{SITE}", images.path());
    (Home::new(&text), images)
}

#[test]
fn a_raw_image_comes_in_and_goes_out_without_other_programs() {
    let (home, images) = home_with_images();
    let serving = home.serve();
    let (from, to) = (images.path().join("a.raw"), images.path().join("b.raw"));
    let mut bytes = vec![0; 3 << 20];
    bytes[1 << 20..][..512].fill(7);
    fs::write(&from, &bytes).unwrap();
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    let import = [
        "volume", "import", from, "--pool", "p0", "--name", "new", "--thick",
    ];
    let job = serving.json(&import);
    assert_eq!(
        (&job["kind"], &job["state"]),
        (&json!("import"), &json!("done"))
    );
    assert_eq!(
        (&job["done_bytes"], &job["data_bytes"]),
        (&json!(3 << 20), &json!(256 << 10))
    );
    let volume = serving.json(&["volume", "show", "new"]);
    assert_eq!(
        (&volume["size_bytes"], &volume["provisioning"]),
        (&json!(3 << 20), &json!("thick"))
    );
    let out = serving.json(&["volume", "export", "new", to, "--format", "raw", "--verify"]);
    assert_eq!(out["sha256"], job["sha256"]);
    assert!(fs::read(to).unwrap() == bytes);
    let listed = serving.json(&["job", "list"]);
    assert_eq!(listed, json!([job, out]));
    assert_eq!(job["format_unrecognised"], false);
    // Neither its name nor its content says what it is.
    let unknown = images.path().join("disk.backup");
    fs::copy(from, &unknown).unwrap();
    let import = [
        "volume",
        "import",
        unknown.to_str().unwrap(),
        "--pool",
        "p0",
        "--name",
    ];
    let said = serving.run(&[&import[..], &["taken"]].concat());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("not recognised"), "{said}");
    let shown = serving.json(&["job", "show", "3"]);
    assert_eq!(
        (&shown["format"], &shown["format_unrecognised"]),
        (&json!("raw"), &json!(true))
    );
    let text = serving.run(&["job", "show", "3"]).stdout;
    assert!(String::from_utf8(text).unwrap().contains("not recognised"));
    serving.done(&["job", "cancel", "3"]);
    let plainly = [&import[..], &["said", "--format", "raw"]].concat();
    assert_eq!(serving.json(&plainly)["format_unrecognised"], false);
    serving.done(&["job", "cancel", "4"]);
    // What is known of jobs survives a restart; numbers are not given twice, not even those of jobs
    // that are forgotten.
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_eq!(serving.json(&["job", "list"]).as_array().unwrap().len(), 2);
    serving.done(&["job", "cancel", "2"]);
    serving.done(&["job", "cancel", "1"]);
    fs::remove_file(to).unwrap();
    let out = serving.json(&["volume", "export", "new", to, "--format", "raw"]);
    assert_eq!(out["id"], 5);
}

#[test]
fn what_is_wrong_is_refused_with_an_exit_code() {
    let (home, images) = home_with_images();
    let serving = home.serve();
    let path = |name: &str| images.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.raw"), [0; 1 << 20]).unwrap();
    let (there, absent) = (path("a.raw"), path("none"));
    let import = |file: &str, pool: &str, name: &str, more: &[&str]| {
        let import = ["volume", "import", file, "--pool", pool, "--name", name];
        serving.refused(&[&import[..], more].concat())
    };
    assert_eq!(import(&absent, "p0", "n", &[]).0, 5);
    assert_eq!(import(&there, "none", "n", &[]).0, 5);
    assert_eq!(import(&there, "p0", "v0", &[]).0, 6);
    assert_eq!(import(&there, "p0", "a b", &[]).0, 2);
    assert_eq!(import(&there, "p0", "n", &["--format", "vdi"]).0, 2);
    assert_eq!(import(&there, "p0", "n", &["--format", "vhdx"]).0, 2);
    assert_eq!(import(&there, "p0", "n", &["--rate", "0 B"]).0, 2);
    assert_eq!(import("/etc/hostname", "p0", "n", &[]).0, 2);
    let new = path("new");
    let export = |more: &[&str]| {
        let export = ["volume", "export", "v0", &new, "--format"];
        serving.refused(&[&export[..], more].concat()).0
    };
    assert_eq!(export(&["vdi"]), 2);
    assert_eq!(export(&["raw", "--option", "x"]), 2);
    assert_eq!(export(&["raw", "--option", "size=1"]), 2);
    for command in ["show", "watch", "cancel"] {
        let (code, said) = serving.refused(&["job", command, "7"]);
        assert_eq!((code, said.as_str()), (5, "error: there is no job 7\n"));
    }
    assert_eq!(
        serving.json(&["job", "list"]),
        json!([]),
        "nothing has begun"
    );
    assert_eq!(
        serving.json(&["volume", "list"]).as_array().unwrap().len(),
        1
    );
    assert_eq!(fs::read_dir(images.path()).unwrap().count(), 1);
}

#[test]
fn a_volume_that_is_not_whole_is_not_exported_by_the_site_file_either() {
    let (home, images) = home_with_images();
    let site = fs::read_to_string(home.site()).unwrap();
    let serving = home.serve();
    let from = images.path().join("a.raw");
    fs::write(&from, vec![7; 4 << 20]).unwrap();
    let from = from.to_str().unwrap();
    let import = ["volume", "import", from, "--pool", "p0", "--name", "new"];
    let job = serving.json(&[&import[..], &["--rate", "1 MiB", "--detach"]].concat());
    assert!(["queued", "running"].contains(&job["state"].as_str().unwrap()));
    assert!(serving.stop("TERM").success());
    home.set_site(&format!(
        "{site}[[volume]]\nname = \"new\"\npool = \"p0\"\nsize = \"4 MiB\"\n\
         [[export]]\ntarget = \"iqn.2026-11.dev.ashlar:b\"\nvolumes = [\"new\"]\ninitiators = \"any\"\n"
    ));
    let serving = home.serve();
    let path = home.site();
    let (code, said) = serving.refused(&["site", "apply", "--yes", path.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        said.contains("volume new") && said.contains("job 1"),
        "{said}"
    );
    serving.wait(&["job", "show", "1"], |job| job["state"] == "done");
    serving.apply(&home);
    serving.done(&["export", "show", "iqn.2026-11.dev.ashlar:b"]);
}
