//! An iSCSI initiator (RFC 7143) that says for every command what came of it: the
//! data, or the sense data in full, which programs keep to themselves.
//!
//! Several commands may be under way; none is repeated, and a connection that is lost
//! is an error. So what was acknowledged before a crash is known exactly.

use base::checksum::crc32c;
use std::collections::BTreeMap;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer takes milliseconds; only a hang reaches this.
const PATIENCE: Duration = Duration::from_secs(120);

/// What we take in one PDU, and offer as bursts.
const SEGMENT_BYTES: usize = 256 << 10;

/// Logical block length of every LUN here.
pub const SECTOR: usize = 512;

/// Sense data (SPC-4 clause 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code and qualifier.
    pub code: (u8, u8),
    /// The INFORMATION field, where it is valid: the LBA that failed.
    pub information: Option<u64>,
}

impl Sense {
    /// MEDIUM ERROR, UNRECOVERED READ ERROR at `lba`.
    pub fn unread(lba: u64) -> Self {
        Sense {
            key: 3,
            code: (0x11, 0),
            information: Some(lba),
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// GOOD, with the data that was read.
    Good(Vec<u8>),
    /// CHECK CONDITION.
    Check(Sense),
    /// Any other status.
    Status(u8),
}

impl Answer {
    /// Sense key and code of a command that ended with CHECK CONDITION.
    pub fn sense(&self) -> Option<(u8, (u8, u8))> {
        match self {
            Answer::Check(Sense { key, code, .. }) => Some((*key, *code)),
            _ => None,
        }
    }
}

/// A command under way: the data that it sends, or has got so far.
#[derive(Debug)]
struct Task {
    cdb: Vec<u8>,
    data: Vec<u8>,
    reads: bool,
}

/// A logged-in session, with LUN 0 unless said otherwise.
#[derive(Debug)]
pub struct Initiator {
    stream: TcpStream,
    cmd_sn: u32,
    exp_stat_sn: u32,
    next_tag: u32,
    lun: u16,
    /// What the target takes in one PDU, and unsolicited.
    segment_bytes: usize,
    first_burst_bytes: usize,
    /// Whether headers and data come with CRC-32C, both ways.
    digests: bool,
    tasks: BTreeMap<u32, Task>,
    /// Whether it takes note of warnings, and sends what they ended again.
    heeds_warnings: bool,
    /// By tag of what was sent again: the tag that the caller knows.
    again: BTreeMap<u32, u32>,
}

/// THIN PROVISIONING SOFT THRESHOLD REACHED, a unit attention.
const WARNING: (u8, (u8, u8)) = (6, (0x38, 0x07));

/// Header and data segment of a PDU.
type Pdu = ([u8; 48], Vec<u8>);

impl Initiator {
    /// Logs in to `target` as `name` and waits until LUN 0 is ready.
    ///
    /// # Errors
    /// When the connection ends, or the target says no.
    pub fn login(portal: SocketAddr, name: &str, target: &str) -> io::Result<Self> {
        Initiator::login_to(portal, name, (target, 0), false)
    }

    /// The same for another LUN, with digests of headers and data or without.
    ///
    /// # Errors
    /// As [`Initiator::login`].
    pub fn login_to(
        portal: SocketAddr,
        name: &str,
        (target, lun): (&str, u16),
        digests: bool,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(portal)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut initiator = Initiator {
            stream,
            cmd_sn: 1,
            exp_stat_sn: 0,
            next_tag: 1,
            lun,
            segment_bytes: 8192,
            first_burst_bytes: 65536,
            digests: false,
            tasks: BTreeMap::new(),
            heeds_warnings: false,
            again: BTreeMap::new(),
        };
        initiator.negotiate(name, target, digests)?;
        // A new nexus hears of a power on first (SAM-5 clause 5.14).
        for _ in 0..4 {
            if initiator.run(&[0; 6], 0, Vec::new())? == Answer::Good(Vec::new()) {
                return Ok(initiator);
            }
        }
        Err(Error::other("the LUN doesn't become ready"))
    }

    /// Straight from operational negotiation to full feature (clause 11.12).
    fn negotiate(&mut self, name: &str, target: &str, digests: bool) -> io::Result<()> {
        let digest = if digests { "CRC32C" } else { "None" };
        let keys = format!(
            "InitiatorName={name}\0TargetName={target}\0SessionType=Normal\0AuthMethod=None\0\
             HeaderDigest={digest}\0DataDigest={digest}\0InitialR2T=Yes\0ImmediateData=Yes\0\
             MaxRecvDataSegmentLength={SEGMENT_BYTES}\0FirstBurstLength={SEGMENT_BYTES}\0\
             MaxBurstLength={SEGMENT_BYTES}\0"
        );
        let mut header = [0; 48];
        (header[0], header[1], header[8]) = (0x43, 0x87, 0x80);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, keys.as_bytes())?;
        let (header, data) = self.receive()?;
        if (header[0] & 0x3f, header[36], header[37]) != (0x23, 0, 0) {
            return Err(Error::other(format!(
                "login refused: {:?}",
                &header[36..38]
            )));
        }
        self.exp_stat_sn = be32(&header, 24).wrapping_add(1);
        for pair in String::from_utf8_lossy(&data).split('\0') {
            let (key, value) = pair.split_once('=').unwrap_or_default();
            let number = value.parse().unwrap_or(0);
            match key {
                "MaxRecvDataSegmentLength" => self.segment_bytes = number,
                "FirstBurstLength" => self.first_burst_bytes = number,
                "HeaderDigest" | "DataDigest" if value != digest => {
                    return Err(odd(&format!("{key}={value}, and {digest} was asked for")));
                }
                _ => {}
            }
        }
        self.digests = digests;
        Ok(())
    }

    /// LOGICAL UNIT RESET (clause 11.5): what was under way is gone, and the LUN is ready
    /// again.
    ///
    /// # Errors
    /// When the connection ends, or the function is refused.
    pub fn reset(&mut self) -> io::Result<()> {
        const LOGICAL_UNIT_RESET: u8 = 5;
        self.manage(LOGICAL_UNIT_RESET, u32::MAX)?;
        loop {
            let (header, _) = self.receive()?;
            self.seen(&header);
            match header[0] & 0x3f {
                0x22 if header[2] == 0 => break,
                // What ended before.
                0x21 | 0x25 | 0x31 => {}
                other => return Err(odd(&format!("a PDU of opcode {other:#x}"))),
            }
        }
        self.tasks.clear();
        self.choose(self.lun)
    }

    /// Logs out (clause 11.14), with nothing under way, and sees the connection end.
    ///
    /// # Errors
    /// When the target breaks the protocol.
    pub fn logout(mut self) -> io::Result<()> {
        assert!(self.tasks.is_empty(), "commands are under way");
        let mut header = [0; 48];
        (header[0], header[1]) = (0x46, 0x80);
        header[16..20].copy_from_slice(&self.next_tag.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        self.send(header, &[])?;
        let (header, _) = self.receive()?;
        match (header[0] & 0x3f, header[2], self.stream.read(&mut [0])?) {
            (0x26, 0, 0) => Ok(()),
            (opcode, response, _) => Err(odd(&format!(
                "opcode {opcode:#x}, response {response} to a logout"
            ))),
        }
    }

    /// Starts READ (16) of `sectors` at `lba`; gives its tag.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn start_read(&mut self, lba: u64, sectors: usize) -> io::Result<u32> {
        self.command(&transfer(0x88, lba, sectors), sectors * SECTOR, Vec::new())
    }

    /// Starts WRITE (16) of `data` at `lba`; gives its tag.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn start_write(&mut self, lba: u64, data: Vec<u8>) -> io::Result<u32> {
        self.command(&transfer(0x8a, lba, data.len() / SECTOR), 0, data)
    }

