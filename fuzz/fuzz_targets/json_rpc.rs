//! The target `json_rpc` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pegboard_fuzz::json_rpc(data));
