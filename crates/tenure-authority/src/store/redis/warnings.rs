//! What the server's settings do to the store's promises.

use super::link::Link;
use super::place::Place;
use std::collections::HashMap;

const SETTINGS: [&str; 4] = ["appendonly", "save", "appendfsync", "min-replicas-to-write"];

/// Each with the name of the setting first.
pub(super) async fn warnings(link: &Link, place: &Place) -> Vec<String> {
    let mut connection = link.connection.clone();
    let asked: redis::RedisResult<HashMap<String, String>> =
        redis::cmd("CONFIG").arg("GET").arg(&SETTINGS).query_async(&mut connection).await;
    let mut found = evicts(link).await;
    match asked {
        Ok(settings) => found.extend(of(&settings, place.replicas)),
        Err(error) => found.push(format!(
            "CONFIG GET is refused ({error}): nobody can tell from here whether the server saves the store; grant \
             +config|get"
        )),
    }
    found
}

/// What a server throws away when it is full. Only `allkeys-…` throws keys away that have no time to live.
async fn evicts(link: &Link) -> Vec<String> {
    let mut connection = link.connection.clone();
    let info: redis::RedisResult<String> = redis::cmd("INFO").arg("memory").query_async(&mut connection).await;
    let info = info.unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let policy = field("maxmemory_policy:");
    if matches!(field("maxmemory:"), "0" | "") || !policy.starts_with("allkeys-") {
        return Vec::new();
    }
    vec![format!("maxmemory-policy is {policy}: the server may throw the store away; set it to noeviction")]
}

fn of(settings: &HashMap<String, String>, replicas: u32) -> Vec<String> {
    let setting = |name: &str| settings.get(name).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    match (setting("appendonly"), setting("save")) {
        ("yes", _) if setting("appendfsync") != "always" => found.push(format!(
            "appendfsync is {}: a crash of the machine takes the last changes with it; set it to always",
            setting("appendfsync")
        )),
        ("yes", _) => {}
        (_, "") => found.push(
            "appendonly is no and save is empty: nothing is kept, and a restart is the end of the store: one that is made \
             again grants at once what former holders still believe in; set appendonly to yes and appendfsync to always"
                .to_owned(),
        ),
        _ => found.push(
            "appendonly is no: a restart takes the store back to its last snapshot; set appendonly to yes and \
             appendfsync to always"
                .to_owned(),
        ),
    }
    if replicas > 0 && matches!(setting("min-replicas-to-write"), "0" | "") {
        found.push(format!(
            "min-replicas-to-write is 0 although replicas={replicas} is asked for: a primary that is cut off goes on \
             taking changes; set it to {replicas}"
        ));
    }
    found
}

/// Says them once, when the store is opened.
pub(super) async fn tell(link: &Link, place: &Place) {
    for warning in warnings(link, place).await {
        tracing::warn!(store = %place.shown, "{warning}");
    }
}
