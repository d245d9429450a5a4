//! Swap areas, and who sets them up. Several tools do on small boards, each with its own configuration; two of them at once
//! is a common reason for a second swap file on the SD card that nobody asked for.

use crate::model::SwapArea;
use crate::mounts::unescape;
use crate::root::Root;
use basics::Bytes;
use std::path::{Path, PathBuf};

/// `/proc/swaps`; sizes there are in KiB (proc_swaps(5)).
pub(crate) fn areas(root: &Root) -> Vec<SwapArea> {
    let text = root.word("/proc/swaps").unwrap_or_default();
    text.lines().filter_map(area).collect()
}

fn area(line: &str) -> Option<SwapArea> {
    let mut words = line.split_ascii_whitespace();
    let path = unescape(words.next()?);
    let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
    let kind = words.next()?.to_owned();
    let mut kib = || words.next()?.parse::<u64>().ok().map(|n| Bytes(n.saturating_mul(1024)));
    let (size, used) = (kib()?, kib()?);
    let priority = words.next()?.parse().ok()?;
    Some(SwapArea { path: PathBuf::from(path), kind, size, used, priority, tier: None })
}

/// Where systemd links what is enabled.
const WANTS: &str = "/etc/systemd/system";
/// Where SysV init links what is enabled.
const LEVELS: [&str; 4] = ["/etc/rc2.d", "/etc/rc3.d", "/etc/rc5.d", "/etc/rcS.d"];
/// Where packages put what systemd reads.
const LIBS: [&str; 2] = ["/usr/lib/systemd", "/lib/systemd"];

/// A tool that a service starts.
struct Tool {
    name: &'static str,
    service: &'static str,
    config: &'static str,
    /// The setting that switches it off.
    off: Option<(&'static str, &'static str)>,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: "armbian-zram-config",
        service: "armbian-zram-config",
        config: "/etc/default/armbian-zram-config",
        off: Some(("ENABLED", "false")),
    },
    Tool {
        name: "dphys-swapfile",
        service: "dphys-swapfile",
        config: "/etc/dphys-swapfile",
        off: Some(("CONF_SWAPSIZE", "0")),
    },
    Tool { name: "zram-config", service: "zram-config", config: "/etc/default/zram-config", off: None },
    Tool { name: "zram-tools", service: "zramswap", config: "/etc/default/zramswap", off: None },
];

/// Who manages swap here, sorted; empty when nobody does.
pub(crate) fn managers(root: &Root) -> Vec<String> {
    let enabled = Enabled::read(root);
    let rpi_swap = rpi_swap(root);
    let tools = TOOLS.iter().filter(|tool| tool.is_on(root, &enabled)).map(|tool| tool.name);
    let others = [
        ("fstab", fstab(root)),
        ("rpi-swap", rpi_swap),
        ("systemd", enabled.units.iter().any(|unit| unit.ends_with(".swap"))),
        ("zram-generator", zram_generator(root, rpi_swap)),
    ];
    let others = others.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
    let mut found: Vec<String> = tools.chain(others).map(str::to_owned).collect();
    found.sort();
    found
}

/// Units and init scripts concerned with swap that start at boot.
struct Enabled {
    units: Vec<String>,
    /// True when the tree tells at all what is enabled.
    told: bool,
}

impl Enabled {
    fn read(root: &Root) -> Self {
        let mut enabled = Enabled { units: Vec::new(), told: false };
        let wants = root
            .names(WANTS)
            .into_iter()
            .filter(|name| name.ends_with(".target.wants") || name.ends_with(".target.requires"));
        for folder in wants.map(|name| Path::new(WANTS).join(name)) {
            enabled.told = true;
            let units = root.names(&folder).into_iter().filter(|unit| is_swap(unit));
            enabled.units.extend(units.filter(|unit| !is_null(root, &folder.join(unit))));
        }
        for level in LEVELS.iter().map(Path::new).filter(|level| root.exists(level)) {
            enabled.told = true;
            for script in root.names(level) {
                // `S01dphys-swapfile`
                let unit =
                    script.strip_prefix('S').and_then(|rest| rest.get(2..)).map(|name| format!("{name}.service"));
                enabled.units.extend(unit.filter(|unit| is_swap(unit) && !is_null(root, &level.join(&script))));
            }
        }
        enabled
    }
}

