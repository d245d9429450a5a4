//! The rules of the house that a machine can hold: arrows between our crates point to a lower floor of the table in
//! ARCHITECTURE.md, `unsafe` stands in `sys` alone, files stay readable in one sitting, and every dependency's licence
//! lets the binary be MIT or Apache-2.0. Each rule is a function from text to complaints, tested on made-up text below.
#![forbid(unsafe_code)]

use cargo_metadata::{Metadata, MetadataCommand, Package};
use spdx::{Expression, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::{AttrStyle, Meta};

/// The one crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "sys";
/// Lines above which a file should look for its second noun, and above which it must.
const LONG: usize = 400;
const TOO_LONG: usize = 800;
/// Licences that may be combined into a binary under MIT or Apache-2.0. Others are fine as an alternative to one of these.
const LICENCES: [&str; 9] =
    ["MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "MPL-2.0", "Unicode-3.0"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Cargo's own account of the workspace.
fn workspace() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap()
}

/// The triple that this machine's compiler builds for.
fn host() -> String {
    let told = Command::new("rustc").arg("-vV").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    told.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// The floor of each crate from the table in ARCHITECTURE.md, whose rows begin ``| floor | `crate` |``.
fn floors(architecture: &str) -> BTreeMap<String, u32> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let floor = cells.next()?.parse().ok()?;
        Some((cells.next()?.strip_prefix('`')?.strip_suffix('`')?.to_owned(), floor))
    };
    architecture.lines().filter_map(row).collect()
}

/// Which of our crates each of our crates names in its manifest, whether for its code, its build or its tests.
fn arrows(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata.workspace_packages();
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let targets = |package: &Package| {
        let names = package.dependencies.iter().map(|dependency| dependency.name.clone());
        names.filter(|name| ours.contains(name.as_str())).collect()
    };
    packages.iter().map(|package| (package.name.to_string(), targets(package))).collect()
}

fn misdirected(floors: &BTreeMap<String, u32>, arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (from, targets) in arrows {
        let Some(floor) = floors.get(from) else {
            complaints.push(format!("{from} stands on no floor of ARCHITECTURE.md"));
            continue;
        };
        for to in targets {
            if let Some(lower) = floors.get(to).filter(|lower| *lower >= floor) {
                complaints.push(format!("{from} (floor {floor}) may not use {to} (floor {lower})"));
            }
        }
    }
    let gone = floors.keys().filter(|name| !arrows.contains_key(*name));
    complaints.extend(gone.map(|name| format!("{name} stands in ARCHITECTURE.md, but is no crate")));
    complaints
}

/// True when a crate root says `#![forbid(unsafe_code)]`, which the compiler then holds for all its modules.
fn forbids_unsafe(source: &str) -> bool {
    let Ok(file) = syn::parse_file(source) else { return false };
    file.attrs.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        matches!(attribute.style, AttrStyle::Inner(_))
            && list.path.is_ident("forbid")
            && list.tokens.clone().into_iter().any(|token| token.to_string() == "unsafe_code")
    })
}

/// Every Rust file below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        // Links are not followed: the golden trees are as full of circles as a real /sys.
        if entry.file_type().unwrap().is_dir() && path.file_name() != Some("target".as_ref()) {
            found.extend(sources(&path));
        } else if path.extension() == Some("rs".as_ref()) {
            found.push(path);
        }
    }
    found
}

/// What is wrong with a dependency's licence, an SPDX expression.
fn licence_complaint(licence: Option<&str>) -> Option<String> {
    let Some(licence) = licence else { return Some("names no licence".to_owned()) };
    // Older packages write MIT/Apache-2.0, which the registry still takes for an OR.
    let lax = ParseMode { allow_slash_as_or_operator: true, ..ParseMode::STRICT };
    match Expression::parse_mode(licence, lax) {
        Err(error) => Some(format!("is under {licence:?}, which is no SPDX expression: {}", error.reason)),
        Ok(expression) => {
            let allowed = |name: &str| LICENCES.contains(&name);
            let fits = expression.evaluate(|term| term.license.id().is_some_and(|id| allowed(id.name)));
            (!fits).then(|| format!("is under {licence}, which is not in the list of this test"))
        }
    }
}

