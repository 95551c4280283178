//! `ashlar calibrate` at drives of a pool: it writes none of them.

use crate::array::{Home, SITE, ashlar, said};
use std::fs;

#[test]
fn drives_of_a_pool_are_refused() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let calibrate = || {
        let mut command = ashlar();
        command
            .arg("calibrate")
            .arg(home.file("d0.img"))
            .arg("--yes");
        said(command.output().unwrap())
    };
    let (code, text) = calibrate();
    assert!(code == 2 && text.contains("in use"), "{code}: {text}");
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let before = fs::read(home.file("d0.img")).unwrap();
    let (code, text) = calibrate();
    assert!(
        code == 2 && text.contains("first MiB is not blank"),
        "{code}: {text}"
    );
    assert!(
        fs::read(home.file("d0.img")).unwrap() == before,
        "it was written"
    );
}
