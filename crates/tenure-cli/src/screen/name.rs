//! Names that are near to one that is not there.

/// At most three of `names` that look like `asked`, nearest first: those that begin with it or that it begins with, and
/// those that differ by a few letters.
pub(crate) fn near<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let low = asked.to_lowercase();
    let reach = asked.chars().count() / 4 + 1;
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let other = name.to_lowercase();
        let distance = if other == low {
            0
        } else if other.starts_with(&low) || (low.starts_with(&other) && other.chars().count() > 2) {
            1
        } else {
            // A name of another length is too far away, whatever its letters are.
            match other.chars().count().abs_diff(low.chars().count()) {
                apart if apart > reach => continue,
                _ => strsim::damerau_levenshtein(&low, &other),
            }
        };
        if distance <= reach {
            found.push((distance, name));
            found.sort_unstable();
            found.truncate(3);
        }
    }
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests;
