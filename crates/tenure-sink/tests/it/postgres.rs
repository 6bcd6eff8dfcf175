//! The sink in PostgreSQL, through each of its doors.

mod bad_input;
mod conformance;
mod database;
mod doors;
mod generations;
mod isolation;
mod plain;
mod protecting;
mod rights;
mod waiting;
