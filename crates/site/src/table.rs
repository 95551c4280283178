//! Reads one table of the file: each key with its line, its type and its rule.
//!
//! A value that breaks its rule is reported and then treated as absent, so that
//! one mistake gives one diagnostic. A [`Row`] remembers the line of every value
//! that was read well; a check across tables asks [`Row::line`] first and stays
//! silent about values that were already reported.

use crate::diagnostic::{Diagnostic, Lines};
use crate::secret::{NOT_SHOWN, NOT_SHOWN_TOLD, Secret};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys that have another name by now: table, old name and new name.
const RENAMED: [(&str, &str, &str); 2] =
    [("", "block", "vm_group"), ("event", "block", "vm_group")];

/// The name that `key` of a table has by now.
pub(crate) fn renamed(table: &str, key: &str) -> Option<&'static str> {
    let known = RENAMED
        .iter()
        .find(|(of, old, _)| *of == table && *old == key);
    known.map(|(.., new)| *new)
}

/// An item of the site and where in the file its values are.
pub(crate) struct Row<T> {
    pub(crate) item: T,
    header_line: usize,
    lines: BTreeMap<(&'static str, usize), usize>,
    given: Vec<&'static str>,
}

impl<T> Row<T> {
    /// Whether `key` was given, well or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.given.contains(&key)
    }

    /// Whether any of `keys` was given.
    pub(crate) fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.has(key))
    }

    /// The line of `key`, when it was given and was read well.
    pub(crate) fn line(&self, key: &'static str) -> Option<usize> {
        self.lines.get(&(key, 0)).copied()
    }

    /// The line of the `index`th element of the list `key`.
    pub(crate) fn element_line(&self, key: &'static str, index: usize) -> usize {
        self.lines
            .get(&(key, index + 1))
            .copied()
            .unwrap_or(self.header_line)
    }

    /// The line that the table starts on.
    pub(crate) fn header_line(&self) -> usize {
        self.header_line
    }

    /// The line of the table under `key`, when it was there.
    pub(crate) fn line_of_table(&self, key: &'static str) -> usize {
        self.line(key).unwrap_or(self.header_line)
    }
}

/// Takes the values out of one table.
pub(crate) struct TableReader<'a, 'd> {
    name: &'static str,
    header_line: usize,
    table: &'a DeTable<'d>,
    lines: &'a Lines,
    known: Vec<&'static str>,
    read: BTreeMap<(&'static str, usize), usize>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a, 'd> TableReader<'a, 'd> {
    /// A reader of `table`, which messages call `name`; an empty name stands for
    /// the file itself.
    pub(crate) fn new(
        name: &'static str,
        header_line: usize,
        table: &'a DeTable<'d>,
        lines: &'a Lines,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let (known, read) = (Vec::new(), BTreeMap::new());
        TableReader {
            name,
            header_line,
            table,
            lines,
            known,
            read,
            found,
        }
    }

    /// The value of `key`, which has to be there.
    pub(crate) fn required<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        parse: impl FnOnce(&DeValue<'d>) -> Option<T>,
    ) -> Option<T> {
        if !self.is_there(key) {
            self.report(self.header_line, key, "nothing".to_owned(), rule);
        }
        self.optional(key, rule, parse)
    }

    /// The value of `key`, which may be absent.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        parse: impl FnOnce(&DeValue<'d>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let (line, value) = self.value(key)?;
        match parse(value) {
            Some(good) => {
                self.read.insert((key, 0), line);
                Some(good)
            }
            None => {
                self.report(line, key, describe(value), rule);
                None
            }
        }
    }

    /// The secret under `key`, which may be absent. It is never part of a message.
    pub(crate) fn secret(&mut self, key: &'static str, rule: &str) -> Option<Secret> {
        self.known.push(key);
        let (line, value) = self.value(key)?;
        let text = value.as_str();
        if let Some(good) = text.and_then(Secret::parse) {
            self.read.insert((key, 0), line);
            return Some(good);
        }
        let (found, rule) = match text {
            Some(NOT_SHOWN) => (
                NOT_SHOWN_TOLD.to_owned(),
                format!("the secret itself in its place, {rule}"),
            ),
            Some(text) => (secret_text(text), rule.to_owned()),
            None => ("no text".to_owned(), rule.to_owned()),
        };
        self.report(line, key, found, &rule);
        None
    }

    /// The list under `key`, which may be absent: one or more strings that pass `is_good`, none
    /// twice.
    pub(crate) fn list_if_there(
        &mut self,
        key: &'static str,
        rule: &str,
        is_good: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        match self.line_of(key) {
            Some(_) => self.list(key, rule, is_good),
            None => self.optional(key, rule, |_| None),
        }
    }

    /// The same, where it has to be there.
    pub(crate) fn list(
        &mut self,
        key: &'static str,
        rule: &str,
        is_good: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let Some((line, value)) = self.value(key) else {
            self.known.push(key);
            self.report(
                self.header_line,
                key,
                "nothing".to_owned(),
                &format!("a list of: {rule}"),
            );
            return None;
        };
        self.known.push(key);
        let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) else {
            self.report(
                line,
                key,
                describe(value),
                &format!("a list, not empty, of: {rule}"),
            );
            return None;
        };
        let mut strings = Vec::new();
        let mut wrong = false;
        for (index, element) in elements.iter().enumerate() {
            let line = self.lines.at(element.span().start);
            let text = element.get_ref().as_str().filter(|text| is_good(text));
            match text {
                Some(text) if strings.iter().any(|there| there == text) => {
                    let found = format!("{text:?} for the second time");
                    self.report(line, key, found, "each once");
                    wrong = true;
                }
                Some(text) => {
                    self.read.insert((key, index + 1), line);
                    strings.push(text.to_owned());
                }
                None => {
                    self.report(line, key, describe(element.get_ref()), rule);
                    wrong = true;
                }
            }
        }
        if wrong {
            return None;
        }
        self.read.insert((key, 0), line);
        Some(strings)
    }

