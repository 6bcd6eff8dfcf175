use super::{Best, product};
use crate::index::catalog::bytes;

#[test]
fn the_product_is_that_of_a_plain_loop_at_every_length() {
    for length in [0, 1, 7, 8, 9, 384, 387] {
        let (one, other): (Vec<f32>, Vec<f32>) = (0_u8..=255).cycle().take(length).map(|n| (f32::from(n), 0.5)).unzip();
        let plain: f32 = one.iter().zip(&other).map(|(one, other)| one * other).sum();
        // Whole numbers and halves below 2^24: no order of adding them loses anything.
        assert!((product(&bytes(&one), &other) - plain).abs() < f32::EPSILON, "length {length}");
    }
}

#[test]
fn the_best_come_out_in_order_whatever_order_they_were_seen_in() {
    let scores: [f32; 6] = [0.1, 0.9, 0.5, 0.9, -1.0, 0.7];
    let seen = |limit| {
        let mut best = Best::new(limit);
        for (id, score) in (0..).zip(scores) {
            best.see(score, id);
        }
        best.found().into_iter().map(|(_, id)| id).collect::<Vec<i64>>()
    };
    assert_eq!(seen(3), [1, 3, 5], "of equals the first seen comes first");
    assert_eq!(seen(9), [1, 3, 5, 2, 0, 4]);
    assert_eq!(seen(0), [0_i64; 0]);
}
