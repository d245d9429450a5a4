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

/// Folders in which enabled units are linked.
const WANTS: &str = "/etc/systemd/system";
/// Where packages put units.
const UNITS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// Who manages swap here, sorted; empty when nobody does.
pub(crate) fn managers(root: &Root) -> Vec<String> {
    let wanted = Wanted::read(root);
    let rpi_swap = rpi_swap(root);
    let mut found = Vec::new();
    let mut add = |name: &str, is: bool| {
        if is {
            found.push(name.to_owned());
        }
    };
    add(
        "armbian-zram-config",
        switched(root, &wanted, "/etc/default/armbian-zram-config", "armbian-zram-config")
            && setting(root, "/etc/default/armbian-zram-config", "ENABLED").as_deref() != Some("false"),
    );
    add(
        "dphys-swapfile",
        switched(root, &wanted, "/etc/dphys-swapfile", "dphys-swapfile")
            && setting(root, "/etc/dphys-swapfile", "CONF_SWAPSIZE").as_deref() != Some("0"),
    );
    add("fstab", fstab(root));
    add("rpi-swap", rpi_swap);
    add("systemd", wanted.units.iter().any(|unit| unit.ends_with(".swap")));
    add("zram-config", wanted.has("zram-config"));
    add("zram-generator", zram_generator(root, rpi_swap));
    add("zram-tools", switched(root, &wanted, "/etc/default/zramswap", "zramswap"));
    found
}

/// Units that something wants, and init scripts that are linked.
struct Wanted {
    units: Vec<String>,
    /// True when the tree tells at all what is enabled.
    told: bool,
}

impl Wanted {
    fn read(root: &Root) -> Self {
        let mut units = Vec::new();
        let mut told = false;
        for name in root
            .names(WANTS)
            .into_iter()
            .filter(|name| name.ends_with(".target.wants") || name.ends_with(".target.requires"))
        {
            told = true;
            let folder = Path::new(WANTS).join(name);
            let listed = root
                .names(&folder)
                .into_iter()
                .filter(|unit| is_swap(unit))
                .filter(|unit| root.link_name(folder.join(unit)).as_deref() != Some("null"));
            units.extend(listed);
        }
        for level in ["/etc/rc2.d", "/etc/rc3.d", "/etc/rc5.d", "/etc/rcS.d"] {
            let scripts = root.names(level);
            told |= !scripts.is_empty();
            units.extend(
                scripts
                    .iter()
                    .filter_map(|name| name.strip_prefix('S')?.get(2..))
                    .map(|name| format!("{name}.service")),
            );
        }
        Wanted { units, told }
    }

    fn has(&self, service: &str) -> bool {
        self.units.iter().any(|unit| unit.strip_suffix(".service") == Some(service))
    }
}

/// The services that set up swap, and swap units. Others stay unread: their names may be somebody's.
fn is_swap(unit: &str) -> bool {
    let services = ["armbian-zram-config", "dphys-swapfile", "zram-config", "zramswap"];
    unit.ends_with(".swap") || unit.strip_suffix(".service").is_some_and(|service| services.contains(&service))
}

/// A tool with a configuration file and a service. The file alone stays behind when the package is removed, so the
/// service decides where the tree tells what is enabled.
fn switched(root: &Root, wanted: &Wanted, config: &str, service: &str) -> bool {
    wanted.has(service) || (root.exists(config) && !wanted.told && !masked(root, service))
}

fn masked(root: &Root, service: &str) -> bool {
    root.link_name(Path::new(WANTS).join(format!("{service}.service"))).as_deref() == Some("null")
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
    let generator = ["/usr/lib", "/lib"]
        .iter()
        .any(|lib| root.exists(format!("{lib}/systemd/system-generators/rpi-swap-generator")));
    let own = "/etc/rpi/swap.conf";
    let dropins = root.entries(format!("{own}.d")).into_iter().map(|name| format!("{own}.d/{name}"));
    let configs: Vec<String> = [own.to_owned()].into_iter().chain(dropins).filter(|path| root.exists(path)).collect();
    // The last setting counts, those of drop-ins after the file's own (swap.conf(5)).
    let off = configs.iter().filter_map(|path| setting(root, path, "Mechanism")).next_back().as_deref() == Some("none");
    let config = !configs.is_empty();
    (generator || config) && !off
}

/// zram-generator acts on its configuration; `/etc` shadows what the distribution ships. Where rpi-swap is, it is rpi-swap's
/// tool unless the administrator configured it too.
fn zram_generator(root: &Root, rpi_swap: bool) -> bool {
    let has_section =
        |path: &str| root.word(path).is_some_and(|text| text.lines().any(|line| line.trim().starts_with("[zram")));
    let own = "/etc/systemd/zram-generator.conf";
    let dropins = root.names("/etc/systemd/zram-generator.conf.d");
    if has_section(own) || dropins.iter().any(|name| has_section(&format!("/etc/systemd/zram-generator.conf.d/{name}")))
    {
        return true;
    }
    // An empty file or a link to /dev/null in /etc switches the shipped one off (zram-generator(8)).
    let shadowed = root.link_name(own).is_some() || root.exists(own);
    !rpi_swap
        && !shadowed
        && UNITS[1..].iter().any(|units| {
            Path::new(units)
                .parent()
                .and_then(|lib| lib.join("zram-generator.conf").to_str().map(has_section))
                .unwrap_or(false)
        })
}
