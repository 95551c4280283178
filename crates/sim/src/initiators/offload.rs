//! Tests tokens: POPULATE TOKEN, RECEIVE ROD TOKEN INFORMATION, WRITE USING TOKEN.

use super::field;
use super::host::{Answer, Command, GOOD, Host, Response};
use super::token::{TOKENS_MAX, Token, Worth};
use super::unit::{FIELD_SECTORS, Within};
use crate::history::Deed;
use engine::World;
use scsi::offload::TOKEN_BYTES;
use std::ops::Range;
use std::time::Duration;

/// Before the sense data of RECEIVE ROD TOKEN INFORMATION.
const INFORMATION_BYTES: usize = 32;

/// What RECEIVE ROD TOKEN INFORMATION says.
struct TokenInformation {
    blocks: u64,
    token: Option<Vec<u8>>,
}

impl Host {
    /// Makes a token of some runs of a field.
    pub(super) async fn make_token(&self) {
        let unit = self.any_unit();
        let mut runs: Vec<Range<u64>> = Vec::new();
        for _ in 0..=self.below(3) {
            let run = self.run_of_field();
            let apart = |other: &Range<u64>| other.end <= run.start || run.end <= other.start;
            if runs.iter().all(apart) {
                runs.push(run);
            }
        }
        self.populate(unit, runs).await;
    }

    async fn populate(&self, unit: usize, runs: Vec<Range<u64>>) {
        let (list_id, inactivity_s) = (self.next_list_id(), 1 + self.below(3));
        let mut list = vec![0; 16];
        list[4..8].copy_from_slice(&(inactivity_s as u32).to_be_bytes());
        let list = with_ranges(list, &runs);
        let cdb = token_cdb(0x10, list_id, list.len());
        let command = Command::at(unit, cdb, list, false);
        self.world.note(|| {
            let name = &self.books.units[unit].name;
            format!("host {} makes a token of {name}: {runs:?}", self.number)
        });
        let nothing = Deed::Perhaps {
            expected: 0,
            new: 0,
        };
        let places = runs
            .iter()
            .flat_map(|run| self.books.units[unit].places(run.clone()));
        let deeds: Vec<_> = places.map(|place| (place, nothing.clone())).collect();
        let inactivity = Duration::from_secs(inactivity_s);
        let (earliest, evictions) = (self.world.now() + inactivity, self.books.evictions.get());
        let performed = self.perform_all(&command, deeds);
        let (performed, ()) =
            futures_util::future::join(performed, self.stop_at_times(&command, list_id)).await;
        let Some((begun, response)) = performed else {
            return;
        };
        let ended = self.books.tick();
        if response.status != GOOD {
            self.books.refuse(&begun);
            return self.check_failure(&command, &response);
        }
        let latest = self.world.now() + inactivity;
        // A token of which the host does not hear is none.
        let told = self.token_information(&command, list_id).await;
        let token = told.as_ref().and_then(|told| told.token.clone());
        let values = match &token {
            Some(token) => self.array.values_of(token).await,
            None => None,
        };
        let (Some(told), Some(bytes), Some(values)) = (told, token, values) else {
            return self.books.refuse(&begun);
        };
        if told.blocks != values.len() as u64 || values.len() > begun.len() {
            let (blocks, kept) = (told.blocks, values.len());
            return self.fail(format!("a token of {blocks} blocks holds {kept}"));
        }
        let (read, left) = begun.split_at(values.len());
        self.books.end(read, ended, |nth| Deed::Read(values[nth]));
        self.books.refuse(left);
        let mut tokens = self.books.tokens.borrow_mut();
        if tokens.len() == TOKENS_MAX {
            tokens.remove(0);
        }
        tokens.push(Token {
            bytes,
            values,
            boot: self.books.boots.get(),
            unit,
            inactivity,
            expires: (earliest, latest),
            users: 0,
            // Nobody knew of it when some were taken back.
            was_used: evictions != self.books.evictions.get(),
            evictions,
            is_revoked: false,
        });
    }

