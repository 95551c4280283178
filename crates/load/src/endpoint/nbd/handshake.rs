//! The fixed newstyle handshake with `NBD_OPT_GO` ("Handshake phase").

use crate::endpoint::{Geometry, TargetErrorKind};
use std::io::{self, Read, Write};

const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943; // "NBDMAGIC"
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054; // "IHAVEOPT"
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// "Handshake flags" and "Client flags".
const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
const FLAG_NO_ZEROES: u16 = 1 << 1;

const OPT_GO: u32 = 7;

/// "Option reply types".
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_ERROR: u32 = 1 << 31;
const REP_ERR_POLICY: u32 = REP_ERROR | 2;
const REP_ERR_UNKNOWN: u32 = REP_ERROR | 6;
const REP_ERR_TLS_REQD: u32 = REP_ERROR | 5;

/// "NBD_INFO information types".
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// "Transmission flags".
const FLAG_READ_ONLY: u16 = 1 << 1;

/// No reply of a server to `NBD_OPT_GO` is longer (its strings are at most 4096).
const REPLY_BYTES_MAX: u32 = 16 << 10;

type Refusal = (TargetErrorKind, String);

fn broken(detail: impl Into<String>) -> Refusal {
    (TargetErrorKind::Protocol, detail.into())
}

fn failed(error: io::Error) -> Refusal {
    let detail = format!("the handshake failed: {error}; is this an NBD server?");
    (TargetErrorKind::Unreachable, detail)
}

fn u16_from(stream: &mut impl Read) -> Result<u16, Refusal> {
    let mut bytes = [0; 2];
    stream.read_exact(&mut bytes).map_err(failed)?;
    Ok(u16::from_be_bytes(bytes))
}

fn u32_from(stream: &mut impl Read) -> Result<u32, Refusal> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).map_err(failed)?;
    Ok(u32::from_be_bytes(bytes))
}

fn u64_from(stream: &mut impl Read) -> Result<u64, Refusal> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).map_err(failed)?;
    Ok(u64::from_be_bytes(bytes))
}

/// Goes from a fresh connection to the transmission phase of `export`.
///
/// # Errors
/// `Unreachable` when the connection ends, `Protocol`, `Refused`, `Absent`.
pub fn negotiate(stream: &mut (impl Read + Write), export: &str) -> Result<Geometry, Refusal> {
    if u64_from(stream)? != INIT_MAGIC || u64_from(stream)? != OPTION_MAGIC {
        return Err(broken("does not greet like a newstyle NBD server"));
    }
    let offered = u16_from(stream)?;
    if offered & FLAG_FIXED_NEWSTYLE == 0 {
        return Err(broken("offers no fixed newstyle handshake"));
    }
    let taken = u32::from(offered & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES));
    stream.write_all(&taken.to_be_bytes()).map_err(failed)?;
    stream.write_all(&go(export)?).map_err(failed)?;
    read_replies(stream, export)
}

/// `NBD_OPT_GO` for `export`, asking for its block size.
fn go(export: &str) -> Result<Vec<u8>, Refusal> {
    let name = export.as_bytes();
    let name_bytes = u32::try_from(name.len())
        .ok()
        .filter(|&length| length <= 4096)
        .ok_or_else(|| {
            (
                TargetErrorKind::Url,
                "the export's name is longer than 4096".into(),
            )
        })?;
    let mut option = Vec::with_capacity(24 + name.len());
    option.extend(OPTION_MAGIC.to_be_bytes());
    option.extend(OPT_GO.to_be_bytes());
    option.extend((4 + name_bytes + 2 + 2).to_be_bytes());
    option.extend(name_bytes.to_be_bytes());
    option.extend(name);
    option.extend(1u16.to_be_bytes());
    option.extend(INFO_BLOCK_SIZE.to_be_bytes());
    Ok(option)
}

fn read_replies(stream: &mut impl Read, export: &str) -> Result<Geometry, Refusal> {
    let mut size_and_flags = None;
    let mut block_bytes = 1;
    loop {
        if u64_from(stream)? != REPLY_MAGIC || u32_from(stream)? != OPT_GO {
            return Err(broken("answers something else than NBD_OPT_GO"));
        }
        let kind = u32_from(stream)?;
        let length = u32_from(stream)?;
        if length > REPLY_BYTES_MAX {
            return Err(broken(format!(
                "a reply of {length} bytes during the handshake"
            )));
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data).map_err(failed)?;
        match kind {
            REP_ACK => break,
            REP_INFO => match information(&data)? {
                Information::Export { bytes, flags } => size_and_flags = Some((bytes, flags)),
                Information::BlockBytes(minimum) => block_bytes = minimum,
                Information::Other => {}
            },
            error if error & REP_ERROR != 0 => return Err(refusal(error, &data, export)),
            other => return Err(broken(format!("a reply of type {other} to NBD_OPT_GO"))),
        }
    }
    let (capacity_bytes, flags) =
        size_and_flags.ok_or_else(|| broken("did not tell the size of the export"))?;
    Ok(Geometry {
        capacity_bytes,
        block_bytes,
        read_only: flags & FLAG_READ_ONLY != 0,
    })
}

