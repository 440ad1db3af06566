//! Links release programs at a fixed address.

/// Without relocations a start touches about 300 pages less, and a call starts the program twice: a guard is the same program. The code is
/// memory-safe Rust, and the libraries, the stack and the heap still have random addresses.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
