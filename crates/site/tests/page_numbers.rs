//! Pools of large drives have pages that are large enough.
#![allow(clippy::unwrap_used, reason = "tests")]

/// Three groups of 20 TB drives have numbers for pages of 256 KiB, and five do not.
#[test]
fn a_page_is_large_enough_for_its_pool() {
    let site = |groups: usize, page: &str| {
        let drive = |n: usize| {
            format!("[[drive]]\nname = \"d{n}\"\nfile = \"d{n}.img\"\nsize = \"20 TB\"\n")
        };
        let drives: String = (0..groups * 12).map(drive).collect();
        let of = |group: usize| {
            let names: Vec<String> = (group * 12..(group + 1) * 12)
                .map(|n| format!("\"d{n}\""))
                .collect();
            format!("level = \"6\"\ndrives = [{}]\n", names.join(", "))
        };
        let more: String = (1..groups)
            .map(|group| format!("[[pool.group]]\n{}", of(group)))
            .collect();
        format!(
            "[site]\nname = \"t\"\n[api]\nlisten = \"127.0.0.1:0\"\n[[portal]]\naddress = \
             \"127.0.0.1:3260\"\n{drives}[[pool]]\nname = \"p\"\npage = \"{page}\"\n{}{more}",
            of(0)
        )
    };
    for (groups, page) in [(2, "256 KiB"), (3, "256 KiB"), (5, "512 KiB")] {
        let read = site::parse("t.toml", &site(groups, page));
        assert!(read.is_ok(), "{:#?}", read.unwrap_err().diagnostics);
    }
    let refused = site::parse("t.toml", &site(5, "256 KiB")).unwrap_err();
    let said: Vec<String> = refused
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(
        said[0].contains("pool.page: found a page of 256 KiB"),
        "{said:#?}"
    );
    assert!(
        said[0].contains("choose a page of 512 KiB or more"),
        "{said:#?}"
    );
}
