//! Commands of a newer version against the server of an older one, as after an upgrade without a
//! restart: nothing is changed that nobody agreed to.

use crate::array::{ashlar, said};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The answer of a server that has no such path.
const NO_PATH: &str = r#"{"kind":"not_found","message":"there is no resource"}"#;

/// What a server of before trials says of itself.
const DESCRIPTION: &str = r#"{"paths":{"/api/v1/volumes/{name}":{"get":{},"delete":{}}}}"#;

/// A server of before trials. It carries out each change that it knows, whatever the query says.
struct Older {
    api: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Older {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&asked);
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &told);
            }
        });
        Older { api, asked }
    }

    /// How a command ends, and what it asked for.
    fn run(&self, args: &[&str]) -> (i32, String, Vec<String>) {
        let output = ashlar().args(args).args(["--api", &self.api]).output();
        let (code, said) = said(output.unwrap());
        (code, said, std::mem::take(&mut *self.asked.lock().unwrap()))
    }
}

/// Answers a request, and keeps its first line.
fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_ascii_lowercase());
    }
    let length = lines
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    reader.read_exact(&mut vec![0; length]).unwrap();
    let line = lines.first().cloned().unwrap_or_default();
    let path = line.split([' ', '?']).nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/api/v1/openapi.json" => ("200 OK", DESCRIPTION),
        path if path.starts_with("/api/v1/check/") => ("404 Not Found", NO_PATH),
        _ => ("204 No Content", ""),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    asked.lock().unwrap().push(line);
    stream.write_all(head.as_bytes()).unwrap();
}

#[test]
fn a_server_that_knows_no_trials_changes_nothing_without_yes() {
    let older = Older::serve();
    for args in [
        &["volume", "delete", "v0"][..],
        &["volume", "delete", "v0", "--force", "--at-once"],
        &["snapshot", "delete", "v0@s"],
        &["snapshot", "restore", "v0@s", "--discard"],
        &["pool", "destroy", "p0"],
        &["portal", "remove", "127.0.0.1:3260"],
        &["drive", "remove", "d0"],
        &["settings", "set", "site.trash=2h"],
    ] {
        let (code, said, asked) = older.run(args);
        let changes =
            |line: &&String| !line.starts_with("get ") && !line.contains("/api/v1/check/");
        assert_eq!(asked.iter().find(changes), None, "{args:?}");
        assert_eq!(code, 1, "{args:?}: {said}");
        for part in ["nothing is changed", "runs an older version", "--yes"] {
            assert!(said.contains(part), "{args:?}: {said}");
        }
    }
    // Whoever says so needs no trial.
    let (code, said, asked) = older.run(&["pool", "destroy", "p0", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(asked, ["delete /api/v1/pools/p0 http/1.1"]);
}
