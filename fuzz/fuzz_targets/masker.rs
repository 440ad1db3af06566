//! The target `masker` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pegboard_fuzz::masker(data));
