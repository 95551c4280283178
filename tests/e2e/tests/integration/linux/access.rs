//! open-iscsi proves who it is, and asks the same of the array.

use super::site;
use e2e::array::{Array, TARGET};
use e2e::guest::{Cable, Guest, in_own_network};

/// What open-iscsi is to prove, and to ask for; for one algorithm.
fn settings(name: &str, secret: &str, mutual_secret: &str, algorithm: &str) -> String {
    let values = [
        ("authmethod", "CHAP"),
        ("username", name),
        ("password", secret),
        ("username_in", "array"),
        ("password_in", mutual_secret),
        ("chap_algs", algorithm),
    ];
    let mut line = "iscsiadm -m node -o update".to_owned();
    for (key, value) in values {
        line += &format!(" -n node.session.auth.{key} -v {value}");
    }
    line
}

fn log_in(host: &mut Guest) -> e2e::program::Ended {
    host.ask("iscsiadm -m node --login")
}

#[test]
fn chap_is_proved_both_ways_or_there_is_no_session() {
    in_own_network(
        "linux::access::chap_is_proved_both_ways_or_there_is_no_session",
        || {
            let cable = Cable::lay(1, 2);
            let name = site::host_name('a');
            let mut text = site::text(&[cable.array()], &[("v", 64)]);
            text = text.replace("initiators = \"any\"", "hosts = [\"a\"]");
            text += &format!(
                "[[host]]\nname = \"a\"\ninitiators = [\"{name}\"]\nchap = {{ name = \"host-a\", \
             secret = \"correct horse\", mutual_name = \"array\", mutual_secret = \"battery staple\" }}\n"
            );
            let _array = Array::start_with(&text);
            let mut host = Guest::boot_initiator(&site::image(), &name, &[&cable]);
            let found = host.tell(&format!("iscsiadm -m discovery -t st -p {}", cable.array()));
            assert!(found.contains(TARGET), "{found}");
            // What refuses is named by iscsiadm: 24 is "authorization failure".
            assert_eq!(log_in(&mut host).code, Some(24), "nothing was proved");
            let wrong = [
                ("host-a", "'correct cow.'", "'battery staple'"),
                ("host-b", "'correct horse'", "'battery staple'"),
            ];
            for (name, secret, mutual) in wrong {
                host.tell(&settings(name, secret, mutual, "SHA256"));
                assert_eq!(log_in(&mut host).code, Some(24), "{name} {secret}");
            }
            // The array proves itself, or open-iscsi hangs up.
            host.tell(&settings(
                "host-a",
                "'correct horse'",
                "'battery stable'",
                "SHA256",
            ));
            let said = log_in(&mut host);
            assert!(!said.success, "{said:?}");
            for algorithm in ["SHA3-256", "SHA256", "SHA1", "MD5"] {
                host.tell(&settings(
                    "host-a",
                    "'correct horse'",
                    "'battery staple'",
                    algorithm,
                ));
                let said = log_in(&mut host);
                assert!(said.success, "{algorithm}: {said:?}");
                host.tell("wait_until 'sg_turs $(disk 0)'");
                host.tell("iscsiadm -m node --logout");
            }
            // The kernel ends a session after open-iscsi has.
            host.tell("wait_until '! disk 0'");
        },
    );
}
