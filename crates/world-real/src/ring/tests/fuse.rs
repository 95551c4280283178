//! A file system for tests that can be made to hang.
//!
//! It has one file, and a thread of this process serves it.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

pub const FILE: &str = "drive";

/// Whether it hangs, and who waits until it goes on.
type Pause = Arc<(Mutex<bool>, Condvar)>;

pub struct Server {
    mountpoint: PathBuf,
    pause: Pause,
}

impl Server {
    /// Mounts one whose file has so many bytes.
    pub fn mount(mountpoint: &Path, file_bytes: usize) -> Server {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            device.as_raw_fd()
        );
        let (target, options) = (
            text(mountpoint.as_os_str().as_bytes()),
            text(options.as_bytes()),
        );
        // SAFETY: all strings are NUL-terminated and live until the call has ended.
        let mounted = unsafe {
            libc::mount(
                c"test".as_ptr(),
                target.as_ptr(),
                c"fuse".as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
        let pause = Pause::default();
        let paused = Arc::clone(&pause);
        std::thread::spawn(move || serve(device, file_bytes, &paused));
        Server {
            mountpoint: mountpoint.to_owned(),
            pause,
        }
    }

    pub fn hang(&self) {
        *self.pause.0.lock().unwrap() = true;
    }

    pub fn go_on(&self) {
        *self.pause.0.lock().unwrap() = false;
        self.pause.1.notify_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.go_on();
        let target = text(self.mountpoint.as_os_str().as_bytes());
        // SAFETY: the string is NUL-terminated and lives until the call has ended.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

fn text(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap()
}

fn serve(mut device: File, file_bytes: usize, (paused, goes_on): &(Mutex<bool>, Condvar)) {
    let mut data = vec![0; file_bytes];
    let mut request = vec![0; 2 << 20];
    // It is unmounted at the end.
    while let Ok(len) = device.read(&mut request) {
        let mut waits = paused.lock().unwrap();
        while *waits {
            waits = goes_on.wait(waits).unwrap();
        }
        drop(waits);
        let (unique, answer) = answer(&request[..len], &mut data);
        let Some(answer) = answer else { continue };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = (16 + body.len() as u32).to_le_bytes().to_vec();
        reply.extend(error.to_le_bytes());
        reply.extend(unique.to_le_bytes());
        reply.extend(body);
        // Whoever asked may have gone away.
        let _ = device.write_all(&reply);
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// What a request is to hear, if it is to hear anything.
fn answer(request: &[u8], data: &mut [u8]) -> (u64, Option<Result<Vec<u8>, i32>>) {
    let (opcode, unique, node) = (half(request, 4), number(request, 8), number(request, 16));
    let body = &request[40..];
    let said = match opcode {
        // FORGET, INTERRUPT, BATCH_FORGET.
        2 | 36 | 42 => return (unique, None),
        // INIT.
        26 => Ok(init()),
        // LOOKUP.
        1 if body.starts_with(FILE.as_bytes()) => Ok(entry(data.len())),
        1 => Err(libc::ENOENT),
        // GETATTR, SETATTR.
        3 | 4 => Ok([
            &60_u64.to_le_bytes()[..],
            &[0; 8],
            &attributes(node, data.len()),
        ]
        .concat()),
        // OPEN, OPENDIR: direct I/O.
        14 | 27 => Ok([&[0; 8][..], &1_u32.to_le_bytes(), &[0; 4]].concat()),
        // READ.
        15 => {
            let (at, len) = (number(body, 8) as usize, half(body, 16) as usize);
            let end = (at + len).min(data.len());
            Ok(data[at.min(end)..end].to_vec())
        }
        // WRITE.
        16 => {
            let (at, len) = (number(body, 8) as usize, half(body, 16));
            data[at..at + len as usize].copy_from_slice(&body[40..40 + len as usize]);
            Ok([len.to_le_bytes(), [0; 4]].concat())
        }
        // STATFS.
        17 => Ok(vec![0; 80]),
        // RELEASE, FSYNC, FLUSH, RELEASEDIR, ACCESS.
        18 | 20 | 25 | 29 | 34 => Ok(Vec::new()),
        _ => Err(libc::ENOSYS),
    };
    (unique, Some(said))
}

fn init() -> Vec<u8> {
    let words = [7_u32, 31, 0, 0];
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend([64, 0, 48, 0]);
    out.extend((128_u32 << 10).to_le_bytes());
    out.resize(64, 0);
    out
}

fn entry(file_bytes: usize) -> Vec<u8> {
    let words = [2_u64, 0, 60, 60, 0];
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend(attributes(2, file_bytes));
    out
}

fn attributes(node: u64, file_bytes: usize) -> Vec<u8> {
    let (mode, size) = match node {
        1 => (libc::S_IFDIR | 0o755, 0),
        _ => (libc::S_IFREG | 0o644, file_bytes as u64),
    };
    let words = [node, size, size / 512, 0, 0, 0];
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let halves = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0_u32];
    out.extend(halves.iter().flat_map(|word| word.to_le_bytes()));
    out
}
