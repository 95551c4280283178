//! Groups with distributed spares: how a file describes them, what it may not say, and where a pool
//! is not what the file says.

use site::diff::{ExistingGroup, pool};
use site::plan::Setting;
use site::{GroupRole, Level, Spread, parse, plan, text};

/// A site with a pool of so many drives, whose first group says `keys`.
fn file(drives: usize, keys: &str) -> String {
    let mut file = String::from(
        "[site]\nname = \"s\"\n[[portal]]\naddress = \"127.0.0.1:3260\"\n[[pool]]\nname = \"p\"\n",
    );
    let names: Vec<String> = (0..drives).map(|number| format!("\"d{number}\"")).collect();
    file += &format!("drives = [{}]\n{keys}\n", names.join(", "));
    for name in names {
        file += &format!("[[drive]]\nname = {name}\nfile = {name}\nsize = \"1 GiB\"\n");
    }
    file
}

/// What parsing `text` says, one line each.
fn messages(text: &str) -> Vec<String> {
    match parse("t.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

const OF_6: &str = "level = \"6\"\nstripe_width = 10\ndistributed_spares = 2";

const STRIPE: &str =
    "the drives of a stripe with its copies or parity, a whole number from 2 to 32";

#[test]
fn a_group_with_distributed_spares_is_read_and_written() {
    for (drives, keys, width, spares) in [
        (62, OF_6, 10, 2),
        (9, "level = \"10\"\ndistributed_spares = 1", 2, 1),
        (
            11,
            "level = \"10x3\"\nstripe_width = 3\ndistributed_spares = 2",
            3,
            2,
        ),
    ] {
        let site = parse("t.toml", &file(drives, keys)).unwrap();
        let group = &site.pools[0].groups[0];
        assert_eq!(group.spread, Some(Spread { width, spares }));
        assert_eq!(parse("t.toml", &text(&site)).unwrap(), site);
    }
    let plain = parse("t.toml", &file(4, "level = \"6\"")).unwrap();
    assert_eq!(plain.pools[0].groups[0].spread, None);
}

#[test]
fn what_a_group_with_distributed_spares_cannot_be_is_named() {
    let spares = "both, or neither; distributed_spares is a whole number from 1 to 8";
    let both = format!("both, for level \"6\"; stripe_width is {STRIPE}");
    let of = "distributed spares of a group of";
    let levels = "level \"10\", \"10x3\", \"5\" or \"6\" with distributed spares";
    let cases: [(usize, &str, String); 10] = [
        (12, "level = \"6\"\nstripe_width = 10", format!(
            "9: pool.stripe_width: found stripe_width without distributed_spares; allowed: {spares}"
        )),
        (12, "level = \"6\"\ndistributed_spares = 2", format!(
            "9: pool.distributed_spares: found distributed_spares without stripe_width; allowed: {both}"
        )),
        (12, "level = \"50\"\nstripe_width = 3\ndistributed_spares = 2", format!(
            "10: pool.distributed_spares: found {of} level \"50\"; allowed: {levels}"
        )),
        (1, "level = \"simple\"\ndistributed_spares = 1", format!(
            "9: pool.distributed_spares: found {of} level \"simple\"; allowed: {levels}"
        )),
        (12, "level = \"6\"\nstripe_width = 3\ndistributed_spares = 2",
            "9: pool.stripe_width: found the number 3; allowed: a stripe of 4 to 32 drives for level \"6\"".to_owned()),
        (12, "level = \"10\"\nstripe_width = 4\ndistributed_spares = 2",
            "9: pool.stripe_width: found the number 4; allowed: a stripe of 2 drives for level \"10\"".to_owned()),
        (12, "level = \"6\"\nstripe_width = 33\ndistributed_spares = 2", format!(
            "9: pool.stripe_width: found the number 33; allowed: {STRIPE}"
        )),
        (12, "level = \"6\"\nstripe_width = 10\ndistributed_spares = 9",
            "10: pool.distributed_spares: found the number 9; allowed: a whole number from 1 to 8".to_owned()),
        (20, OF_6,
            "7: pool.drives: found 20 drives; allowed: a multiple of 10 drives and 2 more, up to 64 in all (12, 22, 32, 42, 52 or 62), for level \"6\"".to_owned()),
        (8, "level = \"10\"\ndistributed_spares = 1",
            "7: pool.drives: found 8 drives; allowed: a multiple of 2 drives and 1 more, up to 64 in all (3, 5, 7, 9, 11, 13, …), for level \"10\"".to_owned()),
    ];
    for (drives, keys, said) in cases {
        assert_eq!(messages(&file(drives, keys)), [format!("t.toml:{said}")]);
    }
}

#[test]
fn a_later_group_has_keys_of_its_own() {
    let more = "level = \"simple\"\n[[pool.group]]\nlevel = \"5\"\nstripe_width = 3\n\
                distributed_spares = 1\ndrives = [\"e0\", \"e1\", \"e2\", \"e3\"]";
    let mut whole = file(1, more);
    for name in ["e0", "e1", "e2", "e3"] {
        whole += &format!("[[drive]]\nname = \"{name}\"\ndevice = \"/dev/{name}\"\n");
    }
    let site = parse("t.toml", &whole).unwrap();
    let spreads: Vec<_> = site.pools[0].groups.iter().map(|of| of.spread).collect();
    let (width, spares) = (3, 1);
    assert_eq!(spreads, [None, Some(Spread { width, spares })]);
    let log = whole.replace(
        "level = \"5\"\nstripe_width = 3\n",
        "level = \"10\"\nrole = \"log\"\n",
    );
    assert_eq!(
        messages(&log),
        [
            "t.toml:12: pool.group.distributed_spares: found distributed spares of a group of role \
             \"log\"; allowed: a log group without: the logs lie on a few of its drives"
        ]
    );
}

/// Wide groups fit their drives together: what copies and parity leave of them is room for thick
/// volumes, and no more.
#[test]
fn room_for_thick_volumes_is_that_of_the_data_drives() {
    let volume = |gib: u32| {
        let rest = format!("[[volume]]\nname = \"v\"\npool = \"p\"\nsize = \"{gib} GiB\"\n");
        file(22, OF_6) + &rest + "provisioning = \"thick\"\n"
    };
    // 2 stripes of 8 drives of data, of 1 GiB each, beside the metadata.
    assert_eq!(messages(&volume(12)), [""; 0]);
    let said = messages(&volume(16));
    assert!(
        said.iter()
            .any(|line| line.contains("thick volumes of 16 GiB")),
        "{said:?}"
    );
}

const PLAN: &str = "[site]\nname = \"s\"\n[[drives]]\nname = \"sas\"\nmodel = \"sas-10k-600\"\ncount = 64\n[[pool]]\n\
    name = \"p\"\ngroups = [{ level = \"6\", drives = 62, from = \"sas\", stripe_width = 10, \
    distributed_spares = 2 }]\n[[vm_group]]\nname = \"v\"\nprofile = \"oltp-small\"\n\
    pools = [\"p\"]\nhosts = [\"host\"]\n";

#[test]
fn groups_out_of_lots_have_distributed_spares() {
    let settings = |text| vec![Setting::parse(text).unwrap()];
    let planned = |settings: &[Setting]| plan::parse("t.toml", PLAN, settings);
    let described = planned(&[]).unwrap();
    let groups = &described.base.pools[0].groups[0];
    let (width, spares) = (10, 2);
    assert_eq!(groups.spread, Some(Spread { width, spares }));
    assert_eq!(groups.protection().data_drives(62), Some(48));
    let other = planned(&settings("pool.p.groups.0.drives=52")).unwrap();
    assert_eq!(other.base.pools[0].groups[0].drives, 52);
    let wrong = planned(&settings("pool.p.groups.0.stripe_width=9")).unwrap_err();
    assert!(
        wrong.to_string().contains(
            "pool.groups.drives: 62 drives; allowed: a multiple of 9 drives and 2 more, up to \
             64 in all (11, 20, 29, 38, 47 or 56), for level \"6\""
        ),
        "{wrong}"
    );
    let beside = PLAN.replace("name = \"p\"", "name = \"p\"\nstripe_width = 10");
    let wrong = plan::parse("t.toml", &beside, &[]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "t.toml:9: pool.stripe_width: found stripe_width beside groups; allowed: level and drives \
         by their names, or groups out of lots"
    );
}

#[test]
fn a_pool_with_other_distributed_spares_is_named() {
    let of_site = |keys| parse("t.toml", &file(12, keys)).unwrap().pools.remove(0);
    let group = |spread: Option<(u8, u8)>| ExistingGroup {
        index: 0,
        level: Level::Raid6,
        spread: spread.map(|(width, spares)| Spread { width, spares }),
        role: GroupRole::Data,
        drives: (0..12).map(|number| format!("d{number}")).collect(),
        leaves: false,
    };
    let (plain, spread) = (of_site("level = \"6\""), of_site(OF_6));
    let there = Some((10, 2));
    assert_eq!(pool(&spread, &[group(there)], &[]), [""; 0]);
    assert_eq!(pool(&plain, &[group(None)], &[]), [""; 0]);
    let wanted = "stripe_width = 10 and distributed_spares = 2";
    for (site, existing, said) in [
        (
            &spread,
            None,
            format!(
                "group 0 has no distributed spares, the site file says {wanted}: remove both there \
             (what is on the drives counts)"
            ),
        ),
        (
            &plain,
            there,
            format!(
                "group 0 has distributed spares, and the site file says nothing of them: write {wanted} \
             there (what is on the drives counts)"
            ),
        ),
        (
            &spread,
            Some((5, 2)),
            format!(
                "group 0 has stripe_width = 5 and distributed_spares = 2, the site file says {wanted}: \
             write the former there (what is on the drives counts)"
            ),
        ),
    ] {
        assert_eq!(pool(site, &[group(existing)], &[]), [said]);
    }
    let mut unknown = group(there);
    unknown.drives = vec!["x".to_owned()];
    let lines = pool(&plain, &[unknown], &[]);
    let said = format!("as [[pool.group]] of level \"6\" with {wanted}");
    assert!(lines[0].ends_with(&said), "{lines:?}");
}
