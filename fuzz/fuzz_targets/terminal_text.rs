//! The target `terminal_text` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pegboard_fuzz::terminal_text(data));
