//! Images that can't be, are cut short, lie, or lead elsewhere: said clearly, with nothing
//! left: no volume, no file, no process.

use e2e::array::Array;
use e2e::image_files::{ImageFiles, volumes};
use e2e::program;
use std::fs::File;
use std::os::unix::fs::FileExt;

const MIB: u64 = 1 << 20;

struct Case {
    files: ImageFiles,
    array: Array,
}

impl Case {
    fn new() -> Self {
        let files = ImageFiles::new();
        files.raw("good.raw", 16 * MIB, &[(0, 3 << 20), (8 * MIB, 1 << 20)]);
        let array = files.serve(128);
        Case { files, array }
    }

    fn convert(&self, options: &[&str], to: &str) {
        self.files.convert("good.raw", options, to);
    }

    fn cut(&self, name: &str, len: u64) {
        let file = File::options()
            .write(true)
            .open(self.files.path(name))
            .expect("the image is there");
        file.set_len(len).expect("cut an image");
    }

    fn len(&self, name: &str) -> u64 {
        let found = std::fs::metadata(self.files.path(name));
        found.expect("the image is there").len()
    }

    fn patch(&self, name: &str, at: u64, bytes: &[u8]) {
        let file = File::options()
            .write(true)
            .open(self.files.path(name))
            .expect("the image is there");
        file.write_all_at(bytes, at).expect("patch an image");
    }

    /// The import ends with this exit code and these words, and leaves nothing.
    #[track_caller]
    fn refused(&self, name: &str, more: &[&str], code: i32, why: &str) {
        let path = match name.starts_with('/') {
            true => name.to_owned(),
            false => self.files.path(name),
        };
        let import = ["volume", "import", &path, "--pool", "p", "--name", "new"];
        self.leaves_nothing(&[&import[..], more].concat(), code, why);
    }

    #[track_caller]
    fn leaves_nothing(&self, arguments: &[&str], code: i32, why: &str) {
        let before = self.files.names();
        let pool = |array: &Array| array.json(&["pool", "show", "p"])["mapped_bytes"].clone();
        let mapped = pool(&self.array);
        let ended = self.array.command(arguments);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(volumes(&self.array), ["v"], "{ended:?}");
        assert_eq!(self.files.names(), before, "{ended:?}");
        assert_eq!(pool(&self.array), mapped, "{ended:?}");
        self.files.wait_no_process(&self.array);
    }
}

#[test]
fn images_that_are_cut_short() {
    let case = Case::new();
    for (format, name) in [
        ("qcow2", "cut.qcow2"),
        ("vhdx", "cut.vhdx"),
        ("vmdk", "cut.vmdk"),
    ] {
        case.convert(&[format], name);
        case.cut(name, case.len(name) - (MIB + 4096));
        case.refused(name, &[], 1, name);
        case.cut(name, 600);
        let code = if format == "qcow2" { 1 } else { 2 };
        case.refused(name, &[], code, name);
        case.cut(name, 0);
        case.refused(name, &["--format", format], 2, name);
    }
    let stream = ["vmdk", "-o", "subformat=streamOptimized"];
    case.convert(&stream, "stream.vmdk");
    case.cut("stream.vmdk", case.len("stream.vmdk") / 2);
    case.refused("stream.vmdk", &[], 1, "stream.vmdk");
    case.cut("good.raw", 1000);
    case.refused("good.raw", &[], 2, "a multiple of 512");
    case.cut("good.raw", 0);
    case.refused("good.raw", &[], 2, "(0 bytes)");
}

#[test]
fn headers_that_claim_8_eib() {
    let case = Case::new();
    case.convert(&["qcow2"], "huge.qcow2");
    case.patch("huge.qcow2", 24, &(1u64 << 63).to_be_bytes());
    case.refused("huge.qcow2", &[], 2, "(9223372036854775808 bytes)");
    // What a volume could have, but the image has no tables for.
    case.patch("huge.qcow2", 24, &(1u64 << 48).to_be_bytes());
    case.refused("huge.qcow2", &[], 1, "huge.qcow2");
    case.convert(&["vhdx"], "huge.vhdx");
    let bytes = std::fs::read(case.files.path("huge.vhdx")).unwrap();
    let size = (16 * MIB).to_le_bytes();
    // The size of a block may look alike; that of the disk comes after it.
    let at = bytes.windows(8).rposition(|eight| eight == size).unwrap();
    case.patch("huge.vhdx", at as u64, &(1u64 << 63).to_le_bytes());
    case.refused("huge.vhdx", &[], 2, "which no VHDX has");
    case.convert(&["vmdk"], "huge.vmdk");
    case.patch("huge.vmdk", 12, &(1u64 << 54).to_le_bytes());
    case.refused("huge.vmdk", &[], 2, "(9223372036854775808 bytes)");
    case.files.raw("huge.raw", 1 << 42, &[]);
    case.refused("huge.raw", &["--thick"], 1, "needs 4 TiB");
}

