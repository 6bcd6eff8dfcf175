//! Scripts of the caller's own, and those that end in their middle.

use super::{Shop, judged, open, operation, refused, stale, written};
use crate::token;
use tenure_core::{Outcome, Replayed, Verdict};
use tenure_servers::Redis;
use tenure_sink::redis::{Fate, Mended, Mending, RedisScript, Trace};
use tenure_sink::{ApplyError, SinkError};

fn outcome(text: &str) -> Outcome {
    Outcome::new(text).unwrap()
}

#[test]
fn a_script_sees_its_own_keys_and_arguments_and_its_answer_is_kept() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    let script = RedisScript::new(
        "assert(#KEYS == 2 and #ARGV == 1)
         redis.call('SET', KEYS[1], ARGV[1])
         return redis.call('INCR', KEYS[2])",
    );
    let order = operation("order", "1");
    let write =
        shop.fence().apply(&token(1), &script, [shop.key("value"), shop.key("count")], ["a'\"\0\n"]).once(&order);
    let said = write.send_blocking(&mut connection).unwrap();
    assert_eq!(said, Fate::Judged { verdict: Verdict::Written, said: Some(outcome("1")) });
    let replayed = Replayed { epoch: token(1).epoch, outcome: outcome("1") };
    assert_eq!(write.send_blocking(&mut connection).unwrap(), judged(Verdict::Replay(replayed)));
    assert_eq!(server.cli(&["get", &shop.key("count")]), "1", "it ran again");
    let value: Vec<u8> = redis::cmd("GET").arg(shop.key("value")).query(&mut connection).unwrap();
    assert_eq!(value, b"a'\"\0\n");
}

#[test]
fn a_script_that_returns_nothing_has_the_outcome_that_was_given() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    for (number, returns) in ["", "return nil", "return true", "return {1, 2}"].into_iter().enumerate() {
        let order = operation(&format!("order-{number}"), "x");
        let script = RedisScript::new(&format!("redis.call('SET', KEYS[1], '1') {returns}"));
        let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("value")], []).once(&order);
        assert_eq!(write.send_blocking(&mut connection).unwrap(), written(), "{returns}");
        let replayed = Replayed { epoch: token(1).epoch, outcome: order.outcome };
        assert_eq!(write.send_blocking(&mut connection).unwrap(), judged(Verdict::Replay(replayed)), "{returns}");
    }
    let long = RedisScript::new("return string.rep('\\195\\188', 40000) .. '\\255'");
    let write = shop.fence().apply::<&str, &str>(&token(1), &long, [], []);
    let Fate::Judged { verdict: Verdict::Written, said: Some(said) } = write.send_blocking(&mut connection).unwrap()
    else {
        panic!("it was not written");
    };
    assert_eq!(said.as_str(), "ü".repeat(32 * 1024), "it is cut at what an outcome may have");
}

#[test]
fn a_script_of_an_old_token_does_not_run() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    shop.seal(&token(2));
    let script = RedisScript::new("redis.call('SET', KEYS[1], 'late')");
    let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("value")], []);
    assert_eq!(write.send_blocking(&mut open(&server)).unwrap(), stale(&token(1), &token(2)));
    assert_eq!(server.cli(&["exists", &shop.key("value")]), "0");
}

/// Redis undoes nothing. The operation is recorded as what it is, nobody runs it again, and it is no success to anybody.
#[test]
fn a_script_that_breaks_off_after_a_write_is_neither_done_nor_run_again() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    let (debit, credit) = (shop.key("debit"), shop.key("credit"));
    server.cli(&["set", &credit, "not a number"]);
    let transfer = RedisScript::new("redis.call('DECRBY', KEYS[1], ARGV[1]) redis.call('INCRBY', KEYS[2], ARGV[1])");
    let order = operation("transfer-1", "5");
    let write = |epoch| shop.fence().apply(&token(epoch), &transfer, [&debit, &credit], ["5"]).once(&order);
    let Fate::Broken(broken) = write(1).send_blocking(&mut connection).unwrap() else { panic!("it came to its end") };
    assert!(broken.epoch == token(1).epoch && broken.why.contains("not an integer"), "{broken:?}");
    assert_eq!(server.cli(&["get", &debit]), "-5");

    // The cause is gone, and it still does not run: its first half would be done twice.
    server.cli(&["set", &credit, "0"]);
    shop.seal(&token(2));
    assert_eq!(write(2).send_blocking(&mut connection).unwrap(), Fate::Broken(broken.clone()));
    assert_eq!(server.cli(&["get", &debit]), "-5");
    let fence = shop.fence();
    let trace = |id| fence.lookup(&token(2), id).send_blocking(&mut open(&server)).unwrap().unwrap();
    assert_eq!(trace(&order.id), Trace::Broken(broken));

    // A person does the other half by hand and says so.
    server.cli(&["incrby", &credit, "5"]);
    let mend = |mending: Mending| {
        fence.mend(&token(2), &order.id, &mending).send_blocking(&mut open(&server)).unwrap().unwrap()
    };
    assert_eq!(mend(Mending::Applied(outcome("by hand"))), Mended::Done);
    assert!(matches!(mend(Mending::NotApplied), Mended::Was(Trace::Found(_))), "a second word changes nothing");
    let replayed = Replayed { epoch: token(1).epoch, outcome: outcome("by hand") };
    assert_eq!(write(2).send_blocking(&mut connection).unwrap(), judged(Verdict::Replay(replayed)));
}

