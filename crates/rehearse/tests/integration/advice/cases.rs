//! A plan that is good, and a change of it for each check.

/// A plan that no check has anything to say of.
pub const GOOD: &str = r#"[site]
name = "test"
[run]
warmup = "60 s"
measure = "2 min"
seeds = 3
[[controller]]
name = "a"
model = "ashlar"
partner = "b"
ports = [{ network = "san-a", count = 2 }, { network = "san-b", count = 2 }]
[[controller]]
name = "b"
model = "ashlar"
partner = "a"
ports = [{ network = "san-a", count = 2 }, { network = "san-b", count = 2 }]
[[bus]]
name = "shelf0"
kind = "sas-6g-x4"
[[bus]]
name = "shelf1"
kind = "sas-6g-x4"
[[drives]]
name = "data0"
model = "sas-10k-600"
count = 40
bus = "shelf0"
[[drives]]
name = "data1"
model = "sas-10k-600"
count = 40
bus = "shelf1"
[[drives]]
name = "other"
model = "sas-10k-600"
count = 40
bus = "shelf1"
[[pool]]
name = "data"
controller = "a"
groups = [{ level = "5", drives = 5, from = "data0" }, { level = "5", drives = 5, from = "data1" }]
spares = [{ from = "data0", count = 1 }]
stripe_unit = "64 KiB"
[[pool]]
name = "log"
controller = "b"
groups = [{ level = "10", drives = 2, from = "other" }]
spares = [{ from = "data1", count = 1 }]
[[network]]
name = "san-a"
kind = "ethernet"
speed = "10 Gb/s"
mtu = 9000
[[network]]
name = "san-b"
kind = "ethernet"
speed = "10 Gb/s"
mtu = 9000
[[network]]
name = "lan"
kind = "ethernet"
speed = "1 Gb/s"
carries = "lan"
[[host]]
name = "kvm"
count = 2
cores = 16
clock_ghz = 2.4
memory = "64 GiB"
numa_nodes = 2
witness = true
initiator = "iscsi"
balance = "round-robin"
ports = [{ network = "san-a" }, { network = "san-b" }, { network = "lan" }]
[[vm_group]]
name = "app"
profile = "app"
count = 2
hosts = ["kvm"]
disk_pools = ["data", "log"]
adapter = "virtio"
provisioning = "thick"
[[event]]
at = "100 s"
what = "drive-fails"
drive = "data0-00"
"#;

/// A change of the good plan, and what a check says then.
pub struct Case {
    /// The name of the check.
    pub check: &'static str,
    /// What is replaced, there once, by what.
    pub edits: &'static [(&'static str, &'static str)],
    /// The first line of what the finding is about.
    pub about: &'static str,
    /// What the first finding says.
    pub what: &'static str,
}

