//! An initiator that says exactly what a test tells it to, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test fails where this is unfit")]

use super::{Served, TARGET};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub const LUN0: [u8; 8] = [0; 8];

/// What the host is called that most tests are of.
pub const NAME: &str = "iqn.2026-11.test:host";

/// A PDU that came.
pub struct Pdu {
    pub header: [u8; 48],
    pub data: Vec<u8>,
}

impl Pdu {
    pub fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    pub fn tag(&self) -> u32 {
        be32(&self.header, 16)
    }

    /// Sense key and additional sense code of a SCSI response.
    pub fn sense(&self) -> (u8, u8, u8) {
        assert_eq!(
            (self.opcode(), self.header[3]),
            (0x21, 2),
            "a CHECK CONDITION"
        );
        let sense = &self.data[2..];
        (sense[2] & 0xf, sense[12], sense[13])
    }
}

pub struct Initiator {
    stream: TcpStream,
    pub cmd_sn: u32,
    /// Where commands go.
    pub lun: [u8; 8],
    next_tag: u32,
}

impl Initiator {
    /// A session of the host that has heard of power on already.
    pub async fn settled(served: &Served, isid: u8) -> Initiator {
        let mut initiator = Self::login(served.address(), NAME, isid, TARGET).await;
        initiator.settle().await;
        initiator
    }

    /// Logs in to `target`.
    pub async fn login(at: SocketAddr, name: &str, isid: u8, target: &str) -> Initiator {
        let mut initiator = Self::connect(at).await;
        initiator.send_login(name, isid, target).await;
        let response = initiator.receive().await.unwrap();
        assert_eq!(
            (response.opcode(), response.header[36], response.header[37]),
            (0x23, 0, 0)
        );
        initiator
    }

    pub async fn connect(at: SocketAddr) -> Initiator {
        let stream = TcpStream::connect(at).await.unwrap();
        Initiator {
            stream,
            cmd_sn: 1,
            lun: LUN0,
            next_tag: 1,
        }
    }

