//! Temperature and throttling: what the firmware of a Raspberry Pi, the thermal framework and x86's counters say.

use crate::root::Root;
use basics::{Known, Why, sensors};
use std::path::{Path, PathBuf};

/// Bits of the Raspberry Pi firmware's answer (documentation of `vcgencmd get_throttled`); the same 16 bits higher
/// mean "since boot".
const PI_BITS: [(u32, &str); 4] =
    [(0, "under-voltage"), (1, "ARM frequency capped"), (2, "throttled"), (3, "soft temperature limit")];

/// What begins a word about this moment; "since boot" begins the others.
pub(crate) const NOW: &str = "now";

/// Hottest sensor, in degrees Celsius: thermal zones, else hwmon. Readings outside −40…150 °C are no temperatures.
pub(crate) fn temperature(root: &Root) -> Known<f64> {
    let zones = inputs(root, "/sys/class/thermal", "thermal_zone", |name| name == "temp");
    let hwmon = || inputs(root, "/sys/class/hwmon", "hwmon", |n| n.starts_with("temp") && n.ends_with("_input"));
    let hottest = |paths: Vec<PathBuf>| {
        let readings = paths.into_iter().filter_map(|path| root.number::<f64>(path).into_option());
        readings.filter_map(sensors::celsius).reduce(f64::max)
    };
    Known::or_not_reported(hottest(zones).or_else(|| hottest(hwmon())))
}

fn inputs(root: &Root, class: &str, prefix: &str, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let devices = root.names(class).into_iter().filter(|name| name.starts_with(prefix));
    devices
        .flat_map(|device| {
            let folder = Path::new(class).join(device);
            let names = root.names(&folder);
            names.into_iter().filter(|name| wanted(name)).map(move |name| folder.join(name)).collect::<Vec<_>>()
        })
        .collect()
}

/// What holds the machine back now and what did since boot. Empty when a source exists and reports nothing.
pub(crate) fn throttled(root: &Root) -> Known<Vec<String>> {
    let sources = [firmware(root), supply(root), cooling(root), x86(root)];
    if sources.iter().all(Option::is_none) {
        return Known::Unknown(Why::NotReported);
    }
    let mut words: Vec<String> = sources.into_iter().flatten().flatten().collect();
    words.dedup();
    Known::Is(words)
}

/// `/sys/devices/platform/soc/soc:firmware/get_throttled`; the Pi 5 has an address in both folder names.
fn firmware(root: &Root) -> Option<Vec<String>> {
    let platform = Path::new("/").join(sensors::PLATFORM);
    let socs = root.names(&platform).into_iter().filter(|name| sensors::is_soc(name));
    let file = socs
        .map(|soc| platform.join(soc))
        .flat_map(|soc| {
            root.names(&soc)
                .into_iter()
                .filter(|n| sensors::is_firmware(n))
                .map(move |n| soc.join(n))
                .collect::<Vec<_>>()
        })
        .find_map(|firmware| root.word(firmware.join(sensors::THROTTLED)))?;
    let bits = u32::from_str_radix(file.trim_start_matches("0x"), 16).ok()?;
    let mut words = Vec::new();
    for (shift, when) in [(0, NOW), (16, "since boot")] {
        words.extend(
            PI_BITS.iter().filter(|(bit, _)| bits >> (bit + shift) & 1 == 1).map(|(_, w)| format!("{when}: {w}")),
        );
    }
    Some(words)
}

/// The Pi's supply monitor, hwmon `rpi_volt`.
fn supply(root: &Root) -> Option<Vec<String>> {
    let class = Path::new("/sys/class/hwmon");
    let monitor = root
        .names(class)
        .into_iter()
        .map(|name| class.join(name))
        .find(|dir| root.word(dir.join("name")).as_deref() == Some("rpi_volt"))?;
    let alarm: u32 = root.number(monitor.join("in0_lcrit_alarm")).into_option()?;
    Some(if alarm == 0 { Vec::new() } else { vec![format!("{NOW}: under-voltage")] })
}

/// Cooling devices that act on the processor's frequency.
fn cooling(root: &Root) -> Option<Vec<String>> {
    let class = Path::new("/sys/class/thermal");
    let mut words = None;
    for name in root.names(class).into_iter().filter(|name| name.starts_with("cooling_device")) {
        let device = class.join(name);
        let Some(kind) = root.word(device.join("type")) else { continue };
        if !(kind.contains("cpufreq") || kind.contains("cpu-freq") || kind == "Processor") {
            continue;
        }
        let words: &mut Vec<String> = words.get_or_insert_default();
        if let (Known::Is(state @ 1..), Known::Is(max)) =
            (root.number::<u32>(device.join("cur_state")), root.number::<u32>(device.join("max_state")))
        {
            words.push(format!("{NOW}: processor frequency held down (step {state} of {max}, {kind})"));
        }
    }
    words
}

/// Thermal events counted by x86 processors since boot.
fn x86(root: &Root) -> Option<Vec<String>> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/thermal_throttle");
    let counts = ["core_throttle_count", "package_throttle_count"];
    let most = counts.iter().filter_map(|name| root.number::<u64>(folder.join(name)).into_option()).max()?;
    Some(if most == 0 { Vec::new() } else { vec![format!("since boot: throttled by heat {most} times")] })
}