#[test]
fn arrows_point_to_a_lower_floor() {
    let floors = floors(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    assert_eq!(misdirected(&floors, &arrows(&workspace())), Vec::<String>::new());
}

#[test]
fn unsafe_stands_in_one_crate() {
    let mut complaints = Vec::new();
    for package in workspace().workspace_packages() {
        for target in package.targets.iter().filter(|_| package.name.as_str() != UNSAFE_CRATE) {
            if !forbids_unsafe(&fs::read_to_string(&target.src_path).unwrap()) {
                complaints.push(format!("{} does not say #![forbid(unsafe_code)]", target.src_path));
            }
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn files_stay_readable() {
    let mut too_long = Vec::new();
    for path in sources(&root().join("crates")) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let shown = path.strip_prefix(root()).unwrap().display();
        if lines > TOO_LONG {
            too_long.push(format!("{shown} has {lines} lines; look for its second noun"));
        } else if lines > LONG {
            // Written past the test harness, which would keep a passing test's words to itself.
            writeln!(std::io::stderr(), "note: {shown} has {lines} lines").unwrap();
        }
    }
    assert_eq!(too_long, Vec::<String>::new());
}

#[test]
fn licences_let_the_binary_be_ours() {
    // What a build for this machine uses is at hand already; packages for other systems would have to be fetched.
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml"));
    command.other_options(["--filter-platform".to_owned(), host(), "--locked".to_owned()]);
    let metadata = command.exec().unwrap();
    let complaint = |package: &Package| {
        let why = licence_complaint(package.license.as_deref())?;
        Some(format!("{} {} {why}", package.name, package.version))
    };
    let complaints: Vec<String> = metadata.packages.iter().filter_map(complaint).collect();
    assert_eq!(complaints, Vec::<String>::new());
    assert!(metadata.packages.len() > metadata.workspace_members.len(), "no dependency was looked at");
}

/// The rules can be broken, and then say what is wrong.
mod when_broken {
    use super::*;

    fn house(rows: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        rows.iter().map(|(from, to)| ((*from).to_owned(), names(to))).collect()
    }

    const TABLE: &str = "text\n\n| floor | crate | face |\n| --- | --- | --- |\n| 2 | `study` | `|` |\n\
                         | 1 | `machine` | `x` |\n| 1 | `observe` | |\n| 0 | `basics` | |\n";

    #[test]
    fn an_arrow_up_or_along_a_floor() {
        let floors = floors(TABLE);
        assert_eq!(floors.len(), 4);
        let fine = [("study", &["machine", "basics"][..]), ("machine", &["basics"]), ("observe", &[]), ("basics", &[])];
        assert_eq!(misdirected(&floors, &house(&fine)), Vec::<String>::new());
        let along = [("study", &[][..]), ("machine", &["observe"]), ("observe", &[]), ("basics", &["study"])];
        assert_eq!(
            misdirected(&floors, &house(&along)),
            ["basics (floor 0) may not use study (floor 2)", "machine (floor 1) may not use observe (floor 1)"]
        );
    }

    #[test]
    fn a_crate_without_a_floor_and_a_floor_without_its_crate() {
        let found = house(&[("study", &["shed"]), ("machine", &[]), ("observe", &[]), ("shed", &[])]);
        assert_eq!(
            misdirected(&floors(TABLE), &found),
            ["shed stands on no floor of ARCHITECTURE.md", "basics stands in ARCHITECTURE.md, but is no crate"]
        );
    }

    #[test]
    fn the_real_graph_upside_down() {
        let mut floors = floors(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
        floors.values_mut().for_each(|floor| *floor = 9 - *floor);
        assert!(misdirected(&floors, &arrows(&workspace())).len() >= 10);
    }

    #[test]
    fn a_crate_root_that_only_talks_of_forbidding() {
        assert!(forbids_unsafe("//! Words.\n#![forbid(unsafe_code)]\nfn main() {}"));
        assert!(forbids_unsafe("#![forbid(missing_docs, unsafe_code)]"));
        for source in [
            "fn main() {}",
            "// #![forbid(unsafe_code)]",
            "/* #![forbid(unsafe_code)] */ fn main() {}",
            "const TEXT: &str = \"#![forbid(unsafe_code)]\";",
            "#[forbid(unsafe_code)] mod only_this {}",
            "mod inner { #![forbid(unsafe_code)] }",
            "#![deny(unsafe_code)]",
            "#![cfg_attr(windows, forbid(unsafe_code))]",
            "#![forbid(missing_docs)]",
            "not rust",
        ] {
            assert!(!forbids_unsafe(source), "{source}");
        }
    }

    #[test]
    fn a_licence_that_does_not_fit() {
        for fine in ["MIT", "MIT/Apache-2.0", "Unlicense OR MIT", "(MIT OR GPL-2.0-only) AND Unicode-3.0"] {
            assert_eq!(licence_complaint(Some(fine)), None, "{fine}");
        }
        for bad in [None, Some("GPL-3.0-or-later"), Some("MIT AND AGPL-3.0-only"), Some("CC0-1.0"), Some("Mine")] {
            assert!(licence_complaint(bad).is_some(), "{bad:?}");
        }
    }
}