    pub async fn send_login(&mut self, name: &str, isid: u8, target: &str) {
        let keys = format!(
            "InitiatorName={name}\0TargetName={target}\0SessionType=Normal\0AuthMethod=None\0\
             HeaderDigest=None\0DataDigest=None\0InitialR2T=Yes\0ImmediateData=Yes\0"
        );
        let mut header = [0; 48];
        // Immediate; from operational negotiation straight to full feature.
        header[0] = 0x43;
        header[1] = 0x87;
        header[8] = 0x80;
        header[13] = isid;
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, keys.as_bytes()).await;
    }

    /// Sends one PDU, with the length and the padding that its data needs.
    pub async fn send(&mut self, mut header: [u8; 48], data: &[u8]) {
        header[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = header.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.send_bytes(&bytes).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a login request with these keys, in the security stage or the operational
    /// one; gives the status and the keys of the answer.
    pub async fn negotiate(&mut self, flags: u8, keys: &[(&str, &str)]) -> ((u8, u8), String) {
        let text: String = keys
            .iter()
            .map(|(key, value)| format!("{key}={value}\0"))
            .collect();
        let mut header = [0; 48];
        (header[0], header[1], header[8]) = (0x43, flags, 0x80);
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(header, text.as_bytes()).await;
        let answer = self.receive().await.unwrap();
        assert_eq!(answer.opcode(), 0x23);
        let text = String::from_utf8(answer.data).unwrap();
        ((answer.header[36], answer.header[37]), text)
    }

    /// The next PDU, or `None` when the connection has been closed.
    pub async fn receive(&mut self) -> Option<Pdu> {
        let mut header = [0; 48];
        self.stream.read_exact(&mut header).await.ok()?;
        let length = be32(&header, 4) as usize & 0xff_ffff;
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).await.ok()?;
        data.truncate(length);
        Some(Pdu { header, data })
    }

    /// Whether the target asks for a logout, says that the connection is dropped as none
    /// comes, and closes it.
    pub async fn is_shown_out(&mut self) -> bool {
        let mut events = Vec::new();
        while let Some(pdu) = self.receive().await {
            events.push((pdu.opcode(), pdu.header[36]));
        }
        events == [(0x32, 1), (0x32, 2)]
    }

    /// Sends a SCSI command; gives its tag. `write` is the length of its
    /// data-out, of which `immediate` goes along.
    pub async fn command(&mut self, cdb: &[u8], read: u32, write: u32, immediate: &[u8]) -> u32 {
        let header = self.command_header(cdb, read, write);
        self.send(header, immediate).await;
        be32(&header, 16)
    }

    /// Sends a command that reads `read` bytes so many times, in a single segment: all of them
    /// come before the first is answered.
    pub async fn commands_at_once(&mut self, times: u32, cdb: &[u8], read: u32) {
        let headers = (0..times).flat_map(|_| self.command_header(cdb, read, 0));
        let bytes: Vec<u8> = headers.collect();
        self.send_bytes(&bytes).await;
    }

    fn command_header(&mut self, cdb: &[u8], read: u32, write: u32) -> [u8; 48] {
        let mut header = [0; 48];
        header[0] = 0x01;
        header[1] = 0x81 | if read > 0 { 0x40 } else { 0 } | if write > 0 { 0x20 } else { 0 };
        header[8..16].copy_from_slice(&self.lun);
        header[20..24].copy_from_slice(&read.max(write).to_be_bytes());
        header[32..32 + cdb.len()].copy_from_slice(cdb);
        self.stamp(&mut header);
        self.cmd_sn += 1;
        header
    }

    /// Sends all data-out that an R2T asks for.
    pub async fn give(&mut self, wanted: &Pdu, data: &[u8]) {
        let mut header = [0; 48];
        (header[0], header[1]) = (0x05, 0x80);
        header[8..24].copy_from_slice(&wanted.header[8..24]);
        self.send(header, data).await;
    }

    /// What comes, and what goes, apart.
    pub fn into_halves(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.stream.into_split()
    }

    /// Sends a task management function, immediate; gives its tag.
    pub async fn manage(&mut self, function: u8, lun: [u8; 8], referenced: u32) -> u32 {
        let mut header = [0; 48];
        header[0] = 0x42;
        header[1] = 0x80 | function;
        header[8..16].copy_from_slice(&lun);
        header[20..24].copy_from_slice(&referenced.to_be_bytes());
        let tag = self.stamp(&mut header);
        self.send(header, &[]).await;
        tag
    }

    /// Runs a command and gives its last PDU: a response, or data-in with status.
    pub async fn run(&mut self, cdb: &[u8], read: u32, data_out: &[u8]) -> Pdu {
        let tag = self
            .command(cdb, read, data_out.len() as u32, data_out)
            .await;
        let answer = self.receive().await.unwrap();
        assert_eq!(answer.tag(), tag);
        answer
    }

    /// Reports the unit attention of a new nexus away.
    pub async fn settle(&mut self) {
        let answer = self.run(&[0; 6], 0, &[]).await;
        assert_eq!(
            answer.sense(),
            (6, 0x29, 0),
            "the first command hears of power on"
        );
        let answer = self.run(&[0; 6], 0, &[]).await;
        assert_eq!(
            (answer.opcode(), answer.header[3]),
            (0x21, 0),
            "the second is good"
        );
    }

    fn stamp(&mut self, header: &mut [u8; 48]) -> u32 {
        let tag = self.next_tag;
        self.next_tag += 1;
        header[16..20].copy_from_slice(&tag.to_be_bytes());
        header[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        tag
    }
}

/// WRITE(10) of `blocks` at `lba`.
pub fn write10(lba: u32, blocks: u16) -> [u8; 10] {
    transfer10(0x2a, lba, blocks)
}

/// READ(10) of `blocks` at `lba`.
pub fn read10(lba: u32, blocks: u16) -> [u8; 10] {
    transfer10(0x28, lba, blocks)
}

fn transfer10(opcode: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

fn be32(header: &[u8; 48], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
