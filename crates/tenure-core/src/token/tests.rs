use super::*;
use alloc::string::ToString;

fn token(epoch: u64, grant: u128) -> Token {
    Token {
        resource: ResourceName::new("a@b:c").unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        grant: GrantId::from_bits(grant),
    }
}

#[test]
fn equal_means_epoch_and_grant() {
    let it = token(2, 7);
    assert_eq!(it.order(it.epoch, it.grant), Order::Same);
    assert_eq!(it.order(it.epoch, GrantId::from_bits(8)), Order::Conflict);
    assert_eq!(it.order(Epoch::FIRST, it.grant), Order::Newer);
    assert_eq!(token(1, 7).order(it.epoch, it.grant), Order::Older);
}

#[test]
fn the_written_form_comes_back_and_nonsense_is_named() {
    let it = token(2, 7);
    assert_eq!(it.to_string().parse(), Ok(it));
    for text in
        ["", "a", "a@", "a@1", "a@0:00000000000000000000000000000001", "@1:00000000000000000000000000000001", "a@1:xyz"]
    {
        assert!(text.parse::<Token>().is_err(), "{text:?}");
    }
}
