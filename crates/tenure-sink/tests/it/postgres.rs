//! The sink in PostgreSQL, through each of its doors.

mod bad_input;
mod conformance;
mod database;
mod doors;
mod generations;
mod held;
mod isolation;
mod plain;
mod pooled;
mod protecting;
mod rights;
mod waiting;
