/// The operating system gave no random bits. Nothing can be granted safely: stop.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the operating system gives no random bits ({0}): ids would repeat, so nothing is granted")]
pub struct EntropyError(getrandom::Error);

/// 128 bits from the operating system, for ids that must never repeat.
///
/// # Errors
/// [`EntropyError`] when the operating system has none; the caller must not go on with another source.
pub fn random_bits() -> Result<u128, EntropyError> {
    let mut bytes = [0; 16];
    #[expect(clippy::disallowed_methods, reason = "the one place that draws random bits")]
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(u128::from_ne_bytes(bytes))
}
