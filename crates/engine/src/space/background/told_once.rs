//! What was told last: work that is tried again and again tells of the same once.

use std::cell::RefCell;

/// What was told last, until it is over.
#[derive(Debug)]
pub(super) struct ToldOnce<T>(RefCell<Option<T>>);

impl<T> Default for ToldOnce<T> {
    fn default() -> Self {
        ToldOnce(RefCell::new(None))
    }
}

impl<T: PartialEq> ToldOnce<T> {
    /// Whether `what` is to be told: it was not told last.
    pub fn is_new(&self, what: T) -> bool {
        let mut told = self.0.borrow_mut();
        let is_new = told.as_ref() != Some(&what);
        *told = Some(what);
        is_new
    }

    /// It is over: the next time it is told again.
    pub fn forget(&self) {
        self.0.replace(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_until_it_is_over() {
        let told = ToldOnce::default();
        assert!(told.is_new("a") && !told.is_new("a"));
        assert!(told.is_new("b") && told.is_new("a"));
        told.forget();
        assert!(told.is_new("a"));
    }
}
