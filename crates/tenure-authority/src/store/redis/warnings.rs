//! What the server's settings do to the store's promises.

use super::link::Link;
use super::place::Place;
use crate::StoreError;
use std::collections::HashMap;

const SETTINGS: [&str; 6] =
    ["maxmemory", "maxmemory-policy", "appendonly", "save", "appendfsync", "min-replicas-to-write"];

/// The oldest version that refuses a script before it begins, or not at all.
const VERSION_MIN: u32 = 7;

/// Each with the name of the setting first.
pub(super) async fn warnings(link: &Link, place: &Place) -> Vec<String> {
    let mut connection = link.connection.clone();
    let asked: redis::RedisResult<HashMap<String, String>> =
        redis::cmd("CONFIG").arg("GET").arg(&SETTINGS).query_async(&mut connection).await;
    match asked {
        Ok(settings) => of(&settings, place.replicas),
        Err(error) => vec![format!(
            "CONFIG GET is refused ({error}): nobody can tell from here whether the server evicts keys or saves them; \
             grant +config|get"
        )],
    }
}

fn of(settings: &HashMap<String, String>, replicas: u32) -> Vec<String> {
    let setting = |name: &str| settings.get(name).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    let policy = setting("maxmemory-policy");
    if !matches!(setting("maxmemory"), "0" | "") && policy != "noeviction" {
        found.push(format!(
            "maxmemory-policy is {policy}: the server may throw records of the store away; set it to noeviction"
        ));
    }
    match (setting("appendonly"), setting("save")) {
        ("yes", _) if setting("appendfsync") != "always" => found.push(format!(
            "appendfsync is {}: a crash of the machine takes the last changes with it; set it to always",
            setting("appendfsync")
        )),
        ("yes", _) => {}
        (_, "") => found.push(
            "appendonly is no and save is empty: nothing is kept, and a restart is the end of the store; set \
             appendonly to yes and appendfsync to always"
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
pub(super) async fn tell(link: &Link, place: &Place) -> Result<(), StoreError> {
    let mut connection = link.connection.clone();
    let info: redis::RedisResult<String> = redis::cmd("INFO").arg("server").query_async(&mut connection).await;
    // One that may not be asked will refuse what follows with the right it lacks.
    if let Ok(info) = info {
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or_default().trim();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major < VERSION_MIN) {
            return Err(StoreError::Engine(format!(
                "redis_version is {version}, and tenure needs Redis {VERSION_MIN}"
            )));
        }
    }
    for warning in warnings(link, place).await {
        tracing::warn!(store = %place.shown, "{warning}");
    }
    Ok(())
}
