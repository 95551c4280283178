//! The drives against their manuals, and the model against its own rules.

use super::closed_loop::{Outcome, run};
use super::*;
use base::DriveOffset;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn request(kind: RequestKind, at: u64, len_bytes: u64) -> Request {
    Request {
        kind,
        at: DriveOffset(at),
        len_bytes,
    }
}

/// Small random commands over the first `part_per_mille` of a drive.
fn random(
    state: &mut State,
    seed: u64,
    kind: RequestKind,
    part_per_mille: u64,
    depth: u64,
    count: u64,
) -> Outcome {
    let mut prng = Prng::from_seed(seed).stream("requests");
    let blocks = state.drive.capacity_bytes / 1000 * part_per_mille / (4 * KIB);
    let next = || request(kind, prng.below(blocks) * 4 * KIB, 4 * KIB);
    run(state, Time(0), depth, count, next)
}

fn state(drive: &Hdd, seed: u64) -> State {
    State::new(drive, &mut Prng::from_seed(seed).stream("drive"))
}

fn off_by(is: f64, should: f64) -> f64 {
    (is / should - 1.0).abs()
}

/// The textbook's service time of a random 4 KiB command, without overhead.
fn service(drive: &Hdd, seek: &SeekPoints) -> Duration {
    let mean_rate = (drive.outer_bytes_per_s + drive.inner_bytes_per_s) / 2;
    let transfer = Duration::from_nanos(4 * KIB * 1_000_000_000 / mean_rate);
    seek.average + drive.revolution() / 2 + transfer
}

#[test]
fn one_at_a_time_takes_overhead_seek_half_a_revolution_and_transfer() {
    for drive in Hdd::ALL {
        for (kind, seek) in [
            (RequestKind::Read, drive.read_seek),
            (RequestKind::Write, drive.write_seek),
        ] {
            let mut state = state(drive, 1);
            let outcome = random(&mut state, 1, kind, 1000, 1, 20_000);
            let should = 1.0 / (drive.overhead + service(drive, &seek)).as_secs_f64();
            let error = off_by(outcome.iops(), should);
            assert!(error < 0.02, "{} {kind:?}: {error}", drive.name);
            let rotation = state.counters().rotation.as_secs_f64() / 20_000.0;
            let half = drive.revolution().as_secs_f64() / 2.0;
            assert!(off_by(rotation, half) < 0.01, "{}: {rotation}", drive.name);
        }
    }
}

#[test]
fn a_command_ends_when_its_last_byte_has_passed_the_head() {
    for drive in Hdd::ALL {
        let mut state = state(drive, 13);
        let mut prng = Prng::from_seed(13);
        let mut completed = Vec::new();
        for second in 0..1_000 {
            let kind = *prng.pick(&[RequestKind::Read, RequestKind::Write]);
            let at = prng.below(drive.capacity_bytes / MIB) * MIB;
            let len = prng.below(256) * 4 * KIB;
            state.arrive(request(kind, at, len), Time(second * 1_000_000_000));
            state.advance(Time((second + 1) * 1_000_000_000), &mut completed);
            let end = completed.pop().unwrap().end.as_nanos();
            let last = state.mechanism.geometry.place(at + len);
            let spindle = end + state.mechanism.phase_ns();
            assert_eq!(state.mechanism.geometry.rotation_ns(&last, spindle), 0);
        }
        assert_eq!(state.counters().hits, 0);
    }
}

/// Random reads per second over a part of a drive, by depth.
fn reads_per_s(drive: &Hdd, part_per_mille: u64, depth: u64) -> f64 {
    let mut state = state(drive, 2);
    let kind = RequestKind::Read;
    random(&mut state, 2, kind, part_per_mille, depth, 5_000).iops()
}