#[test]
fn images_that_lead_elsewhere() {
    let case = Case::new();
    let evil = case.files.path("evil.qcow2");
    for backing in ["/etc/passwd", "../../../../etc/passwd"] {
        let made = [
            "create", "-q", "-u", "-f", "qcow2", "-F", "raw", "-b", backing, &evil, "1M",
        ];
        program::run("qemu-img", &made).ok();
        case.refused("evil.qcow2", &[], 2, "images may be under");
    }
    let json = "json:{\"driver\":\"file\",\"filename\":\"/etc/passwd\"}";
    let made = [
        "create", "-q", "-u", "-f", "qcow2", "-F", "raw", "-b", json, &evil, "1M",
    ];
    program::run("qemu-img", &made).ok();
    case.refused("evil.qcow2", &[], 2, "plain names of files");
    // A raw disk that a guest has made look like that is a raw disk, if it is said to be.
    let guest = case.files.path("guest.raw");
    std::fs::copy(&evil, &guest).unwrap();
    case.cut("guest.raw", MIB);
    case.refused("guest.raw", &[], 2, "say which with --format");
    let import = [
        "volume", "import", &guest, "--pool", "p", "--name", "raw", "--format", "raw",
    ];
    let job = case.array.json(&import);
    assert_eq!(job["sha256"], case.files.sha256("guest.raw").as_str());
    case.array
        .command(&["volume", "delete", "raw", "--yes", "--at-once"])
        .ok();

    std::os::unix::fs::symlink("/etc/passwd", case.files.path("link.raw")).unwrap();
    case.refused("link.raw", &[], 2, "images may be under");
    case.refused("/etc/passwd", &[], 2, "images may be under");
    case.refused("none.raw", &[], 5, "No such file");
    let climbing = format!("{}/../x", case.files.directory().display());
    case.refused(&climbing, &[], 2, "without \"..\"");
}

#[test]
fn exports_that_can_not_be() {
    let case = Case::new();
    let export = |file: &str, more: &[&str], code, why: &str| {
        let file = case.files.path(file);
        let export = ["volume", "export", "v", &file, "--format", "qcow2"];
        case.leaves_nothing(&[&export[..], more].concat(), code, why);
    };
    export("good.raw", &[], 6, "is there already");
    export("/etc/new.qcow2", &[], 2, "images may be under");
    export("none/new.qcow2", &[], 2, "No such file");
    export(
        "new.qcow2",
        &["--option", "backing_file=/etc/passwd"],
        2,
        "allowed for qcow2",
    );
    export(
        "new.qcow2",
        &["--option", "cluster_size=64k,data_file=x"],
        2,
        "a number",
    );
    export(
        "new.qcow2",
        &["--option", "cluster_size=63"],
        1,
        "luster size",
    );
    let other = case.files.path("new.qcow2");
    let none = ["volume", "export", "none", &other, "--format", "qcow2"];
    case.leaves_nothing(&none, 5, "there is no volume none");
}

#[test]
fn a_pool_that_becomes_full_in_the_middle() {
    let case = Case::new();
    case.files.raw("big.raw", 200 * MIB, &[(0, 200 << 20)]);
    case.refused("big.raw", &[], 1, "pool 'p' is full");
    // Whoever was there goes on.
    case.array.json(&[
        "volume",
        "import",
        &case.files.path("good.raw"),
        "--pool",
        "p",
        "--name",
        "ok",
    ]);
}

#[test]
fn no_directory_is_allowed_unless_the_settings_say_so() {
    let array = Array::start();
    let ended = array.command(&[
        "volume",
        "import",
        "/etc/passwd",
        "--pool",
        "pool0",
        "--name",
        "x",
    ]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("images.directories="), "{ended:?}");
}
