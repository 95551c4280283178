//! The steps of a change that all lanes of a pool make, or none.
//!
//! Invariants:
//! - Every lane is asked before the first one changes. A lane that is asked changes nothing.
//! - What one lane could not do is taken back in all lanes, the last one first. A lane that
//!   can't take it back keeps none of the others from it, and they hear of it.

use std::future::Future;

/// A change that one lane could not make.
#[derive(Debug)]
pub struct Halted<E> {
    /// What this lane said.
    pub error: E,
    /// Lanes that could not take the change back, and their reasons.
    pub kept: Vec<(u16, E)>,
}

impl<E> From<E> for Halted<E> {
    /// Nothing has changed yet.
    fn from(error: E) -> Self {
        let kept = Vec::new();
        Halted { error, kept }
    }
}

/// Asks every lane, the first one first.
///
/// # Errors
/// What the first lane that refuses says; no lane has changed anything.
pub async fn ask_all<E, Asked>(lanes: u16, ask: impl Fn(u16) -> Asked) -> Result<(), E>
where
    Asked: Future<Output = Result<(), E>>,
{
    for lane in 0..lanes {
        ask(lane).await?;
    }
    Ok(())
}

/// Changes every lane, the first one first; all were asked before.
///
/// # Errors
/// A lane could not make the change: it is taken back.
pub async fn change_all<E, Changed, TakenBack>(
    lanes: u16,
    change: impl Fn(u16) -> Changed,
    take_back: impl Fn(u16, bool) -> TakenBack,
) -> Result<(), Halted<E>>
where
    Changed: Future<Output = Result<(), E>>,
    TakenBack: Future<Output = Result<(), E>>,
{
    for lane in 0..lanes {
        if let Err(error) = change(lane).await {
            let kept = take_back_all(lanes, take_back).await;
            return Err(Halted { error, kept });
        }
    }
    Ok(())
}

/// Has every lane take a change back, the last one first, and hear whether those before it have.
/// Gives those that could not.
async fn take_back_all<E, TakenBack>(
    lanes: u16,
    take_back: impl Fn(u16, bool) -> TakenBack,
) -> Vec<(u16, E)>
where
    TakenBack: Future<Output = Result<(), E>>,
{
    let mut kept = Vec::new();
    for lane in (0..lanes).rev() {
        if let Err(error) = take_back(lane, kept.is_empty()).await {
            kept.push((lane, error));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::RefCell;
    use std::future::ready;

    #[test]
    fn a_refusal_asks_no_further() {
        let asked = RefCell::new(Vec::new());
        let ask = |lane| {
            asked.borrow_mut().push(lane);
            ready(if lane == 1 { Err("full") } else { Ok(()) })
        };
        let said = ask_all(3, ask).now_or_never().unwrap();
        assert_eq!((said, asked.into_inner()), (Err("full"), vec![0, 1]));
    }

    #[test]
    fn a_stopped_lane_keeps_no_other_from_taking_back() {
        let taken_back = RefCell::new(Vec::new());
        let change = |lane| ready(if lane == 1 { Err("stopped") } else { Ok(()) });
        let take_back = |lane, others_have| {
            taken_back.borrow_mut().push((lane, others_have));
            ready(if lane == 1 {
                Err("still stopped")
            } else {
                Ok(())
            })
        };
        let halted = change_all(3, change, take_back).now_or_never().unwrap();
        let halted = halted.unwrap_err();
        assert_eq!(halted.error, "stopped");
        assert_eq!(halted.kept, [(1, "still stopped")]);
        let expected = [(2, true), (1, true), (0, false)];
        assert_eq!(taken_back.into_inner(), expected);
    }
}
