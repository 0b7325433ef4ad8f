#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::fuzz::frame(bytes));
