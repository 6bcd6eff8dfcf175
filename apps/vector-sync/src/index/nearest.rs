//! The nearest of many vectors, by looking at each of them.

/// The product of two vectors, one of them as it is kept: the cosine of their angle, since both have the length one.
///
/// Eight sums side by side: a single one would make each addition wait for the one before.
#[must_use]
pub(super) fn product(kept: &[u8], asked: &[f32]) -> f32 {
    let (kept, _) = kept.as_chunks::<4>();
    let mut sums = [0.0_f32; 8];
    let mut kept = kept.chunks_exact(8);
    let mut asked = asked.chunks_exact(8);
    for (kept, asked) in kept.by_ref().zip(asked.by_ref()) {
        for ((sum, kept), asked) in sums.iter_mut().zip(kept).zip(asked) {
            *sum += f32::from_le_bytes(*kept) * asked;
        }
    }
    let rest = kept.remainder().iter().zip(asked.remainder());
    sums.iter().sum::<f32>() + rest.map(|(kept, asked)| f32::from_le_bytes(*kept) * asked).sum::<f32>()
}

/// The best of what it was shown.
#[derive(Debug)]
pub(super) struct Best {
    limit: usize,
    /// The best first; of equals the one that came first.
    found: Vec<(f32, i64)>,
}

impl Best {
    /// Keeps this many.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new() }
    }

    /// Shows it one.
    pub(super) fn see(&mut self, score: f32, id: i64) {
        let full = self.found.len() >= self.limit;
        if full && self.found.last().is_none_or(|(worst, _)| score <= *worst) {
            return;
        }
        let at = self.found.partition_point(|(other, _)| *other >= score);
        self.found.insert(at, (score, id));
        self.found.truncate(self.limit);
    }

    /// What it kept, the best first.
    pub(super) fn found(self) -> Vec<(f32, i64)> {
        self.found
    }
}

#[cfg(test)]
mod tests;
