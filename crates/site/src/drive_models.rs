//! Reads models of drives that the file describes itself, `[[drive_model]]`, as `ashlar calibrate`
//! measures them.

use crate::diagnostic::Lines;
use crate::loads::list;
use crate::plan::{DriveModel, MeasuredCommands, MeasuredCurve};
use crate::quantity::number;
use crate::read::{name, size_of, tables};
use crate::size::SIZE_RULE;
use crate::table::{Row, TableReader};
use toml::de::DeValue;

/// The most sizes, and the most numbers outstanding: to 1,024.
const SIZES_MAX: usize = 16;
const DEPTHS_MAX: usize = 11;

/// The largest drive.
const CAPACITY_BYTES_MAX: u64 = 1 << 50;

/// The most parts of a spread.
const SPREAD_MAX: usize = 100;

/// Commands a second, from one in a thousand seconds.
const PER_S_MIN: f64 = 1e-3;
const PER_S_MAX: f64 = 1e9;

/// What a durable write may have of a drive, against another command.
const SHARE_MIN: f64 = 0.01;
const SHARE_MAX: f64 = 100.0;

/// The most that a single command takes of the mean one.
const SPREAD_VALUE_MAX: f64 = 1e6;

/// Reads them.
pub(crate) fn read(file: &mut TableReader<'_, '_>, lines: &Lines) -> Vec<DriveModel> {
    let models = tables(file, lines, "drive_model", drive_model);
    models.into_iter().map(|row| row.item).collect()
}

fn drive_model(mut reader: TableReader<'_, '_>) -> Row<DriveModel> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let rule = format!("{SIZE_RULE}, up to 1 PiB");
    let capacity_bytes = reader.optional("capacity", &rule, |value| {
        size_of(value).filter(|bytes| (1..=CAPACITY_BYTES_MAX).contains(bytes))
    });
    let mut flag = |key| reader.optional(key, "true or false", DeValue::as_bool);
    let (rotational, shared) = (flag("rotational"), flag("shared"));
    let sizes = sizes(&mut reader);
    let mut commands = |key, spread| commands(&mut reader, &sizes, key, spread);
    let model = DriveModel {
        reads: commands("reads", "read_spread"),
        writes: commands("writes", "write_spread"),
        durable_writes: commands("durable_writes", "durable_write_spread"),
        flushes: flushes(&mut reader),
        durable_write_share: share(&mut reader),
        name,
        line,
        capacity_bytes,
        rotational: rotational.unwrap_or(false),
        shared: shared.unwrap_or(false),
    };
    reader.finish(model)
}

/// The sizes of commands.
fn sizes(reader: &mut TableReader<'_, '_>) -> Vec<u64> {
    let rule =
        format!("a list of up to {SIZES_MAX} sizes that grow, such as [\"4 KiB\", \"64 KiB\"]");
    let sizes = reader.required("sizes", &rule, |value| {
        let sizes = list(value, SIZES_MAX, |size| {
            size_of(size).filter(|bytes| *bytes > 0)
        })?;
        sizes.is_sorted_by(|one, next| one < next).then_some(sizes)
    });
    sizes.unwrap_or_default()
}

/// The rates of a kind of commands, and how single ones differ.
fn commands(
    reader: &mut TableReader<'_, '_>,
    sizes: &[u64],
    key: &'static str,
    spread_key: &'static str,
) -> MeasuredCommands {
    let rule = format!(
        "a list for each of sizes, of up to {DEPTHS_MAX} numbers of commands a second, from {PER_S_MIN} to \
         {PER_S_MAX}, with 1, 2, 4, 8 … outstanding"
    );
    let rates = reader.required(key, &rule, |value| {
        let rates = list(value, SIZES_MAX, rates)?;
        // Sizes that are wrong were told.
        (sizes.is_empty() || rates.len() == sizes.len()).then_some(rates)
    });
    let curve = |(len_bytes, per_s): (&u64, Vec<f64>)| MeasuredCurve {
        len_bytes: *len_bytes,
        per_s,
    };
    MeasuredCommands {
        curves: sizes
            .iter()
            .zip(rates.unwrap_or_default())
            .map(curve)
            .collect(),
        spread: spread(reader, spread_key),
    }
}

/// The rates of flushes, whose size does not count.
fn flushes(reader: &mut TableReader<'_, '_>) -> MeasuredCommands {
    let rule = format!(
        "a list of up to {DEPTHS_MAX} numbers of flushes a second, from {PER_S_MIN} to {PER_S_MAX}, with 1, 2, 4, 8 … \
         outstanding"
    );
    let per_s = reader.required("flushes", &rule, rates);
    MeasuredCommands {
        curves: per_s
            .map(|per_s| MeasuredCurve {
                len_bytes: 1,
                per_s,
            })
            .into_iter()
            .collect(),
        spread: spread(reader, "flush_spread"),
    }
}

/// What a durable write has beside others; as much, where the file says nothing.
fn share(reader: &mut TableReader<'_, '_>) -> f64 {
    let rule = format!("a number from {SHARE_MIN} to {SHARE_MAX}");
    let share = reader.optional("durable_write_share", &rule, |value| {
        within(value, SHARE_MIN, SHARE_MAX)
    });
    share.unwrap_or(1.0)
}

/// Commands a second, by the number outstanding.
fn rates(value: &DeValue<'_>) -> Option<Vec<f64>> {
    list(value, DEPTHS_MAX, |rate| within(rate, PER_S_MIN, PER_S_MAX))
}

/// How single commands of a kind differ; not at all, where the file says nothing.
fn spread(reader: &mut TableReader<'_, '_>, key: &'static str) -> Vec<f64> {
    let rule = format!(
        "a list of up to {SPREAD_MAX} numbers above zero, from the shortest time to the longest, against each other"
    );
    let spread = reader.optional(key, &rule, |value| {
        list(value, SPREAD_MAX, |part| {
            within(part, f64::MIN_POSITIVE, SPREAD_VALUE_MAX)
        })
    });
    spread.unwrap_or_else(|| vec![1.0])
}

fn within(value: &DeValue<'_>, min: f64, max: f64) -> Option<f64> {
    number(value).filter(|number| (min..=max).contains(number))
}
