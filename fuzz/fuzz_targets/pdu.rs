//! Bytes to the codec: whatever parses, its encoding parses to the same again.

#![no_main]

use iscsi::pdu::{BHS_BYTES, Bhs, Request, Response, additional};
use iscsi::text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (header, rest) = bytes.split_at(bytes.len().min(BHS_BYTES));
    let mut bhs: Bhs = [0; BHS_BYTES];
    bhs[..header.len()].copy_from_slice(header);
    if let Some(request) = Request::parse(&bhs) {
        assert_eq!(Request::parse(&request.encode()), Some(request));
    }
    if let Some(response) = Response::parse(&bhs) {
        assert_eq!(Response::parse(&response.encode()), Some(response));
    }
    // Segments never hold more than they were made of.
    if let Ok(found) = additional::parse(rest) {
        let len = found.extended_cdb.map_or(0, |cdb| cdb.len());
        assert!(len < rest.len().max(1));
    }
    if let Ok(pairs) = text::parse(rest) {
        let mut again = Vec::new();
        for (key, value) in &pairs {
            text::push(&mut again, key, value);
        }
        assert_eq!(text::parse(&again), Ok(pairs));
    }
});
