#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tests::fuzz::world(bytes));
