//! A receiver in Redis, as an operator meets it.

use crate::site::{Site, hold};
use tenure_servers::Redis;

/// `RedisSink::warnings` was there, and nobody was ever shown it.
#[test]
fn the_doctor_says_that_it_may_lose_and_which_setting_weakens_it() {
    let (site, redis) = (Site::new(), Redis::start());
    let url = format!("{}?create=true", redis.url());
    let weak = ["may lose: a failover", "appendfsync is everysec", "set it to always"];
    site.tenure(&["doctor", "--sink", &url]).ended(0).with(&weak);
    // The same for one that a resource has enrolled.
    let lease = hold(&site.worker("alice"), "nightly", &[&url]);
    site.tenure(&["doctor", "--sink", &url]).ended(0).with(&weak).with(&["agrees with the authority"]);
    redis.cli(&["config", "set", "appendfsync", "always"]);
    let said = site.tenure(&["doctor", "--sink", &url]).ended(0);
    assert!(!said.out.contains("appendfsync"), "{}", said.out);
    lease.release().unwrap();
}
