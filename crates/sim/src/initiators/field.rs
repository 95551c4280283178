//! Reads, writes and clears runs of single sectors, as a host does.
//!
//! Each sector is atomic by itself; a run of several is not.

use super::host::{Answer, Command, GOOD, Host, Response, sixteen};
use super::unit::{FIELD_LBA, FIELD_SECTORS};
use crate::history::{Deed, RegisterPlace, filled, value_of};
use base::SECTOR_BYTES;
use std::ops::Range;

/// NDOB and UNMAP of WRITE SAME(16).
const NO_DATA: u8 = 0x01;
const UNMAP: u8 = 0x08;

/// Sectors that are read at once.
const READ_SECTORS: u64 = 64;

impl Host {
    /// A run of sectors of the field: often where pages may begin.
    pub(super) fn run_of_field(&self) -> Range<u64> {
        let start = match self.below(3) {
            0 => self.below(FIELD_SECTORS),
            _ => {
                let grain = 8 << self.below(4);
                self.below(FIELD_SECTORS / grain) * grain
            }
        };
        let most = FIELD_SECTORS - start;
        let len = match self.below(3) {
            0 => 1 + self.below(most.min(24)),
            _ => (8 << self.below(4)).min(most),
        };
        start..start + len
    }

    /// Reads all sectors of the field.
    pub(super) async fn read_field(&self, unit: usize) {
        for start in (0..FIELD_SECTORS).step_by(READ_SECTORS as usize) {
            self.read_run(unit, start..start + READ_SECTORS).await;
        }
    }

    pub(super) async fn read_run(&self, unit: usize, sectors: Range<u64>) {
        let nothing = Deed::Perhaps {
            expected: 0,
            new: 0,
        };
        let places = self.books.units[unit].places(sectors.clone());
        let deeds = places.map(|place| (place, nothing.clone())).collect();
        let (lba, len) = run(&sectors);
        let command = Command::at(unit, sixteen(0x88, lba, len), Vec::new(), false);
        let Some((deeds, response)) = self.perform_all(&command, deeds).await else {
            return;
        };
        if response.status != GOOD {
            self.books.refuse(&deeds);
            return self.check_failure(&command, &response);
        }
        let values = response.data.chunks(SECTOR_BYTES).map(value_of);
        let Some(values) = values.collect::<Option<Vec<u64>>>() else {
            return self.fail(format!(
                "host {}: a torn sector of {sectors:?}",
                self.number
            ));
        };
        if values.len() != deeds.len() {
            return self.fail(format!("host {}: not all of {sectors:?}", self.number));
        }
        self.books
            .end(&deeds, self.end_of(&command), |nth| Deed::Read(values[nth]));
    }

    /// Each sector gets a value of its own.
    pub(super) async fn write_run(&self, unit: usize, sectors: Range<u64>) {
        let values: Vec<u64> = sectors.clone().map(|_| self.new_value()).collect();
        let data = values.iter().flat_map(|value| filled(*value, 1)).collect();
        let (lba, len) = run(&sectors);
        let command = Command::at(unit, sixteen(0x8a, lba, len), data, true);
        self.change_run(&command, sectors, |nth| values[nth]).await;
    }

    /// Zeroes, with and without the wish that they take no space.
    pub(super) async fn clear_run(&self, unit: usize, sectors: Range<u64>) {
        let (lba, len) = run(&sectors);
        let mut cdb = sixteen(0x93, lba, len);
        cdb[1] = NO_DATA | if self.below(3) == 0 { 0 } else { UNMAP };
        let command = Command::at(unit, cdb, Vec::new(), true);
        self.change_run(&command, sectors, |_| 0).await;
    }

    async fn change_run(
        &self,
        command: &Command,
        sectors: Range<u64>,
        value: impl Fn(usize) -> u64,
    ) {
        let places: Vec<RegisterPlace> = self.books.units[command.unit].places(sectors).collect();
        let deeds = places.into_iter().enumerate();
        let deeds = deeds.map(|(nth, place)| (place, Deed::Write(value(nth))));
        let rooms = self.books.rooms.get();
        let Some((deeds, response)) = self.perform_all(command, deeds.collect()).await else {
            return;
        };
        match response.status {
            GOOD => {
                let over = self.end_of(command);
                self.books.end(&deeds, over, |nth| Deed::Write(value(nth)));
            }
            // A thick unit unmaps nothing.
            _ if command.cdb[1] & UNMAP != 0 && response.sense.get(12) == Some(&0x24) => {
                self.books.refuse(&deeds);
            }
            _ => {
                self.books.abandon(&deeds, self.books.tick());
                self.check_failure(command, &response);
            }
        }
        self.books.repeat_since(rooms, &deeds);
    }

    /// Runs a command that does `deeds`, again until there is nothing else to say first.
    /// Nothing, when it was not run.
    pub(super) async fn perform_all(
        &self,
        command: &Command,
        deeds: Vec<(RegisterPlace, Deed)>,
    ) -> Option<(Vec<(RegisterPlace, usize)>, Response)> {
        for _ in 0..super::host::ATTENTIONS_MAX {
            let rooms = self.books.rooms.get();
            let begun = self.books.begin(deeds.clone(), command.first_part)?;
            match self.ask(command).await {
                Answer::Said(response) => return Some((begun, response)),
                Answer::Attention => self.books.refuse(&begun),
                Answer::Over(at) => {
                    self.books.abandon(&begun, at);
                    self.books.repeat_since(rooms, &begun);
                    return None;
                }
                Answer::Nowhere => {
                    self.books.refuse(&begun);
                    return None;
                }
                Answer::Refused if command.needs.len() == 1 => {
                    self.books.refuse(&begun);
                    return None;
                }
                // What looks at several units may find that late.
                Answer::Refused | Answer::Absent => {
                    self.books.abandon(&begun, self.books.tick());
                    self.books.repeat_since(rooms, &begun);
                    return None;
                }
            }
        }
        self.fail_of_attentions();
        None
    }
}

/// Where a run of the field begins, and its length.
pub(super) fn run(sectors: &Range<u64>) -> (u64, u32) {
    let len = sectors.end - sectors.start;
    (FIELD_LBA + sectors.start, len as u32)
}
