//! The fixed newstyle handshake of NBD (chapter "Handshake phase").
//!
//! It asks for structured replies and `base:allocation`, where the server has them.

use super::{Outcome, lost};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943; // "NBDMAGIC"
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054; // "IHAVEOPT"
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// "Handshake flags" and "Client flags".
const FIXED_NEWSTYLE: u16 = 1 << 0;
const NO_ZEROES: u16 = 1 << 1;

/// "Option types".
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const SET_META_CONTEXT: u32 = 10;

/// "Option reply types".
const ACK: u32 = 1;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
const ERROR: u32 = 1 << 31;

/// "NBD_INFO_EXPORT".
const INFO_EXPORT: u16 = 0;

const CONTEXT: &[u8] = b"base:allocation";

/// No answer to an option is longer.
const REPLY_BYTES_MAX: u32 = 16 << 10;

/// What was agreed on.
pub(super) struct Agreed {
    pub(super) size_bytes: u64,
    pub(super) has_extents: bool,
}

/// Goes from a fresh connection to the transmission phase of the nameless export.
pub(super) async fn negotiate(stream: &mut UnixStream) -> Outcome<Agreed> {
    let greeting = stream.read_u64().await.map_err(lost)?;
    let options = stream.read_u64().await.map_err(lost)?;
    let offered = stream.read_u16().await.map_err(lost)?;
    if greeting != INIT_MAGIC || options != OPTION_MAGIC || offered & FIXED_NEWSTYLE == 0 {
        return Err("qemu-nbd does not greet as an NBD server does".to_owned());
    }
    let taken = u32::from(offered & (FIXED_NEWSTYLE | NO_ZEROES));
    stream.write_all(&taken.to_be_bytes()).await.map_err(lost)?;
    let structured = option(stream, STRUCTURED_REPLY, &[]).await?;
    let has_extents = structured.acknowledged && {
        let mut query = vec![0; 4]; // The nameless export.
        query.extend(1u32.to_be_bytes());
        query.extend((CONTEXT.len() as u32).to_be_bytes());
        query.extend(CONTEXT);
        let answer = option(stream, SET_META_CONTEXT, &query).await?;
        answer.acknowledged && answer.replies.iter().any(|(kind, _)| *kind == META_CONTEXT)
    };
    // The nameless export, and no information asked for.
    let answer = option(stream, GO, &[0; 6]).await?;
    if !answer.acknowledged {
        return Err("qemu-nbd does not give its export".to_owned());
    }
    let export = answer.replies.iter().find_map(|(kind, said)| {
        let (what, said) = said.split_first_chunk()?;
        let is_export = *kind == INFO && u16::from_be_bytes(*what) == INFO_EXPORT;
        is_export.then(|| said.first_chunk().map(|size| u64::from_be_bytes(*size)))?
    });
    Ok(Agreed {
        size_bytes: export.ok_or("qemu-nbd does not say how large its export is")?,
        has_extents,
    })
}

struct Answer {
    acknowledged: bool,
    replies: Vec<(u32, Vec<u8>)>,
}

async fn option(stream: &mut UnixStream, option: u32, data: &[u8]) -> Outcome<Answer> {
    let mut request = OPTION_MAGIC.to_be_bytes().to_vec();
    request.extend(option.to_be_bytes());
    request.extend((data.len() as u32).to_be_bytes());
    request.extend(data);
    stream.write_all(&request).await.map_err(lost)?;
    let mut replies = Vec::new();
    loop {
        let magic = stream.read_u64().await.map_err(lost)?;
        let answered = stream.read_u32().await.map_err(lost)?;
        let kind = stream.read_u32().await.map_err(lost)?;
        let len = stream.read_u32().await.map_err(lost)?;
        if magic != REPLY_MAGIC || answered != option || len > REPLY_BYTES_MAX || replies.len() > 16
        {
            return Err("qemu-nbd does not answer as an NBD server does".to_owned());
        }
        let mut said = vec![0; len as usize];
        stream.read_exact(&mut said).await.map_err(lost)?;
        if kind == ACK || kind & ERROR != 0 {
            let acknowledged = kind == ACK;
            return Ok(Answer {
                acknowledged,
                replies,
            });
        }
        replies.push((kind, said));
    }
}
