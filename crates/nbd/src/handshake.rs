//! The fixed newstyle handshake with `NBD_OPT_GO` ("Handshake phase").
//!
//! A caller sends what [`Handshake::take_output`] gives, reads [`Handshake::wants_bytes`] and gives
//! them to [`Handshake::feed`], until that says what was agreed on.

use std::mem;

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
const ERROR_POLICY: u32 = ERROR | 2;
const ERROR_TLS_REQUIRED: u32 = ERROR | 5;
const ERROR_UNKNOWN: u32 = ERROR | 6;

/// "NBD_INFO information types".
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// "Transmission flags".
const READ_ONLY: u16 = 1 << 1;

/// The meta context that tells of extents.
const CONTEXT: &[u8] = b"base:allocation";

/// "Strings" are no longer.
const NAME_BYTES_MAX: usize = 4096;
/// No answer to an option is longer.
const REPLY_BYTES_MAX: u32 = 16 << 10;
/// An option has no more answers.
const REPLIES_MAX: u32 = 64;

const GREETING_BYTES: usize = 18;
const HEADER_BYTES: usize = 20;

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Name of the export; empty for the nameless one.
    pub export: &'a str,
    /// Structured replies, and extents in `base:allocation`, where the server has them.
    pub extents: bool,
}

/// What was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Requests end here at the latest.
    pub size_bytes: u64,
    /// What requests are multiples of.
    pub block_bytes: u32,
    /// Nobody may write to it.
    pub is_read_only: bool,
    /// `BLOCK_STATUS` tells of extents.
    pub has_extents: bool,
}

/// Why there is no export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For those who match on it.
    pub kind: RefusalKind,
    /// What happened, as people are told.
    pub context: String,
}

/// Kinds that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The name is longer than names are.
    Name,
    /// The server breaks the protocol, or is no NBD server.
    Protocol,
    /// The server has no such export.
    Absent,
    /// The server does not serve us.
    Refused,
}

fn broken(context: impl Into<String>) -> Refusal {
    Refusal {
        kind: RefusalKind::Protocol,
        context: context.into(),
    }
}

/// A handshake under way.
#[derive(Debug)]
pub struct Handshake {
    export: String,
    output: Vec<u8>,
    /// Options that are asked for after this one, the next one last.
    options: Vec<u32>,
    step: Step,
    /// Answers to the present option.
    replies: u32,
    size_and_flags: Option<(u64, u16)>,
    block_bytes: u32,
    has_extents: bool,
}

/// What comes next from the server.
#[derive(Clone, Copy, Debug)]
enum Step {
    Greeting,
    /// The header of an answer to this option.
    Header(u32),
    /// Its payload: the option, the kind of the answer, and the length.
    Payload(u32, u32, u32),
}

impl Handshake {
    /// A handshake of a fresh connection.
    ///
    /// # Errors
    /// The name of the export is too long.
    pub fn new(wanted: Wanted<'_>) -> Result<Self, Refusal> {
        if wanted.export.len() > NAME_BYTES_MAX {
            return Err(Refusal {
                kind: RefusalKind::Name,
                context: format!("the export's name is longer than {NAME_BYTES_MAX}"),
            });
        }
        let options = match wanted.extents {
            true => vec![GO, SET_META_CONTEXT, STRUCTURED_REPLY],
            false => vec![GO],
        };
        Ok(Handshake {
            export: wanted.export.to_owned(),
            output: Vec::new(),
            options,
            step: Step::Greeting,
            replies: 0,
            size_and_flags: None,
            block_bytes: 1,
            has_extents: false,
        })
    }

    /// What is to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    /// How many bytes [`Handshake::feed`] takes next.
    pub fn wants_bytes(&self) -> usize {
        match self.step {
            Step::Greeting => GREETING_BYTES,
            Step::Header(_) => HEADER_BYTES,
            Step::Payload(_, _, len) => len as usize,
        }
    }

