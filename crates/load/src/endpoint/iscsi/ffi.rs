//! Bindings to the part of libiscsi (`iscsi/iscsi.h`, `iscsi/scsi-lowlevel.h`) that is used here,
//! written by hand: fewer than thirty names do not need a generator.
//!
//! Layouts are those of the public headers; `iscsi_context` and `scsi_task` are
//! only handled by pointer.
//!
//! The library is loaded when the first session is made, and stays: whoever opens no iSCSI target
//! needs none. Invariant: the types of [`Library`]'s functions are those of the headers.

#![allow(unsafe_code)]

use std::error::Error;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::OnceLock;

/// `struct iscsi_context`, of which only pointers are used.
#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

/// `struct scsi_task`, of which only pointers are used.
#[repr(C)]
pub struct Task {
    _opaque: [u8; 0],
}

/// `struct scsi_sense`, field by field.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sense {
    pub error_type: c_uchar,
    pub key: c_int,
    pub ascq: c_int,
    /// Three flags, the bit pointer and the field pointer: not looked at. The rest is room for
    /// what a later version may add, for the library writes the whole structure.
    pub specific: [u64; 16],
}

/// `struct scsi_readcapacity16`, up to what is looked at.
#[repr(C)]
pub struct ReadCapacity16 {
    pub returned_lba: u64,
    pub block_length: u32,
}

/// `struct scsi_mode_sense`, up to what is looked at.
#[repr(C)]
pub struct ModeSense {
    pub mode_data_length: u16,
    pub medium_type: u8,
    pub device_specific_parameter: u8,
}

/// `iscsi_command_cb`: context, status, command data, private data.
pub type CommandCallback = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void);

/// `enum scsi_status`, as far as it is used.
pub const STATUS_GOOD: c_int = 0;
pub const STATUS_CHECK_CONDITION: c_int = 2;
pub const STATUS_CANCELLED: c_int = 0x0f00_0000;
pub const STATUS_ERROR: c_int = 0x0f00_0001;
pub const STATUS_TIMEOUT: c_int = 0x0f00_0002;

/// `enum iscsi_session_type`: a session for commands, not for discovery.
pub const SESSION_NORMAL: c_int = 2;
/// `enum iscsi_header_digest`: CRC32C if the target insists, none if it does not.
pub const HEADER_DIGEST_NONE_CRC32C: c_int = 1;

/// The library's names, the one that we test with first. Distributions have others: what is used
/// here is in all of them. The last is there where its headers are.
const NAMES: [&str; 6] = [
    "libiscsi.so.7",
    "libiscsi.so.8",
    "libiscsi.so.9",
    "libiscsi.so.10",
    "libiscsi.so.11",
    "libiscsi.so",
];

/// The library, loaded once.
///
/// # Errors
/// What is missing, and the package that has it.
pub fn library() -> Result<&'static Library, String> {
    static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| load(&NAMES));
    loaded.as_ref().map_err(String::clone)
}

/// Loads the first of `names` that is there and has all functions.
fn load(names: &[&str]) -> Result<Library, String> {
    let mut unusable = None;
    for &name in names {
        // SAFETY: libiscsi's constructors do nothing that a caller has to provide for.
        match unsafe { libloading::Library::new(name) }.map(Library::of) {
            Ok(Ok(library)) => return Ok(library),
            Ok(Err(error)) => {
                unusable.get_or_insert((name, error));
            }
            Err(_) => {}
        }
    }
    Err(match unusable {
        Some((name, error)) => format!(
            "cannot use {name}, which iSCSI targets need: {}; install another version of libiscsi",
            own_words(&error)
        ),
        None => format!(
            "cannot load libiscsi, which iSCSI targets need: none of {} is there; install the \
             package that has libiscsi (Debian 12: libiscsi7)",
            names.join(", ")
        ),
    })
}

/// The system's own words, with the name of the function.
fn own_words(error: &libloading::Error) -> &dyn Error {
    error.source().unwrap_or(error)
}

