#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bolide_fuzz::mongo_bson::run(data));
