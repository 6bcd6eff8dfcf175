//! What the authority and its stores promise, against real files and real processes.

mod authority;
mod bad_files;
mod batching;
mod etcd;
mod field_reports;
mod full_disk;
mod postgres;
mod processes;
mod put_back;
mod recalling;
mod redis;
mod stores;
mod time;
mod world;
