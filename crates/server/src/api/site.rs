//! Requests that compare a site file with the array, and that apply it.

use super::caller::Caller;
use super::problem::Body;
use super::problem::Refusal;
use crate::array::Array;
use ::array::site_file::{self, Action, Difference};
use api::{Problem, SiteAction, SiteDifference, SiteText};
use axum::Json;
use axum::extract::{ConnectInfo, State};
use site::Site;
use std::sync::Arc;

/// Largest site file: thousands of volumes.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 20;

/// What a site file says that the array is not. Changes nothing.
#[utoipa::path(
    post, path = "/api/v1/site/diff", tag = "site", request_body = SiteText,
    responses((status = 200, body = Vec<SiteDifference>), (status = 400, body = Problem))
)]
pub(super) async fn diff_site(
    State(array): State<Arc<Array>>,
    Body(text): Body<SiteText>,
) -> Result<Json<Vec<SiteDifference>>, Refusal> {
    let site = parsed(&text)?;
    let renamed = site_file::renamed_as_shown(&site, &array).await?;
    let found = site_file::differences(&site_file::follow(&site, &renamed), &array).await?;
    let renamed = renamed.into_iter().map(|(was, now)| SiteDifference {
        action: SiteAction::Keep,
        what: format!("volume {was}"),
        how: format!("is called {now} now: write that name in the site file"),
        failed: None,
    });
    let found = found.into_iter().map(|one| difference(one, None));
    Ok(Json(renamed.chain(found).collect()))
}

/// Has the array be what a site file says. Nothing is deleted, shrunk or moved. What can't be
/// done is no reason to leave the rest: it is in the answer, with the reason.
#[utoipa::path(
    post, path = "/api/v1/site/apply", tag = "site", request_body = SiteText,
    responses((status = 200, body = Vec<SiteDifference>), (status = 400, body = Problem))
)]
pub(super) async fn apply_site(
    State(array): State<Arc<Array>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    Body(text): Body<SiteText>,
) -> Result<Json<Vec<SiteDifference>>, Refusal> {
    let site = parsed(&text)?;
    let of_array = (array.control(), array.openings());
    let outcome = site_file::apply(&site, of_array, caller.is_owner()).await?;
    let done = outcome.done.into_iter().map(|one| difference(one, None));
    let left = outcome.left.into_iter();
    let left = left.map(|one| difference(one.difference, Some(one.why)));
    Ok(Json(done.chain(left).collect()))
}

fn parsed(text: &SiteText) -> Result<Site, Refusal> {
    site::parse(&text.file, &text.text).map_err(|error| Refusal::invalid(error.to_string()))
}

fn difference(of: Difference, failed: Option<String>) -> SiteDifference {
    SiteDifference {
        action: match of.action {
            Action::Create => SiteAction::Create,
            Action::Change => SiteAction::Change,
            Action::Keep => SiteAction::Keep,
        },
        what: of.what,
        how: of.how,
        failed,
    }
}