    /// What came of a command with this list identifier. Nothing, when it is not told: another
    /// session knows nothing of it.
    async fn token_information(&self, of: &Command, list_id: u32) -> Option<TokenInformation> {
        let unit = of.unit;
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (0x84, 0x07);
        cdb[2..6].copy_from_slice(&list_id.to_be_bytes());
        cdb[10..14].copy_from_slice(&1024u32.to_be_bytes());
        let command = Command::at(unit, cdb, Vec::new(), false);
        let Answer::Said(response) = self.insist_on(&command).await else {
            return None;
        };
        let data = &response.data;
        if code_of(&response) == Some(INVALID_FIELD) && command.session != of.session {
            return None;
        }
        if response.status != GOOD || data.len() < INFORMATION_BYTES + 4 {
            self.check_failure(&command, &response);
            return None;
        }
        let token = INFORMATION_BYTES + usize::from(data[13]) + 4 + 2;
        Some(TokenInformation {
            blocks: u64::from_be_bytes(*data[16..].first_chunk()?),
            token: data.get(token..token + TOKEN_BYTES).map(<[u8]>::to_vec),
        })
    }

    /// Writes what a token stands for, whoever made it and whenever; or zeroes.
    pub(super) async fn use_token(&self) {
        let unit = self.any_unit();
        let known = self.books.tokens.borrow().len() as u64;
        let nth = self.below(known + 1);
        let mut run = self.run_of_field();
        if nth == known {
            let mut zeroes = vec![0; TOKEN_BYTES];
            zeroes[..8].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
            let values = vec![0; (run.end - run.start) as usize];
            self.write_using(unit, None, (zeroes, 0, values), run).await;
            return;
        }
        let token = self.books.tokens.borrow()[nth as usize].clone();
        if token.values.is_empty() {
            return;
        }
        let all = token.values.len() as u64;
        let offset = match self.below(2) {
            0 => 0,
            _ => self.below(all),
        };
        run.end = run.end.min(run.start + all - offset);
        // Pages that lie as they did are shared.
        if self.below(2) == 0 && all - offset <= FIELD_SECTORS {
            run = 0..all - offset;
        }
        let values = &token.values[offset as usize..];
        let values = values[..(run.end - run.start) as usize].to_vec();
        self.write_using(
            unit,
            Some(&token),
            (token.bytes.clone(), offset, values),
            run,
        )
        .await;
    }

    async fn write_using(
        &self,
        unit: usize,
        token: Option<&Token>,
        (bytes, offset, values): (Vec<u8>, u64, Vec<u64>),
        run: Range<u64>,
    ) {
        let list_id = self.next_list_id();
        let mut list = vec![0; 24 + TOKEN_BYTES];
        // The token goes with it.
        let deletes = self.below(6) == 0;
        list[2] = u8::from(deletes) << 1;
        list[8..16].copy_from_slice(&offset.to_be_bytes());
        list[16..16 + TOKEN_BYTES].copy_from_slice(&bytes);
        let list = with_ranges(list, std::slice::from_ref(&run));
        let cdb = token_cdb(0x11, list_id, list.len());
        let command = Command::at(unit, cdb, list, true);
        self.world.note(|| {
            let name = &self.books.units[unit].name;
            format!(
                "host {} writes a token to {name}: {run:?} from {offset}",
                self.number
            )
        });
        let places = self.books.units[unit].places(run);
        let deeds = places
            .zip(values.iter().copied().map(Deed::Write))
            .collect();
        let worth = self.begin_use(token);
        let (evictions, rooms) = (self.books.evictions.get(), self.books.rooms.get());
        let performed = self.perform_all(&command, deeds);
        let (performed, ()) =
            futures_util::future::join(performed, self.stop_at_times(&command, list_id)).await;
        self.end_use(token);
        let Some((deeds, response)) = performed else {
            return;
        };
        let is_no_token = response.status != GOOD && code_of(&response) == Some(0x23);
        if is_no_token {
            self.books.refuse(&deeds);
            let was_good = worth == Worth::Good && evictions == self.books.evictions.get();
            let is_wrong =
                token.is_none_or(|token| was_good && self.knows_better(token, &response));
            return self.check_token(is_wrong, "is refused", token, &response);
        }
        // Of the failed, too: so much has come.
        let told = self.token_information(&command, list_id).await;
        let blocks = told.map_or(0, |told| told.blocks as usize).min(deeds.len());
        let (done, left) = deeds.split_at(blocks);
        self.books
            .end(done, self.end_of(&command), |nth| Deed::Write(values[nth]));
        self.books.abandon(left, self.books.tick());
        self.books.repeat_since(rooms, &deeds);
        if response.status != GOOD {
            return self.check_failure(&command, &response);
        }
        let is_wrong = token.is_some() && worth == Worth::None;
        self.check_token(is_wrong, "is good", token, &response);
        if deletes && blocks == deeds.len() {
            self.revise(token, |token| token.is_revoked = true);
        }
    }