    /// The list under `key`, which may be absent: one or more numbers that `read` knows, none
    /// twice.
    pub(crate) fn numbers(
        &mut self,
        key: &'static str,
        rule: &str,
        read: impl Fn(&DeValue<'_>) -> Option<u16>,
    ) -> Option<Vec<u16>> {
        self.known.push(key);
        let (line, value) = self.value(key)?;
        let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) else {
            let rule = format!("a list, not empty, of: {rule}");
            self.report(line, key, describe(value), &rule);
            return None;
        };
        let mut numbers = Vec::new();
        let before = self.found.len();
        for (index, element) in elements.iter().enumerate() {
            let line = self.lines.at(element.span().start);
            match read(element.get_ref()) {
                Some(number) if numbers.contains(&number) => {
                    let found = format!("{number} for the second time");
                    self.report(line, key, found, "each once");
                }
                Some(number) => {
                    self.read.insert((key, index + 1), line);
                    numbers.push(number);
                }
                None => self.report(line, key, describe(element.get_ref()), rule),
            }
        }
        if self.found.len() > before {
            return None;
        }
        self.read.insert((key, 0), line);
        Some(numbers)
    }

    /// The tables under `key` (`[[key]]`), each with its line.
    pub(crate) fn tables(&mut self, key: &'static str) -> Vec<(usize, &'a DeTable<'d>)> {
        self.tables_as(key, &format!("tables [[{key}]]"))
    }

    /// The same, where messages say `rule`.
    pub(crate) fn tables_as(
        &mut self,
        key: &'static str,
        rule: &str,
    ) -> Vec<(usize, &'a DeTable<'d>)> {
        self.known.push(key);
        let Some((line, value)) = self.value(key) else {
            return Vec::new();
        };
        let Some(elements) = value.as_array() else {
            self.report(line, key, describe(value), rule);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for element in elements.iter() {
            let line = self.lines.at(element.span().start);
            match element.get_ref().as_table() {
                Some(table) => tables.push((line, table)),
                None => self.report(line, key, describe(element.get_ref()), rule),
            }
        }
        tables
    }

    /// The words under `key` (`{ name = "word" }`), each of which passes `is_good`.
    pub(crate) fn words(
        &mut self,
        key: &'static str,
        rule: &str,
        is_good: impl Fn(&str, &str) -> bool,
    ) -> BTreeMap<String, String> {
        self.known.push(key);
        let mut words = BTreeMap::new();
        let Some((line, value)) = self.value(key) else {
            return words;
        };
        let Some(table) = value.as_table() else {
            let rule = format!("a table, such as {{ vm = \"web01\" }}: {rule}");
            self.report(line, key, describe(value), &rule);
            return words;
        };
        for (name, value) in table.iter() {
            let line = self.lines.at(name.span().start);
            let (name, value) = (name.get_ref(), value.get_ref());
            match value.as_str().filter(|word| is_good(name, word)) {
                Some(word) => {
                    words.insert(name.to_string(), word.to_owned());
                }
                None => {
                    let found = format!("{name} = {}", describe(value));
                    self.report(line, key, found, rule);
                }
            }
        }
        words
    }

    /// The table under `key` (`[key]`), with its line.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<(usize, &'a DeTable<'d>)> {
        self.table_told(key, describe)
    }

