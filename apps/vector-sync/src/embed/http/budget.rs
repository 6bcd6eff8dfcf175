//! What may be spent.

use crate::chunk::weight;
use crate::embed::Spent;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts calls, and refuses those that would go beyond what is allowed.
pub(super) struct Budget {
    max_calls: Option<u64>,
    max_tokens: Option<u64>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    spent: Spent,
    /// What calls that are under way will take, as far as one can tell.
    reserved: u64,
}

/// A call that is under way. Its tokens are set aside until it is over.
pub(super) struct Reserved {
    budget: Arc<Budget>,
    tokens: u64,
}

impl Budget {
    pub(super) fn new(max_calls: Option<u64>, max_tokens: Option<u64>) -> Self {
        Self { max_calls, max_tokens, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows one more call, or says why not.
    pub(super) fn reserve(self: &Arc<Self>, texts: &[String]) -> Result<Reserved, String> {
        let tokens: u64 = texts.iter().map(|text| weight(text) as u64).sum();
        let mut used = self.used();
        let Spent { calls, tokens: spent, .. } = used.spent;
        if self.max_calls.is_some_and(|most| calls + 1 > most) {
            return Err(format!("{calls} calls were made, and no more are allowed; run again with more (max-calls)"));
        }
        if let Some(most) = self.max_tokens.filter(|most| spent + used.reserved + tokens > *most) {
            let under_way = used.reserved;
            return Err(format!(
                "{spent} of {most} tokens were used, {under_way} are under way, and the next call would take about {tokens}; \
                 run again with more (max-tokens): what was embedded is kept"
            ));
        }
        used.spent.calls += 1;
        used.reserved += tokens;
        Ok(Reserved { budget: Arc::clone(self), tokens })
    }

    pub(super) fn spent(&self) -> Spent {
        self.used().spent
    }
}

impl Reserved {
    /// The call was answered. Where the service does not tell, its tokens are counted as they were estimated.
    pub(super) fn took(self, tokens: Option<u64>, texts: usize) {
        let mut used = self.budget.used();
        used.spent.texts += texts as u64;
        used.spent.tokens += tokens.unwrap_or(self.tokens);
        // `drop` takes the same guard.
        drop(used);
    }

    /// Nothing came of it.
    pub(super) fn failed(self) {}
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.used().reserved -= self.tokens;
    }
}
