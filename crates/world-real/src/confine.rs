//! Confines programs that we start, since a hostile file may take them over.
//!
//! Invariants:
//! - Between fork and exec nothing is done but system calls, with what was prepared before.
//! - A program has no capability but one: where we are root it may read what root may read
//!   (CAP_DAC_READ_SEARCH), since its files may be another user's. It gains none, either. A program for
//!   a device has two more, without which the kernel passes no commands on: CAP_SYS_RAWIO (ATA, SCSI)
//!   and CAP_SYS_ADMIN (NVMe). The filter of system calls refuses ports of the
//!   machine, mounts, name spaces, modules and the like, which these allow, too.
//! - The program opens the files of its [`Reach`] and the system's libraries, and nothing else.
//!   Where the kernel has no Landlock, it is not started.
//! - It can have our user, so root's, too, but never speaks for it: it connects to no socket,
//!   reaches no other process, and changes no file's mode or owner ([`super::calls`]). Where the
//!   kernel allows, it has a network of its own, without interfaces.

use super::calls;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope, path_beneath_rules,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rights that are withheld unless they are given; a kernel leaves out those that it does
/// not know.
const RIGHTS: ABI = ABI::V9;

/// Where systems keep the loader and libraries, and what these read.
const LIBRARIES: [&str; 8] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/etc/ld.so.cache",
];

/// QEMU opens it to write, too, to find out how files are locked.
const NOTHING: &str = "/dev/null";

/// Address space, in bytes: tables of the largest images have room.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Open files.
const FILES_MAX: u64 = 1024;

/// What a program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Files that it may read, and directories with all files below.
    pub read: Vec<PathBuf>,
    /// Files that it may read and write. It can't make them.
    pub write: Vec<PathBuf>,
    /// A directory that it may make a socket in.
    pub sockets: Option<PathBuf>,
    /// A device that it may send any command to. Where we are root it has the capabilities that this
    /// takes.
    pub device: Option<PathBuf>,
}

/// Whether the kernel can keep a program to its files (Landlock, since Linux 5.13).
fn can_confine_files() -> bool {
    let rights = AccessFs::from_all(ABI::V1);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let created = ruleset.handle_access(rights).and_then(Ruleset::create);
    created.is_ok()
}

/// Confines the program that `command` starts, which has to be named by its path, to `reach`.
///
/// # Errors
/// A file isn't there; the kernel has no Landlock; or it refuses, which starting it may say, too.
pub fn confine(command: &mut Command, reach: &Reach) -> io::Result<()> {
    check_kernel(can_confine_files())?;
    let rules = rules(Path::new(command.get_program()), reach).map_err(io::Error::other)?;
    let rules: Option<OwnedFd> = rules.into();
    let filter = calls::filter()?;
    let kept = kept_capabilities(reach);
    let enter = move || {
        enter(rules.as_ref().map(AsRawFd::as_raw_fd), kept)?;
        calls::refuse(&filter)
    };
    // SAFETY: between fork and exec it makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Without Landlock, a program that is taken over has all files of our user.
fn check_kernel(can_confine: bool) -> io::Result<()> {
    match can_confine {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel has no Landlock (Linux 5.13 or newer, and \"landlock\" in its parameter \
             lsm=), so nothing would keep the program to its files",
        )),
    }
}

fn rules(program: &Path, reach: &Reach) -> Result<RulesetCreated, Box<Error>> {
    let run = AccessFs::Execute | AccessFs::ReadFile;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))?
        .handle_access(AccessNet::from_all(RIGHTS))?
        .scope(Scope::from_all(RIGHTS))?
        .create()?
        .add_rules(path_beneath_rules(LIBRARIES, run))?
        .add_rule(beneath(program, run)?)?
        .add_rule(beneath(
            Path::new(NOTHING),
            AccessFs::ReadFile | AccessFs::WriteFile,
        )?)?;
    for file in &reach.read {
        let mut read: BitFlags<AccessFs> = AccessFs::ReadFile.into();
        if file.is_dir() {
            read |= AccessFs::ReadDir;
        }
        rules = rules.add_rule(beneath(file, read)?)?;
    }
    if let Some(device) = &reach.device {
        let command = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules = rules.add_rule(beneath(device, command)?)?;
    }
    for file in &reach.write {
        let change = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        rules = rules.add_rule(beneath(file, change)?)?;
    }
    if let Some(directory) = &reach.sockets {
        let make = AccessFs::MakeSock | AccessFs::RemoveFile;
        rules = rules.add_rule(beneath(directory, make)?)?;
    }
    Ok(rules)
}