    /// Reads, with nothing else under way.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn read(&mut self, lba: u64, sectors: usize) -> io::Result<Answer> {
        self.run(&transfer(0x88, lba, sectors), sectors * SECTOR, Vec::new())
    }

    /// Writes, with nothing else under way.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn write(&mut self, lba: u64, data: Vec<u8>) -> io::Result<Answer> {
        self.run(&transfer(0x8a, lba, data.len() / SECTOR), 0, data)
    }

    /// From now on sends a command again that a full pool's warning has ended, as hosts do.
    #[must_use]
    pub fn heeding_warnings(mut self) -> Self {
        self.heeds_warnings = true;
        self
    }

    /// From now on commands go to this LUN; it is made ready.
    ///
    /// # Errors
    /// When the connection ends, or the LUN doesn't become ready.
    pub fn choose(&mut self, lun: u16) -> io::Result<()> {
        self.lun = lun;
        for _ in 0..4 {
            if self.run(&[0; 6], 0, Vec::new())? == Answer::Good(Vec::new()) {
                return Ok(());
            }
        }
        Err(Error::other(format!("LUN {lun} doesn't become ready")))
    }

    /// Runs any command that reads so many bytes, or sends `data`, with nothing else under
    /// way.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn execute(&mut self, cdb: &[u8], read_bytes: usize, data: Vec<u8>) -> io::Result<Answer> {
        self.run(cdb, read_bytes, data)
    }

    /// Starts any command; gives its tag.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn start(&mut self, cdb: &[u8], read_bytes: usize, data: Vec<u8>) -> io::Result<u32> {
        self.command(cdb, read_bytes, data)
    }

    /// ABORT TASK of a command under way (clause 11.5). The answers that come before the
    /// response to it: none, when nothing else is under way and it was in time.
    ///
    /// # Errors
    /// When the connection ends, or the function is refused.
    pub fn abort(&mut self, tag: u32) -> io::Result<Vec<(u32, Answer)>> {
        const ABORT_TASK: u8 = 1;
        self.manage(ABORT_TASK, tag)?;
        let mut answers = Vec::new();
        loop {
            let (header, data) = self.receive()?;
            let about = be32(&header, 16);
            self.seen(&header);
            match header[0] & 0x3f {
                0x21 => {
                    let answer = self.response(about, &header, &data)?;
                    answers.push((about, answer));
                }
                // Complete, or the task had ended.
                0x22 if header[2] <= 1 => {
                    self.tasks.remove(&tag);
                    return Ok(answers);
                }
                other => return Err(odd(&format!("a PDU of opcode {other:#x}"))),
            }
        }
    }

    /// Asks for a task management function, at once.
    fn manage(&mut self, function: u8, tag: u32) -> io::Result<()> {
        let own = self.next_tag;
        self.next_tag += 1;
        let mut header = [0; 48];
        (header[0], header[1]) = (0x42, 0x80 | function);
        header[8..10].copy_from_slice(&self.lun.to_be_bytes());
        header[16..20].copy_from_slice(&own.to_be_bytes());
        header[20..24].copy_from_slice(&tag.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        self.send(header, &[])
    }

    /// How many commands are under way.
    pub fn under_way(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for the next command to end; gives its tag and what came of it.
    ///
    /// # Errors
    /// When the connection ends, or the target breaks the protocol.
    pub fn next_end(&mut self) -> io::Result<(u32, Answer)> {
        loop {
            let (header, data) = self.receive()?;
            let tag = be32(&header, 16);
            match header[0] & 0x3f {
                0x21 => {
                    self.seen(&header);
                    let known = self.again.remove(&tag).unwrap_or(tag);
                    let task = self.tasks.get(&tag);
                    let warned = task.filter(|_| self.heeds_warnings && is_warning(&data));
                    let Some(task) = warned else {
                        return Ok((known, self.response(tag, &header, &data)?));
                    };
                    let (cdb, data) = (task.cdb.clone(), task.data.clone());
                    let (read_bytes, data) = match task.reads {
                        true => (data.len(), Vec::new()),
                        false => (0, data),
                    };
                    self.tasks.remove(&tag);
                    let sent = self.command(&cdb, read_bytes, data)?;
                    self.again.insert(sent, known);
                }
                0x25 => {
                    let at = be32(&header, 40) as usize;
                    let place = self.task(tag)?.data.get_mut(at..at + data.len());
                    place
                        .ok_or_else(|| odd("Data-In beyond the end"))?
                        .copy_from_slice(&data);
                    if header[1] & 1 != 0 {
                        self.seen(&header);
                        let read = self.tasks.remove(&tag).map(|task| task.data);
                        let tag = self.again.remove(&tag).unwrap_or(tag);
                        return match header[3] {
                            0 => Ok((tag, Answer::Good(read.unwrap_or_default()))),
                            status => Ok((tag, Answer::Status(status))),
                        };
                    }
                }
                0x31 => self.send_data(tag, &header)?,
                // A ping that wants none (clause 11.19).
                0x20 if be32(&header, 20) == u32::MAX => {}
                0x20 => self.send_pong(&header)?,
                other => return Err(odd(&format!("a PDU of opcode {other:#x}"))),
            }
        }
    }

    fn run(&mut self, cdb: &[u8], read_bytes: usize, data: Vec<u8>) -> io::Result<Answer> {
        assert!(self.tasks.is_empty(), "other commands are under way");
        self.command(cdb, read_bytes, data)?;
        self.next_end().map(|(_, answer)| answer)
    }

    fn command(&mut self, cdb: &[u8], read_bytes: usize, data: Vec<u8>) -> io::Result<u32> {
        let (tag, reads) = (self.next_tag, read_bytes > 0);
        self.next_tag += 1;
        let mut header = [0; 48];
        header[0] = 0x01;
        header[1] = 0x81 | u8::from(reads) << 6 | u8::from(!data.is_empty()) << 5;
        header[8..10].copy_from_slice(&self.lun.to_be_bytes());
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        let expected = read_bytes.max(data.len()) as u32;
        header[20..24].copy_from_slice(&expected.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        let immediate = data
            .len()
            .min(self.segment_bytes)
            .min(self.first_burst_bytes);
        self.send(header, &data[..immediate])?;
        let data = if reads { vec![0; read_bytes] } else { data };
        let cdb = cdb.to_vec();
        self.tasks.insert(tag, Task { cdb, data, reads });
        Ok(tag)
    }

    /// Answers an R2T (clause 11.8) with Data-Out PDUs.
    fn send_data(&mut self, tag: u32, r2t: &[u8; 48]) -> io::Result<()> {
        let (from, len) = (be32(r2t, 40) as usize, be32(r2t, 44) as usize);
        let data = self.task(tag)?.data.get(from..from + len);
        let data = data.ok_or_else(|| odd("R2T beyond the end"))?.to_vec();
        let parts = data.len().div_ceil(self.segment_bytes);
        for (number, part) in data.chunks(self.segment_bytes).enumerate() {
            let mut header = [0; 48];
            header[0] = 0x05;
            header[1] = u8::from(number + 1 == parts) << 7;
            header[8..24].copy_from_slice(&r2t[8..24]);
            header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
            header[36..40].copy_from_slice(&(number as u32).to_be_bytes());
            let at = (from + number * self.segment_bytes) as u32;
            header[40..44].copy_from_slice(&at.to_be_bytes());
            self.send(header, part)?;
        }
        Ok(())
    }

    fn send_pong(&mut self, ping: &[u8; 48]) -> io::Result<()> {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x40, 0x80);
        header[8..16].copy_from_slice(&ping[8..16]);
        header[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        header[20..24].copy_from_slice(&ping[20..24]);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        self.send(header, &[])
    }

    fn response(&mut self, tag: u32, header: &[u8; 48], data: &[u8]) -> io::Result<Answer> {
        let task = self
            .tasks
            .remove(&tag)
            .ok_or_else(|| odd("an unknown tag"))?;
        match (header[2], header[3]) {
            (0, 0) if task.reads => Ok(Answer::Good(task.data)),
            (0, 0) => Ok(Answer::Good(Vec::new())),
            (0, 2) => Ok(Answer::Check(sense(data.get(2..).unwrap_or_default())?)),
            (0, status) => Ok(Answer::Status(status)),
            (response, _) => Err(odd(&format!("response {response:#x}"))),
        }
    }

    fn task(&mut self, tag: u32) -> io::Result<&mut Task> {
        self.tasks
            .get_mut(&tag)
            .ok_or_else(|| odd("an unknown tag"))
    }

    fn seen(&mut self, header: &[u8; 48]) {
        self.exp_stat_sn = be32(header, 24).wrapping_add(1);
    }

    fn send(&mut self, mut header: [u8; 48], data: &[u8]) -> io::Result<()> {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        if self.digests {
            bytes.extend(crc32c(&header).to_le_bytes());
        }
        let begin = bytes.len();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        if self.digests && !data.is_empty() {
            bytes.extend(crc32c(&bytes[begin..]).to_le_bytes());
        }
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<Pdu> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header)?;
        self.check_digest(&header)?;
        let len = be32(&header, 4) as usize & 0xff_ffff;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.stream.read_exact(&mut data)?;
        if len > 0 {
            self.check_digest(&data)?;
        }
        data.truncate(len);
        Ok((header, data))
    }
}

impl Initiator {
    /// Reads the digest of `bytes`, where there is one.
    fn check_digest(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut digest = [0; 4];
        if self.digests {
            self.stream.read_exact(&mut digest)?;
        }
        match self.digests && u32::from_le_bytes(digest) != crc32c(bytes) {
            true => Err(odd("a wrong digest")),
            false => Ok(()),
        }
    }
}

/// READ (16) or WRITE (16) (SBC-3 clauses 5.15 and 5.40).
fn transfer(opcode: u8, lba: u64, sectors: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&(sectors as u32).to_be_bytes());
    cdb
}

