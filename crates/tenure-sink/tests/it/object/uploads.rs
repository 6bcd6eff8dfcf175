//! Content that is too long for one request.

use super::wire::{Gate, Trouble};
use super::{Shop, resource, sent, stale, written};
use crate::token;
use object_store::memory::InMemory;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use tenure_core::fence::Rule;
use tenure_servers::S3;
use tenure_sink::conformance::answered;

/// Two whole parts and a piece.
fn long() -> Vec<u8> {
    (0..17 * 1024 * 1024_u32).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect()
}

#[test]
fn long_content_goes_in_parts_and_comes_back_whole() {
    for shop in [Shop::in_memory(), Shop::create(super::s3::prefixed(S3::shared()), Rule::Sealed)] {
        shop.seal(&token(1));
        let long = long();
        assert_eq!(sent(shop.sink.write(&token(1)).put("at once", long.clone())).unwrap(), written());
        let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
        for piece in long.chunks(3_000_000) {
            answered(upload.write(piece)).unwrap();
        }
        let staged = answered(upload.finish()).unwrap();
        assert_eq!(answered(shop.sink.read(&resource(), "in pieces")).unwrap(), None, "the data came before the name");
        assert_eq!(sent(shop.sink.write(&token(1)).place("in pieces", staged)).unwrap(), written());
        for name in ["at once", "in pieces"] {
            let content = answered(shop.sink.read(&resource(), name)).unwrap().unwrap();
            assert!(content == long, "{name}: {} bytes", content.len());
        }
        let names = answered(shop.sink.names(&resource())).unwrap();
        let bytes: Vec<_> = names.iter().map(|(name, object)| (name, object.bytes(), object.epoch())).collect();
        let length = long.len() as u64;
        assert_eq!(bytes, [("at once", length, token(1).epoch), ("in pieces", length, token(1).epoch)]);
    }
}

/// A takeover while parts are on their way: the upload may end, and names nothing.
#[test]
fn an_upload_that_a_takeover_overtakes_is_refused() {
    let shop = Shop::create(Arc::new(InMemory::new()), Rule::Sealed);
    shop.seal(&token(1));
    let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
    answered(upload.write(vec![1; 9 * 1024 * 1024])).unwrap();
    shop.another().seal(&token(2));
    answered(upload.write(b"the rest")).unwrap();
    let staged = answered(upload.finish()).unwrap();
    assert_eq!(sent(shop.sink.write(&token(1)).place("value", staged)).unwrap(), stale(&token(1), &token(2)));
    assert!(answered(shop.sink.names(&resource())).unwrap().is_empty());
    let refused = answered(shop.sink.upload(&token(1))).unwrap().unwrap_err();
    assert_eq!(refused.name(), "stale");
}

#[test]
fn an_upload_that_is_given_up_leaves_nothing() {
    let shop = Shop::create(super::s3::prefixed(S3::shared()), Rule::Sealed);
    shop.seal(&token(1));
    let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
    answered(upload.write(vec![1; 9 * 1024 * 1024])).unwrap();
    answered(upload.abort()).unwrap();
    let empty = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
    let staged = answered(empty.finish()).unwrap();
    assert_eq!(sent(shop.sink.write(&token(1)).place("empty", staged)).unwrap(), written());
    assert_eq!(shop.value_of("empty").as_deref(), Some(""));
}

/// The first part was not sent, once because the store did not answer and once because the caller had given up waiting. The next
/// piece was taken all the same, and so was the end: a name stood for eight MiB of sixteen, in the place of content that was good.
#[test]
fn an_upload_that_has_lost_a_part_comes_to_no_end() {
    const PART: usize = 8 * 1024 * 1024;
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "good"), written());
    for is_dropped in [false, true] {
        let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
        let gate = Gate::closed();
        if is_dropped {
            wire.plan("objects", Trouble::Gate(Arc::clone(&gate)));
            let mut writing = Box::pin(upload.write(vec![1; PART]));
            assert!(writing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            gate.wait();
            drop(writing);
            gate.open();
        } else {
            wire.plan("objects", Trouble::LoseRequest);
            let error = answered(upload.write(vec![1; PART])).unwrap_err();
            assert!(error.is_transient(), "{error}");
        }
        let error = answered(upload.write(vec![2; PART])).unwrap_err();
        assert!(error.to_string().contains("begin the upload anew"), "{error}");
        let error = answered(upload.finish()).unwrap_err();
        assert!(error.to_string().contains("begin the upload anew"), "{error}");
    }
    assert_eq!(shop.value().as_deref(), Some("good"));
}
