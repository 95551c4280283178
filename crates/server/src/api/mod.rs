//! The REST API under `/api/v1`, with its description at
//! `/api/v1/openapi.json`. Never offered to the network.
//!
//! Handlers are thin: they check what came in, ask the [`Array`], and turn the
//! outcome into the JSON of the crate [`::api`].

mod audit;
mod caller;
mod capture;
mod connections;
mod consistency;
mod deadline;
mod description;
mod drive_health;
mod drives;
mod events;
mod exports;
mod groups;
mod guard;
mod health;
mod hosts;
mod jobs;
mod listener;
mod pool_changes;
mod pool_view;
mod pools;
mod problem;
mod qos;
mod query;
mod restore;
mod schedules;
mod sessions;
mod settings;
mod site;
mod snapshots;
mod space;
mod statistics;
mod status;
mod trash;
mod trial;
mod volumes;

pub(crate) use connections::ALL_MAX as CONNECTIONS_MAX;
pub(crate) use deadline::Patience;
pub(crate) use listener::ApiListener;

use crate::array::Array;
use api::ProblemKind;
use axum::extract::DefaultBodyLimit;
use axum::{Json, Router, middleware, routing};
use deadline::Served;
use problem::Refusal;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Largest request body: far above any that makes sense.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long requests under way may take once the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// All resources, and their description.
fn described() -> (Router<Served>, OpenApi) {
    let (router, mut description) = OpenApiRouter::with_openapi(description::base())
        .merge(of_figures())
        .merge(of_trials())
        .routes(routes!(drives::list_drives))
        .routes(routes!(drives::get_drive, drives::remove_drive))
        .routes(routes!(pools::list_pools, pool_changes::create_pool))
        .routes(routes!(drives::get_redundancy))
        .routes(routes!(drives::fail_drive))
        .routes(routes!(drives::replace_drive))
        .routes(routes!(pools::get_pool, pool_changes::destroy_pool))
        .routes(routes!(pool_changes::change_cache))
        .routes(routes!(pools::change_scrub))
        .routes(routes!(pools::change_rates))
        .routes(routes!(space::change_thresholds))
        .routes(routes!(space::convert_volume))
        .routes(routes!(space::get_space))
        .routes(routes!(space::get_shrinking))
        .routes(routes!(pools::add_spare))
        .routes(routes!(groups::add_group))
        .routes(routes!(groups::change_group, groups::remove_group))
        .routes(routes!(events::list_events))
        .routes(routes!(volumes::list_volumes, volumes::create_volume))
        .routes(routes!(
            volumes::get_volume,
            volumes::change_volume,
            volumes::delete_volume
        ))
        .routes(routes!(qos::list_limits))
        .routes(routes!(qos::get_limits, qos::set_limits))
        .routes(routes!(snapshots::create_snapshot))
        .routes(routes!(snapshots::clone_volume))
        .routes(routes!(
            snapshots::list_snapshots,
            restore::create_snapshots
        ))
        .routes(routes!(restore::restore_volume))
        .routes(routes!(
            schedules::list_schedules,
            schedules::create_schedule
        ))
        .routes(routes!(schedules::delete_schedule))
        .routes(routes!(consistency::list_groups, consistency::create_group))
        .routes(routes!(
            consistency::get_group,
            consistency::change_group,
            consistency::delete_group
        ))
        .routes(routes!(consistency::snapshot_group))
        .routes(routes!(
            schedules::list_group_schedules,
            schedules::create_group_schedule
        ))
        .routes(routes!(schedules::delete_group_schedule))
        .routes(routes!(snapshots::get_snapshot, snapshots::delete_snapshot))
        .routes(routes!(trash::list_trash, trash::empty_trash))
        .routes(routes!(trash::delete_trashed))
        .routes(routes!(trash::restore_trashed))
        .routes(routes!(jobs::import_volume))
        .routes(routes!(jobs::export_volume))
        .routes(routes!(jobs::move_volume, jobs::abandon_move))
        .routes(routes!(jobs::copy_volume))
        .routes(routes!(jobs::list_jobs))
        .routes(routes!(jobs::get_job, jobs::cancel_job))
        .routes(routes!(exports::list_exports, exports::create_export))
        .routes(routes!(
            exports::get_export,
            exports::change_export,
            exports::delete_export
        ))
        .routes(routes!(hosts::list_hosts, hosts::create_host))
        .routes(routes!(
            hosts::get_host,
            hosts::change_host,
            hosts::delete_host
        ))
        .routes(routes!(hosts::list_host_groups, hosts::create_host_group))
        .routes(routes!(
            hosts::get_host_group,
            hosts::change_host_group,
            hosts::delete_host_group
        ))
        .routes(routes!(settings::get_settings, settings::change_settings))
        .routes(routes!(settings::list_portals, settings::add_portal))
        .routes(routes!(settings::change_portal, settings::remove_portal))
        .routes(routes!(settings::get_site))
        .routes(routes!(
            settings::get_discovery,
            settings::set_discovery,
            settings::clear_discovery
        ))
        .routes(routes!(sessions::list_sessions))
        .routes(routes!(sessions::get_session, sessions::drop_session))
        .merge(of_site_files())
        .split_for_parts();
    description::complete(&mut description);
    (router, description)
}

