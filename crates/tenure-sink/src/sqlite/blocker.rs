//! Which process holds a database's write lock, as the kernel tells it.
//!
//! Asking by `F_GETLK` would need the file once more, and closing that would drop the locks which this process has on it.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where SQLite locks out other writers: a byte of the file beside a database in WAL mode, or one of the database itself.
const WRITE_LOCKS: [(&str, u64); 2] = [("-shm", 120), ("", 0x4000_0001)];

/// Says who keeps others from writing, and what to do about it; `None` where that cannot be told.
pub(super) fn named(place: &str) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut processes: Vec<u32> = Vec::new();
    for (suffix, byte) in WRITE_LOCKS {
        if let Ok(metadata) = Path::new(&format!("{place}{suffix}")).metadata() {
            processes.extend(holders(&locks, metadata.ino(), byte));
        }
    }
    processes.dedup();
    let first = processes.first()?;
    let mut text = format!("Process {}", described(*first));
    for process in processes.iter().skip(1) {
        let _ = write!(text, ", process {}", described(*process));
    }
    text.push_str(" is in a transaction that writes. Let it end, or end that process; then repeat the call");
    Some(text)
}

/// The processes that have a byte of a file locked for themselves: `1: POSIX  ADVISORY  WRITE 4711 fd:00:131 120 120`.
fn holders(locks: &str, inode: u64, byte: u64) -> Vec<u32> {
    let holder = |line: &str| {
        let [_, "POSIX", _, "WRITE", process, file, from, to] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        // The device is left out: on some file systems it is another one here than what a file says of itself.
        let is_file = file.rsplit(':').next()?.parse() == Ok(inode);
        let covers = from.parse::<u64>().ok()? <= byte && (to == "EOF" || to.parse::<u64>().ok()? >= byte);
        process.parse().ok().filter(|process| is_file && covers && *process > 0)
    };
    locks.lines().filter_map(holder).collect()
}

/// The process's number, with its name and whether it is stopped, as far as this process may know.
fn described(process: u32) -> String {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return process.to_string() };
    let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    let Some((name, rest)) = name else { return process.to_string() };
    let itself = if process == std::process::id() { ", this one itself" } else { "" };
    let stopped = if rest.trim_start().starts_with(['T', 't']) { ", which is stopped," } else { "" };
    format!("{process} ({}{itself}){stopped}", name.escape_default())
}

#[cfg(test)]
mod tests;
