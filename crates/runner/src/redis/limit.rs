//! What the clients can do at most on this machine: the same load on a server that does nothing, for a moment, before the real one is
//! filled. Both share the processors then as they do later.

use super::Cell;
use basics::job::{Pacing, Stop};
use basics::redis::{Link, Server};
use basics::{Interval, Job, Nanos};
use engine::{Control as Cancel, Keys, NullServer, Target};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// So long; a first part of it, in which connections are made and processors wake, does not count.
const TIME: Nanos = Nanos::from_millis(250);
const WARMUP: Nanos = Nanos::from_millis(50);

/// What was found in this run, by what it depends on.
#[derive(Debug, Default)]
pub(crate) struct Limits(HashMap<String, Option<f64>>);

impl Cell<'_> {
    /// Requests a second of this job's clients; unknown where it cannot be tried.
    pub fn find_limit(&mut self, job: &Job, limits: &mut Limits, interrupted: &AtomicBool) {
        // A server that is taken away is not asked for as much as can be.
        if self.server.lose.is_some() {
            return;
        }
        let job = self.asked(job);
        let of = key(self.server, &job);
        self.limit = *limits.0.entry(of).or_insert_with(|| self.limit_of(&job, interrupted));
    }

    fn limit_of(&self, job: &Job, interrupted: &AtomicBool) -> Option<f64> {
        let socket = (self.server.link == Link::Unix).then(|| Some(self.own()?.dir.join("null"))).flatten();
        let server = NullServer::start(socket.as_deref(), job.block.mean().0 as usize).ok()?;
        let job = Job {
            pacing: Pacing::Closed,
            each: false,
            warmup: WARMUP,
            stop: Stop { time: Some(TIME), ..Stop::default() },
            ..job.clone()
        };
        let keys = self.keys(self.server.pipeline, self.server.connections);
        let keys = Keys { at: server.endpoint(), greeting: b"", slowest: 0, ..keys };
        let outcome = engine::run(&job, Target::Keys(keys), &Cancel::new(interrupted), &mut |_: &Interval| {}).ok()?;
        let done = (outcome.read.operations() + outcome.write.operations()) as f64;
        Some(done / outcome.elapsed.secs()).filter(|limit| limit.is_finite() && *limit > 0.0)
    }
}

/// All that it depends on.
fn key(server: &Server, job: &Job) -> String {
    let (block, direction) = (&job.block, job.direction);
    let of_server = (server.link, server.connections, server.pipeline, server.keys, server.expires, &server.commands);
    format!("{of_server:?} {block:?} {direction:?} {} {} {:?}", job.threads, job.depth, job.order)
}
