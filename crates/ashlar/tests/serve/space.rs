//! A full disk underneath, on a tmpfs of its own in a mount namespace of its own,
//! so that nothing stays mounted. Works as root, and for others where user
//! namespaces are allowed.

use crate::array::{Home, SITE, Serving, said};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// `ashlar serve` on `home`, its data directory on a tmpfs of `size_kib`.
fn on_small_disk(home: &Home, size_kib: u64) -> Command {
    fs::create_dir_all(home.data()).unwrap();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = Command::new("unshare");
    command
        .arg(if root { "-m" } else { "-rm" })
        .args(["sh", "-c"])
        .stdin(Stdio::null());
    command.arg("mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"");
    command
        .arg("sh")
        .arg(format!("{size_kib}k"))
        .arg(home.data());
    let serve = home.command();
    command.arg(serve.get_program()).args(serve.get_args());
    command
}

#[test]
fn drives_that_do_not_fit_are_named_and_nothing_is_left() {
    let home = Home::new(SITE);
    // Room for the first drive and not for the second.
    let mut command = on_small_disk(&home, 96 << 10);
    // What is left is looked at from inside, after the server has ended.
    let (code, text) = said(command.output().unwrap());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("d1.img: not enough space"), "{text}");
    assert!(text.contains("a smaller drive"), "{text}");

    let script =
        "mount -t tmpfs -o size=96m tmpfs \"$1\" && data=$1 && shift && { \"$@\"; ls \"$data\"; }";
    let mut listing = Command::new("unshare");
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    listing
        .arg(if root { "-m" } else { "-rm" })
        .args(["sh", "-c", script, "sh"])
        .arg(home.data());
    let serve = home.command();
    listing.arg(serve.get_program()).args(serve.get_args());
    let output = listing.output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        names, "ashlar-data.json\nashlar.lock\n",
        "no drive file is left"
    );
}

#[test]
fn an_export_that_cannot_be_kept_is_not_served() {
    let home = Home::new(SITE);
    let command = on_small_disk(&home, (128 << 10) + 64);
    let serving = Serving::start(command, &home.site().with_extension("log"));
    serving.done(&[
        "volume", "create", "made", "--pool", "p0", "--size", "1 MiB",
    ]);
    // The disk, as the server sees it, is filled to the last byte.
    let data = PathBuf::from(format!(
        "/proc/{}/root{}",
        serving.process(),
        home.data().display()
    ));
    let filled = fs::write(data.join("filler"), vec![1u8; 1 << 20]);
    assert!(filled.is_err(), "the disk has room for a MiB more");

    let create = [
        "export",
        "create",
        "--any",
        "iqn.2026-11.dev.ashlar:b",
        "--volume",
        "made",
    ];
    let (code, said) = serving.refused(&create);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("ashlar-configuration.json: can't write it"),
        "{said}"
    );
    assert_eq!(
        serving
            .refused(&["export", "show", "iqn.2026-11.dev.ashlar:b"])
            .0,
        5
    );

    fs::remove_file(data.join("filler")).unwrap();
    serving.done(&create);
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn drive_files_with_holes_get_their_space_at_the_start() {
    let home = Home::new(SITE);
    drop(home.serve());
    let file = home.file("d0.img");
    let copy = file.with_extension("copy");
    let sparse = Command::new("cp")
        .arg("--sparse=always")
        .args([&file, &copy])
        .status();
    assert!(sparse.unwrap().success());
    fs::rename(&copy, &file).unwrap();
    let taken = || fs::metadata(&file).unwrap().blocks() * 512;
    let size = fs::metadata(&file).unwrap().len();
    assert!(taken() < size, "it has holes");
    let _serving = home.serve();
    for _ in 0..100 {
        if taken() >= size {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(taken() >= size, "{} of {size}", taken());
    home.wait_log("d0.img: it had holes; ");
}
