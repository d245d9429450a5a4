//! Where `check` may measure: for each tier of this machine a directory in which a test file can be made, or the bare
//! device for reading, or the reason why neither. It looks and changes nothing.

use crate::site::{Site, Where};
use basics::plan::LeftOut;
use basics::units::MIB;
use basics::{Bytes, Known, Why};
use machine::{Machine, Mount, Root, Tier, TierKind};
use rustix::fs::{Access, access};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Least room that a test file is worth making in.
pub const LEAST_ROOM: Bytes = Bytes(24 * MIB);

/// A site for each tier (RAM first, then as the machine lists them) and for each of the `extra` directories, and what
/// is left out with its reason.
pub fn survey(machine: &Machine, root: &Root, extra: &[PathBuf]) -> (Vec<Site>, Vec<LeftOut>) {
    let (mut sites, mut left_out) = (Vec::new(), Vec::new());
    for tier in &machine.tiers {
        let left_out_for = |why| LeftOut { tier: tier.name.clone(), step: String::new(), why };
        match site_of(tier, machine, root) {
            // A file system on several disks is one place, measured once.
            Ok(site) => match sites.iter().find(|s: &&Site| s.at == site.at && matches!(s.at, Where::Directory(_))) {
                Some(same) => {
                    let whole = same.tier.clone().unwrap_or_default();
                    left_out.push(left_out_for(Why::NotMeasured(format!("with {whole}"))));
                }
                None => sites.push(site),
            },
            Err(why) => left_out.push(left_out_for(why)),
        }
    }
    let extra: Vec<PathBuf> = extra.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone())).collect();
    for dir in &extra {
        let mut site = Site::directory(dir, machine, root);
        if sites.iter().any(|found: &Site| found.at == site.at) {
            continue;
        }
        // The user's own choice replaces what was found for the tier; further ones are told apart by their path.
        // Memory stays memory: a tmpfs lies on the same tier and is something else.
        let chosen_anew = |s: &&mut Site| {
            s.at != Where::Memory && s.tier.is_some() && s.tier == site.tier && !extra.contains(&path_of(s))
        };
        match sites.iter_mut().find(chosen_anew) {
            Some(found) => *found = site,
            None => {
                site.tier = Some(dir.display().to_string());
                sites.push(site);
            }
        }
    }
    (sites, left_out)
}

fn path_of(site: &Site) -> PathBuf {
    match &site.at {
        Where::Directory(path) | Where::File(path) | Where::Device { path, .. } => path.clone(),
        Where::Memory | Where::Null { .. } | Where::Profile { .. } => PathBuf::new(),
    }
}

/// The best site on a tier, or why there is none.
fn site_of(tier: &Tier, machine: &Machine, root: &Root) -> Result<Site, Why> {
    if tier.kind == TierKind::Ram {
        let (at, room) = (Where::Memory, Known::default());
        return Ok(Site { tier: Some(tier.name.clone()), at, room, compresses: false });
    }
    let no_directory = match directory_on(tier, machine, root) {
        Ok(site) => return Ok(site),
        Err(why) => why,
    };
    let images = !tier.mounts.is_empty() && tier.mounts.iter().all(|m| matches!(m.fs.as_str(), "squashfs" | "iso9660"));
    if tier.kind == TierKind::Loop && images {
        return Err(Why::NotMeasured("read-only image".to_owned()));
    }
    match &tier.path {
        Some(node) if tier.kind != TierKind::FileSystem => match std::fs::File::open(node) {
            Ok(_) => Ok(Site {
                tier: Some(tier.name.clone()),
                at: Where::Device { path: node.clone(), destroy: None },
                room: Known::Unknown(no_directory),
                compresses: tier.kind == TierKind::Zram,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Why::NoPermission),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOMEDIUM.raw_os_error()) => {
                Err(Why::NotMeasured("no medium".to_owned()))
            }
            Err(error) => Err(Why::NotMeasured(error.to_string())),
        },
        _ => Err(no_directory),
    }
}