enum Information {
    Export { bytes: u64, flags: u16 },
    BlockBytes(u32),
    Other,
}

fn information(data: &[u8]) -> Result<Information, Refusal> {
    let short = || broken("a short NBD_REP_INFO");
    let (kind, data) = data.split_first_chunk::<2>().ok_or_else(short)?;
    match u16::from_be_bytes(*kind) {
        INFO_EXPORT => {
            let (bytes, data) = data.split_first_chunk::<8>().ok_or_else(short)?;
            let flags = data.first_chunk::<2>().ok_or_else(short)?;
            let (bytes, flags) = (u64::from_be_bytes(*bytes), u16::from_be_bytes(*flags));
            Ok(Information::Export { bytes, flags })
        }
        INFO_BLOCK_SIZE => {
            let minimum = data.first_chunk::<4>().ok_or_else(short)?;
            Ok(Information::BlockBytes(u32::from_be_bytes(*minimum)))
        }
        _ => Ok(Information::Other),
    }
}

fn refusal(error: u32, data: &[u8], export: &str) -> Refusal {
    let said = String::from_utf8_lossy(data);
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(" ({said})")
    };
    match error {
        REP_ERR_UNKNOWN => (
            TargetErrorKind::Absent,
            format!("the server has no export {export:?}{said}"),
        ),
        REP_ERR_TLS_REQD => (
            TargetErrorKind::Refused,
            format!("the server insists on TLS, which this client does not speak{said}"),
        ),
        REP_ERR_POLICY => (
            TargetErrorKind::Refused,
            format!("the server's policy refuses us{said}"),
        ),
        other => (
            TargetErrorKind::Refused,
            format!("the server refuses with error {other:#x}{said}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server sends, and what was sent to it.
    struct Script {
        server: io::Cursor<Vec<u8>>,
        client: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.server.read(bytes)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.client.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn greeting(flags: u16) -> Vec<u8> {
        let mut bytes = INIT_MAGIC.to_be_bytes().to_vec();
        bytes.extend(OPTION_MAGIC.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes
    }

    fn reply(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = REPLY_MAGIC.to_be_bytes().to_vec();
        bytes.extend(OPT_GO.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    }

    fn negotiated(parts: &[Vec<u8>]) -> Result<Geometry, Refusal> {
        let server = io::Cursor::new(parts.concat());
        negotiate(
            &mut Script {
                server,
                client: Vec::new(),
            },
            "disk",
        )
    }

    fn export(bytes: u64, flags: u16) -> Vec<u8> {
        let mut data = INFO_EXPORT.to_be_bytes().to_vec();
        data.extend(bytes.to_be_bytes());
        data.extend(flags.to_be_bytes());
        reply(REP_INFO, &data)
    }

    #[test]
    fn an_export_tells_size_block_and_access() {
        let mut block = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        block.extend([0, 0, 2, 0, 0, 0, 16, 0, 2, 0, 0, 0]);
        let parts = [
            greeting(3),
            export(1 << 30, 1 | FLAG_READ_ONLY),
            reply(REP_INFO, &block),
            reply(REP_ACK, &[]),
        ];
        let geometry = negotiated(&parts).unwrap();
        assert_eq!(
            geometry,
            Geometry {
                capacity_bytes: 1 << 30,
                block_bytes: 512,
                read_only: true
            }
        );
    }

    #[test]
    fn what_a_server_refuses_or_breaks_is_told_apart() {
        use TargetErrorKind as Kind;
        let cases: [(&[Vec<u8>], Kind); 9] = [
            (&[], Kind::Unreachable),
            (&[vec![0x48; 18]], Kind::Protocol),
            (&[greeting(0)], Kind::Protocol),
            (&[greeting(3), reply(REP_ERR_UNKNOWN, b"no")], Kind::Absent),
            (&[greeting(3), reply(REP_ERR_TLS_REQD, b"")], Kind::Refused),
            (&[greeting(3), reply(REP_ACK, &[])], Kind::Protocol),
            (&[greeting(3), reply(REP_INFO, &[0])], Kind::Protocol),
            (&[greeting(3), reply(2, &[])], Kind::Protocol),
            (
                &[greeting(3), export(5, 1)[..30].to_vec()],
                Kind::Unreachable,
            ),
        ];
        for (index, (parts, kind)) in cases.iter().enumerate() {
            assert_eq!(negotiated(parts).unwrap_err().0, *kind, "case {index}");
        }
    }
}
