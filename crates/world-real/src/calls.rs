//! The filter that refuses system calls to confined programs.
//!
//! A program that was taken over may still have our user, which may be root. Landlock keeps it to
//! its files when it opens them, but not when it connects to another program's Unix socket, or
//! changes the mode of a file by its name. So the kernel refuses these calls (seccomp(2)).
//!
//! Invariants:
//! - A call that is refused fails with ENOSYS, as on a kernel without it: programs then do
//!   without, where they can.
//! - A call that is newer than this list, or belongs to another ABI, is refused.

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;

/// The first number that is refused unread: fchmodat2 (Linux 6.6), then those of later kernels.
/// Calls of x32, which the architecture does not tell from ours, have higher numbers still. Numbers
/// from 424 on are the same for all architectures.
const UNREAD: u32 = 452;

/// Calls that are refused whatever their arguments.
const REFUSED: &[c_long] = &[
    // Other programs' sockets. io_uring connects past this filter.
    libc::SYS_connect,
    libc::SYS_socketpair,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // What is the machine's, for a program that may administer it.
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Other processes, which may have our user.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Files past Landlock: by handle, or what it does not look at.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_openat2,
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Mounts, namespaces, and other programs. clone3 has its flags in memory.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_clone3,
    libc::SYS_execveat,
    // Much of the kernel, for nothing that they need.
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
];

/// Calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    // Ports of the machine, for whoever may use raw I/O.
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// The filter of a confined program.
///
/// # Errors
/// There is none for this architecture.
pub(super) fn filter() -> io::Result<BpfProgram> {
    let arch = ARCH.try_into().map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(libc::ENOSYS as u32);
    let rules = rules().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse.clone(), arch);
    let filter: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    let mut program = refuse_unread(refuse.into()).to_vec();
    program.extend(filter);
    Ok(program)
}

/// Applies it to this thread, for good. Allocates nothing.
///
/// # Errors
/// The kernel refuses.
pub(super) fn refuse(filter: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(filter).map_err(|error| match error {
        Error::Prctl(error) | Error::Seccomp(error) => error,
        _ => io::ErrorKind::InvalidInput.into(),
    })
}

/// Instructions before the others: a number from [`UNREAD`] on ends in `action`.
fn refuse_unread(action: u32) -> [sock_filter; 3] {
    const NUMBER_OFFSET: u32 = 0;
    let instruction = |code: u32, jt, jf, k| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    [
        instruction(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            0,
            0,
            NUMBER_OFFSET,
        ),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, UNREAD),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action),
    ]
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn rules() -> Result<Rules, BackendError> {
    let calls = REFUSED.iter().chain(REFUSED_HERE);
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    // A stream socket of its own to listen at. Datagrams need no connect.
    let mut sockets = vec![when(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?];
    let stream = libc::SOCK_STREAM as u64;
    for bit in [1, 2, 4, 8] {
        // The kinds of sockets are the lowest four bits; flags are above.
        let other = SeccompCmpOp::MaskedEq(bit);
        sockets.push(when(1, other, !stream & bit)?);
    }
    rules.insert(libc::SYS_socket, sockets);
    let spaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let made = |space: i32| when(0, SeccompCmpOp::MaskedEq(space as u64), space as u64);
    let made: Result<Vec<_>, _> = spaces.into_iter().map(made).collect();
    rules.insert(libc::SYS_clone, made?);
    // Limits of other processes.
    rules.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    rules.insert(libc::SYS_openat, truncating(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, truncating(1)?);
    Ok(rules)
}

/// Opening a file that is not to be written, and emptying it all the same: Landlock sees that from
/// Linux 6.2 on. Mode 3, neither to read nor to write, it sees as no access at all.
fn truncating(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let mode = libc::O_ACCMODE as u64;
    let truncate = libc::O_TRUNC as u64;
    let read_only = SeccompCmpOp::MaskedEq(mode | truncate);
    Ok(vec![
        when(flags, read_only, truncate)?,
        when(flags, SeccompCmpOp::MaskedEq(mode), mode)?,
    ])
}

fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value);
    SeccompRule::new(vec![condition?])
}
