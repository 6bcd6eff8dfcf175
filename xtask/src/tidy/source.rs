//! Rust source taken apart: what is code, what is comment, which names are declared.

/// The parts of a source text. Each has the lines of the original, so that a line number fits all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The code, with comments and the contents of strings and characters left out.
    pub code: String,
    /// The comments, documentation among them, and nothing else.
    pub comments: String,
    /// The strings and characters, and nothing else.
    pub strings: String,
}

/// Takes a source text apart.
#[must_use]
pub fn split(text: &str) -> Parts {
    let mut reader = Reader { rest: text, before: None, parts: Parts::default() };
    while let Some(next) = reader.rest.chars().next() {
        if reader.rest.starts_with("//") {
            let end = reader.rest.find('\n').unwrap_or(reader.rest.len());
            reader.comment(end);
        } else if reader.rest.starts_with("/*") {
            reader.comment(block_comment_end(reader.rest));
        } else if let Some(end) = raw_string_end(reader.rest).filter(|_| !reader.inside_word()) {
            reader.literal(end);
        } else if next == '"' {
            reader.literal(quoted_end(reader.rest, '"'));
        } else if let Some(end) = char_end(reader.rest) {
            reader.literal(end);
        } else {
            reader.code(next.len_utf8());
        }
    }
    reader.parts
}

/// A name that source code declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The line, counted from 0.
    pub line: usize,
    /// `fn`, `struct`, `mod` and so on.
    pub keyword: String,
    /// The name.
    pub name: String,
    /// Visible outside the crate.
    pub public: bool,
}

/// The items that a source text declares.
#[must_use]
pub fn declared(text: &str) -> Vec<Declared> {
    const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
    let code = split(text).code;
    let mut found = Vec::new();
    for (line, code) in code.lines().enumerate() {
        let words: Vec<&str> = code.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).collect();
        // `pub(crate)` is not public: the code says so right after the word.
        let public = code.trim_start().starts_with("pub ");
        for pair in words.windows(2) {
            // `const fn name` declares a function; `*const T` and `fn(T)` declare nothing.
            if KEYWORDS.contains(&pair[0])
                && !KEYWORDS.contains(&pair[1])
                && code.contains(&format!("{} {}", pair[0], pair[1]))
                && !code.contains(&format!("*{}", pair[0]))
            {
                found.push(Declared { line, keyword: pair[0].to_owned(), name: pair[1].to_owned(), public });
            }
        }
    }
    found
}

/// The words of a name in lower case: `TakeoverLock`, `takeover_lock` and `TAKEOVER_LOCK` have the same two.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_') {
        let mut word = String::new();
        let mut lower_before = false;
        for c in part.chars() {
            if c.is_uppercase() && lower_before {
                words.push(std::mem::take(&mut word));
            }
            lower_before = c.is_lowercase() || c.is_numeric();
            word.extend(c.to_lowercase());
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}

struct Reader<'a> {
    rest: &'a str,
    before: Option<char>,
    parts: Parts,
}

impl<'a> Reader<'a> {
    fn comment(&mut self, end: usize) {
        let text = self.take(end);
        self.parts.comments.push_str(text);
        self.parts.code.push_str(&lines_of(text));
        self.parts.strings.push_str(&lines_of(text));
    }

    fn code(&mut self, end: usize) {
        let text = self.take(end);
        self.parts.code.push_str(text);
        self.parts.comments.push_str(&lines_of(text));
        self.parts.strings.push_str(&lines_of(text));
    }

    /// A string or a character: the code keeps its quotes.
    fn literal(&mut self, end: usize) {
        let text = self.take(end);
        self.parts.strings.push_str(text);
        self.parts.code.push_str(&format!("\"{}\"", lines_of(text)));
        self.parts.comments.push_str(&lines_of(text));
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.before = taken.chars().next_back();
        self.rest = rest;
        taken
    }

    fn inside_word(&self) -> bool {
        self.before.is_some_and(is_word)
    }
}

/// The line ends of a text.
fn lines_of(text: &str) -> String {
    text.chars().filter(|&c| c == '\n').collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The end of `r"..."`, `r#"..."#`, `br"..."` and the like, when the text begins with one.
fn raw_string_end(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let after = &text[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = prefix.len() + hashes + 1;
    Some(body.find(&close).map_or(text.len(), |end| start + end + close.len()))
}

fn quoted_end(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The end of a character literal, when the text begins with one. A lifetime also begins with a quote.
fn char_end(text: &str) -> Option<usize> {
    let mut chars = text.strip_prefix('\'')?.chars();
    let first = chars.next()?;
    if first == '\\' {
        return Some(quoted_end(text, '\''));
    }
    (chars.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

#[cfg(test)]
mod tests;
