//! Shared parts of this crate's tests: plans, runs, and servers that we did not write.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)] // each test binary uses a part
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers, real time

use load::run::{self, Observer, Outcome, Progress, RunError};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use workload::plan::{self, Plan};
use workload::profile::Profile;
use workload::url::TargetUrl;

/// A plan of `profile` on these targets.
pub fn plan(profile: Profile, urls: &[&str], duration: Duration) -> Plan {
    let urls: Vec<TargetUrl> = urls.iter().map(|url| url.parse().unwrap()).collect();
    profile.check().unwrap();
    let vms = plan::places(&profile, &urls).unwrap();
    Plan {
        profile,
        vms,
        warmup: Duration::ZERO,
        duration,
        seed: 7,
        fill: false,
        rate_scale: 1.0,
        reconnect_for: Duration::ZERO,
        allow_outages: false,
    }
}

/// A profile of one VM at a rate.
pub fn paced(name: &str, per_second: f64, outstanding_max: usize) -> Profile {
    Profile::named(name)
        .unwrap()
        .with_rate(per_second, outstanding_max)
}

/// Watches nothing; stops when told to have seen enough operations.
pub struct Watch {
    pub stop_at: u64,
}

impl Observer for Watch {
    fn observe(&mut self, progress: &Progress, pause: Duration) -> bool {
        std::thread::park_timeout(pause);
        progress.completed >= self.stop_at
    }
}

/// Runs to the end.
pub fn run_whole(plan: &Plan) -> Result<Outcome, RunError> {
    run::run(plan, &mut Watch { stop_at: u64::MAX })
}

/// A server process that ends with the test.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// nbdkit with these arguments on a port of its own. The listening socket is
/// made here and handed over (systemd's protocol), so that there is no waiting
/// for it to be there.
pub fn nbdkit(arguments: &[&str]) -> Server {
    nbdkit_at(TcpListener::bind("127.0.0.1:0").unwrap(), arguments)
}

/// The same on this socket.
pub fn nbdkit_at(listener: TcpListener, arguments: &[&str]) -> Server {
    let url = format!("nbd://{}/", listener.local_addr().unwrap());
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" \"$@\"";
    let child = Command::new("sh")
        .args(["-c", script, "nbdkit", "--foreground", "--exit-with-parent"])
        .args(arguments)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .spawn()
        .expect("sh runs");
    Server { child, url }
}

/// Whether a program is there; tests that need it say so and fail.
pub fn need(program: &str) {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null())
        .status()
        .expect("sh runs");
    assert!(
        found.success(),
        "{program} is not installed; `make setup` installs it"
    );
}

/// tgtd with one target, whose LUN 1 is the file `backing`.
pub struct Tgtd {
    server: Server,
    control: String,
    pub target: &'static str,
}

impl Tgtd {
    /// Starts it on a free port.
    pub fn start(backing: &std::path::Path) -> Tgtd {
        need("tgtd");
        need("tgtadm");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = listener.local_addr().unwrap();
        drop(listener);
        // Its control socket is named by a number; ours is as unique as
        // the port (tgtadm takes up to 32767).
        let control = (portal.port() % 32768).to_string();
        let child = Command::new("tgtd")
            .args(["-f", "-C", &control, "--iscsi", &format!("portal={portal}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("tgtd starts");
        let target = "iqn.2026-11.dev.ashlar:load-test";
        let url = format!("iscsi://{portal}/{target}/1");
        let mut tgtd = Tgtd {
            server: Server { child, url },
            control,
            target,
        };
        tgtd.wait_until_ready();
        let backing = backing.to_str().unwrap();
        tgtd.admin(&[
            "--mode", "target", "--op", "new", "--tid", "1", "-T", target,
        ]);
        tgtd.admin(&[
            "--mode",
            "logicalunit",
            "--op",
            "new",
            "--tid",
            "1",
            "--lun",
            "1",
            "-b",
            backing,
        ]);
        tgtd.admin(&[
            "--mode", "target", "--op", "bind", "--tid", "1", "-I", "ALL",
        ]);
        tgtd
    }

    /// The URL of the LUN.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The process, to kill it.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// One tgtadm command, which must succeed.
    pub fn admin(&self, arguments: &[&str]) {
        let (done, said) = self.try_admin(arguments);
        assert!(done, "tgtadm {arguments:?} failed: {said}");
    }

    fn try_admin(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("tgtadm")
            .args(["-C", &self.control, "--lld", "iscsi"])
            .args(arguments)
            .output()
            .expect("tgtadm runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    fn wait_until_ready(&mut self) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let (ready, said) = self.try_admin(&["--mode", "target", "--op", "show"]);
            if ready {
                return;
            }
            let ended = self.server.child.try_wait().unwrap();
            assert!(
                ended.is_none() && std::time::Instant::now() < deadline,
                "tgtd cannot run here (it needs root): {ended:?} {said}"
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}
