//! The tests of the sinks.
