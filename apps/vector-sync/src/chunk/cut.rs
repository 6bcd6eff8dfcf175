//! How large a text is for a model, and where it is cut.

/// About how many parts a sentence model takes a text for. A model's own count is within a fifth of it for nineteen texts of
/// twenty, prose and JSON alike, where a count of words is wrong by a factor of six: `"i-0a1b2c3d4e5f"` is one word. Of the
/// 14,922 pieces of the manual that is fetched for examples, 68 have more parts than the 256 that MiniLM reads, 305 at most.
pub(crate) fn weight(text: &str) -> usize {
    let mut sum = 0;
    let mut run = Run::default();
    for char in text.chars() {
        if char.is_alphanumeric() && !is_ideograph(char) {
            run.length += 1;
            run.is_plain &= char.is_ascii_alphabetic();
        } else {
            sum += std::mem::take(&mut run).weight() + usize::from(!char.is_whitespace());
        }
    }
    sum + run.weight()
}

/// Letters and digits without anything between.
struct Run {
    length: usize,
    is_plain: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { length: 0, is_plain: true }
    }
}

impl Run {
    fn weight(self) -> usize {
        match self.length {
            length if !self.is_plain => length.div_ceil(2),
            0 => 0,
            1..=10 => 1,
            length => 1 + (length - 4) / 4,
        }
    }
}

/// Written without spaces between the words.
pub(crate) fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A place where a text may be cut, the best first.
#[derive(Clone, Copy)]
pub(super) enum By {
    Sentences,
    Lines,
    Words,
    Letters,
}

impl By {
    fn finer(self) -> Option<Self> {
        match self {
            Self::Sentences | Self::Lines => Some(Self::Words),
            Self::Words => Some(Self::Letters),
            Self::Letters => None,
        }
    }

    /// How long the first part of a text is that is not empty, with the white space behind it.
    fn first(self, text: &str, room: usize) -> usize {
        let mut chars = text.char_indices().peekable();
        let mut is_over = false;
        let mut count = 0;
        while let Some((at, char)) = chars.next() {
            if is_over && !char.is_whitespace() {
                return at;
            }
            count += 1;
            is_over |= match self {
                Self::Lines => char == '\n',
                Self::Words => char.is_whitespace(),
                Self::Sentences => {
                    let is_followed = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
                    matches!(char, '。' | '！' | '？') || (matches!(char, '.' | '!' | '?' | ';' | ':') && is_followed)
                }
                // No character weighs more than one.
                Self::Letters => count >= room,
            };
        }
        text.len()
    }
}

/// Cuts a text into pieces of at most this weight, as few as go without looking back. Nothing but white space between
/// them is left out.
pub(super) fn cut<'t>(text: &'t str, room: usize, by: By, pieces: &mut Vec<&'t str>) {
    let room = room.max(1);
    let mut keep = |piece: &'t str| {
        let said = piece.trim_start();
        if !said.is_empty() {
            // What the first line is indented by belongs to code.
            let line = piece[..piece.len() - said.len()].rfind('\n').map_or(0, |end| end + 1);
            pieces.push(if matches!(by, By::Lines) { piece[line..].trim_end() } else { said.trim_end() });
        }
    };
    if weight(text) <= room {
        return keep(text);
    }
    let (mut start, mut at, mut load) = (0, 0, 0);
    while at < text.len() {
        let end = at + by.first(&text[at..], room);
        let heavy = weight(&text[at..end]);
        if load + heavy > room {
            keep(&text[start..at]);
            (start, load) = (at, 0);
        }
        match by.finer() {
            Some(finer) if heavy > room => {
                let mut inner = Vec::new();
                cut(&text[at..end], room, finer, &mut inner);
                inner.into_iter().for_each(&mut keep);
                start = end;
            }
            Some(_) => load += heavy,
            // Parts of one word weigh more together.
            None => {
                keep(&text[at..end]);
                start = end;
            }
        }
        at = end;
    }
    keep(&text[start..]);
}
