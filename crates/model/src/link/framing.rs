//! The framing of a message on the wire.
//!
//! Every byte that occupies the wire is counted, gaps included, so that bytes
//! over the rate is the time. A frame is never empty and the payload of all
//! frames adds up to the message.

/// Bytes before and after an Ethernet frame and in its head: preamble and start
/// delimiter 8, addresses and type 14, frame check sequence 4 (IEEE 802.3 clause
/// 3.1.1), gap between packets 12 (clause 4.4.2: 96 bit times).
const ETHERNET_OVERHEAD_BYTES: u64 = 8 + 14 + 4 + 12;
/// The least that a frame carries; shorter ones are padded (clause 4.4.2:
/// minFrameSize 64 bytes, 18 of them header and check sequence).
const ETHERNET_LEAST_BYTES: u64 = 46;
/// IPv4 header without options (RFC 791 section 3.1).
const IP_BYTES: u64 = 20;
/// TCP header without options (RFC 9293 section 3.1).
const TCP_BYTES: u64 = 20;
/// Basic header segment of an iSCSI PDU (RFC 7143 section 11.2.1).
const ISCSI_HEADER_BYTES: u64 = 48;
/// Start of frame 4, header 24, CRC 4, end of frame 4 (FC-FS clause on frame
/// formats).
const FC_FRAME_BYTES: u64 = 4 + 24 + 4 + 4;
/// At least six primitive signals of four bytes stand between two frames that a
/// port sends (FC-FS; Seagate Fibre Channel Interface Manual section 5.4.1).
const FC_GAP_BYTES: u64 = 6 * 4;

/// What a message occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnWire {
    /// Frames; with TCP, segments.
    pub frames: u64,
    /// Bytes in all, gaps between frames included.
    pub bytes: u64,
    /// Bytes of the largest frame, its gap included.
    pub largest_frame_bytes: u64,
}

/// How messages are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// TCP over IPv4 over Ethernet.
    Ethernet(Ethernet),
    /// Frames of Fibre Channel, on an FC port.
    FibreChannel(FibreChannel),
    /// Packets with so much around each.
    Packets(Packets),
}

/// Packets of whole words of four bytes, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Most payload of a packet.
    pub payload_bytes: u16,
    /// What stands around it.
    pub overhead_bytes: u16,
}

impl Packets {
    /// Serial attached SCSI: 1024 bytes between start 4, header 24, CRC 4 and end 4 (SAS-2, SSP
    /// frame format).
    pub const SAS: Packets = Packets {
        payload_bytes: 1024,
        overhead_bytes: 36,
    };
    /// PCI Express of the first two generations and, near enough, of later ones: 256 bytes as
    /// chipsets allow, between framing 2, sequence 2, header 16 and CRC 4 (PCI Express base
    /// specification, transaction and data link layers).
    pub const PCIE: Packets = Packets {
        payload_bytes: 256,
        overhead_bytes: 24,
    };
    /// InfiniBand with an MTU of 2048: local header 8, transport header 12, that of a remote
    /// write 16, two CRCs of 4 and 2 (InfiniBand architecture specification volume 1,
    /// clause on packet formats).
    pub const INFINIBAND: Packets = Packets {
        payload_bytes: 2048,
        overhead_bytes: 42,
    };
}

/// TCP over IPv4 over untagged Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// The largest IP packet, bytes.
    pub mtu_bytes: u16,
    /// Options in each TCP header: 12 with timestamps (RFC 7323 appendix A), as
    /// Linux and ESXi send them, 0 without.
    pub tcp_options_bytes: u8,
}

/// The frame size of Fibre Channel, as ports agree on it at login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibreChannel {
    /// The largest data field: 2112 bytes by FC-FS, 2048 where a port says so at
    /// login.
    pub payload_bytes: u16,
}

impl Ethernet {
    /// MTU 1500 with TCP timestamps.
    pub const STANDARD: Ethernet = Ethernet {
        mtu_bytes: 1500,
        tcp_options_bytes: 12,
    };
    /// MTU 9000 (jumbo frames) with TCP timestamps.
    pub const JUMBO: Ethernet = Ethernet {
        mtu_bytes: 9000,
        tcp_options_bytes: 12,
    };