#[test]
fn a_deep_queue_gains_what_is_published_of_its_class() {
    // Drive makers' papers: about 100 % of SATA; more than double, and over 400 reads per
    // second, of a 10k SAS drive with as many as it takes.
    let gain = |drive, depth| reads_per_s(drive, 1000, depth) / reads_per_s(drive, 1000, 1);
    let sata = gain(&Hdd::SATA_7K2, 32);
    assert!((1.9..2.3).contains(&sata), "{sata}");
    assert_eq!(
        gain(&Hdd::SATA_7K2, 64) / sata,
        1.0,
        "32 tags are all it has"
    );
    for drive in [&Hdd::SAS_15K, &Hdd::SAS_10K, &Hdd::NL_SAS_7K2] {
        let gain = gain(drive, 32);
        assert!((2.2..2.6).contains(&gain), "{}: {gain}", drive.name);
    }
    let deepest = reads_per_s(&Hdd::SAS_10K, 1000, 128);
    assert!((400.0..480.0).contains(&deepest), "{deepest}");
}

#[test]
fn a_drive_that_knows_its_seeks_is_faster_and_loses_no_bet() {
    let with = |seek_error| Hdd {
        seek_error,
        ..Hdd::SAS_10K
    };
    let known = reads_per_s(&with(Duration::ZERO), 1000, 32);
    let reckoned = reads_per_s(&Hdd::SAS_10K, 1000, 32);
    assert!(reckoned < 0.9 * known, "{reckoned} of {known}");
    let missed = |drive: &Hdd| {
        let mut state = state(drive, 2);
        random(&mut state, 2, RequestKind::Read, 1000, 32, 5_000);
        state.counters().missed as f64 / 5_000.0
    };
    assert_eq!(missed(&with(Duration::ZERO)), 0.0);
    // Without the chances in its order it loses more than this.
    assert!((0.01..0.06).contains(&missed(&Hdd::SAS_10K)));
}

/// Over all of a drive 32 to choose from do not save more than the seek and what they save of the
/// rotation. On a part of it they may: then of `n` random angles the nearest is a revolution over
/// `n + 1` away.
#[test]
fn no_random_read_takes_less_than_half_a_revolution_unless_the_queue_explains_it() {
    for drive in Hdd::ALL {
        let half = drive.revolution().as_secs_f64() / 2.0;
        for (part, depth) in [(10, 1), (10, 2), (100, 2), (1000, 4), (1000, 8), (1000, 32)] {
            let service = 1.0 / reads_per_s(drive, part, depth);
            let what = format!("{}, {part} of 1000, {depth} deep", drive.name);
            assert!(service > half, "{what}: {service} of {half}");
        }
        for depth in [8, 32, 128] {
            let mut state = state(drive, 2);
            random(&mut state, 2, RequestKind::Read, 10, depth, 5_000);
            let rotation = state.counters().rotation.as_secs_f64() / 5_000.0;
            let to_choose_from = depth.min(drive.tags as u64) as f64;
            let nearest = 2.0 * half / (to_choose_from + 1.0);
            assert!(
                rotation > nearest,
                "{}, {depth} deep: {rotation}",
                drive.name
            );
        }
    }
}

#[test]
fn a_deep_queue_about_doubles_the_rate_and_a_short_stroke_adds_to_it() {
    for drive in Hdd::ALL {
        let iops = |part, depth| reads_per_s(drive, part, depth);
        let (one, deep) = (iops(1000, 1), iops(1000, 32));
        let gain = deep / one;
        assert!((1.9..2.6).contains(&gain), "{}: {gain}", drive.name);
        assert!(iops(100, 1) > 1.2 * one, "{}", drive.name);
        assert!(iops(100, 32) > 1.2 * deep, "{}", drive.name);
        let mut last = 0.0;
        for depth in [1, 2, 4, 8, 16, 32, 64] {
            let now = iops(1000, depth);
            let is_full = depth > drive.tags as u64;
            assert!(
                now > last || is_full,
                "{}: {depth} deep is no faster",
                drive.name
            );
            last = now;
        }
    }
}

/// `count` commands of `len_bytes`, one after the other from `from`.
fn sequential(drive: &Hdd, kind: RequestKind, from: u64, len_bytes: u64, depth: u64) -> f64 {
    let mut state = state(drive, 3);
    let mut at = from;
    let next = || {
        at += len_bytes;
        request(kind, at - len_bytes, len_bytes)
    };
    let count = 512 * MIB / len_bytes;
    run(&mut state, Time(0), depth, count, next).iops() * len_bytes as f64
}

