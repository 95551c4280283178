//! Following a running program line by line, with deadlines.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The lines that a program prints, as they come. What was read is kept, so that
/// a failure can show it.
#[derive(Debug)]
pub struct Lines {
    source: &'static str,
    receiver: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    /// Follows `stream`; `source` names it in messages.
    pub fn follow(source: &'static str, stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            // A serial console is not always UTF-8, so `lines()` won't do.
            while stream.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        Lines {
            source,
            receiver,
            seen: Vec::new(),
        }
    }

    /// The next line that contains `wanted`, at the latest after `patience`.
    ///
    /// # Panics
    /// When the program ends, the time is over, or a line contains `refused`
    /// first; the message has all lines seen.
    #[track_caller]
    pub fn wait_for(&mut self, wanted: &str, refused: &str, patience: Duration) -> String {
        let found = self.find(patience, |line| {
            line.contains(refused) || line.contains(wanted)
        });
        let why = match found {
            Ok(line) if !line.contains(refused) => return line,
            Ok(_) => "said no",
            Err(RecvTimeoutError::Timeout) => "did not say so in time",
            Err(RecvTimeoutError::Disconnected) => "ended",
        };
        let (source, seen) = (self.source, self.seen.join("\n"));
        panic!("waiting for `{wanted}`: {source} {why}; it printed:\n{seen}")
    }

    /// The next line that `is_wanted`, at the latest after `patience`. All lines up
    /// to it go to [`Lines::seen`].
    ///
    /// # Errors
    /// `Timeout` when the time is over, `Disconnected` when the program has ended.
    pub fn find(
        &mut self,
        patience: Duration,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<String, RecvTimeoutError> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.receiver.recv_timeout(left)?;
            self.seen.push(line.clone());
            if is_wanted(&line) {
                return Ok(line);
            }
        }
    }

    /// All lines up to now.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(text: &'static str, wanted: &str) -> String {
        Lines::follow("sample", text.as_bytes()).wait_for(wanted, "FAILED", Duration::from_secs(5))
    }

    #[test]
    fn finds_a_line() {
        assert_eq!(wait("one\ntwo\r\nthree\n", "two"), "two");
    }

    #[test]
    #[should_panic(expected = "said no")]
    fn a_refusal_ends_the_wait() {
        wait("one\nFAILED here\ntwo\n", "two");
    }

    #[test]
    #[should_panic(expected = "sample ended")]
    fn the_end_ends_the_wait() {
        wait("one\n", "two");
    }

    #[test]
    #[should_panic(expected = "in time")]
    fn patience_ends() {
        let (reader, _writer) = std::io::pipe().unwrap();
        Lines::follow("sample", reader).wait_for("x", "FAILED", Duration::from_millis(1));
    }
}