/// The API of `array`.
pub fn router(array: Arc<Array>, patience: Patience) -> Router {
    let served = Served { array, patience };
    let (router, description) = described();
    let router = router.with_state(served.clone());
    let known = Arc::new(query::KnownParameters::new(&description));
    let description = Arc::new(description);
    let described = move || {
        let description = Arc::clone(&description);
        async move { Json(description.as_ref().clone()) }
    };
    router
        .route("/api/v1/openapi.json", routing::get(described))
        .route_layer(middleware::from_fn_with_state(known, query::known_only))
        .fallback(|uri: axum::http::Uri| async move {
            Refusal::new(
                ProblemKind::NotFound,
                format!("there is no resource {}", uri.path()),
            )
        })
        .method_not_allowed_fallback(|method: axum::http::Method| async move {
            let message = format!("this resource has no {method}; see /api/v1/openapi.json");
            Refusal::new(ProblemKind::MethodNotAllowed, message)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(audit::told))
        .layer(middleware::from_fn_with_state(served, deadline::in_time))
        .layer(middleware::from_fn(guard::ours_only))
}

/// The array at a glance, statistics and captures.
fn of_figures() -> OpenApiRouter<Served> {
    OpenApiRouter::new()
        .routes(routes!(status::get_status))
        .routes(routes!(status::get_stats))
        .routes(routes!(statistics::volume_stats))
        .routes(routes!(statistics::initiator_stats))
        .routes(routes!(statistics::session_stats))
        .routes(routes!(
            capture::get_capture,
            capture::begin_capture,
            capture::end_capture
        ))
}

/// What only asks whether a change is possible.
fn of_trials() -> OpenApiRouter<Served> {
    OpenApiRouter::new()
        .routes(routes!(trial::check_delete_volume))
        .routes(routes!(trial::check_delete_snapshot))
        .routes(routes!(trial::check_restore_volume))
        .routes(routes!(trial::check_destroy_pool))
        .routes(routes!(trial::check_remove_drive))
        .routes(routes!(trial::check_remove_portal))
        .routes(routes!(trial::check_change_settings))
}

/// What takes whole site files.
fn of_site_files() -> OpenApiRouter<Served> {
    OpenApiRouter::new()
        .routes(routes!(site::diff_site))
        .routes(routes!(site::apply_site))
        .layer(DefaultBodyLimit::max(site::TEXT_BYTES_MAX))
}

/// Answers requests on `listener` until `stop` ends; requests under way then
/// have [`DRAIN_MAX`] to end.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: ApiListener,
    array: Arc<Array>,
    patience: Patience,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let announced = async move {
        stop.await;
        // The other side waits for this or for the end of serving.
        let _ = stopping.send(());
    };
    let router = router(array, patience);
    let overdue = async move {
        // An error means that serving has ended first.
        let _ = stopped.await;
        tokio::time::sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        () = connections::serve(&listener, router, announced) => {}
        () = overdue => tracing::warn!(
            "requests to the API are dropped without an answer: {} s after the stop they had none",
            DRAIN_MAX.as_secs()
        ),
    }
    Ok(())
}