/// The services that set up swap, and swap units. Others stay unread: their names may be somebody's.
fn is_swap(unit: &str) -> bool {
    let service = unit.strip_suffix(".service");
    unit.ends_with(".swap") || TOOLS.iter().any(|tool| service == Some(tool.service))
}

/// True for a link to `/dev/null`, which masks a unit.
fn is_null(root: &Root, link: &Path) -> bool {
    root.link_name(link).as_deref() == Some("null")
}

impl Tool {
    /// Its configuration stays behind when the package is removed, so the service decides where the tree tells what is
    /// enabled.
    fn is_on(&self, root: &Root, enabled: &Enabled) -> bool {
        let service = format!("{}.service", self.service);
        let starts = enabled.units.contains(&service)
            || (!enabled.told && root.exists(self.config) && !is_null(root, &Path::new(WANTS).join(&service)));
        let off = self.off.is_some_and(|(key, value)| setting(root, self.config, key).as_deref() == Some(value));
        starts && !off
    }
}

/// A shell-style `NAME=value`, the last one counting.
fn setting(root: &Root, file: &str, name: &str) -> Option<String> {
    let text = root.word(file)?;
    text.lines().rev().find_map(|line| {
        let (key, value) = line.trim().split_once('=')?;
        (key.trim() == name).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// A swap line of fstab(5) that is mounted at boot.
fn fstab(root: &Root) -> bool {
    root.word("/etc/fstab").unwrap_or_default().lines().any(|line| {
        let fields: Vec<&str> = line.split('#').next().unwrap_or("").split_ascii_whitespace().collect();
        let options = fields.get(3).copied().unwrap_or("");
        fields.get(2) == Some(&"swap") && !options.split(',').any(|option| option == "noauto")
    })
}

/// Raspberry Pi OS since Debian 13: a systemd generator that sets up zram (through zram-generator) and a swap file.
fn rpi_swap(root: &Root) -> bool {
    let generator = LIBS.iter().any(|lib| root.exists(format!("{lib}/system-generators/rpi-swap-generator")));
    let own = "/etc/rpi/swap.conf";
    let dropins = root.entries(format!("{own}.d")).into_iter().map(|name| format!("{own}.d/{name}"));
    let configs: Vec<String> = [own.to_owned()].into_iter().chain(dropins).filter(|path| root.exists(path)).collect();
    // The last setting counts, those of drop-ins after the file's own (swap.conf(5)).
    let mechanism = configs.iter().filter_map(|path| setting(root, path, "Mechanism")).next_back();
    (generator || !configs.is_empty()) && mechanism.as_deref() != Some("none")
}

/// zram-generator acts on its configuration; `/etc` shadows what the distribution ships. Where rpi-swap is, it is rpi-swap's
/// tool unless the administrator configured it too.
fn zram_generator(root: &Root, rpi_swap: bool) -> bool {
    let sets_up =
        |path: String| root.word(path).is_some_and(|text| text.lines().any(|line| line.trim().starts_with("[zram")));
    let own = "/etc/systemd/zram-generator.conf";
    let dropins = root.names(format!("{own}.d"));
    if sets_up(own.to_owned()) || dropins.iter().any(|name| sets_up(format!("{own}.d/{name}"))) {
        return true;
    }
    // An empty file or a link to /dev/null in /etc switches the shipped one off (zram-generator(8)).
    let shadowed = root.link_name(own).is_some() || root.exists(own);
    !rpi_swap && !shadowed && LIBS.iter().any(|lib| sets_up(format!("{lib}/zram-generator.conf")))
}
