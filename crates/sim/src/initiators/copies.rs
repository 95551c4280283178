//! EXTENDED COPY (LID1) between the fields of single sectors of two units.

use super::field;
use super::host::{Command, GOOD, Host};
use super::unit::FIELD_SECTORS;
use crate::history::{Deed, RegisterPlace};
use engine::World;
use scsi::Identity;
use std::ops::Range;
use std::time::Duration;

/// Bytes of its parts.
const HEAD_BYTES: usize = 16;
const CSCD_BYTES: usize = 32;
const SEGMENT_BYTES: usize = 28;

/// A run of sectors and where it goes; both are of a field.
struct Segment {
    from: u64,
    to: u64,
    len: u64,
}

impl Host {
    /// Copies within a unit or from one to another, in one segment or two that go on where
    /// the other ends.
    pub(super) async fn copy(&self) {
        let (source, destination) = (self.any_unit(), self.any_unit());
        let run = self.run_of_field();
        let len = run.end - run.start;
        let to = match self.below(3) {
            // As pages lie, if there are any.
            0 => {
                let places = (FIELD_SECTORS - len - run.start % 8) / 8 + 1;
                run.start % 8 + 8 * self.below(places)
            }
            1 if run.start % 64 + len <= FIELD_SECTORS => run.start % 64,
            _ => self.below(FIELD_SECTORS - len + 1),
        };
        if source == destination && to == run.start {
            return;
        }
        let cut = match self.below(4) {
            0 if len > 1 => 1 + self.below(len - 1),
            _ => len,
        };
        let segments = [0..cut, cut..len].map(|part: Range<u64>| Segment {
            from: run.start + part.start,
            to: to + part.start,
            len: part.end - part.start,
        });
        let segments = segments.into_iter().filter(|segment| segment.len > 0);
        self.copy_segments(source, destination, segments.collect())
            .await;
    }

    async fn copy_segments(&self, source: usize, destination: usize, segments: Vec<Segment>) {
        let list_id = self.next_list_id() as u8;
        let list = self.list(list_id, (source, destination), &segments);
        let sent_to = if self.below(2) == 0 {
            source
        } else {
            destination
        };
        let mut cdb = [0; 16];
        cdb[0] = 0x83;
        cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
        let command = Command {
            needs: vec![(sent_to, true), (source, false), (destination, true)],
            first_part: segments[0].len as usize,
            ..Command::at(sent_to, cdb, list, true)
        };
        let deeds = segments.iter().flat_map(|segment| {
            let from = segment.from..segment.from + segment.len;
            let to = segment.to..segment.to + segment.len;
            let from = self.books.units[source].places(from);
            let to = self.books.units[destination].places(to);
            to.zip(from.map(Deed::Copied))
        });
        let deeds: Vec<(RegisterPlace, Deed)> = deeds.collect();
        self.world.note(|| {
            let (from, to) = (
                &self.books.units[source].name,
                &self.books.units[destination].name,
            );
            let runs: Vec<String> = segments
                .iter()
                .map(|one| format!("{}+{} to {}", one.from, one.len, one.to))
                .collect();
            format!(
                "host {} copies from {from} to {to}: {}",
                self.number,
                runs.join(", ")
            )
        });
        // The source is looked at when all is done.
        let mut sources = self.books.units[source].places(0..FIELD_SECTORS);
        if sources.any(|place| self.books.history(place, |history| history.is_long())) {
            return;
        }
        let rooms = self.books.rooms.get();
        let performed = self.perform_all(&command, deeds.clone());
        let (performed, ()) =
            futures_util::future::join(performed, self.stop_at_times(&command, list_id.into()))
                .await;
        let Some((begun, response)) = performed else {
            return;
        };
        match response.status {
            GOOD => {
                let over = self.end_of(&command);
                self.books.end(&begun, over, |nth| deeds[nth].1.clone());
            }
            _ => {
                self.books.abandon(&begun, self.books.tick());
                self.check_failure(&command, &response);
            }
        }
        self.books.repeat_since(rooms, &begun);
    }

    /// Now and then somebody does not want a copy any more, and says so by a command or by a task
    /// management function.
    pub(super) async fn stop_at_times(&self, command: &Command, list_id: u32) {
        if self.below(8) > 0 {
            return;
        }
        let pause = Duration::from_nanos(self.below(400_000));
        self.world.sleep(pause).await;
        if self.below(2) == 0 {
            return self.abort_running(command).await;
        }
        command.is_stopped.set(true);
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (0x83, 0x1c);
        cdb[2..6].copy_from_slice(&list_id.to_be_bytes());
        let abort = Command::at(command.unit, cdb, Vec::new(), true);
        // It may have ended, or not have begun.
        drop(self.ask(&abort).await);
    }

    fn list(
        &self,
        list_id: u8,
        (source, destination): (usize, usize),
        segments: &[Segment],
    ) -> Vec<u8> {
        let mut list = vec![0; HEAD_BYTES];
        list[0] = list_id;
        list[2..4].copy_from_slice(&(2 * CSCD_BYTES as u16).to_be_bytes());
        list[8..12].copy_from_slice(&((segments.len() * SEGMENT_BYTES) as u32).to_be_bytes());
        for unit in [source, destination] {
            let naa = Identity::of(self.books.units[unit].uuid.get()).naa;
            let mut cscd = vec![0xe4, 0, 0, 0, 1, 3, 0, naa.len() as u8];
            cscd.extend(naa);
            cscd.resize(CSCD_BYTES, 0);
            cscd[30] = 2;
            list.extend(cscd);
        }
        for segment in segments {
            let (from, blocks) = field::run(&(segment.from..segment.from + segment.len));
            let (to, _) = field::run(&(segment.to..segment.to + segment.len));
            list.extend([2, 2, 0, SEGMENT_BYTES as u8 - 4, 0, 0, 0, 1, 0, 0]);
            list.extend((blocks as u16).to_be_bytes());
            list.extend(from.to_be_bytes());
            list.extend(to.to_be_bytes());
        }
        list
    }
}
