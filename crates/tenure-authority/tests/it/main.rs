//! What the authority and its stores promise, against real files and real processes.

mod authority;
mod bad_files;
mod batching;
mod field_reports;
mod full_disk;
mod postgres;
mod processes;
mod stores;
mod time;
mod world;
