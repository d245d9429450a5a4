//! The tiers of a workload as rows of text, for the outputs that are tables of text alone: Markdown for people, CSV for
//! programs. Terminal and page lay out their own.

use basics::Known;
use basics::job::Engine;
use basics::units::significant;
use study::{BuildRow, DesktopRow, LoadRow, Percentiles, RedisCell, RunView, StepView, TokenRow, VectorRow};

/// A table for people with the reason for each row.
#[derive(serde::Serialize)]
pub(crate) struct Rows {
    pub heads: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
    /// A tier and why its row is as it is.
    pub whys: Vec<(String, String)>,
}

/// The step stands in such a row, so that its operations need none of their own.
pub(crate) fn is_told(engine: Engine) -> bool {
    engine.is_workload()
}

/// What a run says of its tiers; empty where it is no workload.
pub(crate) fn rows(run: &RunView<'_>) -> Vec<Rows> {
    let (touched, tokens) = (study::load_rows(run), study::token_rows(run));
    let touched = Rows {
        heads: &TOUCHED,
        rows: touched.iter().map(load_row).collect(),
        whys: touched.into_iter().map(|row| (row.tier, row.why)).collect(),
    };
    let tokens = Rows {
        heads: &TOKENS,
        rows: tokens.iter().map(|row| token_row(called(row, &tokens), row)).collect(),
        whys: tokens.iter().map(|row| (called(row, &tokens), row.why.clone())).collect(),
    };
    let desktop = [browsed(run), built(run)];
    [touched, tokens, served(run), vectors(run)]
        .into_iter()
        .chain(desktop)
        .filter(|rows| !rows.rows.is_empty())
        .collect()
}

/// A cache of vectors.
pub(crate) fn vectors(run: &RunView<'_>) -> Rows {
    let all = study::vector_rows(run);
    let named = |row: &VectorRow| format!("{} on {}", row.format, row.place);
    let row = |row: &VectorRow| {
        let lat = |pick: fn(&(f64, f64, f64)) -> f64| {
            row.lat_us.get().map_or_else(|| "–".to_owned(), |lat| significant(pick(lat) / 1e3))
        };
        vec![
            named(row),
            first(&row.ops_per_s),
            row.bytes.0.to_string(),
            one(&row.per_vector),
            scaled(&row.recall, 100.0),
            one(&row.hit_percent),
            lat(|lat| lat.0),
            lat(|lat| lat.1),
            lat(|lat| lat.2),
            scaled(&row.hit_us, 1e-3),
            scaled(&row.miss_us, 1e-3),
            scaled(&row.fetch_us, 1e-3),
            one(&row.break_even_percent),
            row.back_s.as_ref().map_or_else(|| "–".to_owned(), one),
        ]
    };
    Rows {
        heads: &VECTORS,
        rows: all.iter().map(row).collect(),
        whys: all.iter().map(|row| (named(row), row.why.clone())).collect(),
    }
}

/// A browser on each set-up.
pub(crate) fn browsed(run: &RunView<'_>) -> Rows {
    let all = study::desktop_rows(run);
    let row = |row: &DesktopRow| {
        let pages = row.pages.get().map_or_else(
            || "–".to_owned(),
            |(opened, alive, _)| format!("{} of {}", significant(*alive), significant(*opened)),
        );
        vec![
            row.setup.clone(),
            first(&row.wait_s),
            one(&row.start_s),
            two(&row.interactive_s),
            two(&row.switch_s),
            one(&row.longest_freeze_s),
            pages,
            two(&row.swap_mb),
            two(&row.disk_mb),
            one(&row.major_faults),
            two(&row.memory_percent),
            two(&row.io_percent),
        ]
    };
    let mut whys: Vec<(String, String)> = all.iter().map(|row| (row.setup.clone(), row.why.clone())).collect();
    whys.extend(study::desktop_verdicts(run).into_iter().map(|verdict| ("verdict".to_owned(), verdict.sentence)));
    Rows { heads: &BROWSED, rows: all.iter().map(row).collect(), whys }
}

