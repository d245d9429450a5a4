//! The tiers that a workload may be swapped to, as people write them: `none`, `own` (what this machine has), `zram`, `zram:lz4`,
//! a profile's name (an emulated disk), a directory (a file there), a block device; several of equal priority with a comma between
//! them, `zswap+` before them for a compressed cache in front, and `zram+` before one for compressed memory with a disk behind it.

use basics::Bytes;
use basics::pressure::{Area, Swap, Zswap};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A tier that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{tier:?} is no tier for swap: {why}")]
pub struct TierError {
    tier: String,
    why: String,
}

/// A tier for swap, not yet of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// As it was written: the name of its row.
    pub name: String,
    places: Vec<Place>,
    zswap: Option<Zswap>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Directory(PathBuf),
    Device(PathBuf),
    Own,
    Emulated { name: String, toml: String },
    Zram { algorithm: Option<String>, behind: Option<Box<Place>> },
}

/// Gives the name and the TOML of a profile, or says why there is none.
pub type Lookup<'a> = dyn Fn(&str) -> Result<(String, String), String> + 'a;

impl Tier {
    /// Reads a tier.
    ///
    /// # Errors
    /// When it is none; the sentence says what it may be.
    pub fn parse(text: &str, profiles: &Lookup<'_>) -> Result<Self, TierError> {
        let bad = |why: &str| TierError { tier: text.to_owned(), why: why.to_owned() };
        let tier = |places, zswap| Tier { name: text.to_owned(), places, zswap };
        if text == "none" {
            return Ok(tier(Vec::new(), None));
        }
        if text == "own" {
            return Ok(tier(vec![Place::Own], None));
        }
        let (zswap, areas) = match text.strip_prefix("zswap") {
            None => (None, text),
            Some(rest) => {
                let (options, areas) = rest.split_once('+').ok_or_else(|| {
                    bad("zswap is a cache in front of something; write zswap+TIER, such as zswap+/var/tmp")
                })?;
                (Some(zswap(options).ok_or_else(|| bad("write zswap[:COMPRESSOR[:PERCENT]]+TIER"))?), areas)
            }
        };
        let places = areas.split(',').map(|area| place(area, profiles).map_err(|why| bad(&why)));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        if zswap.is_some() && places.iter().any(|place| matches!(place, Place::Zram { .. })) {
            return Err(bad("what zswap gives up on would be compressed a second time; put a disk behind it"));
        }
        Ok(tier(places, zswap))
    }

    /// Nothing to swap to.
    pub(crate) fn nothing() -> Self {
        Tier { name: "none".to_owned(), places: Vec::new(), zswap: None }
    }

    /// Whether nothing can be swapped.
    pub fn is_none(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether it is what this machine has.
    pub fn is_own(&self) -> bool {
        self.places == [Place::Own]
    }

    /// With room for so much in all, each area an equal part.
    pub(crate) fn sized(&self, room: Bytes) -> Swap {
        const PAGES: u64 = 1 << 20;
        let size = Bytes((room.0 / self.places.len().max(1) as u64).next_multiple_of(PAGES));
        let areas = self.places.iter().map(|place| place.sized(size)).collect();
        Swap { areas, zswap: self.zswap.clone(), ..Swap::default() }
    }
}

impl Place {
    fn sized(&self, size: Bytes) -> Area {
        match self {
            Place::Directory(dir) => Area::File { dir: dir.clone(), size },
            Place::Own => Area::Own,
            Place::Device(path) => Area::Device { path: path.clone(), destroy: None },
            Place::Emulated { name, toml } => {
                Area::Emulated { name: name.clone(), toml: toml.clone(), size, files: None }
            }
            Place::Zram { algorithm, behind } => {
                let behind = behind.as_ref().map(|place| Box::new(place.sized(size)));
                Area::Zram { algorithm: algorithm.clone(), size, behind }
            }
        }
    }
}

/// `:COMPRESSOR:PERCENT`, both optional.
fn zswap(options: &str) -> Option<Zswap> {
    if options.is_empty() {
        return Some(Zswap::default());
    }
    let mut words = options.strip_prefix(':')?.split(':');
    let compressor = words.next().filter(|word| !word.is_empty()).map(str::to_owned);
    let max_pool_percent = match words.next() {
        Some(word) => Some(word.parse().ok().filter(|percent| (1..=100).contains(percent))?),
        None => None,
    };
    words.next().is_none().then_some(Zswap { compressor, max_pool_percent })
}

fn place(area: &str, profiles: &Lookup<'_>) -> Result<Place, String> {
    if let Some(zram) = zram(area, profiles) {
        return zram;
    }
    let path = Path::new(area);
    if area.starts_with("/dev/") {
        return Ok(Place::Device(path.to_owned()));
    }
    if path.is_dir() && area.contains('/') {
        return Ok(Place::Directory(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())));
    }
    let emulated = profiles(area.strip_prefix("profile:").unwrap_or(area));
    emulated.map(|(name, toml)| Place::Emulated { name, toml }).map_err(|why| {
        format!("give none, own (this machine's), zram, zram+PLACE, a directory such as /var/tmp, a block device, or a profile to emulate ({why})")
    })
}

