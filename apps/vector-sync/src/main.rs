//! `vector-sync`: see `vector-sync --help`.

fn main() {}