    /// Takes what the server said, as many bytes as it wants. Gives what was agreed on, at the end.
    ///
    /// # Errors
    /// There is no export for us.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Export>, Refusal> {
        if bytes.len() != self.wants_bytes() {
            return Err(broken("ends in the middle of the handshake"));
        }
        match self.step {
            Step::Greeting => self.greeting(bytes).map(|()| None),
            Step::Header(option) => self.header(option, bytes),
            Step::Payload(option, kind, _) => self.reply(option, kind, bytes),
        }
    }

    fn greeting(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let mut rest = bytes;
        let magics = (crate::u64_of(&mut rest), crate::u64_of(&mut rest));
        let offered = crate::u16_of(&mut rest).unwrap_or(0);
        if magics != (Some(INIT_MAGIC), Some(OPTION_MAGIC)) {
            return Err(broken("does not greet like a newstyle NBD server"));
        }
        if offered & FIXED_NEWSTYLE == 0 {
            return Err(broken("offers no fixed newstyle handshake"));
        }
        let taken = u32::from(offered & (FIXED_NEWSTYLE | NO_ZEROES));
        self.output.extend(taken.to_be_bytes());
        self.ask();
        Ok(())
    }

    /// Asks for the next option.
    fn ask(&mut self) {
        let option = self.options.pop().unwrap_or(GO);
        let mut data = Vec::new();
        let named = |data: &mut Vec<u8>, name: &[u8]| {
            data.extend((name.len() as u32).to_be_bytes());
            data.extend(name);
        };
        match option {
            GO => {
                named(&mut data, self.export.as_bytes());
                data.extend(1u16.to_be_bytes());
                data.extend(INFO_BLOCK_SIZE.to_be_bytes());
            }
            SET_META_CONTEXT => {
                named(&mut data, self.export.as_bytes());
                data.extend(1u32.to_be_bytes());
                named(&mut data, CONTEXT);
            }
            _ => {}
        }
        self.output.extend(OPTION_MAGIC.to_be_bytes());
        self.output.extend(option.to_be_bytes());
        self.output.extend((data.len() as u32).to_be_bytes());
        self.output.extend(data);
        self.replies = 0;
        self.step = Step::Header(option);
    }

    fn header(&mut self, option: u32, bytes: &[u8]) -> Result<Option<Export>, Refusal> {
        let mut rest = bytes;
        let magic = crate::u64_of(&mut rest);
        let mut next = || crate::u32_of(&mut rest).unwrap_or(0);
        let (answered, kind, len) = (next(), next(), next());
        self.replies += 1;
        if magic != Some(REPLY_MAGIC) || answered != option {
            return Err(broken("answers something else than was asked"));
        }
        if len > REPLY_BYTES_MAX || self.replies > REPLIES_MAX {
            return Err(broken(format!(
                "reply {} of {len} bytes to one option of the handshake",
                self.replies
            )));
        }
        if len == 0 {
            return self.reply(option, kind, &[]);
        }
        self.step = Step::Payload(option, kind, len);
        Ok(None)
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> Result<Option<Export>, Refusal> {
        self.step = Step::Header(option);
        match (option, kind) {
            (GO, ACK) => return self.agreed().map(Some),
            (_, ACK) => self.ask(),
            (GO, INFO) => self.information(data)?,
            (SET_META_CONTEXT, META_CONTEXT) => self.has_extents = true,
            (GO, error) if error & ERROR != 0 => return Err(refusal(error, data, &self.export)),
            (_, error) if error & ERROR != 0 => {
                // The server can't. Without structured replies there are no extents either.
                self.has_extents = false;
                self.options = vec![GO];
                self.ask();
            }
            (_, other) => {
                return Err(broken(format!(
                    "a reply of type {other} to option {option}"
                )));
            }
        }
        Ok(None)
    }

    fn information(&mut self, data: &[u8]) -> Result<(), Refusal> {
        let short = || broken("a short NBD_REP_INFO");
        let mut rest = data;
        match crate::u16_of(&mut rest).ok_or_else(short)? {
            INFO_EXPORT => {
                let size = crate::u64_of(&mut rest).ok_or_else(short)?;
                let flags = crate::u16_of(&mut rest).ok_or_else(short)?;
                self.size_and_flags = Some((size, flags));
            }
            INFO_BLOCK_SIZE => {
                // The minimum is the first of three.
                self.block_bytes = crate::u32_of(&mut rest).ok_or_else(short)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn agreed(&self) -> Result<Export, Refusal> {
        let told = self.size_and_flags;
        let (size_bytes, flags) =
            told.ok_or_else(|| broken("did not tell the size of the export"))?;
        Ok(Export {
            size_bytes,
            block_bytes: self.block_bytes,
            is_read_only: flags & READ_ONLY != 0,
            has_extents: self.has_extents,
        })
    }
}

fn refusal(error: u32, data: &[u8], export: &str) -> Refusal {
    let said = String::from_utf8_lossy(data);
    let said: String = said.chars().filter(|c| !c.is_control()).collect();
    let said = match said.is_empty() {
        true => said,
        false => format!(" ({said})"),
    };
    let (kind, context) = match error {
        ERROR_UNKNOWN => (
            RefusalKind::Absent,
            format!("the server has no export {export:?}{said}"),
        ),
        ERROR_TLS_REQUIRED => (
            RefusalKind::Refused,
            format!("the server insists on TLS, which this client does not speak{said}"),
        ),
        ERROR_POLICY => (
            RefusalKind::Refused,
            format!("the server's policy refuses us{said}"),
        ),
        other => (
            RefusalKind::Refused,
            format!("the server refuses with error {other:#x}{said}"),
        ),
    };
    Refusal { kind, context }
}

#[cfg(test)]
mod tests;
