//! Facts of the machine as a whole: board, kernel, page size, processors, heat, `vm.*`, zswap.

use crate::block::chosen;
use crate::model::{Cpu, Machine, Zswap};
use crate::root::{Root, excerpt};
use basics::{Bytes, Known, Why};
use std::path::Path;

/// Settings below `/proc/sys/vm` that change how swap, page cache and writeback behave.
const VM: [&str; 15] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
    "laptop_mode",
    "min_free_kbytes",
    "overcommit_memory",
    "overcommit_ratio",
    "page-cluster",
    "swappiness",
    "vfs_cache_pressure",
    "watermark_boost_factor",
    "watermark_scale_factor",
];

/// What a server with many clients needs to be allowed.
const SETTINGS: [&str; 2] = ["fs.file-max", "net.core.somaxconn"];

/// `AT_PAGESZ` of getauxval(3).
pub(crate) const AT_PAGESZ: u64 = 6;

/// The machine without its tiers.
pub(crate) fn read(root: &Root) -> Machine {
    let meminfo = root.word("/proc/meminfo").unwrap_or_default();
    let cpuinfo = root.word("/proc/cpuinfo").unwrap_or_default();
    let kernel = kernel(root);
    Machine {
        model: model(root, &cpuinfo),
        distribution: distribution(root),
        page_size: page_size(root, kernel.get().map_or("", String::as_str), &meminfo, &cpuinfo),
        ram: kib(&meminfo, "MemTotal"),
        ram_available: kib(&meminfo, "MemAvailable"),
        cpu: cpu(root, &cpuinfo),
        temperature_c: crate::heat::temperature(root),
        throttled: crate::heat::throttled(root),
        vm: VM
            .iter()
            .map(|name| ((*name).to_owned(), root.text(format!("/proc/sys/vm/{name}"))))
            .chain(mm(root))
            .collect(),
        settings: SETTINGS
            .iter()
            .map(|name| ((*name).to_owned(), root.text(Path::new("/proc/sys").join(name.replace('.', "/")))))
            .collect(),
        zswap: zswap(root),
        kernel,
        ..Machine::default()
    }
}

/// Settings below `/sys/kernel/mm` that decide how memory is reclaimed, under the names people use.
fn mm(root: &Root) -> [(String, Known<String>); 2] {
    [
        (
            "transparent_hugepage".to_owned(),
            root.text("/sys/kernel/mm/transparent_hugepage/enabled").map(|l| chosen(&l)),
        ),
        ("lru_gen".to_owned(), root.text("/sys/kernel/mm/lru_gen/enabled")),
    ]
}

/// Device tree, then DMI, then what the kernel puts into cpuinfo on a Raspberry Pi.
fn model(root: &Root, cpuinfo: &str) -> Known<String> {
    let tree = ["/proc/device-tree/model", "/sys/firmware/devicetree/base/model"];
    if let Some(model) = tree.iter().find_map(|path| root.word(path)) {
        return Known::Is(model);
    }
    let dmi = |name: &str| root.word(Path::new("/sys/class/dmi/id").join(name)).filter(|text| !is_filler(text));
    let vendor = dmi("sys_vendor").or_else(|| dmi("board_vendor"));
    let product = dmi("product_name").or_else(|| dmi("board_name"));
    // Lenovo keeps the marketing name in the version: `20XW` is its product name, `ThinkPad X1 Carbon` its version.
    let version = dmi("product_version").filter(|v| v.contains(' ') || v.contains("Think"));
    let parts: Vec<String> = [vendor, version, product].into_iter().flatten().collect();
    if parts.is_empty() {
        return Known::or_not_reported(field(cpuinfo, "Model").or_else(|| field(cpuinfo, "Hardware")));
    }
    Known::Is(parts.join(" "))
}

/// What makers leave in DMI fields that they did not fill in.
fn is_filler(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "to be filled",
        "default string",
        "system product name",
        "system manufacturer",
        "not specified",
        "not applicable",
        "o.e.m.",
    ]
    .iter()
    .any(|filler| text.contains(filler))
}

fn kernel(root: &Root) -> Known<String> {
    match root.text("/proc/sys/kernel/osrelease") {
        Known::Unknown(why) => {
            match root.word("/proc/version").as_deref().and_then(|v| v.strip_prefix("Linux version ")) {
                Some(rest) => Known::Is(rest.split_whitespace().next().unwrap_or(rest).to_owned()),
                None => Known::Unknown(why),
            }
        }
        release => release,
    }
}

fn distribution(root: &Root) -> Known<String> {
    let text = ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| root.word(path)).unwrap_or_default();
    let name = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="));
    Known::or_not_reported(name.map(|name| name.trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty()))
}

