//! The tests of vector-sync, in one binary.

mod index;
