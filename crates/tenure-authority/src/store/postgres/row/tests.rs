use super::*;

#[test]
fn any_text_comes_back_and_none_holds_a_zero_byte() {
    for text in ["", "7 files", "a\\0b", "\0", "\\", "\\\\0\0\\", "ü\0\u{1f980}\n"] {
        let kept = escaped(text);
        assert!(!kept.contains('\0'), "{kept:?}");
        assert_eq!(unescaped(&kept), text);
    }
}

#[test]
fn a_fingerprint_comes_back() {
    for bits in [0, 1, u128::MAX, 1 << 127, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
        let (high, low) = halves(Holdings::from_bits(bits));
        assert_eq!(holdings(high, low).bits(), bits);
    }
}
