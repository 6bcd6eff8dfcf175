//! How a verb reaches the server: as a function, or as a script.

use super::{Shop, connect, open, operation, written};
use crate::token;
use tenure_core::fence::{Forgetting, Rule};
use tenure_servers::Redis;
use tenure_sink::conformance::answered;
use tenure_sink::redis::{Mended, Mending, Trace};
use tenure_sink::{RedisSink, Sink};

/// What stands for a server before version 7: it knows neither of the two commands.
pub(super) fn without_functions() -> Redis {
    Redis::options().conf("rename-command FCALL \"\"").conf("rename-command FUNCTION \"\"").start()
}

#[test]
fn a_library_that_is_gone_is_loaded_again() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert!(server.cli(&["function", "list"]).contains("tenure2"));
    server.cli(&["function", "flush"]);
    assert_eq!(shop.write(&server, &token(1), "a"), written());
    assert!(server.cli(&["function", "list"]).contains("tenure2_write"));
    assert_eq!(shop.value(&server), "a");
}

#[test]
fn without_functions_scripts_do_and_are_sent_again_when_they_are_gone() {
    let server = without_functions();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "a"), written());
    server.cli(&["script", "flush"]);
    assert_eq!(shop.write(&server, &token(1), "b"), written());
    assert_eq!(shop.value(&server), "b");
}

#[test]
fn a_user_who_may_not_call_functions_runs_scripts() {
    let server = Redis::start();
    server.cli(&["acl", "setuser", "worker", "on", ">word", "~*", "+@all", "-fcall", "-function"]);
    let url = server.url().replace("redis://", "redis://worker:word@");
    let shop = Shop::create(&url, Rule::Sealed);
    shop.seal(&token(1));
    let write = shop.fence().set(&token(1), shop.key("value"), "a");
    assert_eq!(write.send_blocking(&mut connect(&url)).unwrap(), written());
    assert_eq!(server.cli(&["function", "list"]), "");
}

/// The page that an operator reads lists what a worker needs. With no more than that, every verb works.
#[test]
fn the_rights_that_the_page_lists_are_enough() {
    const PAGE: &str = include_str!("../../../../../docs/redis-sink.md");
    let rights = PAGE.split("ACL SETUSER worker ").nth(1).unwrap().split("```").next().unwrap();
    let rights = rights.replace("PASSWORD", "word").replace("{shop}", "{shop*}");
    let server = Redis::start();
    let listed: Vec<_> = ["acl", "setuser", "worker"].into_iter().chain(rights.split_whitespace()).collect();
    assert_eq!(server.cli(&[&listed[..], &["+set"]].concat()), "OK");
    let url = server.url().replace("redis://", "redis://worker:word@");
    let shop = Shop::create(&url, Rule::Sealed);
    shop.seal(&token(1));
    let (fence, order, mut connection) = (shop.fence(), operation("order", "a"), connect(&url));
    let write = fence.set(&token(1), shop.key("value"), "a").once(&order);
    assert_eq!(write.send_blocking(&mut connection).unwrap(), written());
    let traced = fence.lookup(&token(1), &order.id).send_blocking(&mut connection).unwrap().unwrap();
    assert!(matches!(traced, Trace::Found(_)), "{traced:?}");
    let mend = fence.mend(&token(1), &order.id, &Mending::NotApplied).send_blocking(&mut connection).unwrap().unwrap();
    assert!(matches!(mend, Mended::Was(Trace::Found(_))), "{mend:?}");
    assert_eq!(answered(shop.sink.rows(None, 10)).unwrap().rows.len(), 1);
    answered(shop.sink.reopen()).unwrap();
    let forgotten = answered(shop.sink.forget(&token(1).resource, token(1).epoch)).unwrap();
    assert!(matches!(forgotten, Forgetting::Forget { .. }), "{forgotten:?}");
}

/// The verbs are one text for all languages, and a plain client needs no more than `FCALL`.
#[test]
fn the_verbs_are_called_by_hand() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    let (key, grant) = (shop.key("fences"), "00000000000000000000000000000001");
    let generation = server.cli(&["fcall", "tenure2_describe", "1", &key, "r", "sealed"]);
    let generation = generation.lines().nth(1).unwrap();
    let sealed = server.cli(&["fcall", "tenure2_seal", "1", &key, "r", "1", grant, "sealed", generation, "sink"]);
    assert!(sealed.starts_with("sealed"), "{sealed}");
    let value = shop.key("value");
    let write = |epoch: &str, value_of: &str| {
        let args =
            ["fcall", "tenure2_write", "2", &key, &value, "r", epoch, grant, "sealed", "", "", "", "SET", value_of];
        server.cli(&args)
    };
    assert_eq!(write("1", "a"), "written");
    assert_eq!(write("2", "b"), "unsealed");
    assert_eq!(shop.value(&server), "a");
    // It is the token that the library knows by its type.
    assert_eq!(shop.write(&server, &token(1), "c"), written());
}

/// Nothing that has no place in a token is registered, whoever calls.
#[test]
fn a_token_that_is_none_is_not_registered_by_hand() {
    let server = Redis::start();
    for rule in [Rule::Sealed, Rule::HighWater] {
        let shop = Shop::create(&server.url(), rule);
        let (key, grant) = (shop.key("fences"), "00000000000000000000000000000001");
        let generation = server.cli(&["fcall", "tenure2_describe", "1", &key, "r", rule.name()]);
        let generation = generation.lines().nth(1).unwrap().to_owned();
        for (resource, epoch, grant) in [
            ("r", "9223372036854775808", grant),
            ("r", "0", grant),
            ("r", "-1", grant),
            ("r", "1e3", grant),
            ("r", "01", grant),
            ("r", "", grant),
            ("r", "1", "1"),
            ("r", "1", "0000000000000000000000000000000G"),
            ("a\nb", "1", grant),
            ("a\0b", "1", grant),
        ] {
            let mut connection = open(&server);
            let mut asked = redis::cmd("FCALL");
            if rule == Rule::Sealed {
                asked.arg("tenure2_seal").arg(1).arg(&key).arg(resource).arg(epoch).arg(grant).arg("sealed");
                asked.arg(&generation).arg("");
            } else {
                asked.arg("tenure2_write").arg(2).arg(&key).arg(shop.key("value")).arg(resource).arg(epoch);
                asked.arg(grant).arg("high-water").arg("").arg("").arg("").arg("SET").arg("x");
            }
            let said: Vec<String> = asked.query(&mut connection).unwrap();
            assert_eq!(said[0], "malformed", "{resource:?} {epoch} {grant}: {said:?}");
        }
        assert_eq!(server.cli(&["hlen", &key]), "1", "something was registered");
        assert_eq!(server.cli(&["exists", &shop.key("value")]), "0");
        RedisSink::open(&shop.url).unwrap();
    }
}