    /// The same without TCP options.
    pub const fn without_options(self) -> Ethernet {
        Ethernet {
            tcp_options_bytes: 0,
            ..self
        }
    }

    const fn headers(&self) -> u64 {
        IP_BYTES + TCP_BYTES + self.tcp_options_bytes as u64
    }

    /// Most payload of a segment, bytes (RFC 9293 section 3.7.1).
    ///
    /// # Panics
    /// When the MTU has no room for payload.
    pub fn segment_bytes(&self) -> u64 {
        let room = u64::from(self.mtu_bytes).checked_sub(self.headers());
        match room {
            Some(room) if room > 0 => room,
            _ => panic!("an MTU of {} bytes carries no payload", self.mtu_bytes),
        }
    }

    /// A frame with so much TCP payload.
    fn frame_bytes(&self, payload_bytes: u64) -> u64 {
        (self.headers() + payload_bytes).max(ETHERNET_LEAST_BYTES) + ETHERNET_OVERHEAD_BYTES
    }

    /// What acknowledgements take of the other direction while this one is full:
    /// one for every second full segment (RFC 9293 section 3.8.6.3).
    pub fn acknowledgement_share(&self) -> f64 {
        self.frame_bytes(0) as f64 / (2 * self.frame_bytes(self.segment_bytes())) as f64
    }
}

impl FibreChannel {
    /// Frames of the largest data field that FC-FS allows.
    pub const FULL: FibreChannel = FibreChannel {
        payload_bytes: 2112,
    };
}

impl Framing {
    /// Most payload of a frame, bytes.
    pub fn frame_payload_bytes(&self) -> u64 {
        match self {
            Framing::Ethernet(ethernet) => ethernet.segment_bytes(),
            Framing::FibreChannel(fc) => u64::from(fc.payload_bytes),
            Framing::Packets(packets) => u64::from(packets.payload_bytes),
        }
    }

    /// A frame with so much payload, its gap included, bytes.
    fn frame_bytes(&self, payload_bytes: u64) -> u64 {
        match self {
            Framing::Ethernet(ethernet) => ethernet.frame_bytes(payload_bytes),
            // A data field is filled up to whole words of four bytes.
            Framing::FibreChannel(_) => {
                payload_bytes.next_multiple_of(4) + FC_FRAME_BYTES + FC_GAP_BYTES
            }
            Framing::Packets(packets) => {
                payload_bytes.next_multiple_of(4) + u64::from(packets.overhead_bytes)
            }
        }
    }

    /// A message of so many bytes. An empty one is a frame without payload.
    pub fn wire(&self, payload_bytes: u64) -> OnWire {
        let most = self.frame_payload_bytes();
        let (full, rest) = (payload_bytes / most, payload_bytes % most);
        let partial = rest > 0 || full == 0;
        let largest = self.frame_bytes(payload_bytes.min(most));
        let last = if partial { self.frame_bytes(rest) } else { 0 };
        OnWire {
            frames: full + u64::from(partial),
            bytes: full * self.frame_bytes(most) + last,
            largest_frame_bytes: largest,
        }
    }

    /// Payload over wire of full frames, 0 to 1.
    pub fn efficiency(&self) -> f64 {
        let most = self.frame_payload_bytes();
        most as f64 / self.frame_bytes(most) as f64
    }
}

/// Bytes of the TCP stream for so much data in iSCSI PDUs that carry at most
/// `segment_bytes` each (MaxRecvDataSegmentLength), without digests. Data is
/// padded to whole words (RFC 7143 section 11.2.3). No data is one PDU.
///
/// # Panics
/// When a PDU may carry nothing.
pub fn iscsi_stream_bytes(data_bytes: u64, segment_bytes: u64) -> u64 {
    assert!(segment_bytes > 0, "a PDU must be able to carry data");
    let pdus = data_bytes.div_ceil(segment_bytes).max(1);
    data_bytes.next_multiple_of(4) + pdus * ISCSI_HEADER_BYTES
}