    fn check_token(&self, is_wrong: bool, what: &str, token: Option<&Token>, response: &Response) {
        if is_wrong {
            let now = self.world.now();
            let boot = self.books.boots.get();
            let of = token.map(|token| (token.boot, token.expires, token.is_revoked));
            let sense = &response.sense;
            self.fail(format!(
                "a token of {of:?} {what} at {now:?} in boot {boot}: {sense:02x?}"
            ));
        }
    }

    /// What is known of this token has changed.
    fn revise(&self, token: Option<&Token>, change: impl FnOnce(&mut Token)) {
        let mut tokens = self.books.tokens.borrow_mut();
        let same = |one: &&mut Token| token.is_some_and(|token| one.bytes == token.bytes);
        if let Some(one) = tokens.iter_mut().find(same) {
            change(one);
        }
    }

    fn worth_of(&self, token: &Token) -> Worth {
        let tokens = self.books.tokens.borrow();
        let one = tokens.iter().find(|one| one.bytes == token.bytes);
        let worth = one.map(|one| one.worth(self.books.boots.get(), self.world.now()));
        worth.unwrap_or(Worth::Doubtful)
    }

    /// Whether a good token is called unknown, or its time over. Revoked it may be where room was
    /// made since it was made, or where its unit is being hidden.
    fn knows_better(&self, token: &Token, response: &Response) -> bool {
        let is_said = |codes: &[u8]| {
            let code = response.sense.get(13);
            code.is_some_and(|code| codes.contains(code))
        };
        let tokens = self.books.tokens.borrow();
        let mut known = tokens.iter();
        let one = known.find(|one| one.bytes == token.bytes);
        let (boot, now) = (self.books.boots.get(), self.world.now());
        let is_wrong = |one: &Token| {
            let is_going = self.books.units[one.unit].is_shown.get() == Within::Going;
            let may_be = one.may_be_revoked(self.books.evictions.get(), is_going);
            is_said(&NOT_REVOKED) || is_said(&[REVOKED]) && !may_be
        };
        one.is_some_and(|one| one.still_holds(boot, now) && is_wrong(one))
    }

    fn begin_use(&self, token: Option<&Token>) -> Worth {
        let worth = token.map_or(Worth::Good, |token| self.worth_of(token));
        self.revise(token, |token| {
            token.users += 1;
            token.was_used = true;
        });
        worth
    }

    /// Each use begins its time anew.
    fn end_use(&self, token: Option<&Token>) {
        let now = self.world.now();
        self.revise(token, |token| {
            token.users -= 1;
            token.expires.1 = token.expires.1.max(now + token.inactivity);
        });
    }
}

fn token_cdb(action: u8, list_id: u32, list_bytes: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x83, action);
    cdb[6..10].copy_from_slice(&list_id.to_be_bytes());
    cdb[10..14].copy_from_slice(&(list_bytes as u32).to_be_bytes());
    cdb
}

/// A head with runs of the field behind it, and its lengths.
fn with_ranges(mut list: Vec<u8>, runs: &[Range<u64>]) -> Vec<u8> {
    let head = list.len();
    for run in runs {
        let (lba, blocks) = field::run(run);
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let (all, ranges) = (list.len() as u16 - 2, (list.len() - head) as u16);
    list[0..2].copy_from_slice(&all.to_be_bytes());
    list[head - 2..head].copy_from_slice(&ranges.to_be_bytes());
    list
}

/// INVALID FIELD IN CDB.
const INVALID_FIELD: u8 = 0x24;

/// The additional sense code qualifiers of 23/04 and 23/07, TOKEN UNKNOWN and TOKEN EXPIRED (SPC-4,
/// annex D).
const NOT_REVOKED: [u8; 2] = [4, 7];

/// And of 23/06, TOKEN REVOKED.
const REVOKED: u8 = 6;

/// The additional sense code.
fn code_of(response: &Response) -> Option<u8> {
    response.sense.get(12).copied()
}