/// The kernel's page size. The auxiliary vector says it, on the live machine and in a capture; a tree without one may have
/// other traces of it.
fn page_size(root: &Root, release: &str, meminfo: &str, cpuinfo: &str) -> Known<Bytes> {
    let kernel_page = |path: &str| kib(&root.word(path)?, "KernelPageSize").into_option();
    let pmd = || root.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").into_option().map(Bytes);
    let config = || config_page(&root.word(format!("/boot/config-{release}"))?);
    let found = auxv_page(&root.bytes("/proc/self/auxv", 4096).unwrap_or_default())
        .or_else(|| kernel_page("/proc/self/smaps"))
        .or_else(|| kernel_page("/proc/1/smaps"))
        .or_else(|| pmd().and_then(page_of_pmd))
        .or_else(|| kib(meminfo, "Hugepagesize").into_option().and_then(page_of_pmd))
        .or_else(config)
        .or_else(|| release_page(release))
        .or_else(|| field(cpuinfo, "vendor_id").map(|_| Bytes(4096)));
    Known::or_not_reported(found.filter(|size| size.0.is_power_of_two()))
}

/// From the auxiliary vector, pairs of 64-bit or of 32-bit words.
pub(crate) fn auxv_page(auxv: &[u8]) -> Option<Bytes> {
    let plausible = |size: &u64| size.is_power_of_two() && (4096..=65536).contains(size);
    let word64 = |b: &[u8]| b.try_into().map(u64::from_le_bytes).ok();
    let word32 = |b: &[u8]| b.try_into().map(u32::from_le_bytes).map(u64::from).ok();
    let find = |width: usize, word: &dyn Fn(&[u8]) -> Option<u64>| {
        auxv.chunks_exact(2 * width)
            .find(|pair| word(&pair[..width]) == Some(AT_PAGESZ))
            .and_then(|pair| word(&pair[width..]))
            .filter(plausible)
    };
    find(8, &word64).or_else(|| find(4, &word32)).map(Bytes)
}

/// A huge page is one page of page-table entries of 8 bytes: 2 MiB for 4 KiB pages, 32 MiB for 16, 512 MiB for 64.
fn page_of_pmd(pmd: Bytes) -> Option<Bytes> {
    [4096u64, 16384, 65536].into_iter().find(|page| page * page / 8 == pmd.0).map(Bytes)
}

/// From the kernel's configuration file.
fn config_page(config: &str) -> Option<Bytes> {
    [("4K", 4096), ("16K", 16384), ("64K", 65536)].into_iter().find_map(|(name, size)| {
        let lines = [format!("CONFIG_ARM64_{name}_PAGES=y"), format!("CONFIG_PAGE_SIZE_{name}B=y")];
        config.lines().any(|line| lines.iter().any(|l| l == line.trim())).then_some(Bytes(size))
    })
}

/// Raspberry Pi's kernels carry it in their name: `…-rpi-2712` and `…-v8-16k+` have 16 KiB pages, `…-v8` and `…-v7` 4 KiB.
fn release_page(release: &str) -> Option<Bytes> {
    if release.contains("16k") || release.contains("2712") {
        Some(Bytes(16384))
    } else if release.contains("64k") {
        Some(Bytes(65536))
    } else {
        ["-v7", "-v8", "-v6"].iter().any(|tag| release.contains(tag)).then_some(Bytes(4096))
    }
}

fn cpu(root: &Root, cpuinfo: &str) -> Cpu {
    let online = root.word("/sys/devices/system/cpu/online").as_deref().and_then(count_of_list);
    let listed = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let count = online.or_else(|| u32::try_from(listed).ok().filter(|n| *n > 0));
    let mut policies: Vec<_> = root
        .names("/sys/devices/system/cpu/cpufreq")
        .into_iter()
        .filter(|name| name.starts_with("policy"))
        .map(|name| Path::new("/sys/devices/system/cpu/cpufreq").join(name))
        .collect();
    if policies.is_empty() {
        policies.push("/sys/devices/system/cpu/cpu0/cpufreq".into());
    }
    let mut governors: Vec<String> =
        policies.iter().filter_map(|policy| root.word(policy.join("scaling_governor"))).collect();
    governors.sort();
    governors.dedup();
    let governor = match governors.as_slice() {
        [] => Known::default(),
        [one] => Known::Is(one.clone()),
        several => Known::Is(format!("mixed: {}", several.join(", "))),
    };
    let khz = policies.iter().filter_map(|p| root.number::<u32>(p.join("cpuinfo_max_freq")).into_option()).max();
    let model = field(cpuinfo, "model name").or_else(|| arm_core(cpuinfo));
    Cpu {
        count: Known::or_not_reported(count),
        model: Known::or_not_reported(model),
        governor,
        max_mhz: Known::or_not_reported(khz.map(|khz| khz / 1000)),
        last_level_cache: Known::or_not_reported(last_level_cache(root)),
    }
}

