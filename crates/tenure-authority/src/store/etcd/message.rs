//! What is said to the gateway and what it answers, as JSON.

use super::base64;
use serde::Deserialize;
use std::fmt::Write;

/// A key with what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    /// The revision of the last change: never the same for two changes of a key.
    pub(super) changed: u64,
}

/// What must hold for a transaction to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Compare {
    /// The key was changed last at this revision; 0: it is absent.
    Changed(String, u64),
    /// The key has this value.
    Value(String, String),
}

impl Compare {
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Changed(key, _) | Self::Value(key, _) => key,
        }
    }
}

/// One step of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Put { key: String, value: String, lease: Option<i64> },
    Delete { key: String },
    DeleteAll { prefix: String },
    Range(Range),
}

/// Keys to read, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    pub(super) key: String,
    /// `None`: only that key. Otherwise all keys before this one.
    pub(super) end: Option<String>,
    /// 0: all.
    pub(super) limit: usize,
    /// 0: as it is now. Otherwise as it was at this revision.
    pub(super) revision: u64,
    pub(super) keys_only: bool,
}

impl Range {
    pub(super) fn one(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }

    /// All keys with this beginning.
    pub(super) fn under(prefix: &str, limit: usize) -> Self {
        Self { key: prefix.to_owned(), end: Some(end_of(prefix)), limit, ..Self::default() }
    }
}

/// The first key after all that begin with this text, which ends with a character below `~`.
pub(super) fn end_of(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    if let Some(last) = end.pop() {
        end.push(char::from_u32(u32::from(last) + 1).unwrap_or(char::MAX));
    }
    end
}

/// A transaction. Its reads are linearizable: `serializable` is never asked for, or a member that was cut off would
/// answer with what was long ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Txn {
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<Op>,
    pub(super) failure: Vec<Op>,
}

/// A server takes 128 in each of the three lists.
pub(super) const OPS_MAX: usize = 120;

impl Txn {
    pub(super) fn reading(ranges: impl IntoIterator<Item = Range>) -> Self {
        Self { success: ranges.into_iter().map(Op::Range).collect(), ..Self::default() }
    }

    pub(super) fn body(&self) -> String {
        let mut body = String::with_capacity(256 * (self.compare.len() + self.success.len()));
        body.push_str("{\"compare\":[");
        for (at, compare) in self.compare.iter().enumerate() {
            comma(&mut body, at);
            body.push_str("{\"key\":\"");
            base64::write(&mut body, compare.key().as_bytes());
            match compare {
                Compare::Changed(_, revision) => {
                    let _ = write!(body, "\",\"target\":\"MOD\",\"mod_revision\":\"{revision}\"}}");
                }
                Compare::Value(_, value) => {
                    body.push_str("\",\"target\":\"VALUE\",\"value\":\"");
                    base64::write(&mut body, value.as_bytes());
                    body.push_str("\"}");
                }
            }
        }
        body.push_str("],\"success\":[");
        ops(&mut body, &self.success);
        body.push_str("],\"failure\":[");
        ops(&mut body, &self.failure);
        body.push_str("]}");
        body
    }
}

fn ops(body: &mut String, ops: &[Op]) {
    for (at, op) in ops.iter().enumerate() {
        comma(body, at);
        match op {
            Op::Put { key, value, lease } => {
                body.push_str("{\"request_put\":{\"key\":\"");
                base64::write(body, key.as_bytes());
                body.push_str("\",\"value\":\"");
                base64::write(body, value.as_bytes());
                let _ = match lease {
                    Some(lease) => write!(body, "\",\"lease\":\"{lease}\"}}}}"),
                    None => write!(body, "\"}}}}"),
                };
            }
            Op::Delete { key } => {
                body.push_str("{\"request_delete_range\":{\"key\":\"");
                base64::write(body, key.as_bytes());
                body.push_str("\"}}");
            }
            Op::DeleteAll { prefix } => {
                body.push_str("{\"request_delete_range\":{\"key\":\"");
                base64::write(body, prefix.as_bytes());
                body.push_str("\",\"range_end\":\"");
                base64::write(body, end_of(prefix).as_bytes());
                body.push_str("\"}}");
            }
            Op::Range(range) => {
                body.push_str("{\"request_range\":{\"key\":\"");
                base64::write(body, range.key.as_bytes());
                body.push('"');
                if let Some(end) = &range.end {
                    body.push_str(",\"range_end\":\"");
                    base64::write(body, end.as_bytes());
                    body.push('"');
                }
                if range.limit > 0 {
                    let _ = write!(body, ",\"limit\":\"{}\"", range.limit);
                }
                if range.revision > 0 {
                    let _ = write!(body, ",\"revision\":\"{}\"", range.revision);
                }
                if range.keys_only {
                    body.push_str(",\"keys_only\":true");
                }
                body.push_str("}}");
            }
        }
    }
}

fn comma(body: &mut String, at: usize) {
    if at > 0 {
        body.push(',');
    }
}

/// What came of a transaction.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// Which cluster answered.
    pub(super) cluster: u64,
    /// The store's revision after it.
    pub(super) revision: u64,
    pub(super) succeeded: bool,
    /// What each step read, in the order of the steps; nothing for a step that writes.
    pub(super) read: Vec<Vec<Entry>>,
}

#[derive(Deserialize)]
pub(super) struct Header {
    #[serde(default)]
    pub(super) cluster_id: String,
    #[serde(default)]
    pub(super) revision: String,
}

impl Header {
    pub(super) fn cluster(&self) -> Option<u64> {
        self.cluster_id.parse().ok()
    }

    pub(super) fn revision(&self) -> Option<u64> {
        self.revision.parse().ok()
    }
}

#[derive(Deserialize)]
struct TxnAnswer<'a> {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default, borrow)]
    responses: Vec<OpAnswer<'a>>,
}

#[derive(Deserialize)]
struct OpAnswer<'a> {
    #[serde(borrow)]
    response_range: Option<RangeAnswer<'a>>,
}

#[derive(Deserialize)]
struct RangeAnswer<'a> {
    #[serde(default, borrow)]
    kvs: Vec<KeyValue<'a>>,
}

#[derive(Deserialize)]
pub(super) struct KeyValue<'a> {
    key: &'a str,
    #[serde(default)]
    value: &'a str,
    #[serde(default)]
    mod_revision: &'a str,
}

impl KeyValue<'_> {
    pub(super) fn entry(&self) -> Option<Entry> {
        Some(Entry {
            key: text(self.key)?,
            value: text(self.value)?,
            // Absent in the event of a key that was deleted.
            changed: if self.mod_revision.is_empty() { 0 } else { self.mod_revision.parse().ok()? },
        })
    }
}

fn text(base64: &str) -> Option<String> {
    String::from_utf8(base64::read(base64)?).ok()
}

/// Reads the answer to a transaction; `None` when it makes no sense.
pub(super) fn answered(text: &str) -> Option<Answered> {
    let found: TxnAnswer<'_> = serde_json::from_str(text).ok()?;
    let entries = |of: &OpAnswer<'_>| {
        let kvs = of.response_range.as_ref().map(|range| range.kvs.as_slice()).unwrap_or_default();
        kvs.iter().map(KeyValue::entry).collect::<Option<Vec<_>>>()
    };
    Some(Answered {
        cluster: found.header.cluster()?,
        revision: found.header.revision()?,
        succeeded: found.succeeded,
        read: found.responses.iter().map(entries).collect::<Option<_>>()?,
    })
}
