//! The few calls of the operating system that `std` does not offer: waiting on descriptors with
//! nanosecond timeouts, an event counter, and SIGINT as a value.

#![allow(unsafe_code)] // bindings to libc

use crate::endpoint::Interest;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Waits until one of `interests` is ready or `timeout` has passed; fills
/// `revents`, one per interest. A signal ends the wait early.
///
/// # Errors
/// As `ppoll(2)`, except `EINTR`.
pub fn wait(interests: &[Interest], timeout: Duration, revents: &mut Vec<i16>) -> io::Result<()> {
    let mut fds: Vec<libc::pollfd> = interests
        .iter()
        .map(|interest| libc::pollfd {
            fd: interest.fd,
            events: interest.events,
            revents: 0,
        })
        .collect();
    let timeout = timespec(timeout);
    // SAFETY: `fds` is a live array of `fds.len()` pollfd structures and `timeout`
    // a live timespec for the length of the call; a null mask leaves signals be.
    let ready = unsafe {
        libc::ppoll(
            fds.as_mut_ptr(),
            fds.len() as libc::nfds_t,
            &timeout,
            std::ptr::null(),
        )
    };
    revents.clear();
    revents.extend(fds.iter().map(|fd| fd.revents));
    if ready < 0 {
        revents.fill(0);
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(())
        } else {
            Err(error)
        };
    }
    Ok(())
}

/// Lets this thread's timeouts end when they are due. By default Linux adds up to
/// 50 µs to batch wake-ups, which would be measured as lateness.
pub fn be_punctual() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    // It cannot fail with a valid number; if it did, lateness would show it.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}

/// While `held`, TCP keeps back segments that are not full; then it sends what it has
/// (`TCP_CORK`, tcp(7)). On anything else than a TCP socket this does nothing.
pub fn hold_small_segments(socket: RawFd, held: bool) {
    let held = libc::c_int::from(held);
    // SAFETY: the option is a live int of the size given. It is a hint: when it is not
    // taken, more segments are sent.
    unsafe {
        libc::setsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_CORK,
            (&raw const held).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

/// A counter that `poll(2)` can wait for (`eventfd(2)`).
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
}

impl Event {
    /// A new counter at zero.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<Event> {
        // SAFETY: eventfd takes two numbers; a result that is not negative is a
        // new descriptor that nobody else owns.
        let fd = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Event { fd })
    }

    /// The descriptor to poll for reading.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` is eight live bytes. The write can only fail when the
        // counter is at its maximum, and then the descriptor is readable.
        unsafe {
            libc::write(self.fd(), one.as_ptr().cast(), one.len());
        }
    }

    /// Makes it unreadable again.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: `count` is eight live bytes. The read only fails when the
        // counter is zero already.
        unsafe {
            libc::read(self.fd(), count.as_mut_ptr().cast(), count.len());
        }
    }
}

/// While this lives, SIGINT and SIGTERM do not end the process but are returned
/// by [`Interrupt::wait`]. Take it before starting threads: they inherit it.
#[derive(Debug)]
pub struct Interrupt {
    signals: libc::sigset_t,
    before: libc::sigset_t,
}

impl Interrupt {
    /// Holds both signals back for this thread and those it starts.
    ///
    /// # Errors
    /// As `pthread_sigmask(3)`.
    pub fn hold() -> io::Result<Interrupt> {
        // SAFETY: sigset_t is plain data for which all zeroes are a valid value;
        // the calls only write to the two live sets.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut signals);
            libc::sigaddset(&mut signals, libc::SIGINT);
            libc::sigaddset(&mut signals, libc::SIGTERM);
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before);
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            Ok(Interrupt { signals, before })
        }
    }

    /// Waits up to `timeout`; whether a signal came.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = timespec(timeout);
        // SAFETY: both arguments are live for the length of the call; a null
        // siginfo is allowed.
        let signal = unsafe { libc::sigtimedwait(&self.signals, std::ptr::null_mut(), &timeout) };
        signal > 0
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // SAFETY: `before` is the mask that pthread_sigmask gave us; the old one
        // is not asked for.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
