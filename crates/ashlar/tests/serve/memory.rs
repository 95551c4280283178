//! The memory of the process stays within `[limits] memory`, whatever initiators ask for and do
//! not take.

use crate::array::{Home, SITE};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const BUDGET_BYTES: u64 = 128 << 20;
const LONGEST_BYTES: u32 = 16 << 20;
const BLOCK_BYTES: u32 = 512;

/// A session by hand: programs would take their answers.
struct Session {
    stream: TcpStream,
    cmd_sn: u32,
}

impl Session {
    fn login(at: &str, name: &str, isid: u8) -> Session {
        let stream = TcpStream::connect(at).unwrap();
        let mut session = Session { stream, cmd_sn: 1 };
        let keys = format!(
            "InitiatorName={name}\0TargetName=iqn.2026-11.dev.ashlar:a\0SessionType=Normal\0\
             AuthMethod=None\0HeaderDigest=None\0DataDigest=None\0"
        );
        let mut header = [0; 48];
        (header[0], header[1], header[8], header[13]) = (0x43, 0x87, 0x80, isid);
        session.send(header, keys.as_bytes());
        assert_eq!(session.receive().0[36], 0, "logged in");
        // The unit attention of a new session.
        session.command([0; 10], 0, &[]);
        assert_eq!(session.receive().0[3], 2);
        session
    }

    fn send(&mut self, mut header: [u8; 48], data: &[u8]) {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_all(&bytes).unwrap();
    }

    fn command(&mut self, cdb: [u8; 10], read_bytes: u32, data: &[u8]) {
        let mut header = [0; 48];
        header[0] = 0x01;
        header[1] = 0x81 | u8::from(read_bytes > 0) << 6 | u8::from(!data.is_empty()) << 5;
        header[16..20].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[20..24].copy_from_slice(&read_bytes.max(data.len() as u32).to_be_bytes());
        header[32..42].copy_from_slice(&cdb);
        self.send(header, data);
        self.cmd_sn += 1;
    }

    /// A read or write of `len` bytes at `at`.
    fn transfer(&mut self, opcode: u8, at: u32, len: u32, data: &[u8]) {
        let mut cdb = [0; 10];
        cdb[0] = opcode;
        cdb[2..6].copy_from_slice(&(at / BLOCK_BYTES).to_be_bytes());
        cdb[7..9].copy_from_slice(&((len / BLOCK_BYTES) as u16).to_be_bytes());
        self.command(cdb, if data.is_empty() { len } else { 0 }, data);
    }

    fn ask_for_all(&mut self) {
        self.transfer(0x28, 0, LONGEST_BYTES, &[]);
    }

    fn receive(&mut self) -> ([u8; 48], Vec<u8>) {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).unwrap();
        data.truncate(length);
        (header, data)
    }

    /// Takes a whole answer, and says how long its data is.
    fn take(&mut self) -> usize {
        let mut bytes = 0;
        loop {
            let (header, data) = self.receive();
            assert_eq!(header[0] & 0x3f, 0x25, "data");
            bytes += data.len();
            if header[1] & 1 == 1 {
                return bytes;
            }
        }
    }
}

/// A line of `/proc/PID/status`, in bytes.
fn memory(process: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.unwrap().trim_start_matches(':').trim();
    kib.trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_process_holds_no_more_for_initiators_than_the_site_file_allows() {
    let limits = "[limits]\nmemory = \"128 MiB\"\nsessions = 24\ndata_time = \"1 h\"\n[[portal]]";
    let site = SITE
        .replace("[[portal]]", limits)
        .replace("size = \"64 MiB\"", "size = \"256 MiB\"")
        .replace("size = \"8 MiB\"", "size = \"32 MiB\"")
        .replace("level = \"10\"", "level = \"10\"\ncache = \"none\"");
    let home = Home::new(&site);
    let serving = home.serve();
    home.wait_log("may hold 128 MiB");
    let at = serving.portal.clone();
    let mut host = Session::login(&at, "iqn.2026-11.test:host", 1);
    let piece = vec![0xa5; 64 << 10];
    for piece_at in (0..LONGEST_BYTES).step_by(piece.len()) {
        host.transfer(0x2a, piece_at, piece.len() as u32, &piece);
        assert_eq!(host.receive().0[3], 0, "written");
    }
    let before = memory(serving.process(), "VmRSS");
    let mut greedy: Vec<_> = (0..20)
        .map(|isid| Session::login(&at, "iqn.2026-11.test:greedy", isid))
        .collect();
    for session in &mut greedy {
        for _ in 0..8 {
            session.ask_for_all();
        }
    }
    // Without a bound it would be several times as much.
    while memory(serving.process(), "VmRSS") < before + BUDGET_BYTES / 8 {
        std::thread::yield_now();
    }
    for _ in 0..4 {
        host.ask_for_all();
        assert_eq!(host.take(), LONGEST_BYTES as usize);
    }
    let peak = memory(serving.process(), "VmHWM") - before;
    // Beside what is counted there is what the engine needs to read, and what the allocator
    // keeps for a moment.
    assert!(
        peak < 2 * BUDGET_BYTES,
        "{} MiB more than before",
        peak >> 20
    );
    drop((greedy, host));
    assert_eq!(serving.stop("TERM").code(), Some(0));
}