const BROWSED: [&str; 12] = [
    "set-up",
    "wait s",
    "start s",
    "usable s, median / longest",
    "to a tab s, p50 / p95",
    "longest freeze s",
    "pages alive",
    "swap MB in / out",
    "disk MB read / written",
    "major faults",
    "memory some / full %",
    "I/O some / full %",
];

/// A compilation.
pub(crate) fn built(run: &RunView<'_>) -> Rows {
    let all = study::build_rows(run);
    let row = |row: &BuildRow| {
        vec![
            row.tier.clone(),
            first(&row.build_s),
            one(&row.per_minute),
            one(&row.slower_percent),
            one(&row.minutes_to_throttling),
            one(&row.frequency_lost_percent),
            two(&row.temperature_c),
            one(&row.cpu_percent),
        ]
    };
    let whys = all.iter().map(|row| (row.tier.clone(), row.why.clone())).collect();
    Rows { heads: &BUILT, rows: all.iter().map(row).collect(), whys }
}

const BUILT: [&str; 8] = [
    "swap",
    "a build s",
    "files/min",
    "slower in the end %",
    "throttled after min",
    "frequency lost %",
    "°C begin / highest",
    "CPU %",
];

const VECTORS: [&str; 14] = [
    "stored as, others on",
    "requests/s",
    "bytes",
    "in Redis B",
    "recall@10 %",
    "hits %",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "hit ms",
    "miss ms",
    "fetch ms",
    "pays from %",
    "hits back s",
];

/// A Redis server's cells.
fn served(run: &RunView<'_>) -> Rows {
    let cells = study::redis_cells(run);
    let named = |cell: &RedisCell| format!("{} on {}, values of {}", cell.mode, cell.medium, cell.values());
    let row = |cell: &RedisCell| {
        let ms = |pick: fn(&Percentiles) -> Option<f64>| {
            cell.lat.get().and_then(pick).map_or_else(|| "–".to_owned(), |us| significant(us / 1e3))
        };
        let cost = if cell.mode == "memory-only" { "–".to_owned() } else { one(&cell.cost_percent) };
        let lost =
            cell.lost.as_ref().map_or_else(|| "–".to_owned(), |lost| format!("{} of {}", lost.acknowledged, lost.of));
        vec![
            named(cell),
            first(&cell.ops_per_s),
            cost,
            ms(|lat| Some(lat.p50)),
            ms(|lat| Some(lat.p95)),
            ms(|lat| Some(lat.p99)),
            ms(|lat| lat.p999),
            one(&cell.written_per_byte),
            lost,
        ]
    };
    let rows = cells.iter().map(row).collect();
    Rows { heads: &SERVED, rows, whys: cells.iter().map(|cell| (named(cell), cell.why.clone())).collect() }
}

const SERVED: [&str; 9] =
    ["way", "requests/s", "cost %", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "written B/B", "worst loss"];

const TOUCHED: [&str; 9] = [
    "swap",
    "passes/s",
    "memory MB/s",
    "disk alone MB/s",
    "major faults/s",
    "a fault p50/p99 µs",
    "swap in/out MB/s",
    "CPU %",
    "iowait %",
];

const TOKENS: [&str; 10] = [
    "tier",
    "tokens/s",
    "total s",
    "load s",
    "first token s",
    "read MB/token",
    "bound tokens/s",
    "of the bound %",
    "CPU %",
    "iowait %",
];

fn scaled(value: &Known<f64>, by: f64) -> String {
    value.get().map_or_else(|| "–".to_owned(), |value| significant(value * by))
}

fn one(value: &Known<f64>) -> String {
    scaled(value, 1.0)
}

/// The first figure of a row, or the reason why it has none.
fn first(value: &Known<f64>) -> String {
    value.get().map_or_else(|| value.to_string(), |value| significant(*value))
}