    /// The same, of a table that stands in one line, such as `example`.
    pub(crate) fn table_in_line(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Option<(usize, &'a DeTable<'d>)> {
        if self.value(key).is_some_and(|(_, value)| value.is_table()) {
            return self.table(key);
        }
        self.known.push(key);
        let (line, value) = self.value(key)?;
        let rule = format!("a table, such as {example}");
        self.report(line, key, describe(value), &rule);
        None
    }

    /// The same, where a secret may stand in its place: it is never part of a message.
    pub(crate) fn table_of_secrets(
        &mut self,
        key: &'static str,
    ) -> Option<(usize, &'a DeTable<'d>)> {
        self.table_told(key, |value| match value {
            DeValue::Array(_) | DeValue::Table(_) => describe(value),
            _ => value.as_str().map_or("no table".to_owned(), secret_text),
        })
    }

    fn table_told(
        &mut self,
        key: &'static str,
        describe: impl FnOnce(&DeValue<'d>) -> String,
    ) -> Option<(usize, &'a DeTable<'d>)> {
        self.known.push(key);
        let (line, value) = self.value(key)?;
        match value.as_table() {
            Some(table) => {
                self.read.insert((key, 0), line);
                Some((line, table))
            }
            None => {
                self.report(line, key, describe(value), &format!("a table [{key}]"));
                None
            }
        }
    }

    /// Reports a value of this table.
    pub(crate) fn report(&mut self, line: usize, key: &str, found: String, allowed: &str) {
        let dot = if self.name.is_empty() || key.is_empty() {
            ""
        } else {
            "."
        };
        let key = format!("{}{dot}{key}", self.name);
        self.found.push(Diagnostic {
            line,
            key,
            found,
            allowed: allowed.to_owned(),
        });
    }

    /// The line of `key` if it is there at all.
    pub(crate) fn line_of(&self, key: &str) -> Option<usize> {
        self.value(key).map(|(line, _)| line)
    }

    /// Whether `key` is there at all, or was under the name that it had once.
    pub(crate) fn is_there(&self, key: &str) -> bool {
        let old = RENAMED
            .iter()
            .filter(|(table, _, new)| *table == self.name && *new == key);
        self.value(key).is_some() || old.into_iter().any(|(_, old, _)| self.value(old).is_some())
    }

    /// The text of `key`, if it is there and is text.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.value(key).and_then(|(_, value)| value.as_str())
    }

    /// What messages say of the value of `key`.
    pub(crate) fn said(&self, key: &str) -> String {
        let value = self.value(key);
        value.map_or_else(|| "nothing".to_owned(), |(_, value)| describe(value))
    }

    /// Whether `key` is a list of tables, and not of values.
    pub(crate) fn lists_tables(&self, key: &str) -> bool {
        let value = self.value(key).and_then(|(_, value)| value.as_array());
        let first = value.and_then(|elements| elements.first());
        first.is_some_and(|element| element.get_ref().is_table())
    }

    /// Whether `key` is a list of nothing.
    pub(crate) fn is_empty_list(&self, key: &str) -> bool {
        let value = self.value(key).and_then(|(_, value)| value.as_array());
        value.is_some_and(|elements| elements.is_empty())
    }

    /// The line that the table starts on.
    pub(crate) fn header_line(&self) -> usize {
        self.header_line
    }

    /// A reader of a table inside this one.
    pub(crate) fn nested<'b>(
        &'b mut self,
        name: &'static str,
        (header_line, table): (usize, &'b DeTable<'d>),
    ) -> TableReader<'b, 'd> {
        TableReader::new(name, header_line, table, self.lines, self.found)
    }

    /// Where the reports go, for reading a table inside this one.
    pub(crate) fn found(&mut self) -> &mut Vec<Diagnostic> {
        self.found
    }

    /// Ends the reading: keys that nobody asked for are unknown.
    pub(crate) fn finish<T>(mut self, item: T) -> Row<T> {
        let allowed = self.known.join(", ");
        let known = std::mem::take(&mut self.known);
        let table = self.table.iter();
        for (key, value) in table.filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let (line, key) = (self.lines.at(key.span().start), key.get_ref());
            match renamed(self.name, key) {
                Some(new) => self.report_renamed(line, key, value.get_ref(), new),
                None => self.report(line, key, "a key that isn't known".to_owned(), &allowed),
            }
        }
        let known = known.into_iter();
        Row {
            item,
            header_line: self.header_line,
            given: known.filter(|key| self.is_there(key)).collect(),
            lines: self.read,
        }
    }

    /// Reports each place of a key that has another name by now.
    fn report_renamed(&mut self, line: usize, key: &str, value: &DeValue<'d>, new: &str) {
        let (found, allowed) = (
            format!("the old name of {new}"),
            format!("{new} in its place"),
        );
        let tables = value
            .as_array()
            .into_iter()
            .flat_map(|tables| tables.iter());
        let mut places: Vec<usize> = tables.map(|at| self.lines.at(at.span().start)).collect();
        if places.is_empty() {
            places.push(line);
        }
        for line in places {
            self.report(line, key, found.clone(), &allowed);
        }
    }

    fn value(&self, key: &str) -> Option<(usize, &'a DeValue<'d>)> {
        let (name, value): (&Spanned<_>, &Spanned<_>) = self.table.get_key_value(key)?;
        Some((self.lines.at(name.span().start), value.get_ref()))
    }
}

/// What messages say of a text that may be a secret.
fn secret_text(text: &str) -> String {
    format!("text of {} bytes", text.len())
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(elements) if elements.is_empty() => "an empty list".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
