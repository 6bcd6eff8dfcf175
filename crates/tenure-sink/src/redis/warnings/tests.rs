use super::of_settings;
use std::collections::HashMap;

fn warned(settings: &[(&str, &str)], has_replicas: bool) -> Vec<String> {
    let base = [("appendonly", "yes"), ("appendfsync", "always"), ("save", ""), ("maxmemory-policy", "noeviction")];
    let all: HashMap<_, _> =
        base.iter().chain(settings).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    of_settings(&all, has_replicas)
}

#[test]
fn each_setting_that_weakens_the_sink_is_named_first() {
    assert_eq!(warned(&[], false), Vec::<String>::new());
    for (setting, value) in [("maxmemory-policy", "allkeys-lru"), ("appendfsync", "everysec"), ("appendonly", "no")] {
        let said = warned(&[(setting, value)], false);
        assert!(said.len() == 1 && said[0].starts_with(setting), "{setting}: {said:?}");
    }
    assert!(warned(&[("min-replicas-to-write", "0")], true)[0].starts_with("min-replicas-to-write"));
    assert_eq!(warned(&[("min-replicas-to-write", "1")], true), Vec::<String>::new());
    assert_eq!(warned(&[("maxmemory-policy", "volatile-lru")], false), Vec::<String>::new(), "its keys never expire");
}
