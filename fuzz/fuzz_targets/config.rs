//! The target `config` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pegboard_fuzz::config(data));
