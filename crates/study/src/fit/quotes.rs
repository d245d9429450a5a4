//! Figures that another program printed as rows of figures, for a profile. What a program does is what its manual says: hdparm
//! reads 2 MiB at a time in sequence, iozone works record by record with one operation in flight.

use super::{FitError, Fitted, of_figures};
use profile::Figures;
use profile::figures::{Lat, Row, Rw, Spread};
use quoted::figures::{Fio, FioSide, GnomeDisks, IozoneRow};

/// hdparm's buffer.
const HDPARM: &str = "2MiB";

/// gnome-disks' samples, unless it was told otherwise.
const SAMPLE: &str = "10MiB";
/// And the page that its access time is of, but for kernels with larger ones.
const PAGE: &str = "4KiB";

/// Fits a profile to the quoted figures of one device.
///
/// # Errors
/// [`FitError::Unfit`] for figures that say too little, and those of [`of_figures`].
pub fn of_quoted(name: &str, source: &str, all: &[&quoted::Figures]) -> Result<Fitted, FitError> {
    let mut rows = Vec::new();
    for figures in all {
        rows.extend(self::rows(figures)?);
    }
    of_figures(&Figures { name: name.to_owned(), title: String::new(), source: source.to_owned(), rows })
}

fn row(rw: Rw, bs: String) -> Row {
    Row {
        rw,
        bs,
        depth: 1,
        threads: 1,
        read_percent: None,
        read_iops: None,
        write_iops: None,
        read_mbps: None,
        write_mbps: None,
        read_lat_us: None,
        write_lat_us: None,
    }
}

fn rows(figures: &quoted::Figures) -> Result<Vec<Row>, FitError> {
    match figures {
        quoted::Figures::Hdparm(hdparm) => match hdparm.disk_mibps {
            Some(mibps) => {
                let read_mbps = Some(mibps * 1.048_576);
                Ok(vec![Row { read_mbps, ..row(Rw::Read, HDPARM.to_owned()) }])
            }
            None => Err(FitError::Unfit("hdparm's -T alone says nothing of the disk".to_owned())),
        },
        quoted::Figures::FioJson(fio) | quoted::Figures::FioText(fio) => Ok(vec![fio_row(fio)?]),
        quoted::Figures::Iozone(iozone) => Ok(iozone.rows.iter().flat_map(iozone_rows).collect()),
        quoted::Figures::GnomeDisks(disks) => Ok(gnome_disks_rows(disks)),
        quoted::Figures::Dd(_) => Err(FitError::Unfit("dd's line does not say what was read or written".to_owned())),
        quoted::Figures::Compsize(_) => Err(FitError::Unfit("compsize measures no time".to_owned())),
        quoted::Figures::FioLog(_) => {
            Err(FitError::Unfit("a log of fio does not say what was done; import fio's JSON of that run".to_owned()))
        }
    }
}

/// Samples of 10 MiB in sequence, and random reads of a page.
fn gnome_disks_rows(disks: &GnomeDisks) -> Vec<Row> {
    let mut rows = Vec::new();
    let sample = || SAMPLE.to_owned();
    rows.extend(disks.read_mbps.map(|rate| Row { read_mbps: Some(rate), ..row(Rw::Read, sample()) }));
    rows.extend(disks.write_mbps.map(|rate| Row { write_mbps: Some(rate), ..row(Rw::Write, sample()) }));
    let access = |ms: f64| Row { read_lat_us: Some(Lat::Mean(ms * 1e3)), ..row(Rw::RandRead, PAGE.to_owned()) };
    rows.extend(disks.access_ms.map(access));
    rows
}

fn iozone_rows(of: &IozoneRow) -> Vec<Row> {
    let columns =
        [("read", Rw::Read), ("write", Rw::Write), ("random_read", Rw::RandRead), ("random_write", Rw::RandWrite)];
    let one = |(column, rw): (&str, Rw)| {
        let mbps = *of.rates.get(column)? as f64 * 1024.0 / 1e6;
        let row = row(rw, format!("{}KiB", of.record_kib));
        Some(match rw {
            Rw::Read | Rw::RandRead => Row { read_mbps: Some(mbps), ..row },
            _ => Row { write_mbps: Some(mbps), ..row },
        })
    };
    columns.into_iter().filter_map(one).collect()
}