#[test]
fn what_was_undone_by_hand_may_run_again() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    let order = operation("half", "x");
    let script = RedisScript::new("redis.call('SET', KEYS[1], 'half') if ARGV[1] == 'fail' then error('no') end");
    let write = |how| shop.fence().apply(&token(1), &script, [shop.key("value")], [how]).once(&order);
    assert!(matches!(write("fail").send_blocking(&mut connection).unwrap(), Fate::Broken(_)));
    server.cli(&["del", &shop.key("value")]);
    let fence = shop.fence();
    let mend = fence.mend(&token(1), &order.id, &Mending::NotApplied);
    shop.seal(&token(2));
    let refused = mend.send_blocking(&mut connection).unwrap().unwrap_err();
    assert_eq!(refused.name(), "stale", "only the holder may say so");
    let mend = fence.mend(&token(2), &order.id, &Mending::NotApplied);
    assert_eq!(mend.send_blocking(&mut connection).unwrap().unwrap(), Mended::Done);
    let trace = fence.lookup(&token(2), &order.id).send_blocking(&mut connection).unwrap().unwrap();
    assert_eq!(trace, Trace::Absent);
    let again = fence.apply(&token(2), &script, [shop.key("value")], ["go"]).once(&order);
    assert_eq!(again.send_blocking(&mut connection).unwrap(), written());
    let never = operation("never", "x");
    let mend = fence.mend(&token(2), &never.id, &Mending::NotApplied);
    assert_eq!(mend.send_blocking(&mut connection).unwrap().unwrap(), Mended::Was(Trace::Absent));
}

/// An operation was recorded in the database where its script had gone, and not where its repetition looked: it was done twice,
/// and answered `written` each time.
#[test]
fn a_script_does_not_go_to_another_database() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    for (number, leaves) in [
        "redis.call('SELECT', 1)",
        "redis.call('SeLeCt', '1')",
        "local said = redis.pcall('SELECT', 1) if said.err then error(said.err) end",
        "redis.call('SWAPDB', 0, 1)",
    ]
    .into_iter()
    .enumerate()
    {
        let order = operation(&format!("order-{number}"), "x");
        let script = RedisScript::new(&format!("{leaves} redis.call('INCR', KEYS[1])"));
        let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("stock")], []).once(&order);
        for _ in 0..2 {
            let why = refused(write.send_blocking(&mut connection));
            assert!(why.contains("another database"), "{leaves}: {why}");
        }
        let trace = shop.fence().lookup(&token(1), &order.id).send_blocking(&mut connection).unwrap().unwrap();
        assert_eq!(trace, Trace::Absent, "{leaves}");
    }
    // What was done before it stands, and is recorded as what it is.
    let order = operation("half", "x");
    let script =
        RedisScript::new("redis.call('INCR', KEYS[1]) redis.call('SELECT', 1) redis.call('SET', 'elsewhere', 1)");
    let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("stock")], []).once(&order);
    for _ in 0..2 {
        let broken = write.send_blocking(&mut connection).unwrap();
        assert!(matches!(&broken, Fate::Broken(broken) if broken.why.contains("another database")), "{broken:?}");
    }
    assert_eq!(server.cli(&["get", &shop.key("stock")]), "1");
    for (name, args) in [("SELECT", &["1"][..]), ("select", &["1"]), ("SWAPDB", &["0", "1"])] {
        let write = shop.fence().command::<&str, _>(&token(1), name, [], args).once(&operation(name, "x"));
        let why = refused(write.send_blocking(&mut connection));
        assert!(why.contains("another database"), "{name}: {why}");
    }
    assert_eq!(server.cli(&["-n", "1", "dbsize"]), "0");
}