/// The largest cache of the highest level that any processor has: of unequal cores only some may have it.
fn last_level_cache(root: &Root) -> Option<Bytes> {
    let folder = Path::new("/sys/devices/system/cpu");
    let numbered = |name: &String, word: &str| name.strip_prefix(word).is_some_and(|n| n.parse::<u32>().is_ok());
    let cpus = root.names(folder).into_iter().filter(|name| numbered(name, "cpu"));
    let caches = cpus.map(|cpu| folder.join(cpu).join("cache")).flat_map(|cpu| {
        let indices = root.names(&cpu).into_iter().filter(|name| numbered(name, "index"));
        indices.map(move |index| cpu.join(index)).collect::<Vec<_>>()
    });
    let sizes = caches.filter(|cache| root.word(cache.join("type")).as_deref() != Some("Instruction"));
    let level_and_size = sizes.filter_map(|cache| {
        // `32768K`: the kernel prints KiB so (drivers/base/cacheinfo.c).
        let size: u64 = root.word(cache.join("size"))?.strip_suffix('K')?.parse().ok()?;
        Some((root.number::<u32>(cache.join("level")).into_option()?, Bytes(size << 10)))
    });
    level_and_size.max().map(|(_, size)| size)
}

/// 64-bit ARM kernels print numbers instead of a name (Arm's MIDR part numbers).
fn arm_core(cpuinfo: &str) -> Option<String> {
    let name = match field(cpuinfo, "CPU part")?.as_str() {
        "0xb76" => "ARM1176",
        "0xc07" => "Cortex-A7",
        "0xc08" => "Cortex-A8",
        "0xc09" => "Cortex-A9",
        "0xc0f" => "Cortex-A15",
        "0xd03" => "Cortex-A53",
        "0xd04" => "Cortex-A35",
        "0xd05" => "Cortex-A55",
        "0xd07" => "Cortex-A57",
        "0xd08" => "Cortex-A72",
        "0xd09" => "Cortex-A73",
        "0xd0a" => "Cortex-A75",
        "0xd0b" => "Cortex-A76",
        "0xd0c" => "Neoverse-N1",
        "0xd40" => "Neoverse-V1",
        "0xd41" => "Cortex-A78",
        "0xd46" => "Cortex-A510",
        "0xd47" => "Cortex-A710",
        "0xd49" => "Neoverse-N2",
        _ => return None,
    };
    Some(name.to_owned())
}

/// `0-3,8` is five.
fn count_of_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

fn zswap(root: &Root) -> Known<Zswap> {
    let parameter = |name: &str| root.text(Path::new("/sys/module/zswap/parameters").join(name));
    parameter("enabled").map(|enabled| Zswap {
        enabled: matches!(enabled.as_str(), "Y" | "y" | "1"),
        compressor: parameter("compressor"),
        zpool: parameter("zpool"),
        max_pool_percent: root.number("/sys/module/zswap/parameters/max_pool_percent"),
    })
}

/// `Name: value` or `name : value`.
pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// `MemTotal:  4147616 kB` as bytes.
fn kib(text: &str, name: &str) -> Known<Bytes> {
    let Some(value) = field(text, name) else { return Known::default() };
    let number = value.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    number
        .map_or_else(|| Known::Unknown(Why::Unreadable(excerpt(&value))), |n| Known::Is(Bytes(n.saturating_mul(1024))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_size_from_any_trace() {
        let auxv64: Vec<u8> = [33u64, 7, 6, 16384, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
        let auxv32: Vec<u8> = [33u32, 7, 6, 4096, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(auxv_page(&auxv64), Some(Bytes(16384)));
        assert_eq!(auxv_page(&auxv32), Some(Bytes(4096)));
        assert_eq!(auxv_page(b"\x06\0\0"), None);
        assert_eq!(page_of_pmd(Bytes(32 << 20)), Some(Bytes(16384)));
        assert_eq!(page_of_pmd(Bytes(2 << 20)), Some(Bytes(4096)));
        assert_eq!(page_of_pmd(Bytes(512 << 20)), Some(Bytes(65536)));
        assert_eq!(config_page("# CONFIG_ARM64_4K_PAGES is not set\nCONFIG_ARM64_16K_PAGES=y\n"), Some(Bytes(16384)));
        assert_eq!(release_page("6.12.25+rpt-rpi-2712"), Some(Bytes(16384)));
        assert_eq!(release_page("6.12.25+rpt-rpi-v8"), Some(Bytes(4096)));
        assert_eq!(release_page("6.1.0-13-arm64"), None);
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(count_of_list("0-3"), Some(4));
        assert_eq!(count_of_list("0-3,8"), Some(5));
        assert_eq!(count_of_list("3-0"), None);
        assert_eq!(count_of_list(""), None);
        assert_eq!(count_of_list("0-4294967295"), None);
    }
}
