//! Models of drives that a file describes itself, by what was measured of them.
//!
//! Invariants: each kind of commands has a curve for each size, with sizes that grow and rates above zero.

/// A drive as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveModel {
    /// Unique among the models of the file; it takes the place of a built-in model with its name.
    pub name: String,
    /// Where the file describes it.
    pub line: usize,
    /// The most that a drive offers, where the file says it.
    pub capacity_bytes: Option<u64>,
    /// Whether it has platters.
    pub rotational: bool,
    /// Whether all drives of the model are parts of one device.
    pub shared: bool,
    /// Random commands that read.
    pub reads: MeasuredCommands,
    /// Random commands that write, of which a flush makes many durable.
    pub writes: MeasuredCommands,
    /// Commands that write and are durable when they end.
    pub durable_writes: MeasuredCommands,
    /// Flushes, each after a write: one curve, whose size does not count.
    pub flushes: MeasuredCommands,
    /// What a durable write has of the drive beside commands of other kinds, against each of these.
    pub durable_write_share: f64,
}

impl DriveModel {
    /// The one of `models` with this name.
    pub fn named(models: &[DriveModel], name: &str) -> Option<DriveModel> {
        models.iter().find(|model| model.name == name).cloned()
    }
}

/// What was measured of one kind of commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredCommands {
    /// By size, the smallest first.
    pub curves: Vec<MeasuredCurve>,
    /// Times of single commands against each other, from short to long.
    pub spread: Vec<f64>,
}

/// Rates of commands of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCurve {
    /// The size of each.
    pub len_bytes: u64,
    /// Commands a second with 1, 2, 4, 8 … outstanding.
    pub per_s: Vec<f64>,
}
