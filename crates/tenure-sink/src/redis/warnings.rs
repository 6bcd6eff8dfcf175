//! What the server's settings do to the sink's promises.

use super::server::{Link, Server};
use crate::SinkError;
use std::collections::HashMap;

const SETTINGS: [&str; 5] = ["appendonly", "save", "appendfsync", "min-replicas-to-write", "maxmemory-policy"];

/// Each with the name of the setting, or of the key, first.
pub(super) fn warnings(server: &Server) -> Result<Vec<String>, SinkError> {
    let mut link = server.link()?;
    let mut found = Vec::new();
    match redis::cmd("CONFIG").arg("GET").arg(&SETTINGS).query::<HashMap<String, String>>(&mut link.connection) {
        Ok(settings) => found.extend(of_settings(&settings, has_replicas(&mut link))),
        Err(error) => found.push(format!(
            "CONFIG GET is refused ({error}): nobody can tell from here whether the server keeps the sink; grant +config|get"
        )),
    }
    let fences = server.fence.key();
    let stem = fences.trim_end_matches("fences");
    for key in ["fences", "names", "operations"].map(|name| format!("{stem}{name}")) {
        // One that may not be asked, or is not there, has none that is known.
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut link.connection).unwrap_or(-1);
        if left >= 0 {
            found.push(format!(
                "{key} has a time to live ({left} ms): the sink is gone after it, and refuses everything; PERSIST {key}"
            ));
        }
    }
    Ok(found)
}

fn has_replicas(link: &mut Link) -> bool {
    let info: String = redis::cmd("INFO").arg("replication").query(&mut link.connection).unwrap_or_default();
    info.lines().any(|line| line.strip_prefix("connected_slaves:").is_some_and(|number| number.trim() != "0"))
}

fn of_settings(settings: &HashMap<String, String>, has_replicas: bool) -> Vec<String> {
    let setting = |name: &str| settings.get(name).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    if setting("maxmemory-policy").starts_with("allkeys-") {
        found.push(format!(
            "maxmemory-policy is {}: a full server throws the sink away, and it refuses everything then; set it to noeviction",
            setting("maxmemory-policy")
        ));
    }
    match (setting("appendonly"), setting("save")) {
        ("yes", _) if setting("appendfsync") != "always" => found.push(format!(
            "appendfsync is {}: a crash of the machine takes the last writes and seals with it; set it to always",
            setting("appendfsync")
        )),
        ("yes", _) => {}
        (_, "") => found.push(
            "appendonly is no and save is empty: nothing is kept, and a restart is the end of the sink; set appendonly to \
             yes and appendfsync to always"
                .to_owned(),
        ),
        _ => found.push(
            "appendonly is no: a restart takes the sink back to its last snapshot; set appendonly to yes and appendfsync to \
             always"
                .to_owned(),
        ),
    }
    if has_replicas && matches!(setting("min-replicas-to-write"), "0" | "") {
        found.push(
            "min-replicas-to-write is 0 although replicas follow: a primary that is cut off goes on taking writes, which are \
             lost; set it to 1"
                .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests;
