//! Persistent reservations as a failover cluster takes them: two hosts, one disk, and an
//! array that is killed meanwhile.

use super::site;
use e2e::guest::{Cable, Guest, Image, in_own_network};

/// Exit code of sg3-utils for RESERVATION CONFLICT.
const CONFLICT: Option<i32> = Some(24);

/// Write exclusive, registrants only: what Windows' failover clusters reserve with.
const TYPE: &str = "--prout-type=5";

/// A host of the cluster.
struct Node(Guest);

impl Node {
    fn boot(image: &Image, letter: char, cable: &Cable) -> Self {
        Node(site::logged_in(image, letter, &[cable], 1))
    }

    /// `sg_persist --out` with these.
    fn out(&mut self, what: &str) -> e2e::program::Ended {
        self.0.ask(&format!("sg_persist -n --out {what} $(disk 0)"))
    }

    /// `sg_persist --in` with this.
    fn report(&mut self, what: &str) -> String {
        self.0.tell(&format!("sg_persist -n --in {what} $(disk 0)"))
    }

    /// Whether it may write, by way of the kernel's own disk driver.
    fn may_write(&mut self) -> bool {
        let write = "dd if=/dev/zero of=$(disk 0) bs=4096 count=1 oflag=direct";
        let by_kernel = self.0.ask(write).success;
        let by_command = self.0.ask("sg_write_same -S --lba=8 --num=8 $(disk 0)");
        assert_eq!(by_kernel, by_command.success, "{by_command:?}");
        assert!(by_kernel || by_command.code == CONFLICT, "{by_command:?}");
        by_kernel
    }

    /// The unit attention that waits for it, once.
    fn attention(&mut self) -> String {
        let told = self.0.ask("sg_turs -v $(disk 0)");
        assert_eq!(told.code, Some(6), "{told:?}");
        assert_eq!(self.0.ask("sg_turs $(disk 0)").code, Some(0));
        told.stdout
    }

    /// Waits until its session is there again, and nothing waits for it.
    fn come_back(&mut self) {
        self.0.tell("wait_until 'sg_turs $(disk 0)'");
    }
}

#[test]
fn two_hosts_reserve_as_a_cluster_does_and_the_array_remembers() {
    let name = "linux::reservations::two_hosts_reserve_as_a_cluster_does_and_the_array_remembers";
    in_own_network(name, || {
        let (cable_a, cable_b) = (Cable::lay(1, 2), Cable::lay(1, 3));
        let mut array = site::array(&[&cable_a, &cable_b], &[("v", 64)]);
        let image = site::image();
        let mut a = Node::boot(&image, 'a', &cable_a);
        let mut b = Node::boot(&image, 'b', &cable_b);

        // One registers and reserves: the other may read, not write, until it is registered.
        let said = a.report("--report-capabilities");
        assert!(
            said.contains("Persist Through Power Loss Capable(PTPL_C): 1"),
            "{said}"
        );
        a.out("--register --param-sark=0xa1 --param-aptpl").ok();
        a.out(&format!("--reserve --param-rk=0xa1 {TYPE}")).ok();
        assert!(a.may_write());
        assert!(!b.may_write());
        b.0.tell("dd if=$(disk 0) of=/dev/null bs=4096 count=1 iflag=direct");
        let stranger = b.out(&format!("--reserve --param-rk=0xb1 {TYPE}"));
        assert_eq!(stranger.code, CONFLICT, "{stranger:?}");
        b.out("--register --param-sark=0xb1 --param-aptpl").ok();
        assert!(b.may_write());
        let second = b.out(&format!("--reserve --param-rk=0xb1 {TYPE}"));
        assert_eq!(second.code, CONFLICT, "{second:?}");

        // The array is killed and comes back: keys and reservation are still there.
        array.kill();
        array.start_again();
        for node in [&mut a, &mut b] {
            node.come_back();
        }
        for node in [&mut a, &mut b] {
            let keys = node.report("--read-keys");
            assert!(keys.contains("0xa1") && keys.contains("0xb1"), "{keys}");
            let held = node.report("--read-reservation");
            assert!(held.contains("Key=0xa1"), "{held}");
            assert!(
                held.contains("type: Write Exclusive, registrants only"),
                "{held}"
            );
        }
        let full = a.report("--read-full-status");
        println!("{full}");
        for letter in ['a', 'b'] {
            assert!(full.contains(&site::host_name(letter)), "{full}");
        }
        assert!(a.may_write() && b.may_write());

        // The other takes over: who was preempted is told, and may not write.
        b.out(&format!(
            "--preempt --param-rk=0xb1 --param-sark=0xa1 {TYPE}"
        ))
        .ok();
        let told = a.attention();
        assert!(told.contains("Registrations preempted"), "{told}");
        assert!(!a.may_write());
        assert!(b.may_write());
        let held = a.report("--read-reservation");
        assert!(held.contains("Key=0xb1"), "{held}");

        // It comes back with another key, and is preempted with its commands aborted.
        let wrong = a.out("--register --param-rk=0xa1 --param-sark=0xa2 --param-aptpl");
        assert_eq!(wrong.code, CONFLICT, "its old key is gone: {wrong:?}");
        a.out("--register --param-sark=0xa2 --param-aptpl").ok();
        assert!(a.may_write());
        b.out(&format!(
            "--preempt-abort --param-rk=0xb1 --param-sark=0xa2 {TYPE}"
        ))
        .ok();
        let told = a.attention();
        assert!(told.contains("Registrations preempted"), "{told}");
        assert!(!a.may_write());

        // Cleared: nobody is registered, everybody may write; after a kill, too.
        a.out("--register --param-sark=0xa3 --param-aptpl").ok();
        b.out("--clear --param-rk=0xb1").ok();
        let told = a.attention();
        assert!(told.contains("Reservations preempted"), "{told}");
        assert!(a.may_write() && b.may_write());
        array.kill();
        array.start_again();
        for node in [&mut a, &mut b] {
            node.come_back();
            let keys = node.report("--read-keys");
            assert!(
                keys.contains("there are NO registered reservation keys"),
                "{keys}"
            );
            assert!(node.may_write());
        }
    });
}