#[test]
fn reading_on_gets_the_sustained_rate_outside_and_inside_at_any_depth() {
    for drive in Hdd::ALL {
        let inside = drive.capacity_bytes - 640 * MIB;
        for (from, rate) in [
            (0, drive.outer_bytes_per_s),
            (inside, drive.inner_bytes_per_s),
        ] {
            for (len, depth) in [(256 * KIB, 1), (256 * KIB, 4), (64 * KIB, 32), (MIB, 1)] {
                let is = sequential(drive, RequestKind::Read, from, len, depth);
                let error = off_by(is, rate as f64);
                let allowed = 0.01;
                assert!(error < allowed, "{} {len} x {depth}: {is}", drive.name);
            }
        }
    }
}

#[test]
fn writing_on_loses_a_revolution_each_time_unless_writes_are_cached_or_queued() {
    let drive = &Hdd::SAS_10K;
    let write = |drive: &Hdd, depth| sequential(drive, RequestKind::Write, 0, 64 * KIB, depth);
    let lost = 64.0 * KIB as f64 / drive.revolution().as_secs_f64();
    assert!(write(drive, 1) < lost, "{}", write(drive, 1));
    let outer = drive.outer_bytes_per_s as f64;
    assert!(off_by(write(drive, 8), outer) < 0.1, "{}", write(drive, 8));
    let cached = write(&drive.with_write_cache(), 1);
    assert!(off_by(cached, outer) < 0.1, "{cached}");
}

#[test]
fn a_read_after_a_pause_longer_than_the_segment_finds_what_was_kept() {
    let drive = &Hdd::SAS_15K;
    let mut state = state(drive, 4);
    let len = 64 * KIB;
    let mut at = Time(0);
    let mut read = |from: u64, pause: Duration| {
        let begin = at + pause;
        let one = || request(RequestKind::Read, from, len);
        let outcome = run(&mut state, begin, 1, 1, one);
        at = begin + outcome.elapsed;
        outcome.elapsed
    };
    let second = Duration::from_secs(1);
    let first = read(0, second);
    let answered = drive.overhead + Duration::from_nanos(len * 1_000_000_000 / 600_000_000);
    assert_eq!(read(len, second), answered, "not kept");
    // The segment was full before the pause ended, so it did not grow since.
    let beyond = len + drive.read_ahead_bytes;
    assert!(read(beyond, second) > answered);
    assert!(first > answered);
}

#[test]
fn a_far_command_waits_no_longer_than_its_age_allows() {
    let drive = Hdd::SAS_15K;
    let longest = |drive: &Hdd| {
        let mut state = state(drive, 5);
        let mut prng = Prng::from_seed(5);
        let mut sent = 0;
        let next = || {
            sent += 1;
            let near = prng.below(1000) * 4 * KIB;
            let far = drive.capacity_bytes - 4 * KIB;
            request(
                RequestKind::Read,
                if sent == 8 { far } else { near },
                4 * KIB,
            )
        };
        run(&mut state, Time(0), 8, 20_000, next).longest
    };
    let worst = drive.read_seek.full_stroke + drive.revolution();
    let bound = drive.age_limit + worst * 8;
    let aged = longest(&drive);
    assert!(aged <= bound, "{aged:?} beyond {bound:?}");
    let endless = longest(&Hdd {
        age_limit: Duration::MAX,
        ..drive
    });
    assert!(endless > 4 * bound, "only {endless:?} without age");
}

#[test]
fn reading_on_does_not_keep_the_arm_from_others() {
    let drive = Hdd {
        tags: 2,
        ..Hdd::SAS_15K
    };
    let mut state = state(&drive, 14);
    let (mut sent, mut at) = (0, 0);
    let next = || {
        sent += 1;
        if sent == 20 {
            return request(RequestKind::Read, drive.capacity_bytes - MIB, 4 * KIB);
        }
        at += 256 * KIB;
        request(RequestKind::Read, at - 256 * KIB, 256 * KIB)
    };
    // More commands than tags: the next of the run is always there.
    let longest = run(&mut state, Time(0), 8, 5_000, next).longest;
    assert!(longest < drive.age_limit * 2, "{longest:?}");
}