/// One for each check, in their order.
pub const CASES: &[Case] = &[
    Case {
        check: "no-redundancy",
        edits: &[(
            "groups = [{ level = \"10\", drives = 2, from = \"other\" }]",
            "groups = [{ level = \"simple\", drives = 1, from = \"other\" }]",
        )],
        about: "[[pool]]\nname = \"log\"",
        what: "pool \"log\" has drives without copy or parity",
    },
    Case {
        check: "no-spare",
        edits: &[("spares = [{ from = \"data0\", count = 1 }]\n", "")],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" of 10 drives has no spare",
    },
    Case {
        check: "few-spares",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 5, from = \"data0\", count = 6 }, { level = \"5\", drives = 5, from = \"data1\" }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has 1 of 2 spares for 35 drives",
    },
    Case {
        check: "spare-too-small",
        edits: &[
            (
                "spares = [{ from = \"data1\", count = 1 }]",
                "spares = [{ from = \"other\", count = 1 }]",
            ),
            (
                "name = \"other\"\nmodel = \"sas-10k-600\"",
                "name = \"other\"\nmodel = \"slc-100\"",
            ),
            (
                "groups = [{ level = \"10\", drives = 2, from = \"other\" }]",
                "groups = [{ level = \"10\", drives = 2, from = \"data1\" }]",
            ),
        ],
        about: "[[pool]]\nname = \"log\"",
        what: "spares of pool \"log\" from \"other\" are smaller than its drives",
    },
    Case {
        check: "spare-slower",
        edits: &[
            (
                "spares = [{ from = \"data0\", count = 1 }]",
                "spares = [{ from = \"other\", count = 1 }]",
            ),
            (
                "name = \"other\"\nmodel = \"sas-10k-600\"",
                "name = \"other\"\nmodel = \"nl-sas-1000\"",
            ),
        ],
        about: "[[pool]]\nname = \"data\"",
        what: "spares of pool \"data\" from \"other\" are slower than its drives",
    },
    Case {
        check: "raid5-large-nearline",
        edits: &[
            (
                "name = \"other\"\nmodel = \"sas-10k-600\"",
                "name = \"other\"\nmodel = \"nl-sas-1000\"",
            ),
            (
                "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
                "groups = [{ level = \"5\", drives = 5, from = \"other\" }]",
            ),
        ],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has RAID 5 of large drives of 7,200 rpm",
    },
    Case {
        check: "wide-raid5",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 10, from = \"data0\" }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has one parity for 10 drives",
    },
    Case {
        check: "wide-raid6",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"6\", drives = 17, from = \"data0\" }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has a RAID 6 group of 17 drives",
    },
    Case {
        check: "mixed-drives",
        edits: &[
            (
                "name = \"other\"\nmodel = \"sas-10k-600\"",
                "name = \"other\"\nmodel = \"sas-15k-600\"",
            ),
            (
                "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
                "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"other\" }]",
            ),
        ],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has groups of 2 drive models",
    },
    Case {
        check: "mixed-levels",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"50\", drives = 6, from = \"data1\" }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has groups of 2 levels",
    },
    Case {
        check: "uneven-groups",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 9, from = \"data1\" }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has groups of 2 widths",
    },
    Case {
        check: "pool-behind-one-bus",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 5, from = \"data0\", count = 5 }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "all 25 drives of pool \"data\" are behind one of 2 buses",
    },
    Case {
        check: "page-not-of-full-stripes",
        edits: &[(
            "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
            "groups = [{ level = \"5\", drives = 6, from = \"data0\", count = 2 }]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pages of pool \"data\" have 256 KiB, its stripes 320 KiB of data",
    },
    Case {
        check: "no-rule-of-thumb",
        edits: &[(
            "name = \"other\"\nmodel = \"sas-10k-600\"",
            "name = \"other\"\nmodel = \"nvme-7680\"",
        )],
        about: "[[pool]]\nname = \"log\"",
        what: "no rule of thumb knows the drives of pool \"log\"",
    },
    Case {
        check: "more-than-all-drives",
        edits: &[("count = 2\nhosts", "count = 6\nhosts")],
        about: "[[pool]]\nname = \"data\"",
        what: "Pool \"data\": 1200 host I/Os a second (840 reads, 360 writes) are 2280 of the drives, 152 % of the 1500 that the rule of thumb gives them; 66 % is planned at most",
    },
    Case {
        check: "over-66-percent",
        edits: &[("count = 2\nhosts", "count = 3\nhosts")],
        about: "[[pool]]\nname = \"data\"",
        what: "Pool \"data\": 600 host I/Os a second (420 reads, 180 writes) are 1140 of the drives, 76 % of the 1500 that the rule of thumb gives them; 66 % is planned at most",
    },
    Case {
        check: "queue-beyond-drives",
        edits: &[("profile = \"app\"\n", "profile = \"deep\"\n")],
        about: "[[pool]]\nname = \"data\"",
        what: "400 commands are under way for 10 drives of pool \"data\"",
    },
    Case {
        check: "raid6-many-writes",
        edits: &[
            (
                "groups = [{ level = \"5\", drives = 5, from = \"data0\" }, { level = \"5\", drives = 5, from = \"data1\" }]",
                "groups = [{ level = \"6\", drives = 10, from = \"data0\" }]",
            ),
            ("profile = \"app\"\n", "profile = \"writes\"\n"),
        ],
        about: "[[pool]]\nname = \"data\"",
        what: "60 % of the I/O of pool \"data\" are random writes to RAID 6",
    },
    Case {
        check: "log-with-data",
        edits: &[(
            "disk_pools = [\"data\", \"log\"]",
            "disk_pools = [\"data\", \"data\"]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has the logs of APP01 beside random I/O",
    },
    Case {
        check: "log-not-mirrored",
        edits: &[(
            "groups = [{ level = \"10\", drives = 2, from = \"other\" }]",
            "groups = [{ level = \"5\", drives = 5, from = \"other\" }]",
        )],
        about: "[[pool]]\nname = \"log\"",
        what: "the logs of APP01 are on parity in pool \"log\"",
    },
    Case {
        check: "tempdb-not-mirrored",
        edits: &[("profile = \"app\"\n", "profile = \"tempdb\"\n")],
        about: "[[pool]]\nname = \"data\"",
        what: "the temporary tables of APP01 are on parity in pool \"data\"",
    },
    Case {
        check: "streams-with-random",
        edits: &[("profile = \"app\"\n", "profile = \"scans\"\n")],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has the scans of APP01 beside random I/O",
    },
    Case {
        check: "thin-and-thick",
        edits: &[(
            "[[event]]",
            "[[vm_group]]\nname = \"thin\"\nprofile = \"app\"\nhosts = [\"kvm\"]\ndisk_pools = [\"data\", \"log\"]\nprovisioning = \"thin\"\n[[event]]",
        )],
        about: "[[pool]]\nname = \"data\"",
        what: "pool \"data\" has thin and thick disks",
    },
    Case {
        check: "pool-over-80-percent",
        edits: &[("profile = \"app\"\n", "profile = \"large\"\n")],
        about: "[[pool]]\nname = \"data\"",
        what: "disks take 3.63 TiB of the 4.36 TiB of pool \"data\"",
    },
    Case {
        check: "space-promised-twice",
        edits: &[
            ("profile = \"app\"\n", "profile = \"large\"\n"),
            ("count = 2\nhosts", "count = 3\nhosts"),
            (
                "provisioning = \"thick\"",
                "provisioning = \"thin\"\nfilled = 50",
            ),
        ],
        about: "[[pool]]\nname = \"data\"",
        what: "disks of 5.45 TiB are promised in the 4.36 TiB of pool \"data\"",
    },
    Case {
        check: "stripe-unit-below-io",
        edits: &[("stripe_unit = \"64 KiB\"", "stripe_unit = \"4 KiB\"")],
        about: "[[pool]]\nname = \"data\"",
        what: "random I/O of 8 KiB on stripe units of 4 KiB in pool \"data\"",
    },
    Case {
        check: "unwritten-disks",
        edits: &[(
            "provisioning = \"thick\"",
            "provisioning = \"thin\"\nfilled = 0",
        )],
        about: "[[vm_group]]",
        what: "disks of VM group \"app\" hold nothing",
    },
    Case {
        check: "single-controller",
        edits: &[
            (
                "[[controller]]\nname = \"b\"\nmodel = \"ashlar\"\npartner = \"a\"\nports = [{ network = \"san-a\", count = 2 }, { network = \"san-b\", count = 2 }]\n",
                "",
            ),
            ("partner = \"b\"\n", ""),
            ("controller = \"b\"", "controller = \"a\""),
        ],
        about: "[[controller]]\nname = \"a\"",
        what: "\"a\" is the only controller",
    },
    Case {
        check: "no-partner",
        edits: &[("partner = \"b\"\n", ""), ("partner = \"a\"\n", "")],
        about: "[[controller]]\nname = \"a\"",
        what: "controller \"a\" owns pools and has no partner",
    },
    Case {
        check: "one-sided-partner",
        edits: &[("partner = \"a\"\n", "")],
        about: "[[controller]]\nname = \"a\"",
        what: "\"a\" has \"b\" for a partner, which has another or none",
    },
    Case {
        check: "uneven-controllers",
        edits: &[("controller = \"b\"", "controller = \"a\"")],
        about: "[[controller]]\nname = \"a\"",
        what: "controller \"a\" has 4 disks and its partner 0",
    },
    Case {
        check: "single-port-host",
        edits: &[(
            "ports = [{ network = \"san-a\" }, { network = \"san-b\" }, { network = \"lan\" }]",
            "ports = [{ network = \"san-a\" }, { network = \"lan\" }]",
        )],
        about: "[[host]]",
        what: "host \"kvm\" reaches its storage by one port",
    },
    Case {
        check: "single-port-controller",
        edits: &[(
            "partner = \"b\"\nports = [{ network = \"san-a\", count = 2 }, { network = \"san-b\", count = 2 }]",
            "partner = \"b\"\nports = [{ network = \"san-a\" }]",
        )],
        about: "[[controller]]\nname = \"a\"",
        what: "controller \"a\" has one port",
    },
    Case {
        check: "single-fabric",
        edits: &[(
            "ports = [{ network = \"san-a\" }, { network = \"san-b\" }, { network = \"lan\" }]",
            "ports = [{ network = \"san-a\", count = 2 }, { network = \"lan\" }]",
        )],
        about: "[[host]]",
        what: "host \"kvm\" reaches its storage by network \"san-a\" alone",
    },
    Case {
        check: "lan-and-storage-mixed",
        edits: &[(
            "name = \"san-a\"\nkind = \"ethernet\"",
            "name = \"san-a\"\ncarries = \"both\"\nkind = \"ethernet\"",
        )],
        about: "[[network]]\nname = \"san-a\"",
        what: "network \"san-a\" carries storage and everything else",
    },
    Case {
        check: "mtu-differs",
        edits: &[(
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"\nmtu = 9000",
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"\nmtu = 4000\nuplink = { to = \"san-b\", links = 4 }",
        )],
        about: "[[network]]\nname = \"san-a\"",
        what: "network \"san-a\" has an MTU of 4000, and \"san-b\" behind it 9000",
    },
    Case {
        check: "small-frames",
        edits: &[(
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"\nmtu = 9000",
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"",
        )],
        about: "[[network]]\nname = \"san-a\"",
        what: "network \"san-a\" carries storage in frames of 1500 bytes",
    },
    Case {
        check: "mixed-speeds",
        edits: &[(
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"",
            "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"1 Gb/s\"",
        )],
        about: "[[host]]",
        what: "host \"kvm\" reaches its storage at 1000 and at 10000 Mb/s",
    },
    Case {
        check: "port-fan-in",
        edits: &[("name = \"kvm\"\ncount = 2", "name = \"kvm\"\ncount = 60")],
        about: "[[network]]\nname = \"san-a\"",
        what: "ports of hosts in \"san-a\" have 15 times the speed of those of controllers",
    },
    Case {
        check: "narrow-uplink",
        edits: &[
            (
                "name = \"san-a\"\nkind = \"ethernet\"",
                "name = \"san-a\"\nuplink = { to = \"san-b\" }\nkind = \"ethernet\"",
            ),
            ("name = \"kvm\"\ncount = 2", "name = \"kvm\"\ncount = 10"),
        ],
        about: "[[network]]\nname = \"san-a\"",
        what: "ports of hosts in \"san-a\" have 10 times the speed of the links to \"san-b\"",
    },
    Case {
        check: "links-too-thin",
        edits: &[
            (
                "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"",
                "name = \"san-a\"\nkind = \"ethernet\"\nspeed = \"4 Mb/s\"",
            ),
            (
                "name = \"san-b\"\nkind = \"ethernet\"\nspeed = \"10 Gb/s\"",
                "name = \"san-b\"\nkind = \"ethernet\"\nspeed = \"4 Mb/s\"",
            ),
        ],
        about: "[[host]]",
        what: "VMs of host \"kvm1\" plan 2 MB/s on links of 1 MB/s",
    },
    Case {
        check: "hash-of-one-address",
        edits: &[("balance = \"round-robin\"", "balance = \"ip-hash\"")],
        about: "[[host]]",
        what: "host \"kvm\" hashes one address of its storage over several links",
    },
    Case {
        check: "one-link-policy",
        edits: &[("balance = \"round-robin\"", "balance = \"mac\"")],
        about: "[[host]]",
        what: "host \"kvm\" uses one of its links for all storage",
    },
    Case {
        check: "iscsi-over-a-link-group",
        edits: &[(
            "balance = \"round-robin\"",
            "balance = \"ip-hash\"\naddresses = 8",
        )],
        about: "[[host]]",
        what: "host \"kvm\" has iSCSI over a group of links",
    },
    Case {
        check: "lun-queue-too-short",
        edits: &[
            ("profile = \"app\"\n", "profile = \"deep\"\n"),
            (
                "balance = \"round-robin\"",
                "balance = \"round-robin\"\nlun_queue = 100",
            ),
        ],
        about: "[[vm_group]]",
        what: "200 commands of VM group \"app\" are meant for a LUN whose queue has 100",
    },
    Case {
        check: "memory-overcommitted",
        edits: &[
            ("memory = \"64 GiB\"", "memory = \"12 GiB\""),
            ("count = 2\nhosts", "count = 4\nhosts"),
        ],
        about: "[[host]]",
        what: "VMs of host \"kvm1\" have 16 GiB of its 12 GiB",
    },
    Case {
        check: "no-room-to-fail-over",
        edits: &[("memory = \"64 GiB\"", "memory = \"12 GiB\"")],
        about: "[[host]]",
        what: "VMs have 16 GiB, and 12 GiB is left without one host like \"kvm\"",
    },
    Case {
        check: "single-host",
        edits: &[("name = \"kvm\"\ncount = 2\n", "name = \"kvm\"\n")],
        about: "[[host]]",
        what: "\"kvm\" is the only host",
    },
    Case {
        check: "no-witness",
        edits: &[
            ("witness = true\n", ""),
            ("adapter = \"virtio\"", "adapter = \"vmbus\""),
        ],
        about: "[[host]]",
        what: "the two hosts \"kvm\" have no witness",
    },
    Case {
        check: "many-vcpus",
        edits: &[
            ("cores = 16", "cores = 2"),
            ("count = 2\nhosts", "count = 6\nhosts"),
        ],
        about: "[[host]]",
        what: "VMs of host \"kvm1\" have 12 virtual processors on 2 cores",
    },
    Case {
        check: "numa-spanning",
        edits: &[("numa_nodes = 2", "numa_nodes = 16")],
        about: "[[host]]",
        what: "VM APP01 with 8 GiB and 4 virtual processors is larger than a node of host \"kvm\"",
    },
    Case {
        check: "emulated-adapter",
        edits: &[("adapter = \"virtio\"", "adapter = \"lsi-sas\"")],
        about: "[[vm_group]]",
        what: "VMs of VM group \"app\" have an emulated LSI adapter",
    },
    Case {
        check: "no-migration-network",
        edits: &[(
            "ports = [{ network = \"san-a\" }, { network = \"san-b\" }, { network = \"lan\" }]",
            "ports = [{ network = \"san-a\" }, { network = \"san-b\" }]",
        )],
        about: "[[host]]",
        what: "host \"kvm\" has no network that its VMs can move by",
    },
    Case {
        check: "few-seeds",
        edits: &[("seeds = 3", "seeds = 2")],
        about: "[site]",
        what: "seeds that are run: 2",
    },
    Case {
        check: "short-measure",
        edits: &[("measure = \"2 min\"", "measure = \"59 s\"")],
        about: "[site]",
        what: "59 s are measured",
    },
    Case {
        check: "cold-start",
        edits: &[(
            "partner = \"b\"\nports = [{ network = \"san-a\", count = 2 }, { network = \"san-b\", count = 2 }]",
            "cache = \"8 GiB\"\npartner = \"b\"\nports = [{ network = \"san-a\", count = 2 }, { network = \"san-b\", count = 2 }]",
        )],
        about: "[[controller]]\nname = \"a\"",
        what: "the cache of \"a\" is full after 2809 s, the warm-up takes 60 s",
    },
    Case {
        check: "event-before-measure",
        edits: &[("at = \"100 s\"", "at = \"59 s\"")],
        about: "[[event]]",
        what: "it happens at 59 s, in the warm-up",
    },
    Case {
        check: "event-at-the-end",
        edits: &[("at = \"100 s\"", "at = \"171 s\"")],
        about: "[[event]]",
        what: "it happens at 171 s of 180 s",
    },
    Case {
        check: "failure-without-redundancy",
        edits: &[
            (
                "at = \"100 s\"\nwhat = \"drive-fails\"\ndrive = \"data0-00\"\n",
                "at = \"100 s\"\nwhat = \"controller-fails\"\ncontroller = \"a\"\n",
            ),
            ("partner = \"b\"\n", ""),
            ("partner = \"a\"\n", ""),
        ],
        about: "[[event]]",
        what: "controller \"a\" fails and has no partner",
    },
    Case {
        check: "link-up-that-is-up",
        edits: &[(
            "at = \"100 s\"\nwhat = \"drive-fails\"\ndrive = \"data0-00\"\n",
            "at = \"100 s\"\nwhat = \"link-up\"\nhost = \"kvm1\"\nnetwork = \"san-a\"\n",
        )],
        about: "[[event]]",
        what: "a link of \"kvm1\" into \"san-a\" comes up that did not go down",
    },
    Case {
        check: "drain-to-nowhere",
        edits: &[
            (
                "at = \"100 s\"\nwhat = \"drive-fails\"\ndrive = \"data0-00\"\n",
                "at = \"100 s\"\nwhat = \"drain\"\nhost = \"kvm\"\n",
            ),
            ("name = \"kvm\"\ncount = 2\n", "name = \"kvm\"\n"),
        ],
        about: "[[event]]",
        what: "host \"kvm\" is drained and is the only one",
    },
];