/// A type of reservation: what who is not registered may do (read, write), and what who is
/// registered and does not hold it may; and whether they are told of its release.
struct Kind {
    number: u8,
    stranger: (bool, bool),
    registered: (bool, bool),
    tells: bool,
}

/// SPC-4 clause 5.13, "Persistent Reservations overview" and releasing.
const KINDS: [Kind; 6] = [
    Kind {
        number: 1,
        stranger: (true, false),
        registered: (true, false),
        tells: false,
    },
    Kind {
        number: 3,
        stranger: (false, false),
        registered: (false, false),
        tells: false,
    },
    Kind {
        number: 5,
        stranger: (true, false),
        registered: (true, true),
        tells: true,
    },
    Kind {
        number: 6,
        stranger: (false, false),
        registered: (true, true),
        tells: true,
    },
    Kind {
        number: 7,
        stranger: (true, false),
        registered: (true, true),
        tells: true,
    },
    Kind {
        number: 8,
        stranger: (false, false),
        registered: (true, true),
        tells: true,
    },
];

impl Node {
    /// Whether it may read, and whether it may write.
    fn may(&mut self) -> (bool, bool) {
        let commands = [
            "sg_raw -t 300 -r 512 $(disk 0) 28 00 00 00 00 00 00 00 01 00",
            "sg_write_same -S --lba=8 --num=8 $(disk 0)",
        ];
        let [read, write] = commands.map(|command| {
            let said = self.0.ask(command);
            assert!(said.success || said.code == CONFLICT, "{said:?}");
            said.success
        });
        (read, write)
    }

    /// Takes this reservation, and says that it has it.
    fn reserve(&mut self, kind: &Kind) {
        let number = kind.number;
        self.out(&format!("--reserve --param-rk=0xa1 --prout-type={number}"))
            .ok();
        assert_eq!(self.may(), (true, true), "type {number}");
    }
}

#[test]
fn each_type_keeps_out_whom_it_should() {
    in_own_network(
        "linux::reservations::each_type_keeps_out_whom_it_should",
        || {
            let (cable_a, cable_b) = (Cable::lay(1, 2), Cable::lay(1, 3));
            let _array = site::array(&[&cable_a, &cable_b], &[("v", 64)]);
            let image = site::image();
            let mut a = Node::boot(&image, 'a', &cable_a);
            let mut b = Node::boot(&image, 'b', &cable_b);
            a.out("--register-ignore --param-sark=0xa1").ok();
            for kind in &KINDS {
                let number = kind.number;
                a.reserve(kind);
                assert_eq!(b.may(), kind.stranger, "type {number}, not registered");
                b.out("--register-ignore --param-sark=0xb1").ok();
                assert_eq!(b.may(), kind.registered, "type {number}, registered");
                let wrong = a.out("--release --param-rk=0xa1 --prout-type=2");
                assert_eq!(wrong.code, Some(5), "a type that it is not of: {wrong:?}");
                a.out(&format!("--release --param-rk=0xa1 --prout-type={number}"))
                    .ok();
                if kind.tells {
                    let told = b.attention();
                    assert!(told.contains("Reservations released"), "{told}");
                }
                assert_eq!(b.may(), (true, true), "type {number}, released");
                b.out("--register --param-rk=0xb1 --param-sark=0").ok();
                let keys = a.report("--read-keys");
                assert!(!keys.contains("0xb1"), "{keys}");
            }
        },
    );
}