/// Lua writes a number of more than fourteen digits as 1.7645e+15, and that was the outcome for good.
#[test]
fn a_number_that_a_script_returns_keeps_its_digits() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    for (number, said) in [
        ("1764500000000007", "1764500000000007"),
        ("-9007199254740991", "-9007199254740991"),
        ("1000000000000000000", "1000000000000000000"),
        ("-0", "0"),
        ("0.1", "0.1"),
        ("0.12345678901234567", "0.12345678901234566"),
        ("1e300", "1e+300"),
        ("1 / 0", "inf"),
    ] {
        let order = operation(&format!("order {number}"), "x");
        let script = RedisScript::new(&format!("redis.call('SET', KEYS[1], '1') return {number}"));
        let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("value")], []).once(&order);
        let first = write.send_blocking(&mut connection).unwrap();
        assert_eq!(first, Fate::Judged { verdict: Verdict::Written, said: Some(outcome(said)) });
        let replayed = Replayed { epoch: token(1).epoch, outcome: outcome(said) };
        assert_eq!(write.send_blocking(&mut connection).unwrap(), judged(Verdict::Replay(replayed)));
    }
}

/// A refusal before the first write leaves nothing, however it is said.
#[test]
fn a_script_that_refuses_before_it_writes_leaves_nothing() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    server.cli(&["set", &shop.key("stock"), "0"]);
    for (text, reason) in [
        ("if redis.call('get', KEYS[1]) == '0' then error('sold out') end", "sold out"),
        ("if redis.call('GET', KEYS[1]) == '0' then return {err = 'SOLD out'} end", "SOLD out"),
        ("return redis.error_reply('SOLD out')", "SOLD out"),
        ("redis.call('HSET', KEYS[1], 'a', 'b')", "WRONGTYPE"),
        ("local said = redis.pcall('HSET', KEYS[1], 'a', 'b') error('it said ' .. said.err)", "it said WRONGTYPE"),
        ("redis.call('NOTHING')", "nknown"),
        ("local none = nil return none.field", "nil"),
        ("error({code = 5})", "raised no text"),
    ] {
        let order = operation("order", "x");
        let script = RedisScript::new(text);
        let write = shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("stock")], []).once(&order);
        let why = refused(write.send_blocking(&mut connection));
        assert!(why.contains(reason), "{text}: {why}");
        let trace = shop.fence().lookup(&token(1), &order.id).send_blocking(&mut connection).unwrap().unwrap();
        assert_eq!(trace, Trace::Absent, "{text}");
    }
    assert_eq!(server.cli(&["get", &shop.key("stock")]), "0");
}

#[test]
fn a_script_that_is_no_lua_is_an_error_and_nothing_ran() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let script = RedisScript::new("redis.call('SET', KEYS[1] return");
    let said =
        shop.fence().apply::<_, &str>(&token(1), &script, [shop.key("value")], []).send_blocking(&mut open(&server));
    assert!(matches!(&said, Err(ApplyError::Sink(SinkError::Failed { .. }))), "{said:?}");
    assert!(said.unwrap_err().to_string().contains("compiling"));
}

/// Under the high-water rule the half that stands was accepted, so its epoch counts from then on; a refusal does not.
#[test]
fn the_fence_is_raised_by_a_half_and_not_by_a_refusal() {
    let server = Redis::start();
    let shop = Shop::create(&server.url(), tenure_core::fence::Rule::HighWater);
    let mut connection = open(&server);
    let write = |epoch: u64, text: &str| {
        let script = RedisScript::new(text);
        shop.fence().apply::<_, &str>(&token(epoch), &script, [shop.key("value")], []).send_blocking(&mut open(&server))
    };
    let set = |epoch: u64, connection: &mut redis::Connection| {
        shop.fence().set(&token(epoch), shop.key("value"), "x").send_blocking(connection).unwrap()
    };
    refused(write(7, "error('no')"));
    assert_eq!(server.cli(&["hlen", &shop.key("fences")]), "1", "the first fence of a resource stayed");
    assert_eq!(server.cli(&["zcard", &shop.key("names")]), "1");
    assert_eq!(set(1, &mut connection), written());
    refused(write(7, "error('no')"));
    assert_eq!(set(2, &mut connection), written(), "a refusal has raised the fence");
    let half = write(8, "redis.call('SET', KEYS[1], 'half') error('no')").unwrap();
    assert!(matches!(half, Fate::Broken(_)), "{half:?}");
    assert_eq!(set(3, &mut connection), stale(&token(3), &token(8)));
}
