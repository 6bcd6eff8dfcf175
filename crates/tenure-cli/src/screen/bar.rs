//! What is left of a span, as a bar.

use super::Tint;
use std::time::Duration;

/// A bar of `width` columns, filled as far as `left` is of `whole`: `███████░░░`. It is empty only when nothing is left.
pub(crate) fn bar(left: Duration, whole: Duration, width: usize) -> String {
    let whole = whole.as_nanos().max(1);
    let filled = (left.as_nanos().min(whole) * width as u128).div_ceil(whole);
    let filled = usize::try_from(filled).unwrap_or(width).min(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

/// The tint of what is left: a session is renewed after a third of its ttl, so that less than a third means that renewals
/// have failed.
pub(crate) fn tint(left: Duration, whole: Duration) -> Tint {
    if left.is_zero() {
        Tint::Bad
    } else if left < whole / 3 {
        Tint::Warn
    } else {
        Tint::Good
    }
}

#[cfg(test)]
mod tests;