#[test]
fn every_command_ends_once_whatever_is_mixed() {
    for (drive, write_cache) in Hdd::ALL.into_iter().flat_map(|d| [(d, false), (d, true)]) {
        let small = Hdd {
            write_cache,
            tags: 8,
            cache_bytes: 256 * KIB,
            ..*drive
        };
        let mut state = state(&small, 6);
        let mut prng = Prng::from_seed(6);
        let next = || {
            let kind = *prng.pick(&[
                RequestKind::Read,
                RequestKind::Read,
                RequestKind::Write,
                RequestKind::Write,
                RequestKind::Flush,
                RequestKind::Discard,
            ]);
            let len = prng.below(80) * 4 * KIB;
            request(kind, prng.below(1000) * MIB, len)
        };
        // Twice as many as tags: the rest waits outside.
        run(&mut state, Time(0), 16, 5_000, next);
        let counters = state.counters();
        assert_eq!((counters.arrived, counters.completed), (5_000, 5_000));
        // What is left in the buffer goes to the medium, and nothing else ends.
        let mut completed = Vec::new();
        state.advance(Time(u64::MAX / 2), &mut completed);
        assert_eq!((completed.len(), state.next_event()), (0, None));
        assert_eq!((state.dirty_writes, state.dirty_bytes), (0, 0));
        assert_eq!(state.tags_used, 0);
    }
}

#[test]
fn utilisation_is_rate_times_service_time() {
    for drive in Hdd::ALL {
        let service = service(drive, &drive.read_seek);
        // One command in three service times: a third busy, nothing waits.
        let gap = service * 3;
        let mut state = state(drive, 7);
        let mut prng = Prng::from_seed(7);
        let mut completed = Vec::new();
        let mut now = Time(0);
        for _ in 0..10_000 {
            let at = prng.below(drive.capacity_bytes / (4 * KIB)) * 4 * KIB;
            state.arrive(request(RequestKind::Read, at, 4 * KIB), now);
            now = now + gap;
            state.advance(now, &mut completed);
        }
        assert_eq!(completed.len(), 10_000);
        let busy = state.counters().busy().as_secs_f64() / now.since(Time(0)).as_secs_f64();
        assert!(off_by(busy, 1.0 / 3.0) < 0.02, "{}: {busy}", drive.name);
    }
}

#[test]
fn commands_are_counted_where_they_lie_on_the_stroke() {
    let mut state = state(&Hdd::SAS_10K, 15);
    random(&mut state, 15, RequestKind::Read, 100, 8, 5_000);
    let used = state.by_stroke().iter().filter(|count| **count > 0).count();
    // A tenth of the bytes on the outside, where tracks are long, is less of the stroke.
    assert!((5..=7).contains(&used), "{used} of {STROKE_PARTS}");
    assert_eq!(
        state.by_stroke().iter().sum::<u64>(),
        state.counters().served
    );
}

#[test]
fn one_seed_gives_one_trace() {
    let trace = |seed| {
        let mut state = state(&Hdd::SAS_10K.with_write_cache(), seed);
        random(&mut state, 8, RequestKind::Write, 1000, 16, 2_000).trace
    };
    assert_eq!(trace(8), trace(8));
    assert_ne!(trace(8), trace(9), "the phase is drawn");
}

