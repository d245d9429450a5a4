//! tiermark's own measuring, judged against disks whose behaviour is known: each question has a made-up profile, and what
//! the program finds is held against what the profile says. Figures are asked in virtual time, which no other program
//! disturbs; what a disk holds is asked of emulated ones (root, FUSE, loop devices). The tables that are printed stand in
//! docs/truth.md.
#![forbid(unsafe_code)]

mod common;
mod truths;

use common::{Need, full, possible};
use std::path::Path;
use truths::lab::Lab;
use truths::table::{Row, complaints, table};
use truths::{agreement, questions, round};

/// Prints the table, and fails with a sentence for each figure outside of its bound.
#[track_caller]
fn hold(rows: &[Row]) {
    println!("{}", table(rows));
    let complaints = complaints(rows);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn truths_are_found_in_virtual_time() {
    hold(&questions::ask(&Lab::in_virtual_time()));
}

/// A profile, measured as a device, gives the profile again.
#[test]
fn a_profile_comes_out_again_in_virtual_time() {
    hold(&round::trip(&Lab::in_virtual_time()));
}

fn can_emulate(test: &str) -> bool {
    if !Path::new("/dev/fuse").exists() {
        println!("SKIP {test}: needs FUSE");
        return false;
    }
    possible(test, &[Need::Root, Need::Loops])
}

/// Rates of an emulated disk need a machine with nothing else to do, so only `./test --full` asks for them.
#[test]
fn virtual_time_and_emulation_agree() {
    const NAME: &str = "virtual_time_and_emulation_agree";
    if !full() {
        println!("SKIP {NAME}: long, and needs a calm machine: ./test --full");
        return;
    }
    if !can_emulate(NAME) {
        return;
    }
    let (simulated, emulated) = (Lab::in_virtual_time(), Lab::emulated());
    let points = agreement::points(&simulated, &emulated);
    emulated.assert_clean();
    println!("{}", agreement::table(&points));
    let (below, judged): (Vec<_>, Vec<_>) = points.into_iter().partition(|point| point.is_below_floor);
    let off: Vec<_> = judged.into_iter().filter(|point| point.off_percent().abs() > 5.0).collect();
    assert!(off.is_empty(), "beyond 5 %:\n{}", agreement::table(&off));
    assert!(below.len() < 8, "{} points lie below the floor", below.len());
}

/// A profile, emulated, measured as a device, gives the profile again.
#[test]
fn a_profile_comes_out_again_of_an_emulated_disk() {
    const NAME: &str = "a_profile_comes_out_again_of_an_emulated_disk";
    if !full() {
        println!("SKIP {NAME}: long, and needs a calm machine: ./test --full");
        return;
    }
    if !can_emulate(NAME) {
        return;
    }
    let lab = Lab::emulated();
    let found = round::trip(&lab);
    lab.assert_clean();
    hold(&found);
}

#[test]
fn a_fake_is_found_out() {
    if !can_emulate("a_fake_is_found_out") {
        return;
    }
    let lab = Lab::emulated();
    let found = questions::capacity(&lab);
    lab.assert_clean();
    hold(&found);
}
