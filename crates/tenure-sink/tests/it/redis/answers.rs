//! Answers that do not come.

use super::{Shop, connect, judged, operation, written};
use crate::token;
use tenure_core::{Replayed, Verdict};
use tenure_servers::{Proxy, Redis};
use tenure_sink::redis::{Fate, Trace};
use tenure_sink::{ApplyError, SinkError};

#[test]
fn a_lost_answer_is_unknown_and_a_look_up_finds_the_effect() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "before"), written());
    let proxy = Proxy::to(server.port());
    let mut connection = connect(&proxy.url(&server.url()));
    proxy.drop_answer_to(b"paid-17");
    let order = operation("order-17", "paid-17");
    let write = shop.fence().set(&token(1), shop.key("value"), "paid-17").once(&order);
    let fate = write.send_blocking(&mut connection).unwrap();
    assert!(matches!(fate, Fate::Unknown { .. }), "{fate:?}");
    // Once more under the next epoch, as its successor would ask.
    shop.seal(&token(2));
    let mut connection = connect(&server.url());
    let traced = shop.fence().lookup(&token(2), &order.id).send_blocking(&mut connection).unwrap().unwrap();
    assert!(matches!(&traced, Trace::Found(found) if found.epoch == token(1).epoch && found.digest == order.digest));
    let again = shop.fence().set(&token(2), shop.key("value"), "paid-17").once(&order);
    let replayed = Replayed { epoch: token(1).epoch, outcome: order.outcome };
    assert_eq!(again.send_blocking(&mut connection).unwrap(), judged(Verdict::Replay(replayed)));
}

#[test]
fn a_write_that_never_arrived_is_unknown_and_a_look_up_finds_nothing() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let proxy = Proxy::to(server.port());
    let mut connection = connect(&proxy.url(&server.url()));
    proxy.cut();
    let order = operation("order-18", "paid");
    let write = shop.fence().set(&token(1), shop.key("value"), "paid").once(&order);
    assert!(matches!(write.send_blocking(&mut connection).unwrap(), Fate::Unknown { .. }));
    let mut connection = connect(&server.url());
    let traced = shop.fence().lookup(&token(1), &order.id).send_blocking(&mut connection).unwrap().unwrap();
    assert_eq!(traced, Trace::Absent);
}

/// The same on a connection that many share: it is the answer that is late, and the write stands.
#[tokio::test(flavor = "current_thread")]
async fn an_answer_that_is_late_is_unknown() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "before"), written());
    let proxy = Proxy::to(server.port());
    let client = redis::Client::open(proxy.url(&server.url())).unwrap();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(std::time::Duration::from_millis(300)));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    proxy.hold_answers();
    let order = operation("order-19", "paid");
    let write = shop.fence().set(&token(1), shop.key("value"), "paid").once(&order);
    let fate = write.send(&mut connection).await.unwrap();
    assert!(matches!(&fate, Fate::Unknown { why } if why.contains("in time")), "{fate:?}");
    proxy.heal();
    let traced = shop.fence().lookup(&token(1), &order.id).send(&mut connection).await.unwrap().unwrap();
    assert!(matches!(traced, Trace::Found(_)), "{traced:?}");
}

/// What the server refuses before it begins is certain, and no unknown.
#[test]
fn a_refusal_of_the_server_is_certain() {
    let server = Redis::options().conf("maxmemory 4mb").start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["config", "set", "maxmemory", "1"]);
    let order = operation("order-20", "paid");
    let write = shop.fence().set(&token(1), shop.key("value"), "paid").once(&order);
    let error = write.send_blocking(&mut connect(&server.url())).unwrap_err();
    assert!(error.to_string().contains("maxmemory"), "{error}");
    // In a pipeline it comes among the answers. It was taken for a damaged sink.
    let mut pipeline = redis::pipe();
    pipeline.add_command(write.to_command().unwrap()).ignore_errors();
    let said: redis::Value = pipeline.query(&mut connect(&server.url())).unwrap();
    let redis::Value::Array(mut said) = said else { panic!("no answers: {said:?}") };
    let error = write.fate_of(Ok(said.remove(0))).unwrap_err();
    assert!(matches!(error, ApplyError::Sink(SinkError::Full { .. })), "{error}");
    server.cli(&["config", "set", "maxmemory", "0"]);
    let traced = shop.fence().lookup(&token(1), &order.id).send_blocking(&mut connect(&server.url()));
    assert_eq!(traced.unwrap().unwrap(), Trace::Absent);
    assert_eq!(write.send_blocking(&mut connect(&server.url())).unwrap(), written());
}
