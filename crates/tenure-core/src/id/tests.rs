use crate::{Epoch, GrantId, InstanceId, SessionId, Token};
use alloc::format;
use alloc::string::ToString;

/// A failed assertion or a log line that showed a token for debugging held all of it, ready to be shown to a sink.
#[test]
fn what_is_shown_for_debugging_is_no_id() {
    let bits = 0x0f3c_5b21_9d44_e0a7_1122_3344_5566_7788;
    let grant = GrantId::from_bits(bits);
    let token = Token { resource: "orders".parse().unwrap(), epoch: Epoch::FIRST, grant };
    assert_eq!(format!("{token:?}"), "orders@1:0f3c5b21…");
    assert_eq!(format!("{:?} {:?}", InstanceId::from_bits(bits), SessionId::from_bits(bits)), "0f3c5b21… 0f3c5b21…");
    assert_eq!(format!("{:?}", GrantId::from_bits(0xabc)), "abc", "as tests draw them");
    // Written out, it comes back.
    assert_eq!(token.to_string().parse(), Ok(token));
}
