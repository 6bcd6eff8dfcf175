//! The suite that every store passes, and a store that injects faults.