type Error = dyn std::error::Error + Send + Sync;

fn beneath(
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<PathBeneath<PathFd>, landlock::PathFdError> {
    Ok(PathBeneath::new(PathFd::new(path)?, rights))
}

/// What the new process does before it becomes the program.
fn enter(rules: Option<RawFd>, kept: u32) -> io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    limit(libc::RLIMIT_CORE, 0)?;
    limit(libc::RLIMIT_NOFILE, FILES_MAX)?;
    limit(libc::RLIMIT_AS, MEMORY_BYTES_MAX)?;
    // SAFETY: these system calls take numbers only, and touch no memory.
    unsafe {
        let is_root = libc::geteuid() == 0;
        // Files that somebody forgot to mark are closed by exec. Kernels before 5.11 can't, but
        // what is ours is marked.
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        );
        // Who may not have a network of its own has ours, without TCP where Landlock knows that.
        if libc::unshare(libc::CLONE_NEWNET) != 0 && !is_root {
            libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET);
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        if let Some(rules) = rules {
            let restricted = libc::syscall(libc::SYS_landlock_restrict_self, rules, 0);
            check(if restricted == 0 { 0 } else { -1 })?;
        }
        drop_capabilities(if is_root { kept } else { 0 })
    }
}

/// A limit, or the one before where that is lower.
fn limit(of: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` has room for the answer.
    check(unsafe { libc::getrlimit(of, &mut limits) })?;
    let most = most.min(limits.rlim_max);
    (limits.rlim_cur, limits.rlim_max) = (most, most);
    // SAFETY: the kernel only reads `limits`.
    check(unsafe { libc::setrlimit(of, &limits) })
}

/// Header of capget and capset (capabilities(7)), of this process.
#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// 32 capabilities; there are two of these.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Capabilities {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The capabilities that a program with this reach has where we are root, as bits.
fn kept_capabilities(reach: &Reach) -> u32 {
    const DAC_READ_SEARCH: u32 = 1 << 2;
    const SYS_RAWIO: u32 = 1 << 17;
    const SYS_ADMIN: u32 = 1 << 21;
    match reach.device {
        Some(_) => DAC_READ_SEARCH | SYS_RAWIO | SYS_ADMIN,
        None => DAC_READ_SEARCH,
    }
}

/// Gives up all capabilities but these bits: a program of root has those of the bounding set.
fn drop_capabilities(kept: u32) -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut all = [Capabilities::default(); 2];
    // SAFETY: prctl takes numbers here. The header is valid, and `all` has the room that its
    // version takes.
    unsafe {
        let mut capability = 0;
        while libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) >= 0 {
            if capability >= 32 || kept & (1 << capability) == 0 {
                // Who may not has no capability, and gets none by exec (no_new_privs).
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            capability += 1;
        }
        // Kernels before 4.3 have none of these.
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        );
        let got = libc::syscall(libc::SYS_capget, &raw mut header, all.as_mut_ptr());
        check(if got == 0 { 0 } else { -1 })?;
    }
    let permitted = all[0].permitted & kept;
    all = [Capabilities::default(); 2];
    all[0].permitted = permitted;
    // SAFETY: the kernel only reads the header and `all`, which has the room of its version.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, all.as_ptr()) };
    check(if set == 0 { 0 } else { -1 })
}

fn check(outcome: libc::c_int) -> io::Result<()> {
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::process::{Child, Output, Stdio};

    fn confined(program: &str, args: &[&Path], reach: &Reach) -> Command {
        let found = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(program));
        let mut command = Command::new(found.iter().find(|path| path.exists()).unwrap());
        command.args(args).env_clear();
        confine(&mut command, reach).unwrap();
        command
    }

    fn said(output: &Output) -> (bool, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    #[test]
    fn a_program_reads_and_writes_what_it_is_given_and_nothing_else() {
        assert!(
            can_confine_files(),
            "this test needs a kernel with Landlock"
        );
        let home = tempfile::tempdir().unwrap();
        let [given, kept, written] =
            ["given", "kept", "written"].map(|name| home.path().join(name));
        for file in [&given, &kept, &written] {
            fs::write(file, "data").unwrap();
        }
        if fs::metadata(&given).unwrap().uid() == 0 {
            // Of another user, as images may be where we are root.
            chown(&given, Some(65534), None).unwrap();
            fs::set_permissions(&given, Permissions::from_mode(0o600)).unwrap();
        }
        let reach = Reach {
            read: vec![given.clone()],
            write: vec![written.clone()],
            ..Reach::default()
        };
        let read = confined("cat", &[&given], &reach).output().unwrap();
        assert_eq!(said(&read), (true, "data".to_owned(), String::new()));
        for file in [
            &kept,
            Path::new("/etc/passwd"),
            Path::new("/proc/self/status"),
        ] {
            let read = confined("cat", &[file], &reach).output().unwrap();
            let (is_good, data, why) = said(&read);
            assert!(
                !is_good && data.is_empty() && why.contains("denied"),
                "{why}"
            );
        }
        let copy = |to: &Path| confined("cp", &[&given, to], &reach).output().unwrap();
        assert!(said(&copy(&written)).0);
        let nothing = Path::new(NOTHING);
        assert_eq!(said(&copy(nothing)).2, "", "QEMU complains of it, too");
        assert!(!said(&copy(&given)).0, "it may be read only");
        assert!(!said(&copy(&kept)).0);
        assert!(!said(&copy(&home.path().join("new"))).0);
        let missing = Reach {
            read: vec![home.path().join("new")],
            ..Reach::default()
        };
        let refused = confine(&mut Command::new("/bin/cat"), &missing).unwrap_err();
        assert!(refused.to_string().contains("new"), "{refused}");
    }

    #[test]
    fn without_landlock_no_program_is_started() {
        assert!(check_kernel(true).is_ok());
        let refused = check_kernel(false).unwrap_err();
        assert!(refused.to_string().contains("no Landlock"), "{refused}");
    }

    /// Names the directory in which [`taken_over`] tries what it should not be able to do.
    const TAKEN_OVER_IN: &str = "ASHLAR_TEST_TAKEN_OVER_IN";

    #[test]
    fn a_program_that_is_taken_over_does_not_speak_for_its_user() {
        let home = tempfile::tempdir().unwrap();
        let at = |name| home.path().join(name);
        let listener = UnixListener::bind(at("stream")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        for name in ["ours", "read"] {
            fs::write(at(name), "data").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(0o600)).unwrap();
        }
        // Somebody of our user, to whom it should do nothing.
        let bystander = Asleep::start();

        let name = concat!(module_path!(), "::taken_over");
        let (_, name) = name.split_once("::").unwrap();
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "--nocapture", name]).env_clear();
        program.env(TAKEN_OVER_IN, home.path());
        program.env("ASHLAR_TEST_BYSTANDER", bystander.0.id().to_string());
        let reach = Reach {
            read: vec![at("read")],
            sockets: Some(home.path().to_owned()),
            ..Reach::default()
        };
        confine(&mut program, &reach).unwrap();
        let (is_good, printed, why) = said(&program.output().unwrap());
        assert!(is_good && printed.contains("1 passed"), "{printed}{why}");

        let none = io::ErrorKind::WouldBlock;
        assert_eq!(listener.accept().unwrap_err().kind(), none);
        assert_eq!(datagrams.recv(&mut [0]).unwrap_err().kind(), none);
        for name in ["ours", "read"] {
            assert_eq!(fs::read(at(name)).unwrap(), b"data");
            let mode = fs::metadata(at(name)).unwrap().mode();
            assert_eq!(mode & 0o7777, 0o600, "{name}");
        }
        assert!(
            at("own").exists(),
            "it should have made a socket to listen at"
        );
    }

    /// The program of the test above; by itself it does nothing.
    #[test]
    fn taken_over() {
        let Some(home) = std::env::var_os(TAKEN_OVER_IN) else {
            return;
        };
        let at = |name| Path::new(&home).join(name);
        let bystander = std::env::var("ASHLAR_TEST_BYSTANDER").unwrap();
        let bystander: libc::pid_t = bystander.parse().unwrap();
        let _listener = UnixListener::bind(at("own")).unwrap();
        std::thread::spawn(|| {}).join().unwrap();

        let mut open = fs::File::options();
        let emptied = open.read(true).custom_flags(libc::O_TRUNC).open(at("read"));
        let mut done = vec![
            ("connect", UnixStream::connect(at("stream")).err()),
            ("datagram", UnixDatagram::unbound().err()),
            ("socketpair", UnixStream::pair().err()),
            (
                "chmod",
                fs::set_permissions(at("ours"), Permissions::from_mode(0o666)).err(),
            ),
            ("chown", chown(at("ours"), None, Some(0)).err()),
            ("truncate", emptied.err()),
        ];
        // Its own number, and that of x32.
        for call in [libc::SYS_connect, libc::SYS_connect | 0x4000_0000] {
            // SAFETY: no call here is given memory but the kernel's refusal.
            let made = unsafe { libc::syscall(call, -1, 0, 0) };
            let why = io::Error::last_os_error();
            done.push(("connect by number", (made == -1).then_some(why)));
        }
        let limit: *const libc::rlimit = std::ptr::null();
        let none: *mut libc::rlimit = std::ptr::null_mut();
        // SAFETY: these calls take numbers and a constant string, and change no memory.
        unsafe {
            let mut push = |name, made: libc::c_long| {
                let why = io::Error::last_os_error();
                done.push((name, (made == -1).then_some(why)));
            };
            push("mode 3", libc::open(c"/etc/passwd".as_ptr(), 3).into());
            push("kill", libc::kill(bystander, 0).into());
            let limited = libc::prlimit(bystander, libc::RLIMIT_CPU, limit, none);
            push("prlimit", limited.into());
            push("unshare", libc::unshare(libc::CLONE_NEWUSER).into());
            push("sethostname", libc::sethostname(std::ptr::null(), 0).into());
            #[cfg(target_arch = "x86_64")]
            push("iopl", libc::syscall(libc::SYS_iopl, 0));
            push("ptrace", libc::ptrace(libc::PTRACE_SEIZE, bystander, 0, 0));
            push(
                "io_uring",
                libc::syscall(libc::SYS_io_uring_setup, 1, limit),
            );
            push("fchmodat2", libc::syscall(452, -1, limit, 0, 0));
            push(
                "open by handle",
                libc::syscall(libc::SYS_open_by_handle_at, -1, limit, 0),
            );
        }
        for (name, why) in done {
            let code = why.and_then(|why| why.raw_os_error());
            assert_eq!(code, Some(libc::ENOSYS), "{name}");
        }
    }

    /// A program that runs until it is killed, and what the kernel says of it.
    struct Asleep(Child);

    impl Asleep {
        fn start() -> Self {
            let mut command = confined("sleep", &[Path::new("600")], &Reach::default());
            super::super::ends_with_us(&mut command);
            let asleep = Asleep(command.stdin(Stdio::null()).spawn().unwrap());
            // Until it sleeps, it has open what it is loaded from.
            while !asleep.status("State").starts_with('S') {
                std::thread::yield_now();
            }
            asleep
        }

        fn place(&self, of: &str) -> PathBuf {
            Path::new("/proc").join(self.0.id().to_string()).join(of)
        }

        /// What follows `key` in its status.
        fn status(&self, key: &str) -> String {
            let text = fs::read_to_string(self.place("status")).unwrap();
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(found, _)| *found == key).unwrap();
            value.trim().to_owned()
        }
    }

    impl Drop for Asleep {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_program_has_no_privileges_no_files_and_no_core() {
        let asleep = Asleep::start();
        assert_eq!(asleep.status("NoNewPrivs"), "1");
        let reads = u64::from(asleep.status("Uid").starts_with('0')) << 2;
        for (set, most) in [
            ("CapPrm", reads),
            ("CapEff", reads),
            ("CapInh", 0),
            ("CapAmb", 0),
        ] {
            let found = u64::from_str_radix(&asleep.status(set), 16).unwrap();
            assert_eq!(found & !most, 0, "{set}");
        }
        if reads != 0 {
            let bounding = u64::from_str_radix(&asleep.status("CapBnd"), 16).unwrap();
            assert_eq!(bounding & !reads, 0);
            // Root may make it a network of its own.
            let network = |of: &Path| fs::read_link(of.join("ns/net")).unwrap();
            assert_ne!(network(&asleep.place("")), network(Path::new("/proc/self")));
        }
        let open = fs::read_dir(asleep.place("fd")).unwrap();
        assert_eq!(open.count(), 3);
        let limits = fs::read_to_string(asleep.place("limits")).unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core"))
            .unwrap();
        let core: Vec<&str> = core.split_whitespace().collect();
        assert_eq!(core[4..6], ["0", "0"]);
        assert!(fs::read(asleep.place("environ")).unwrap().is_empty());
    }

    #[test]
    fn a_program_for_a_device_commands_that_device_and_no_other() {
        let terminal = Path::new("/dev/ptmx");
        let ask = |device: &str| {
            let reach = Reach {
                device: Some(device.into()),
                ..Reach::default()
            };
            let args = ["-F", "/dev/ptmx", "-a"].map(Path::new);
            said(&confined("stty", &args, &reach).output().unwrap())
        };
        assert!(terminal.exists(), "this test needs {}", terminal.display());
        let (is_good, printed, why) = ask("/dev/ptmx");
        assert!(is_good && printed.contains("speed"), "{printed}{why}");
        let (is_good, _, why) = ask("/dev/null");
        assert!(!is_good && why.contains("Permission denied"), "{why}");
    }

    #[test]
    fn only_a_program_for_a_device_has_the_capabilities_that_commands_take() {
        let of = |device: Option<&str>| {
            let reach = Reach {
                device: device.map(PathBuf::from),
                ..Reach::default()
            };
            let args = ["Cap", "/proc/self/status"].map(Path::new);
            let read = vec![PathBuf::from("/proc")];
            let output = confined("grep", &args, &Reach { read, ..reach }).output();
            let (_, printed, _) = said(&output.unwrap());
            let mut lines = printed.lines().filter_map(|line| line.split_once(":\t"));
            let (_, effective) = lines.find(|(name, _)| *name == "CapEff").unwrap();
            u64::from_str_radix(effective, 16).unwrap()
        };
        // A container may have withheld some.
        let most = (1 << 2) | (1 << 17) | (1 << 21);
        assert_eq!(of(Some("/dev/null")) & !most, 0);
        assert_eq!(of(None) & !(1 << 2), 0);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            let ours = fs::read_to_string("/proc/self/status").unwrap();
            let ours = ours.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
            let ours = u64::from_str_radix(ours.unwrap(), 16).unwrap();
            assert_eq!(of(Some("/dev/null")), most & ours);
        }
    }

    #[test]
    fn a_confined_program_ends_with_us_all_the_same() {
        use std::os::unix::process::ExitStatusExt;
        let started = std::thread::spawn(|| {
            let mut command = confined("sleep", &[Path::new("600")], &Reach::default());
            super::super::ends_with_us(&mut command);
            command.spawn().unwrap()
        });
        let mut child = started.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