/// A field for each function, and what looks them up.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The functions of libiscsi.
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
            /// Keeps the functions where they are.
            _library: libloading::Library,
        }

        impl Library {
            fn of(library: libloading::Library) -> Result<Library, libloading::Error> {
                Ok(Library {
                    // SAFETY: the types are those of libiscsi's headers, and a function is only
                    // called while the library is there.
                    $($name: unsafe { *library.get(stringify!($name))? },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    fn iscsi_create_context(initiator_name: *const c_char) -> *mut Context;
    fn iscsi_destroy_context(iscsi: *mut Context) -> c_int;
    fn iscsi_set_targetname(iscsi: *mut Context, name: *const c_char) -> c_int;
    fn iscsi_set_session_type(iscsi: *mut Context, kind: c_int) -> c_int;
    fn iscsi_set_header_digest(iscsi: *mut Context, digest: c_int) -> c_int;
    fn iscsi_set_initiator_username_pwd(
        iscsi: *mut Context,
        user: *const c_char,
        password: *const c_char,
    ) -> c_int;
    fn iscsi_set_noautoreconnect(iscsi: *mut Context, state: c_int);
    fn iscsi_set_timeout(iscsi: *mut Context, seconds: c_int) -> c_int;
    fn iscsi_full_connect_async(
        iscsi: *mut Context,
        portal: *const c_char,
        lun: c_int,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> c_int;
    fn iscsi_logout_async(
        iscsi: *mut Context,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> c_int;
    fn iscsi_get_fd(iscsi: *mut Context) -> c_int;
    fn iscsi_which_events(iscsi: *mut Context) -> c_int;
    fn iscsi_service(iscsi: *mut Context, revents: c_int) -> c_int;
    fn iscsi_get_error(iscsi: *mut Context) -> *const c_char;
    fn iscsi_readcapacity16_task(
        iscsi: *mut Context,
        lun: c_int,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> *mut Task;
    fn iscsi_modesense6_task(
        iscsi: *mut Context,
        lun: c_int,
        disable_block_descriptors: c_int,
        page_control: c_int,
        page_code: c_int,
        sub_page_code: c_int,
        allocation_length: c_uchar,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> *mut Task;
    fn iscsi_read16_task(
        iscsi: *mut Context,
        lun: c_int,
        lba: u64,
        data_bytes: u32,
        block_bytes: c_int,
        protect: c_int,
        dpo: c_int,
        fua: c_int,
        fua_nv: c_int,
        group: c_int,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> *mut Task;
    fn iscsi_write16_task(
        iscsi: *mut Context,
        lun: c_int,
        lba: u64,
        data: *mut c_uchar,
        data_bytes: u32,
        block_bytes: c_int,
        protect: c_int,
        dpo: c_int,
        fua: c_int,
        fua_nv: c_int,
        group: c_int,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> *mut Task;
    fn scsi_task_add_data_in_buffer(task: *mut Task, length: c_int, buffer: *mut c_uchar) -> c_int;
    fn scsi_task_get_status(task: *mut Task, sense: *mut Sense) -> c_int;
    fn scsi_datain_unmarshall(task: *mut Task) -> *mut c_void;
    fn scsi_free_scsi_task(task: *mut Task);
    fn scsi_sense_key_str(key: c_int) -> *const c_char;
    fn scsi_sense_ascq_str(ascq: c_int) -> *const c_char;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_is_told_with_its_package() {
        let Err(told) = load(&["libnothing.so.0", "libnothing.so"]) else {
            panic!("there is none");
        };
        for name in ["libnothing.so.0", "libnothing.so is there", "libiscsi7"] {
            assert!(told.contains(name), "{told}");
        }
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        // Also where a later name is not there at all.
        let refused = load(&["libnothing.so.0", "libc.so.6", "libnothing.so"]);
        let Err(told) = refused else {
            panic!("it has none of the functions");
        };
        assert!(
            told.contains("libc.so.6") && told.contains("iscsi_create_context"),
            "{told}"
        );
        assert!(!told.contains("libiscsi7"), "another version: {told}");
    }

    #[test]
    fn a_library_without_the_functions_hides_no_other() {
        let all: Vec<&str> = std::iter::once("libc.so.6").chain(NAMES).collect();
        assert!(load(&all).is_ok(), "the next is tried");
    }

    #[test]
    fn names_of_other_distributions_are_tried() {
        for version in 7..=11 {
            let name = format!("libiscsi.so.{version}");
            assert!(NAMES.contains(&name.as_str()), "{name}");
        }
    }
}
