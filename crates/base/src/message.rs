//! Words that all layers use alike.

/// That there is no such thing; `list` is the command that lists those which are there. The
/// array and commands say so in the same words.
pub fn not_there(what: &str, list: &str) -> String {
    format!("there is no {what}; `ashlar {list}` shows those that are there")
}
