//! Functions that came out alike, as the same deserialiser for many types does, are kept once: half a megabyte less. Only the
//! linker that rustc brings for 64-bit x86 since 1.90 (lld) is asked for it; any other links as it always did.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    let own_linker = ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"].iter().any(|name| {
        std::env::var(name).is_ok_and(|value| !value.is_empty() && (*name == "RUSTC_LINKER" || value.contains("link")))
    });
    if is("TARGET", "x86_64-unknown-linux-gnu")
        && is("HOST", "x86_64-unknown-linux-gnu")
        && is("PROFILE", "release")
        && !own_linker
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
