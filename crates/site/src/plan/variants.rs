//! Variants of a plan: `[[variant]]` makes several changes, `[[vary]]` lists values of one key.

use super::{Plan, Setting, Variant, one};
use crate::diagnostic::{Diagnostic, Lines};
use crate::table::renamed;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Most variants of a file.
const VARIANTS_MAX: usize = 256;

/// A variant as the file has it.
struct Wanted {
    line: usize,
    name: String,
    settings: Vec<Setting>,
}

/// All variants of `document`, whose text is `text`, and what is wrong with others.
pub(super) fn variants(text: &str, document: &Table) -> (Vec<Variant>, Vec<Diagnostic>) {
    let lines = Lines::of(text);
    let mut found = Vec::new();
    let mut wanted = listed(document, &lines_of(text, &lines, "variant"), &mut found);
    wanted.extend(varied(
        document,
        &lines_of(text, &lines, "vary"),
        &mut found,
    ));
    let mut names = BTreeSet::new();
    let mut variants = Vec::new();
    for Wanted {
        line,
        name,
        settings,
    } in wanted
    {
        let mut refuse = |what: String, allowed: &str| {
            found.push(Diagnostic {
                line,
                key: format!("variant {name:?}"),
                found: what,
                allowed: allowed.to_owned(),
            });
        };
        if !names.insert(name.clone()) {
            refuse("a second one of that name".to_owned(), "each name once");
            continue;
        }
        match changed(document, &settings) {
            Ok((_, plan)) => variants.push(Variant { name, line, plan }),
            Err(what) => refuse(what, "a change that leaves the site possible"),
        }
    }
    if variants.len() > VARIANTS_MAX {
        found.push(Diagnostic {
            line: 1,
            key: "variant".to_owned(),
            found: format!("{} variants", variants.len()),
            allowed: format!("{VARIANTS_MAX} at most"),
        });
    }
    (variants, found)
}

/// The document with `settings` made, and the plan that it is then.
pub(super) fn changed(document: &Table, settings: &[Setting]) -> Result<(Table, Plan), String> {
    let mut changed = document.clone();
    for setting in settings {
        has_known_name(&setting.key)?;
        set(&mut changed, setting)?;
    }
    let plain = without_variants(&changed);
    let text = toml::to_string(&plain).map_err(|error| error.to_string())?;
    let plan = one(&text).map_err(|found| {
        let said: Vec<String> = found
            .iter()
            .map(|wrong| format!("{}: {}; allowed: {}", wrong.key, wrong.found, wrong.allowed))
            .collect();
        said.join(" / ")
    })?;
    Ok((changed, plan))
}

/// That the table of `key` is not called by a name of older files.
fn has_known_name(key: &str) -> Result<(), String> {
    let table = key.split('.').next().unwrap_or_default();
    let Some(new) = renamed("", table) else {
        return Ok(());
    };
    let key = key.replacen(table, new, 1);
    Err(format!(
        "{table:?} is the old name of {new:?}: write {key:?}"
    ))
}

fn without_variants(document: &Table) -> Table {
    let mut plain = document.clone();
    plain.remove("variant");
    plain.remove("vary");
    plain
}

/// Makes one change: goes down by table, name or number, and sets the last key. A table
/// that is set under a new name is added to its kind; one key alone stands for all of it.
fn set(document: &mut Table, Setting { key, value }: &Setting) -> Result<(), String> {
    let steps: Vec<&str> = key.split('.').collect();
    let (last, way) = match steps.split_last() {
        Some((last, way)) if steps.iter().all(|step| !step.is_empty()) => (last, way),
        _ => {
            return Err(format!(
                "{key:?} is no key: write TABLE.KEY or TABLE.NAME.KEY"
            ));
        }
    };
    if way.is_empty() {
        document.insert((*last).to_owned(), value.clone());
        return Ok(());
    }
    if let ([kind], Value::Table(_)) = (way, value) {
        let items = document.entry((*kind).to_owned());
        let items = items.or_insert_with(|| Value::Array(Vec::new()));
        return named(items, last, value).ok_or_else(|| format!("there is no {last:?} in {key:?}"));
    }
    // The one table that may be absent: every key of it has a default.
    if way == ["run"] {
        let run = document.entry("run".to_owned());
        run.or_insert_with(|| Value::Table(Table::new()));
    }
    let mut at: Option<&mut Value> = None;
    for step in way {
        let next = match at {
            None => document.get_mut(*step),
            Some(Value::Table(table)) => table.get_mut(*step),
            Some(Value::Array(items)) => item(items, step),
            Some(_) => None,
        };
        at = Some(next.ok_or_else(|| format!("there is no {step:?} in {key:?}"))?);
    }
    match at {
        Some(Value::Table(table)) => {
            table.insert((*last).to_owned(), value.clone());
            Ok(())
        }
        Some(Value::Array(items)) => match item(items, last) {
            Some(place) => {
                *place = value.clone();
                Ok(())
            }
            None => Err(format!("there is no {last:?} in {key:?}")),
        },
        _ => Err(format!("{key:?} leads into no table")),
    }
}