#[test]
fn a_cached_write_ends_in_the_buffer_and_a_flush_on_the_medium() {
    let drive = Hdd::SAS_15K.with_write_cache();
    let mut state = state(&drive, 9);
    let mut completed = Vec::new();
    let (middle, far) = (drive.capacity_bytes / 2, drive.capacity_bytes - MIB);
    state.arrive(request(RequestKind::Write, middle / 2, 4 * KIB), Time(0));
    let write = state.arrive(request(RequestKind::Write, middle, 4 * KIB), Time(0));
    let flush = state.arrive(request(RequestKind::Flush, 0, 0), Time(0));
    let read = state.arrive(request(RequestKind::Read, middle, 4 * KIB), Time(0));
    // The flush holds for what came before it only.
    let mut without = state.clone();
    let mut completed_without = Vec::new();
    without.advance(Time(1_000_000_000), &mut completed_without);
    state.arrive(request(RequestKind::Write, far, 4 * KIB), Time(0));
    let mut before = state.clone();
    state.advance(Time(1_000_000_000), &mut completed);
    let end = |ticket| {
        let found = completed.iter().find(|done| done.ticket == ticket);
        found.map(|done| done.end.since(Time(0)))
    };
    let buffered = drive.overhead + Duration::from_nanos(4 * KIB * 1_000_000_000 / 600_000_000);
    assert_eq!(end(write), Some(buffered));
    assert_eq!(end(read), Some(buffered), "the buffer has it");
    let flushed = end(flush).unwrap();
    assert!(flushed > drive.write_seek.full_stroke / 2, "{flushed:?}");
    assert!(completed_without.contains(&Completed {
        ticket: flush,
        end: Time(0) + flushed,
    }));
    assert_eq!(state.counters().destaged, 3);
    before.advance(Time(0) + flushed, &mut Vec::new());
    assert_eq!(before.counters().destaged, 2, "both that came before it");

    let empty = state.arrive(request(RequestKind::Flush, 0, 0), Time(1_000_000_000));
    state.advance(Time(2_000_000_000), &mut completed);
    let last = completed.last().unwrap();
    assert_eq!(last.ticket, empty);
    assert_eq!(last.end.since(Time(1_000_000_000)), drive.overhead);
}

#[test]
fn a_flush_takes_the_controllers_time_even_when_the_medium_is_done_before() {
    let drive = Hdd::SAS_15K.with_write_cache();
    let mut state = state(&drive, 11);
    let mut completed = Vec::new();
    state.arrive(request(RequestKind::Write, 0, 4 * KIB), Time(0));
    let mut events = Vec::new();
    let mut ahead = state.clone();
    while let Some(event) = ahead.next_event() {
        events.push(event);
        ahead.advance(event, &mut completed);
    }
    let written = *events.last().unwrap();
    completed.clear();
    let before = Time(written.0 - 1);
    state.advance(before, &mut completed);
    let flush = state.arrive(request(RequestKind::Flush, 0, 0), before);
    state.advance(Time(1_000_000_000), &mut completed);
    let end = before + drive.overhead;
    assert_eq!(completed.last(), Some(&Completed { ticket: flush, end }));
}

#[test]
fn a_write_over_what_was_read_ahead_is_not_read_from_there() {
    let drive = Hdd::SAS_15K;
    let mut state = state(&drive, 12);
    let mut at = Time(0);
    let mut one = |kind, from: u64| {
        at = at + Duration::from_secs(1);
        run(&mut state, at, 1, 1, || request(kind, from, 4 * KIB)).elapsed
    };
    let answered = drive.overhead + Duration::from_nanos(4 * KIB * 1_000_000_000 / 600_000_000);
    one(RequestKind::Read, 0);
    assert_eq!(one(RequestKind::Read, 8 * KIB), answered);
    one(RequestKind::Write, 16 * KIB);
    assert!(one(RequestKind::Read, 8 * KIB) > answered);
}

#[test]
fn a_full_buffer_takes_writes_as_fast_as_they_leave_it() {
    let drive = Hdd::SAS_15K.with_write_cache();
    let mut cached = state(&drive, 10);
    let cached = random(&mut cached, 10, RequestKind::Write, 1000, 1, 10_000).iops();
    // As many writes as tags lie in the buffer: that is a queue of as many.
    let mut queued = state(&Hdd::SAS_15K, 10);
    let depth = drive.tags as u64;
    let queued = random(&mut queued, 10, RequestKind::Write, 1000, depth, 10_000).iops();
    assert!(off_by(cached, queued) < 0.05, "{cached} {queued}");
}

#[test]
#[should_panic(expected = "beyond the end of the drive")]
fn a_command_beyond_the_end_is_refused() {
    let end = Hdd::SAS_15K.capacity_bytes;
    state(&Hdd::SAS_15K, 0).arrive(request(RequestKind::Read, end, 1), Time(0));
}

#[test]
#[should_panic(expected = "time runs back")]
fn time_does_not_run_back() {
    let mut state = state(&Hdd::SAS_15K, 0);
    state.advance(Time(5), &mut Vec::new());
    state.arrive(request(RequestKind::Read, 0, 1), Time(4));
}
