//! Made-up situations.

use crate::goals::{Goals, Job};
use crate::situation::{Seen, SeenVectors, Situation};
use basics::redis::Mode;
use basics::{Bytes, Known};
use machine::{FstabLine, Machine, Mount, Setup, SwapArea, Tier, TierKind, Warning};
use study::{Percentiles, RedisCell};

/// What a [`Situation`] borrows from.
pub(crate) struct Scene {
    pub machine: Machine,
    pub setup: Setup,
    pub goals: Goals,
    pub seen: Vec<Seen>,
    pub vectors: Vec<SeenVectors>,
}

impl Scene {
    pub fn of(job: Job) -> Self {
        Scene {
            machine: Machine::default(),
            setup: Setup::default(),
            goals: Goals::of(job),
            seen: Vec::new(),
            vectors: Vec::new(),
        }
    }

    pub fn on(mut self, dir: &str) -> Self {
        self.goals.on = Some(dir.to_owned());
        self.goals.dir = Some(dir.into());
        self
    }

    /// With a swap area on a tier of this kind.
    pub fn with_swap(mut self, kind: TierKind) -> Self {
        let name = if kind == TierKind::Zram { "zram0" } else { "it" };
        let mut swap_tier = tier(name, kind, "/somewhere");
        swap_tier.mounts.clear();
        self.machine.tiers.push(swap_tier);
        self.machine.swaps.push(SwapArea {
            path: format!("/dev/{name}").into(),
            kind: "partition".to_owned(),
            size: Bytes(1 << 30),
            used: Bytes(0),
            priority: 5,
            tier: Some(name.to_owned()),
        });
        self
    }

    pub fn with_ram_gib(mut self, gib: u64) -> Self {
        self.machine.ram = Known::Is(Bytes(gib << 30));
        self
    }

    /// With a setting of `/proc/sys/vm`.
    pub fn vm(mut self, name: &str, value: &str) -> Self {
        self.machine.vm.insert(name.to_owned(), Known::Is(value.to_owned()));
        self
    }

    pub fn with_fstab(mut self, at: &str, fs: &str, options: &str) -> Self {
        let options = options.split(',').map(str::to_owned).collect();
        self.setup.fstab.push(FstabLine { source: "/dev/it1".to_owned(), at: at.into(), fs: fs.to_owned(), options });
        self
    }

    /// With a notice of the machine.
    pub fn noticed(mut self, id: &str) -> Self {
        self.machine.notices.push(warning(id));
        self
    }

    /// With a tier of which something is noticed.
    pub fn warned(mut self, id: &str) -> Self {
        self.machine.tiers.push(Tier { warnings: vec![warning(id)], ..tier("it", TierKind::Usb, "/it") });
        self
    }

    pub fn situation(&self) -> Situation<'_> {
        Situation {
            machine: &self.machine,
            setup: &self.setup,
            goals: &self.goals,
            seen: &self.seen,
            vectors: &self.vectors,
            proofs: &[],
            media: &[],
        }
    }
}

fn warning(id: &str) -> Warning {
    Warning { id: id.to_owned(), text: format!("{id} it is."), evidence: "a file: a value".to_owned() }
}

/// A cell that came to its end.
pub(crate) fn seen(run: &str, mode: Mode, medium: &str, payload: u64, ops: f64, p95: f64) -> Seen {
    let lat = Percentiles { p50: p95 / 4.0, p95, p99: p95 * 2.0, p999: None, max: p95 * 4.0 };
    let cell = RedisCell {
        mode: mode.name().to_owned(),
        medium: medium.to_owned(),
        payload: Bytes(payload),
        mix: None,
        ops_per_s: Known::Is(ops),
        range_ops: Some((ops * 0.98, ops * 1.02)),
        lat: Known::Is(lat),
        service: None,
        cost_percent: Known::default(),
        client_bound: None,
        client_limit: Known::default(),
        server_busy: Known::default(),
        client_busy: Known::default(),
        written_per_byte: Known::default(),
        peak: Known::default(),
        lag: None,
        late: None,
        commands: Vec::new(),
        lost: None,
        visits: 3,
        why: String::new(),
    };
    Seen { run: run.to_owned(), cell }
}

/// A tier with one mounted file system.
pub(crate) fn tier(name: &str, kind: TierKind, at: &str) -> Tier {
    let mount = Mount {
        source: format!("/dev/{name}1"),
        at: at.into(),
        fs: "ext4".to_owned(),
        options: Vec::new(),
        read_only: false,
        compression: None,
    };
    Tier {
        name: name.to_owned(),
        kind,
        path: Some(format!("/dev/{name}").into()),
        model: Known::default(),
        size: Known::default(),
        hops: Vec::new(),
        ceiling: Known::default(),
        block: None,
        partitions: Vec::new(),
        mounts: vec![mount],
        swaps: Vec::new(),
        below: Vec::new(),
        warnings: Vec::new(),
    }
}