/// Puts the table `value` where the element of that name is, or adds it.
fn named(items: &mut Value, name: &str, value: &Value) -> Option<()> {
    let items = match items {
        Value::Array(items) => items,
        // Of one table, such as `site`, the name is a key.
        Value::Table(table) => {
            table.insert(name.to_owned(), value.clone());
            return Some(());
        }
        _ => return None,
    };
    let by_number = name.parse::<usize>().is_ok();
    let mut value = value.clone();
    if let Value::Table(table) = &mut value
        && !by_number
    {
        table.insert("name".to_owned(), Value::String(name.to_owned()));
    }
    match item(items, name) {
        Some(place) => *place = value,
        None if by_number => return None,
        None => items.push(value),
    }
    Some(())
}

/// The element with that name, or that number from 0.
fn item<'a>(items: &'a mut [Value], step: &str) -> Option<&'a mut Value> {
    let named = items
        .iter()
        .position(|item| item.get("name").and_then(Value::as_str) == Some(step));
    let place = named.or_else(|| step.parse::<usize>().ok())?;
    items.get_mut(place)
}

/// The line of each `[[key]]`.
fn lines_of(text: &str, lines: &Lines, key: &str) -> Vec<usize> {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let value = document.get_ref().get(key);
    let items = value.and_then(|value| value.get_ref().as_array());
    items.map_or(Vec::new(), |items| {
        items
            .iter()
            .map(|item| lines.at(item.span().start))
            .collect()
    })
}

fn tables<'a>(document: &'a Table, key: &str) -> Vec<&'a Value> {
    let tables = document.get(key).and_then(Value::as_array);
    tables.map_or(Vec::new(), |tables| tables.iter().collect())
}

fn listed(document: &Table, lines: &[usize], found: &mut Vec<Diagnostic>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (index, table) in tables(document, "variant").into_iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let name = table.get("name").and_then(Value::as_str);
        let set = table.get("set").and_then(Value::as_table);
        let known = table.as_table().is_some_and(|table| table.len() == 2);
        let (Some(name), Some(set), true) = (name, set, known) else {
            found.push(Diagnostic {
                line,
                key: "variant".to_owned(),
                found: "something else".to_owned(),
                allowed: "name and set, such as set = { \"network.san.mtu\" = 9000 }".to_owned(),
            });
            continue;
        };
        let settings = set
            .iter()
            .map(|(key, value)| Setting {
                key: key.clone(),
                value: value.clone(),
            })
            .collect();
        wanted.push(Wanted {
            line,
            name: name.to_owned(),
            settings,
        });
    }
    wanted
}

fn varied(document: &Table, lines: &[usize], found: &mut Vec<Diagnostic>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (index, table) in tables(document, "vary").into_iter().enumerate() {
        let line = lines.get(index).copied().unwrap_or(1);
        let key = table.get("key").and_then(Value::as_str);
        let values = table.get("values").and_then(Value::as_array);
        let known = table.as_table().is_some_and(|table| table.len() == 2);
        let (Some(key), Some(values), true) = (key, values, known) else {
            found.push(Diagnostic {
                line,
                key: "vary".to_owned(),
                found: "something else".to_owned(),
                allowed: "key and values, such as key = \"network.san.mtu\", values = [1500, 9000]"
                    .to_owned(),
            });
            continue;
        };
        wanted.extend(values.iter().map(|value| {
            let setting = Setting {
                key: key.to_owned(),
                value: value.clone(),
            };
            let shown = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Wanted {
                line,
                name: format!("{key} = {shown}"),
                settings: vec![setting],
            }
        }));
    }
    wanted
}
