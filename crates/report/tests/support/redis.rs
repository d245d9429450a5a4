//! A Redis server under load, by hand: two ways on an emulated card, one of which forked and held up those that waited.

use super::{Piece, Shape, record_of};
use basics::job::{Block, Direction, Engine};
use basics::outcome::Slow;
use basics::pressure::Load;
use basics::redis::{Mode, Served};
use basics::spikes::{Cause, Spikes, Stall};
use basics::{Bytes, EngineUse, Job, Nanos};
use record::Record;

/// As published: 512 B, so that the article's rows stand beside it.
pub fn redis_record() -> Record {
    let job = || Job {
        direction: Direction::Mixed { read_percent: 50 },
        block: Block::Fixed(Bytes(512)),
        depth: 50,
        engine: Engine::Resp,
        ..Job::default()
    };
    let shape = Shape { p50: 210.0, p99: 900.0, max: 19_000.0 };
    let piece = |name: &'static str, rate: f64| Piece {
        name,
        tier: "sd-evo-pi5",
        place: "sd-evo-pi5",
        job: job(),
        seconds: 2.0,
        read: Some((rate, shape)),
        write: Some((rate, shape)),
        stalls: Vec::new(),
    };
    let mut record = record_of(&[piece("memory-only", 40_000.0), piece("rdb", 30_000.0)]);
    record.run.plan.method = "load-redis".to_owned();
    record.run.plan.as_published = true;
    let ms = Nanos::from_millis;
    for (step, mode) in record.steps.iter_mut().zip([Mode::MemoryOnly, Mode::Rdb]) {
        step.engine = Some(EngineUse { asked: Engine::Resp, used: Engine::Resp, why: String::new(), dropped: vec![] });
        let late =
            |nth: u64| Slow { thread: 0, read: true, at: ms(1000 + nth), waited: Nanos(0), latency: ms(19 - nth) };
        let fork =
            Stall { thread: None, cause: Cause::Fork, from: ms(1000), until: ms(1018), idle: None, who: String::new() };
        let spikes = match mode {
            Mode::Rdb => Spikes { slowest: (0..9).map(late).collect(), stalls: vec![fork], ..Spikes::default() },
            _ => Spikes { slowest: vec![late(3)], ..Spikes::default() },
        };
        let served = Served {
            mode: Some(mode),
            version: "redis 7.0.15".to_owned(),
            main_cpu: Some(ms(1500)),
            written: Some(Bytes(9_000_000)),
            logical: Bytes(3_840_000),
            peak: Bytes(30 << 20),
            spikes: Some(Box::new(spikes)),
            ..Served::default()
        };
        step.load = Some(Box::new(Load { redis: Some(Box::new(served)), ..Load::default() }));
    }
    record
}