fn two(value: &Known<(f64, f64)>) -> String {
    value.get().map_or_else(|| "–".to_owned(), |(a, b)| format!("{} / {}", significant(*a), significant(*b)))
}

fn load_row(row: &LoadRow) -> Vec<String> {
    vec![
        row.tier.clone(),
        first(&row.passes_per_s),
        one(&row.mbps),
        one(&row.disk_mbps),
        one(&row.faults_per_s),
        two(&row.fault_us),
        two(&row.swap_mbps),
        one(&row.cpu_percent),
        one(&row.iowait_percent),
    ]
}

/// A row's name: with its model where there are several.
pub(crate) fn called(row: &TokenRow, rows: &[TokenRow]) -> String {
    let several = rows.iter().any(|other| other.model != row.model);
    if several { format!("{} on {}", row.model, row.tier) } else { row.tier.clone() }
}

fn token_row(called: String, row: &TokenRow) -> Vec<String> {
    vec![
        called,
        first(&row.tps),
        one(&row.total_s),
        one(&row.load_s),
        one(&row.ttft_s),
        scaled(&row.read_per_token, 1e-6),
        one(&row.bound_tps),
        scaled(&row.share_of_bound, 100.0),
        one(&row.cpu_percent),
        one(&row.iowait_percent),
    ]
}

/// What [`visit`] gives, with its units.
pub(crate) const VISIT: [&str; 20] = [
    "passes_per_s",
    "disk_MBps",
    "major_faults_per_s",
    "fault_p50_us",
    "fault_p99_us",
    "swap_in_MBps",
    "swap_out_MBps",
    "cpu_percent",
    "iowait_percent",
    "memory_full_percent",
    "model",
    "tps",
    "total_s",
    "load_s",
    "ttft_s",
    "bytes_per_token",
    "touched_per_token",
    "bound_tps",
    "share_of_bound",
    "why",
];

/// The figures of one visit to a tier, by the same rules as the tier's own row; nothing where one is not known, and
/// nothing at all of a step that is no workload.
pub(crate) fn visit(run: &RunView<'_>, step: &StepView<'_>) -> Option<Vec<String>> {
    let alone = RunView { steps: vec![step.clone()], ..run.clone() };
    let one = |value: &Known<f64>| value.get().map_or(String::new(), f64::to_string);
    let (touched, tokens) = (study::load_rows(&alone), study::token_rows(&alone));
    let of_touched = touched.first().map(|row| {
        let pair = |pair: &Known<(f64, f64)>| {
            pair.get().map_or_else(Default::default, |(a, b)| [a.to_string(), b.to_string()])
        };
        let [p50, p99] = pair(&row.fault_us);
        let [swapped_in, swapped_out] = pair(&row.swap_mbps);
        let mut line = vec![one(&row.passes_per_s), one(&row.disk_mbps), one(&row.faults_per_s), p50, p99];
        line.extend([swapped_in, swapped_out, one(&row.cpu_percent), one(&row.iowait_percent)]);
        line.push(one(&row.stalled_percent));
        line.extend(std::iter::repeat_n(String::new(), 9));
        line.push(row.why.clone());
        line
    });
    of_touched.or_else(|| {
        let row = tokens.first()?;
        let mut line = vec![String::new(), one(&row.disk_mbps), one(&row.faults_per_s)];
        line.extend(std::iter::repeat_n(String::new(), 4));
        line.extend([one(&row.cpu_percent), one(&row.iowait_percent), String::new(), row.model.clone()]);
        line.extend([&row.tps, &row.total_s, &row.load_s, &row.ttft_s, &row.read_per_token].map(one));
        line.push(row.touched.map_or(String::new(), |bytes| bytes.0.to_string()));
        line.extend([&row.bound_tps, &row.share_of_bound].map(one));
        line.push(row.why.clone());
        Some(line)
    })
}
