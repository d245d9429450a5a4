//! What each format prints, whole, damaged and hostile.
#![forbid(unsafe_code)]

use proptest::prelude::*;
use quoted::figures::{Fio, FioSide, Spread};
use quoted::{Figures, Format, QuoteError, read};

/// One run of fio 3.33 that printed both of its forms into one file.
const FIO: &str = include_str!("fixtures/fio-3.33.txt");
const HDPARM: &str = include_str!("fixtures/hdparm.txt");
const IOZONE: &str = include_str!("fixtures/iozone.txt");
const DD: &str = include_str!("fixtures/dd.txt");
const COMPSIZE: &str = include_str!("fixtures/compsize.txt");

fn told(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn jobs(text: &str, format: Format) -> Vec<Fio> {
    let blocks = read(text).unwrap();
    let of = blocks.into_iter().filter(|block| block.format == format);
    of.map(|block| match block.figures {
        Figures::FioJson(fio) | Figures::FioText(fio) => fio,
        other => panic!("{other:?}"),
    })
    .collect()
}

/// fio's text rounds: what it shortens to three digits, least, greatest and percentiles up to a whole `unit`.
fn near(text: Option<f64>, json: Option<f64>, unit: f64, what: &str) {
    match (text, json) {
        (Some(text), Some(json)) => assert!((text - json).abs() <= 0.006 * json + unit, "{what}: {text} and {json}"),
        (text, json) => assert_eq!(text.is_some(), json.is_some(), "{what}"),
    }
}

/// Bug: they were figures. Fuzzing found a percentile of -1.
#[test]
fn latencies_below_zero_are_refused() {
    for (good, bad) in
        [(": 11584,", ": -1,"), ("\"mean\" : 6238", "\"mean\" : -6238"), ("\"min\" : 4807", "\"min\" : -4807")]
    {
        assert!(FIO.contains(good));
        let told = told(&FIO.replacen(good, bad, 1));
        assert!(told.contains("states a latency below zero for the reads of job"), "{bad}: {told}");
    }
}

#[test]
fn fio_says_the_same_in_text_and_in_json() {
    let (text, json) = (jobs(FIO, Format::FioText), jobs(FIO, Format::FioJson));
    let names = |jobs: &[Fio]| jobs.iter().map(|fio| fio.job.clone()).collect::<Vec<_>>();
    assert_eq!(names(&text), ["swap_simulation", "second"]);
    assert_eq!(names(&json), names(&text));
    let mut percentiles = 0;
    for (text, json) in text.iter().zip(&json) {
        assert_eq!((&text.rw, text.block_b, text.depth), (&json.rw, json.block_b, json.depth));
        for (t, j) in [(&text.read, &json.read), (&text.write, &json.write), (&text.trim, &json.trim)] {
            let (Some(t), Some(j)) = (t, j) else {
                assert_eq!(t.is_some(), j.is_some());
                continue;
            };
            near(Some(t.iops), Some(j.iops), 0.0, "iops");
            near(Some(t.mbps), Some(j.mbps), 0.0, "MBps");
            near(t.runtime_s, j.runtime_s, 0.0, "runtime_s");
            for (t, j) in [(&t.slat_us, &j.slat_us), (&t.clat_us, &j.clat_us), (&t.lat_us, &j.lat_us)] {
                let (t, j) = (t.as_ref().unwrap(), j.as_ref().unwrap());
                near(t.min, j.min, 1.0, "min");
                near(t.max, j.max, 1.0, "max");
                near(t.mean, j.mean, 0.01, "mean");
                near(t.stddev, j.stddev, 0.01, "stddev");
                assert!(t.percentiles.keys().eq(j.percentiles.keys()));
                for (name, value) in &t.percentiles {
                    near(Some(*value), j.percentiles.get(name).copied(), 1.0, name);
                    percentiles += 1;
                }
            }
        }
    }
    assert_eq!(percentiles, 4 * 17);
    let swap = json[0].read.as_ref().unwrap();
    assert_eq!((swap.iops, swap.bytes, swap.mbps), (89479.520480, Some(1_467_498_496), 1466.032463));
    assert_eq!(swap.clat_us.as_ref().unwrap().percentiles["p99_9"], 4112.384);
    assert_eq!(swap.lat_us.as_ref().unwrap().percentiles.len(), 0, "those of fio's default are of clat");
    assert_eq!((json[0].block_b, json[0].depth, json[1].block_b), (Some(16 << 10), Some(4), Some(128 << 10)));
}

#[test]
fn fio_2_counts_in_other_units() {
    let text = "db: (groupid=0, jobs=4): err= 0: pid=9: Mon\n  read : io=1024.0MB, bw=20480KB/s, iops=5120, runt= 51200msec\n    \
                slat (usec): min=2, max=80, avg= 4.50, stdev= 1.00\n    clat (msec): min=1, max=9, avg= 3.00, stdev= 1.00\n    \
                clat percentiles (msec):\n     |  1.00th=[    1], 99.00th=[    8],\n     | 99.50th=[    9]\n";
    let [fio] = jobs(text, Format::FioText).try_into().unwrap();
    let read = fio.read.unwrap();
    assert_eq!((read.iops, read.mbps, read.runtime_s, fio.jobs), (5120.0, 20.97152, Some(51.2), Some(4)));
    let clat = read.clat_us.unwrap();
    assert_eq!((clat.mean, clat.percentiles["p99"], clat.percentiles["p99_5"]), (Some(3000.0), 8000.0, 9000.0));
    let json = "{\"fio version\": \"fio-2.16\", \"jobs\": [{\"jobname\": \"db\", \"read\": {\"io_bytes\": 1024, \"bw\": 20480, \
                \"iops\": 5120, \"runtime\": 51200, \"clat\": {\"min\": 1, \"max\": 9, \"mean\": 3, \"stddev\": 1, \"percentile\": \
                {\"99.000000\": 8, \"0.00\": 0}}}, \"write\": {\"bw\": 0, \"iops\": 0}}]}";
    let [fio] = jobs(json, Format::FioJson).try_into().unwrap();
    let percentiles = [("p99".to_owned(), 8.0)].into();
    let clat = Spread { min: Some(1.0), max: Some(9.0), mean: Some(3.0), stddev: Some(1.0), percentiles };
    let read = FioSide {
        iops: 5120.0,
        mbps: 20.97152,
        bytes: Some(1 << 20),
        runtime_s: Some(51.2),
        clat_us: Some(clat),
        ..FioSide::default()
    };
    assert_eq!((fio.read, fio.write), (Some(read), None));
}

#[test]
fn a_line_alone_is_enough() {
    let [fio] = jobs("> it said  \n  read: IOPS=496, BW=7940KiB/s (8131kB/s)(465MiB/60010msec)", Format::FioText)
        .try_into()
        .unwrap();
    let read = fio.read.unwrap();
    assert_eq!((read.iops, read.mbps, read.runtime_s, read.lat_us), (496.0, 8.131, Some(60.01), None));
}

#[test]
fn columns_that_were_not_run_are_told_by_their_places() {
    let header = "                                                              random    random     bkwd    record    stride\n              \
                  kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read\n";
    let some = "          102400       4    10885    11722                      11026     9815\n";
    let blocks = read(&format!("{header}{some}")).unwrap();
    let Figures::Iozone(iozone) = &blocks[0].figures else { panic!() };
    let names: Vec<_> = iozone.rows[0].rates.keys().map(String::as_str).collect();
    assert_eq!(names, ["random_read", "random_write", "rewrite", "write"]);
    let collapsed = some.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = told(&format!("{header}{collapsed}\n"));
    assert!(said.contains("line 3") && said.contains("keep the spaces"), "{said}");
}

#[test]
fn dd_of_other_systems() {
    let mbps = |text: &str| match read(text).unwrap()[0].figures {
        Figures::Dd(ref dd) => (dd.bytes, dd.seconds, dd.mbps),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(mbps("104857600 bytes (105 MB, 100 MiB) copied, 0.5 s, 210 MB/s").2, 210.0);
    assert_eq!(mbps("104857600 bytes (100.0MB) copied, 0.5 seconds, 200.0MB/s"), (104_857_600, 0.5, 209.7152));
    assert_eq!(mbps("104857600 bytes transferred in 0.5 secs (209715200 bytes/sec)").2, 209.7152);
    assert_eq!(mbps("512 bytes copied, 0.000100 s, 5.1 MB/s").0, 512);
}

#[test]
fn what_only_looks_like_it_fails_with_line_and_way_out() {
    let replaced = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        told(&text.replacen(from, to, 1))
    };
    for (said, line, way) in [
        (replaced(HDPARM, "88.15", "88,15"), 3, "LC_ALL=C"),
        (replaced(HDPARM, "216.99 MB/sec", "216.99"), 5, "copy the whole"),
        (replaced(HDPARM, "MB in 2.01 seconds", "pears"), 2, "copy the line"),
        (replaced(DD, "8.74444 s", "8,74444 s"), 4, "LC_ALL=C"),
        (replaced(DD, "(1.1 GB) copied", "(1,1 GB) kopiert"), 4, "LC_ALL=C"),
        (replaced(DD, " s, 123 MB/s", ""), 4, "copy the whole"),
        (replaced(IOZONE, "26928", "26,928"), 4, "LC_ALL=C"),
        (replaced(IOZONE, "26092\u{a0}", "\u{a0}"), 4, "keep the spaces"),
        (replaced(IOZONE, "rewrite", "umschreiben"), 2, "as it was printed"),
        (replaced(FIO, "read: IOPS=", "read: IOPS=1,"), 0, "LC_ALL=C"),
        (replaced(FIO, "\"jobs\" : [", "\"jobs\" : ["[..4].trim()), 0, "--output"),
        (told("Output is in Ops/sec\n"), 1, "kBytes/sec"),
    ] {
        assert!(said.contains(way) && !said.contains('\n'), "{said}");
        assert!(line == 0 || said.starts_with(&format!("line {line} ")), "{line}: {said}");
    }
    assert_eq!(read("nothing to see\n"), Err(QuoteError::Nothing));
    assert!(told("").contains("tiermark export"));
}

#[test]
fn a_cut_through_any_line_gives_whole_figures_or_says_so() {
    for (text, least) in [(HDPARM, 60), (DD, 25), (IOZONE, 200), (COMPSIZE, 60)] {
        let whole = read(text).unwrap();
        let text = text.trim_end();
        let mut refused = 0;
        for end in text.char_indices().map(|(at, _)| at).collect::<Vec<_>>() {
            match read(&text[..end]) {
                // What was read so far is as it is in the whole text; dd's rate may lose the end of its unit's name only.
                Ok(blocks) => {
                    for (found, wanted) in blocks.iter().zip(&whole) {
                        for (a, b) in found.figures.list().iter().zip(wanted.figures.list()) {
                            assert_eq!(*a, b, "{:?}", &text[..end]);
                        }
                    }
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused >= least, "{refused} cuts of {} were refused", text.len());
    }
    // fio's JSON is whole or it is not.
    let (start, end) = (FIO.find('{').unwrap(), FIO.rfind('}').unwrap());
    for cut in (start + 20..end).step_by(997) {
        let said = told(&FIO[..cut]);
        assert!(said.contains("cut off"), "{said}");
    }
}

#[test]
fn a_log_of_fio_is_told_by_its_name() {
    // As fio 3.33 wrote them with log_avg_msec=500.
    let log = "500, 1306464, 0, 0, 0\n500, 558464, 1, 0, 0\n1003, 1180079, 0, 0, 0\n";
    let of = |name: &str| match quoted::read_named(log, name).map(|blocks| blocks[0].clone()) {
        Ok(quoted::Block { figures: Figures::FioLog(log), what, .. }) => (what, log),
        other => panic!("{other:?}"),
    };
    let (what, bw) = of("here/swap_run_bw.1.log");
    assert_eq!((what.as_str(), bw.kind.as_str(), bw.trim), ("swap_run", "bw", None));
    let read = bw.read.unwrap();
    assert_eq!((read.entries, read.until_s), (2, 1.003));
    let same =
        |found: Option<f64>, wanted: f64| assert!((found.unwrap() / wanted - 1.0).abs() < 1e-12, "{found:?} {wanted}");
    same(read.values.mean, (1306464.0 + 1180079.0) / 2.0 * 1.024e-3);
    same(bw.write.unwrap().values.max, 558464.0 * 1.024e-3);
    same(of("x_clat.log").1.read.unwrap().values.min, 1_180.079);
    let said = told(log);
    assert!(said.contains("line 1 ") && said.contains("_bw.1.log"), "{said}");
    for (text, says) in
        [("1, 2, 0, 4\n5, 6\n", "line 2 "), ("1, 2, 7, 4\n", "not 0, 1 or 2"), ("1, 2, 0, 4\nwords\n", "line 2 ")]
    {
        let said = quoted::read_named(text, "x_lat.1.log").unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn tables_and_figures_by_hand_that_are_not_right() {
    let compsize = "Type Perc Disk Usage Uncompressed Referenced\n";
    for (text, says) in [
        (compsize.to_owned(), ["line 1 ", "cut off"]),
        (format!("{compsize}TOTAL 63% 5,6G 8.8G 8.8G\n"), ["line 2 ", "LC_ALL=C"]),
        (format!("{compsize}TOTAL 63% 5.6G 8.8G\n"), ["line 2 ", "not 5"]),
        (format!("{compsize}TOTAL 63% 5.6G 8.8G 8.8"), ["line 2 ", "line break"]),
        ("words\n\nname = \"x\"\nread_MBps = 34,8\n".to_owned(), ["line 4 ", "LC_ALL=C"]),
        ("read_MBps = 34.8\ndrops_below_MBps = inf\n".to_owned(), ["line 1 ", "is inf"]),
        ("read_MBps = 34.8\n\"write_MBps\" = -1\n".to_owned(), ["line 1 ", "is -1"]),
        ("read_MBps = 34.8\nwrite_MBs = 5\n".to_owned(), ["line 2 ", "write_MBs"]),
        ("read_MBps = 34.8\nname = \"x\n".to_owned(), ["line 2 ", "`key = value`"]),
    ] {
        let said = told(&text);
        assert!(says.iter().all(|word| said.contains(word)) && !said.contains('\n'), "{text}: {said}");
    }
}

/// Words that the formats are made of, in any order: nearer to what readers look for than any characters.
const WORDS: [&str; 48] = [
    "Type Perc Disk Usage\n",
    "TOTAL ",
    "63% ",
    "5.6G ",
    "read_MBps = ",
    "access_ms=",
    "[[device]]\n",
    "1, 2, 0, 4\n",
    "Timing ",
    "O_DIRECT ",
    "cached reads:",
    "disk reads:",
    " MB in ",
    " seconds = ",
    "MB/sec",
    "/dev/sda:",
    "\n",
    " ",
    "1",
    "99.99",
    "9,5",
    "kB  reclen ",
    "write ",
    "rewrite ",
    "read ",
    "reread ",
    "  4096 ",
    "bytes (",
    ") copied, ",
    " s, ",
    "GB/s",
    "read: IOPS=",
    "BW=",
    "KiB/s (",
    "MB/s)(",
    "/10msec)",
    "clat (usec): min=",
    ", max=",
    ", avg=",
    ", stdev=",
    "clat percentiles (usec):",
    "| ",
    "th=[",
    "], ",
    "x: (groupid=0, jobs=",
    "{\"fio version\":",
    "\"jobs\":[{",
    "x: (g=0): rw=read, bs=(R) ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..60)) {
        if let Ok(blocks) = read(&words.concat()) {
            prop_assert!(!blocks.is_empty());
            prop_assert!(blocks.iter().all(|block| block.figures.list().iter().all(|figure| figure.value.is_finite())));
        }
    }

    #[test]
    fn no_damage_makes_it_panic(which in 0..5usize, at in 0..18_000usize, with in "\\PC{0,4}", length in 0..40usize) {
        let text: Vec<char> = [FIO, HDPARM, IOZONE, DD, COMPSIZE][which].chars().collect();
        let at = at % text.len();
        let rest = (at + length).min(text.len());
        let damaged: String = text[..at].iter().copied().chain(with.chars()).chain(text[rest..].iter().copied()).collect();
        let _ = read(&damaged);
    }
}
