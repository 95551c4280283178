//! The engine's work on drives that no array uses.
//!
//! The engine is generic over its world, so it is compiled wherever it is called. This crate has it
//! for the real world anyhow: the functions here give others boxed futures, which are compiled once.

use ::array::pool::opening;
use engine::fsck::{self, Options, Progress, Report};
use engine::salvage::{self, Plan};
use engine::{LabelSummary, NamedDrive, PoolError};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use world_real::{RealDrive, RealWorld};

/// What the labels on drives say, as [`find_labels`](opening::find_labels).
///
/// # Errors
/// As there.
pub fn find_labels<'a>(
    world: &'a RealWorld,
    drives: &'a [&'a RealDrive],
) -> LocalBoxFuture<'a, Vec<Result<Option<LabelSummary>, PoolError>>> {
    opening::find_labels(world, drives).boxed_local()
}

/// Checks a pool, as [`fsck::check_watched`].
///
/// # Errors
/// As there.
pub fn check(
    world: &RealWorld,
    drives: Vec<NamedDrive<RealWorld>>,
    options: Options,
    progress: Rc<Progress>,
) -> LocalBoxFuture<'_, Result<Report, PoolError>> {
    fsck::check_watched(world, drives, options, progress).boxed_local()
}

/// Finds labels that can be written again, as [`salvage::plan`].
///
/// # Errors
/// As there.
pub fn plan_salvage(
    world: &RealWorld,
    drives: Vec<NamedDrive<RealWorld>>,
) -> LocalBoxFuture<'_, Result<Plan<RealWorld>, PoolError>> {
    salvage::plan(world, drives).boxed_local()
}

/// Writes the labels of a plan, as [`Plan::carry_out`].
///
/// # Errors
/// As there.
pub fn salvage(
    world: &RealWorld,
    plan: Plan<RealWorld>,
) -> LocalBoxFuture<'_, Result<(), PoolError>> {
    plan.carry_out(world).boxed_local()
}