/// `zram[:ALGORITHM][+PLACE]`; none where it is something else.
fn zram(area: &str, profiles: &Lookup<'_>) -> Option<Result<Place, String>> {
    let (front, behind) = area.split_once('+').map_or((area, None), |(front, behind)| (front, Some(behind)));
    let algorithm = match front.split_once(':') {
        Some(("zram", algorithm)) if !algorithm.is_empty() => Some(algorithm.to_owned()),
        None if front == "zram" => None,
        _ => return None,
    };
    let behind = behind.map(|behind| match place(behind, profiles)? {
        place @ (Place::Directory(_) | Place::Emulated { .. }) => Ok(Box::new(place)),
        // What is on a device would be lost, a swap area too.
        _ => Err("behind zram there can be a directory, for a file there, or a profile".to_owned()),
    });
    Some(behind.transpose().map(|behind| Place::Zram { algorithm, behind }))
}

/// The rungs of `--ladder`, slowest medium last, with a file in `disk` for those that want this machine's disk.
pub fn ladder(disk: &Path) -> Vec<String> {
    let disk = disk.display();
    vec![
        "none".to_owned(),
        "zram".to_owned(),
        format!("zswap+{disk}"),
        disk.to_string(),
        "optane-pi5".to_owned(),
        "nvme-usb3-pi5,nvme-usb3-pi5".to_owned(),
        "sd-evo-pi5".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tier, TierError> {
        Tier::parse(text, &|name| match name {
            "sd" => Ok((name.to_owned(), "toml".to_owned())),
            _ => Err(format!("no profile {name}")),
        })
    }

    #[test]
    fn tiers_are_read() {
        assert!(parse("none").unwrap().is_none());
        let zram = parse("zram:lz4").unwrap().sized(Bytes(1 << 20));
        assert_eq!(parse("own").unwrap().sized(Bytes(1)).areas, [Area::Own]);
        assert_eq!(zram.areas, [Area::Zram { algorithm: Some("lz4".into()), size: Bytes(1 << 20), behind: None }]);
        let backed = parse("zram:lz4+sd").unwrap().sized(Bytes(1 << 20));
        assert_eq!(backed.areas[0].describe(), "zram lz4 before emulated sd");
        let pair = parse("sd,profile:sd").unwrap().sized(Bytes(64 << 20));
        assert_eq!(pair.areas.len(), 2);
        assert_eq!(pair.areas[0].size(), Some(Bytes(32 << 20)));
        let cached = parse("zswap:lzo:30+/tmp").unwrap().sized(Bytes(1 << 20));
        assert_eq!(cached.zswap, Some(Zswap { compressor: Some("lzo".into()), max_pool_percent: Some(30) }));
        assert!(matches!(&cached.areas[..], [Area::File { .. }]));
        assert_eq!(parse("/dev/sdz9").unwrap().sized(Bytes(1)).areas[0].describe(), "/dev/sdz9");
    }

    #[test]
    fn what_is_no_tier_is_said_so() {
        for (text, says) in [
            ("zswap", "zswap+TIER"),
            ("zswap:lzo:200+/tmp", "PERCENT"),
            ("zswap+zram", "second time"),
            ("floppy", "no profile floppy"),
            ("", "give none"),
            ("zram:", "give none"),
            ("sd,,sd", "give none"),
            ("own,zram", "give none"),
            ("zswap+own", "give none"),
            ("zram+/dev/sdz9", "behind zram there can be a directory"),
            ("zram+zram", "behind zram there can be a directory"),
            ("zswap+zram+sd", "second time"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn the_ladder_is_of_tiers() {
        let profiles = |name: &str| Ok::<_, String>((name.to_owned(), profile::find(name).unwrap().name.clone()));
        for rung in ladder(Path::new("/tmp")) {
            Tier::parse(&rung, &profiles).unwrap();
        }
    }
}
