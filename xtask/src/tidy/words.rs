//! One word, one meaning. A lease is not a lock, a renewal is not a heartbeat, an epoch is not a term, and nobody is a
//! leader or a master.
//!
//! A machine has real locks (`Mutex::lock`, a file lock, a row lock), and a sentence may say "in terms of". So the rule
//! looks where a wrong word names a thing of ours:
//!
//! * `leader`, `heartbeat`, `master`: names that are declared anywhere; comments and strings outside of tests, which may
//!   tell how another system failed.
//! * `term`: names that are declared anywhere.
//! * `lock`: names of public types and functions, unless the name says which machine's lock it is.
//! * a few phrases in comments and documents that can only mean ours.

use super::{File, Finding, source};

const NEVER: &[&str] = &["leader", "leaders", "heartbeat", "heartbeats", "master", "masters"];
const NEVER_DECLARED: &[&str] = &["term", "terms"];
const LOCK: &[&str] = &["lock", "locks", "unlock", "locked", "locker"];
/// Beside one of these, `lock` is the machine's.
const MACHINE: &[&str] = &["file", "row", "advisory", "mutex", "sqlite", "database", "thread"];
const PHRASES: &[&str] = &[
    "lock server",
    "lock service",
    "lock manager",
    "lock owner",
    "lock token",
    "lease lock",
    "current term",
    "new term",
    "term number",
];

/// A file that must use a word, because it speaks to a system that uses it: path, word, reason.
const EXCEPT: &[(&str, &str, &str)] = &[
    ("crates/tenure-authority/src/store/etcd.rs", "leader", "etcd's name for the member that leads"),
    ("crates/tenure-authority/src/store/etcd/revokes.rs", "leader", "etcd's name for the member that leads"),
    ("crates/tenure-servers/src/redis.rs", "master", "a field of Redis's answers"),
    ("crates/tenure-authority/src/store/redis.rs", "master", "the role of Redis that is asked for"),
    ("crates/tenure-authority/src/store/redis/sentinel.rs", "master", "Sentinel's name for the primary"),
    ("crates/tenure-sink/src/redis/sentinel.rs", "master", "Sentinel's name for the primary"),
    ("crates/tenure-servers/src/etcd.rs", "leader", "etcd's name for the member that leads"),
    ("crates/tenure-servers/src/etcd/member.rs", "leader", "a field of etcd's answers"),
    ("crates/tenure-servers/src/etcd/member.rs", "heartbeat", "an option of etcd"),
    ("crates/tenure-servers/src/s3.rs", "master", "an option and a socket of SeaweedFS"),
    ("crates/tenure-servers/src/sentinels.rs", "master", "Sentinel's name for the primary"),
];

/// Finds the words. This rule's own files hold the list and are left out.
#[must_use]
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.path.starts_with("xtask/src/tidy/words")) {
        if file.is_rust() {
            rust(file, &mut findings);
        } else if file.path.ends_with(".md") {
            phrases(file, &file.text, &mut findings);
        }
    }
    findings
}

fn rust(file: &File, findings: &mut Vec<Finding>) {
    let parts = source::split(&file.text);
    for item in source::declared(&file.text) {
        let words = source::words(&item.name);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let ours = item.public && item.keyword != "mod" && has(LOCK) && !has(MACHINE);
        if has(NEVER) || has(NEVER_DECLARED) || ours {
            say(file, item.line, &item.name, findings);
        }
    }
    for (line, code) in parts.code.lines().enumerate() {
        if let Some(field) = field(code) {
            let words = source::words(field);
            if words.iter().any(|word| NEVER.contains(&word.as_str()) || NEVER_DECLARED.contains(&word.as_str())) {
                say(file, line, field, findings);
            }
        }
    }
    if !file.is_test() {
        for text in [&parts.comments, &parts.strings] {
            for (line, text) in text.lines().enumerate() {
                let text = text.to_lowercase();
                for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| NEVER.contains(word)) {
                    say(file, line, word, findings);
                }
            }
        }
    }
    phrases(file, &parts.comments, findings);
}

fn phrases(file: &File, text: &str, findings: &mut Vec<Finding>) {
    for (line, text) in text.lines().enumerate() {
        let text = text.to_lowercase();
        for phrase in PHRASES.iter().filter(|phrase| text.contains(*phrase)) {
            say(file, line, phrase, findings);
        }
    }
}

fn say(file: &File, line: usize, word: &str, findings: &mut Vec<Finding>) {
    if !EXCEPT.iter().any(|(path, excepted, _)| *path == file.path && *excepted == word) {
        let what = format!("`{word}` is no word of ours: say lease, owner, renewal, epoch or authority");
        findings.push(Finding::on_line(file, line, what));
    }
}

/// The name of a field when the line declares one (or fills one, which has the same name).
fn field(code: &str) -> Option<&str> {
    let code = code.trim_start();
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let rest = &code[end..];
    (end > 0 && rest.starts_with(':') && !rest.starts_with("::")).then(|| &code[..end])
}

#[cfg(test)]
mod tests;