/// Sense data in fixed format, or in descriptor format with the information descriptor
/// first.
fn sense(bytes: &[u8]) -> io::Result<Sense> {
    let short = || odd("sense data cut short");
    let byte = |at: usize| bytes.get(at).copied().ok_or_else(short);
    let number = |from: usize, to: usize| {
        let part = bytes.get(from..to).ok_or_else(short)?;
        Ok::<u64, Error>(part.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    if byte(0)? & 0x7f == 0x72 {
        let valid = bytes.len() >= 20 && byte(8)? == 0 && byte(10)? & 0x80 != 0;
        return Ok(Sense {
            key: byte(1)? & 0xf,
            code: (byte(2)?, byte(3)?),
            information: if valid { Some(number(12, 20)?) } else { None },
        });
    }
    let valid = byte(0)? & 0x80 != 0;
    Ok(Sense {
        key: byte(2)? & 0xf,
        code: (byte(12)?, byte(13)?),
        information: if valid { Some(number(3, 7)?) } else { None },
    })
}

/// Whether a response with this data segment warns that a pool runs full.
fn is_warning(data: &[u8]) -> bool {
    let found = data.get(2..).and_then(|bytes| sense(bytes).ok());
    found.is_some_and(|found| (found.key, found.code) == WARNING)
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the target sent {what}"))
}

fn be32(header: &[u8; 48], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sense_data_is_read_in_both_formats() {
        let fixed = [0xf0, 0, 3, 0, 0, 1, 2, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        assert_eq!(sense(&fixed).unwrap(), Sense::unread(0x102));
        let mut descriptor = vec![0x72, 3, 0x11, 0, 0, 0, 0, 12, 0, 10, 0x80, 0];
        descriptor.extend(0x102_u64.to_be_bytes());
        assert_eq!(sense(&descriptor).unwrap(), Sense::unread(0x102));
        let plain = [0x70, 0, 5, 0, 0, 1, 2, 10, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0];
        assert_eq!(sense(&plain).unwrap().information, None);
        assert!(sense(&plain[..5]).is_err());
    }

    #[test]
    fn the_places_of_a_cdb() {
        let cdb = transfer(0x8a, 0x0102, 7);
        assert_eq!((cdb[0], cdb[8], cdb[9], cdb[13]), (0x8a, 1, 2, 7));
    }
}
