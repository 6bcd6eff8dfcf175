//! SET NX PX, and scripts that compare before they delete or prolong; all callers on one multiplexed connection, which is
//! the faster way for many, and no slower for one.

use crate::{ByHand, compare};
use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use tenure_servers::Redis;
use tokio::runtime::Runtime;

pub(crate) fn run() {
    let server = Redis::options().appendonly(true).appendfsync("always").start();
    let url = server.url();
    let ours = format!("{url}?create=true&name=bench");
    compare("Redis, appendfsync always", &ours, |runtime, callers| hands(runtime, &url, callers));
}

struct Hand {
    connection: MultiplexedConnection,
    release: Script,
    renew: Script,
    key: String,
    held: bool,
}

fn hands(runtime: &Runtime, url: &str, callers: usize) -> Vec<Hand> {
    let client = Client::open(url).expect("an address");
    let connection = {
        // On a busy machine an answer may take longer than the driver's own half second.
        let patient = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        runtime.block_on(client.get_multiplexed_async_connection_with_config(&patient)).expect("a connection")
    };
    let hand = |n| Hand {
        connection: connection.clone(),
        release: Script::new(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end",
        ),
        renew: Script::new(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end",
        ),
        key: format!("key-{n}"),
        held: false,
    };
    (0..callers).map(hand).collect()
}

impl Hand {
    async fn acquire(&mut self) {
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg("me").arg("NX").arg("PX").arg(120_000);
        let set: Option<String> = set.query_async(&mut self.connection).await.expect("an answer");
        assert!(set.is_some(), "the key is free");
    }

    async fn release(&mut self) {
        let gone: i64 =
            self.release.key(&self.key).arg("me").invoke_async(&mut self.connection).await.expect("an answer");
        assert_eq!(gone, 1);
    }
}

impl ByHand for Hand {
    async fn cycle(&mut self) {
        self.acquire().await;
        self.release().await;
    }

    async fn renew(&mut self) {
        if !self.held {
            let _: () = redis::cmd("DEL").arg(&self.key).query_async(&mut self.connection).await.expect("an answer");
            self.acquire().await;
            self.held = true;
        }
        let renew = self.renew.key(&self.key).arg("me").arg(120_000).invoke_async(&mut self.connection).await;
        assert_eq!(renew, Ok(1));
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // The next measurement begins with free keys.
        if self.held {
            let (mut connection, key) = (self.connection.clone(), self.key.clone());
            tokio::task::spawn_local(async move {
                let _: Result<(), _> = redis::cmd("DEL").arg(&key).query_async(&mut connection).await;
            });
        }
    }
}
