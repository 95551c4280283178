//! What a group is for.

/// What a group is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupRole {
    /// It holds data, and whatever else there is no better place for.
    #[default]
    Data,
    /// It has no zones: the logs of all lanes lie on it.
    Log,
}

impl GroupRole {
    /// Every role there is.
    pub const ALL: [GroupRole; 2] = [GroupRole::Data, GroupRole::Log];

    /// As people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupRole::Data => "data",
            GroupRole::Log => "log",
        }
    }

    /// What people have written.
    pub fn parse(text: &str) -> Option<GroupRole> {
        GroupRole::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
    }
}
