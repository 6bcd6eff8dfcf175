use tenure::core::Reason;

/// Reads a reason for the history; an empty one would tell nothing to whoever reads it.
pub(crate) fn parse(text: &str) -> Result<Reason, String> {
    if text.trim().is_empty() {
        return Err("say why in a few words: whoever reads the history wants to know".to_owned());
    }
    Reason::new(text.trim()).map_err(|error| error.to_string())
}
