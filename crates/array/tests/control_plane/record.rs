//! Records that can fail.

use array::records::Store;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::sync::{Arc, Mutex};

/// A record that takes so many more writes; those that fail change nothing.
pub(crate) struct Record<T> {
    kept: Mutex<T>,
    writes_left: Mutex<u32>,
}

impl<T: Clone + Default> Record<T> {
    pub(crate) fn new() -> Arc<Record<T>> {
        Arc::new(Record {
            kept: Mutex::default(),
            writes_left: Mutex::new(u32::MAX),
        })
    }

    pub(crate) fn takes(&self, writes: u32) {
        *self.writes_left.lock().unwrap() = writes;
    }

    pub(crate) fn kept(&self) -> T {
        self.kept.lock().unwrap().clone()
    }

    fn write(&self, content: T) -> BoxFuture<'static, Result<(), String>> {
        let mut left = self.writes_left.lock().unwrap();
        let written = match left.checked_sub(1) {
            None => Err("no room".to_owned()),
            Some(less) => {
                *left = less;
                *self.kept.lock().unwrap() = content;
                Ok(())
            }
        };
        ready(written).boxed()
    }
}

impl<T: Clone + Default + Send + 'static> Store<T> for Record<T> {
    fn keep(&self, content: T) -> BoxFuture<'static, Result<(), String>> {
        self.write(content)
    }
}
