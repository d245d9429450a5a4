//! tiermark's own measuring, judged against disks whose behaviour is known: each question has a made-up profile, and what
//! the program finds is held against what the profile says. Figures are asked in virtual time, which no other program
//! disturbs; what a disk holds is asked of emulated ones (root, FUSE, loop devices). The tables that are printed stand in
//! docs/truth.md.
#![forbid(unsafe_code)]

mod common;
mod truths;

use common::{Need, possible};
use std::path::Path;
use truths::lab::Lab;
use truths::table::{Row, complaints, table};
use truths::{questions, round};

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

#[test]
fn a_fake_is_found_out() {
    const NAME: &str = "a_fake_is_found_out";
    if !Path::new("/dev/fuse").exists() {
        println!("SKIP {NAME}: needs FUSE");
        return;
    }
    if !possible(NAME, &[Need::Root, Need::Loops]) {
        return;
    }
    let lab = Lab::emulated();
    let found = questions::capacity(&lab);
    lab.assert_clean();
    hold(&found);
}
