//! The authority's file: its file system, the room there, and who may do what with it.

use super::finding::Finding;
use rustix::fs::{Access, StatVfs, access, statfs, statvfs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tenure::core::address::Address;

/// A swap fails below it, since the log of the file grows before it is written back.
const ROOM_MIN: u64 = 16 << 20;
const ROOM_GOOD: u64 = 256 << 20;

/// File systems whose locks or clocks are of more than one machine; see statfs(2) and linux/magic.h.
const NETWORK: [(u64, &str); 10] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x5346_414f, "AFS"),
];
const FUSE: u64 = 0x6573_5546;
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// The file of a `sqlite:` address; `None` for another one, or for one that opening it will complain of.
pub(super) fn path_of(url: &str) -> Option<PathBuf> {
    let address = Address::parse(url).ok().filter(|address| address.scheme() == "sqlite")?;
    address.place().ok().map(PathBuf::from)
}

pub(super) fn look(path: &Path) -> Vec<Finding> {
    // A file that is not there yet is judged by its folder.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let there = if path.exists() { path } else { folder };
    if !there.exists() {
        let says = format!("there is no folder {}", folder.display());
        return vec![Finding::fail("place", says, "correct the address, or make the folder")];
    }
    let mut findings = vec![file_system(there), room(there)];
    if path.exists() {
        findings.push(rights(path, folder));
    }
    findings
}

fn file_system(path: &Path) -> Finding {
    let kind = match statfs(path) {
        // The field's width differs between machines; the numbers have 32 bits.
        #[expect(clippy::cast_sign_loss, reason = "a bit pattern")]
        Ok(found) => (found.f_type as u64) & 0xffff_ffff,
        Err(error) => {
            return Finding::warn(
                "file system",
                format!("it cannot be asked: {error}"),
                "see whether the disk is well",
            );
        }
    };
    kind_of(kind, path)
}

fn kind_of(kind: u64, path: &Path) -> Finding {
    let place = path.display();
    if let Some((_, name)) = NETWORK.iter().find(|(number, _)| *number == kind) {
        return Finding::fail(
            "file system",
            format!("{place} is on {name}, a network file system"),
            "move the authority's file to a local disk: neither file locks nor this machine's clock reach the others",
        );
    }
    match kind {
        FUSE => Finding::warn(
            "file system",
            format!("{place} is on a FUSE file system, which may be a network's"),
            "make sure that it is a local disk and that its file locks work",
        ),
        TMPFS | RAMFS => Finding::warn(
            "file system",
            format!("{place} is in memory, and gone after a reboot"),
            "move it to a disk: an authority that forgets gives out epochs that receivers refuse",
        ),
        _ => Finding::ok("file system", format!("{place} is on a local file system")),
    }
}

fn room(path: &Path) -> Finding {
    match statvfs(path) {
        Ok(found) => room_of(&found, path),
        Err(error) => Finding::warn("disk", format!("it cannot be asked: {error}"), "see whether the disk is well"),
    }
}

fn room_of(found: &StatVfs, path: &Path) -> Finding {
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let says = format!("{} MiB are free where {} is", free >> 20, path.display());
    match free {
        0..ROOM_MIN => Finding::fail("disk", says, "make room: on a full disk nothing is granted and nothing renewed"),
        ROOM_MIN..ROOM_GOOD => Finding::warn("disk", says, "make room before it is full: then nothing is renewed"),
        _ => Finding::ok("disk", says),
    }
}

fn rights(path: &Path, folder: &Path) -> Finding {
    let place = path.display();
    for part in [path, folder] {
        if access(part, Access::READ_OK | Access::WRITE_OK).is_err() {
            return Finding::fail(
                "rights",
                format!("this user may not read and write {}", part.display()),
                "give the right to both the file and its folder: SQLite keeps its log beside the file",
            );
        }
    }
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode()).unwrap_or_default();
    if mode & 0o002 != 0 {
        return Finding::warn(
            "rights",
            format!("everybody on this machine may write {place} (mode {:o})", mode & 0o777),
            format!("take the right away (chmod o-w {place}): who writes the file decides who holds"),
        );
    }
    Finding::ok("rights", format!("this user may read and write {place} and its folder"))
}

#[cfg(test)]
mod tests;