/// The directory with the most room on any of the tier's writable file systems.
fn directory_on(tier: &Tier, machine: &Machine, root: &Root) -> Result<Site, Why> {
    let mut why = Why::NotMeasured("not mounted".to_owned());
    let mut best: Option<(u64, Site)> = None;
    for mount in &tier.mounts {
        if mount.read_only {
            why = Why::NotMeasured("read-only".to_owned());
            continue;
        }
        let Some(dir) = writable_directory(mount) else {
            why = Why::NoPermission;
            continue;
        };
        let mut site = Site::directory(&dir, machine, root);
        site.tier = Some(tier.name.clone());
        let room = site.room.get().map_or(0, |room| room.0);
        if room < LEAST_ROOM.0 {
            why = Why::NotMeasured("no room".to_owned());
        } else if best.as_ref().is_none_or(|(most, _)| room > *most) {
            best = Some((room, site));
        }
    }
    best.map(|(_, site)| site).ok_or(why)
}

/// A directory of this very mount that this user may write: temporary and home directories before the mount's root.
fn writable_directory(mount: &Mount) -> Option<PathBuf> {
    let device = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_dir()).map(|m| m.dev());
    let wanted = device(&mount.at)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let usual = [Some("/var/tmp".into()), home, here, Some("/tmp".into()), Some(mount.at.clone())];
    usual
        .into_iter()
        .flatten()
        .filter(|dir| dir.to_str().is_some())
        .find(|dir| device(dir) == Some(wanted) && access(dir.as_path(), Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(mounts: Vec<Mount>) -> Tier {
        Tier {
            name: "sda".into(),
            kind: TierKind::Sata,
            path: Some("/dev/null/none".into()),
            model: Known::default(),
            size: Known::default(),
            hops: vec![],
            ceiling: Known::default(),
            block: None,
            partitions: vec![],
            mounts,
            swaps: vec![],
            below: vec![],
            warnings: vec![],
        }
    }

    fn mount(at: &Path, read_only: bool) -> Mount {
        Mount {
            source: "/dev/sda1".into(),
            at: at.to_owned(),
            fs: "ext4".into(),
            options: vec![],
            read_only,
            compression: None,
        }
    }

    #[test]
    fn a_file_system_on_two_disks_is_measured_once() {
        let dir = tempfile::tempdir().unwrap();
        let second = Tier { name: "sdb".into(), ..tier(vec![mount(dir.path(), false)]) };
        let machine = Machine { tiers: vec![tier(vec![mount(dir.path(), false)]), second], ..Machine::default() };
        let (sites, left_out) = survey(&machine, &Root::live(), &[]);
        assert_eq!(sites.len(), 1);
        assert_eq!((left_out[0].tier.as_str(), left_out[0].why.to_string()), ("sdb", "with sda".to_owned()));
    }

    /// Bug: `check --in` of the very mount point that stands for its tier measured it twice, the second time under its path.
    #[test]
    fn the_place_that_was_asked_for_is_measured_once() {
        let machine = machine::read(&Root::live());
        let (sites, _) = survey(&machine, &Root::live(), &[]);
        // How much room there is changes while others write.
        let places = |sites: Vec<Site>| sites.into_iter().map(|site| (site.tier, site.at)).collect::<Vec<_>>();
        for site in sites.iter().filter(|site| matches!(site.at, Where::Directory(_))) {
            let asked = [path_of(site), path_of(site)];
            assert_eq!(places(survey(&machine, &Root::live(), &asked).0), places(sites.clone()), "{asked:?}");
        }
    }

    #[test]
    fn a_directory_of_the_users_own_stands_beside_memory() {
        let machine = machine::read(&Root::live());
        let (sites, _) = survey(&machine, &Root::live(), &["/dev/shm".into()]);
        assert!(sites.iter().any(|site| site.at == Where::Memory), "{sites:?}");
        let own = sites.iter().find(|site| site.at == Where::Directory("/dev/shm".into())).unwrap();
        assert_eq!(own.tier.as_deref(), Some("/dev/shm"));
    }

    #[test]
    fn a_writable_mount_gives_a_directory_and_a_read_only_one_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine { tiers: vec![tier(vec![mount(dir.path(), false)])], ..Machine::default() };
        let (sites, left_out) = survey(&machine, &Root::live(), &[]);
        assert!(matches!(sites[0].at, Where::Directory(_)), "{sites:?}");
        assert!(left_out.is_empty());

        let machine = Machine { tiers: vec![tier(vec![mount(dir.path(), true)])], ..Machine::default() };
        let (sites, left_out) = survey(&machine, &Root::live(), &[]);
        assert!(sites.is_empty());
        assert_eq!(left_out[0].tier, "sda");
    }
}