fn fio_row(fio: &Fio) -> Result<Row, FitError> {
    let missing = |what: &str| {
        let job = &fio.job;
        FitError::Unfit(format!(
            "the text of job {job:?} does not say {what}; import fio's JSON, or all that it printed"
        ))
    };
    let rw = match fio.rw.as_deref() {
        Some("read") => Rw::Read,
        Some("write") => Rw::Write,
        Some("randread") => Rw::RandRead,
        Some("randwrite") => Rw::RandWrite,
        Some("rw" | "readwrite") => Rw::Rw,
        Some("randrw") => Rw::RandRw,
        Some(other) => return Err(FitError::Unfit(format!("no profile is fitted to fio's rw={other}"))),
        None => return Err(missing("its order and direction")),
    };
    if fio.direct == Some(false) {
        return Err(FitError::Unfit(format!("job {:?} went through the page cache (direct=0)", fio.job)));
    }
    let bs = fio.block_b.ok_or_else(|| missing("its one block size"))?;
    let iops = |side: &Option<FioSide>| side.as_ref().map(|side| side.iops).filter(|iops| *iops > 0.0);
    // Of the whole latency fio has the mean and of its part behind the submission the percentiles, unless asked otherwise.
    let latency = |side: &Option<FioSide>| {
        let side = side.as_ref()?;
        let part = |spread: &Option<quoted::figures::Spread>| spread.as_ref().and_then(|spread| spread.mean);
        let mean = part(&side.lat_us).or_else(|| part(&side.clat_us)).filter(|mean| *mean > 0.0)?;
        let p99 = |spread: &Option<quoted::figures::Spread>| spread.as_ref()?.percentiles.get("p99").copied();
        Some(Lat::More(Spread { mean, p99: p99(&side.lat_us).or_else(|| p99(&side.clat_us)) }))
    };
    Ok(Row {
        // fio's defaults.
        depth: fio.depth.unwrap_or(1),
        threads: fio.jobs.unwrap_or(1),
        read_iops: iops(&fio.read),
        write_iops: iops(&fio.write),
        read_lat_us: latency(&fio.read),
        write_lat_us: latency(&fio.write),
        ..row(rw, format!("{bs}B"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(text: &str) -> Result<Fitted, FitError> {
        let blocks = quoted::read(text).unwrap();
        of_quoted("disk", "a post", &blocks.iter().map(|block| &block.figures).collect::<Vec<_>>())
    }

    #[test]
    fn iozone_gives_reads_and_writes_at_depth_one() {
        let header = "kB reclen write rewrite read reread read write\n";
        let profile = fit(&format!("{header}102400 4 4000 4000 8000 8000 2000 1000\n")).unwrap().profile;
        let mean = |side: &Option<profile::format::Direction>| {
            side.as_ref().unwrap().random.latency_us.as_ref().unwrap().mean_us()
        };
        // 4 KiB at 2000 KiB/s are 500 a second, 2 ms each; of writes half as many.
        assert!((mean(&profile.read) - 2000.0).abs() < 20.0, "{profile:?}");
        assert!((mean(&profile.write) - 4000.0).abs() < 40.0, "{profile:?}");
    }

    #[test]
    fn gnome_disks_gives_an_access_time_and_two_rates() {
        let profile = fit("read_MBps = 34.8\nwrite_MBps = 35.6\naccess_ms = 0.46\n").unwrap().profile;
        let read = profile.read.unwrap();
        let mean = read.random.latency_us.unwrap().mean_us();
        assert!((mean - 460.0).abs() < 5.0 && profile.write.is_some(), "{mean}");
    }

    #[test]
    fn fio_says_what_it_did_or_is_refused() {
        let line = "x: (groupid=0, jobs=1): err= 0\n  read: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(1MiB/25msec)\n";
        let asked =
            "x: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n";
        assert!(fit(&format!("{asked}{line}")).is_ok());
        let told = fit(line).unwrap_err().to_string();
        assert!(told.contains("its order and direction") && told.contains("fio's JSON"), "{told}");
        let told = fit("512 bytes copied, 0.000100 s, 5.1 MB/s").unwrap_err().to_string();
        assert!(told.contains("dd's line"), "{told}");
    }
}
