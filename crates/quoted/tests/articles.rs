//! The blocks of figures in the published articles, as they stand there, against the figures that the project ships.
#![forbid(unsafe_code)]

use quoted::{Block, Figures};
use toml::Value;

fn published(text: &str) -> Value {
    Value::Table(text.parse().unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).unwrap()
}

fn blocks(text: &str) -> Vec<Block> {
    quoted::read(text).unwrap()
}

#[test]
fn hdparm_of_six_devices() {
    let published = published(include_str!("../../profile/data/pi5-optane.toml"));
    let found = blocks(include_str!("fixtures/hdparm.txt"));
    let names = [
        ("/dev/mmcblk0", "sd-evo-pi5"),
        ("/dev/sda", "sata-usb3-pi5"),
        ("/dev/sdb", "nvme-usb3-pi5"),
        ("/dev/nvme0n1", "optane-pi5"),
        ("/dev/ram0", "ram-pi5"),
        ("/dev/zram0", "zram-pi5"),
    ];
    assert_eq!(found.len(), names.len());
    for (block, (device, name)) in found.iter().zip(names) {
        assert_eq!(block.what, device);
        let Figures::Hdparm(hdparm) = &block.figures else { panic!("{block:?}") };
        assert!(hdparm.direct);
        let devices = published["device"].as_array().unwrap();
        let wanted = &devices.iter().find(|device| device["name"].as_str() == Some(name)).unwrap()["hdparm"];
        assert_eq!(hdparm.cached_mibps, Some(number(&wanted["cached_MiBps"])), "{name}");
        assert_eq!(hdparm.disk_mibps, Some(number(&wanted["disk_MiBps"])), "{name}");
    }
}

#[test]
fn iozone_of_two_devices() {
    let published = published(include_str!("../../profile/data/pi3desk.toml"));
    let text = include_str!("fixtures/iozone.txt");
    // The article's page puts spaces in their place that are no ASCII; without any, the words alone tell.
    assert!(text.contains('\u{a0}'));
    let collapsed: String =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect();
    for text in [text, &collapsed] {
        let found = blocks(text);
        assert_eq!(found.len(), 2);
        for (block, name) in found.iter().zip(["ssd-usb2-pi3", "sd-pi3"]) {
            let Figures::Iozone(iozone) = &block.figures else { panic!("{block:?}") };
            assert_eq!(iozone.file_kib, published["iozone"]["file_KiB"].as_integer().unwrap() as u64);
            let devices = published["device"].as_array().unwrap();
            let wanted = devices.iter().find(|device| device["name"].as_str() == Some(name)).unwrap();
            let columns = published["iozone"]["columns"].as_array().unwrap();
            let mut cells = 0;
            for (row, wanted) in iozone.rows.iter().zip(wanted["iozone"].as_array().unwrap()) {
                for (column, wanted) in columns.iter().zip(wanted.as_array().unwrap()) {
                    let column = column.as_str().unwrap();
                    let found = if column == "record_KiB" { row.record_kib } else { row.rates[column] };
                    assert_eq!(found as f64, number(wanted), "{name} {column}");
                    cells += 1;
                }
            }
            assert_eq!(cells, 21, "three rows of a size and six rates");
        }
    }
}

#[test]
fn dd_of_zeros() {
    let published = published(include_str!("../../profile/data/pi3desk.toml"));
    let found = blocks(include_str!("fixtures/dd.txt"));
    let [Block { figures: Figures::Dd(dd), what, line: 4, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(dd.mbps, number(&published["zeros"]["through_compression_MBps"]));
    assert_eq!((dd.bytes, dd.seconds), (1 << 30, 8.74444));
    assert_eq!(what, "dd if=/dev/zero of=bigzeros bs=1M count=1024 conv=fsync");
}

#[test]
fn compsize_of_a_root() {
    let published = published(include_str!("../../profile/data/pi3desk.toml"));
    let found = blocks(include_str!("fixtures/compsize.txt"));
    let [Block { figures: Figures::Compsize(compsize), line: 2, .. }] = found.as_slice() else { panic!("{found:?}") };
    let wanted = published["compsize"].as_array().unwrap();
    assert_eq!((compsize.types.len(), wanted.len()), (3, 3));
    // compsize's G are 2^30 bytes; the published file keeps its digits.
    let giga = |bytes: u64| (bytes as f64 / f64::from(1 << 30) * 10.0).round() / 10.0;
    for (row, wanted) in compsize.types.iter().zip(wanted) {
        assert_eq!(row.kind, wanted["type"].as_str().unwrap());
        assert_eq!(row.percent, number(&wanted["percent"]));
        assert_eq!(giga(row.disk_b), number(&wanted["disk_GB"]));
        assert_eq!(giga(row.uncompressed_b), number(&wanted["uncompressed_GB"]));
    }
    assert_eq!(giga(compsize.types[2].referenced_b), 5.6);
}

/// The article says them in its sentences; by hand they are as the published file has them.
#[test]
fn gnome_disks_of_two_devices() {
    let text = include_str!("../../profile/data/usb-vs-sd.toml");
    let start = text.find("[[device]]").unwrap();
    let devices = &text[start..text.find("# What the article says of the interfaces.").unwrap()];
    let found = blocks(devices);
    let published = published(text);
    let wanted = published["device"].as_array().unwrap();
    assert_eq!((found.len(), wanted.len()), (2, 2));
    for (block, wanted) in found.iter().zip(wanted) {
        let Figures::GnomeDisks(disks) = &block.figures else { panic!("{block:?}") };
        assert_eq!(block.what, wanted["title"].as_str().unwrap());
        assert_eq!(disks.read_mbps, Some(number(&wanted["read_MBps"])));
        assert_eq!(disks.write_mbps, Some(number(&wanted["write_MBps"])));
        assert_eq!(disks.access_ms, wanted.get("access_ms").map(number));
        assert_eq!(disks.stable, wanted["stable"].as_bool());
    }
}

#[test]
fn the_whole_of_it_in_one_text() {
    let all = [
        "It began with a look at the disks:\n",
        include_str!("fixtures/hdparm.txt"),
        "and then, on the other machine,\n",
        include_str!("fixtures/dd.txt"),
        "before the long table:\n",
        include_str!("fixtures/iozone.txt"),
        "What you see here is 4096 bytes of wisdom: read: more.\n",
    ]
    .concat();
    let found = blocks(&all);
    assert_eq!(found.len(), 6 + 1 + 2);
    let parts: Vec<_> =
        ["hdparm", "dd", "iozone"].map(|name| found.iter().filter(|b| b.format.name() == name).count()).into();
    assert_eq!(parts, [6, 1, 2]);
    assert!(found.windows(2).all(|pair| pair[0].line < pair[1].line));
    assert_eq!(found[6].line, 1 + 18 + 1 + 4);
}
