//! The tree names no machine: no absolute path of somebody's disk, no host that packages come from.

use super::{File, Finding};

/// Folders that exist on one machine and not on another.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Hosts that serve packages. A machine may use a mirror; the tools know their default by themselves.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("docs", ".rs/"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("rubygems", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("repo.maven", ".apache.org"),
];

/// Finds both. The lock file is cargo's and names its registry.
#[must_use]
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (line, text) in file.text.lines().enumerate() {
            for folder in FOLDERS.iter().filter(|folder| begins_a_path(text, folder)) {
                findings.push(Finding::on_line(file, line, format!("`{folder}` is a folder of one machine")));
            }
            for host in HOSTS.iter().filter(|host| text.contains(*host)) {
                findings.push(Finding::on_line(file, line, format!("`{host}` is a host that packages come from")));
            }
        }
    }
    findings
}

/// `"/folder/x"` begins there; `src/folder/x`, `$DIR/folder/x` and `bucket://a/folder/x` do not.
fn begins_a_path(text: &str, folder: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_-./}".contains(c);
    text.match_indices(folder).any(|(at, _)| !text[..at].chars().next_back().is_some_and(inside))
}

#[cfg(test)]
mod tests;
