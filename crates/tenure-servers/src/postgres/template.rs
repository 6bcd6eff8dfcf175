//! A data folder that is made once in a process and copied for each server.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use super::build::Build;
use crate::folder::{Folder, copy};
use crate::installed::Account;
use crate::patience::PATIENCE;
use crate::process::{ask, tool};

/// Where the system identifier stands in `global/pg_control`: it is the first field.
const IDENTIFIER: std::ops::Range<usize> = 0..8;

/// Gives a server its data folder, with a system identifier that no other has.
pub(super) fn fill(build: Build, folder: &Folder) {
    static DEBIAN: OnceLock<Folder> = OnceLock::new();
    static VECTORS: OnceLock<Folder> = OnceLock::new();
    let template = match build {
        Build::Debian => &DEBIAN,
        Build::Vectors => &VECTORS,
    };
    copy(&template.get_or_init(|| make(build)).at("data"), &folder.at("data"));
    let path = folder.at("data/global/pg_control");
    let mut control = std::fs::read(&path).expect("initdb wrote it");
    identify(&mut control);
    std::fs::write(&path, control).expect("the data folder can be written");
    // The log names the identifier too: this begins a new one.
    let mut command = tool(&build.program("pg_resetwal"), folder.account());
    command.arg("-f").arg(folder.at("data"));
    ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("pg_resetwal failed:\n{said}"));
}

fn make(build: Build) -> Folder {
    let folder = Folder::new("template", Account::postgres());
    let mut command = tool(&build.program("initdb"), folder.account());
    command.args(["--auth=trust", "--username=postgres", "--locale=C", "--encoding=UTF8", "--no-sync", "-D"]);
    command.arg(folder.at("data"));
    ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("initdb failed:\n{said}"));
    folder
}

/// Another identifier, and the checksum that goes with it. The checksum stands right after what it is of.
fn identify(control: &mut [u8]) {
    let end = (16..control.len() - 4)
        .find(|&end| crc32c(&control[..end]).to_le_bytes() == control[end..end + 4])
        .expect("pg_control has a checksum (of a machine that is little-endian)");
    let drawn = std::collections::hash_map::RandomState::new().build_hasher().finish();
    // As PostgreSQL's own: the seconds of a clock in the upper half, so the sign stays positive.
    let identifier = (7 << 60) | (drawn >> 4);
    control[IDENTIFIER].copy_from_slice(&identifier.to_le_bytes());
    let sum = crc32c(&control[..end]).to_le_bytes();
    control[end..end + 4].copy_from_slice(&sum);
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    };
    !bytes.iter().fold(!0, step)
}
