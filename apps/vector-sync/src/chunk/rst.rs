//! reStructuredText: sections, paragraphs, literal blocks and directives, as far as they matter for what is said.
//!
//! No reader of it is kept up in this language. This one does not know every rule of the format. What it does not know it
//! takes for text, so that nothing that is said is lost; only comments, targets, and what is not for readers are left out.

mod inline;

use super::outline::Outline;
use inline::plain;

/// Directives whose content is code.
const CODE: &[&str] = &["code", "code-block", "sourcecode", "parsed-literal", "math", "productionlist", "prompt"];

/// Directives that say nothing by themselves: where something else is, and how it should look.
#[rustfmt::skip]
const LEFT_OUT: &[&str] = &[
    "contents", "currentmodule", "default-role", "figure-md", "highlight", "image", "include", "index", "literalinclude",
    "meta", "raw", "role", "sectnum", "tabularcolumns", "toctree",
];

/// The level of a line in bold that stands alone: whoever writes so means a heading.
const BOLD: u8 = u8::MAX;

pub(super) fn read(text: &str, outline: &mut Outline<'_>) {
    let lines = text.lines().map(str::trim_end).collect();
    let mut page = Page { outline, lines, at: 0, said: String::new(), indent: 0, styles: Vec::new() };
    while page.at < page.lines.len() {
        page.step();
    }
    page.flush();
}

struct Page<'o, 'd, 't> {
    outline: &'o mut Outline<'d>,
    lines: Vec<&'t str>,
    at: usize,
    /// The paragraph so far.
    said: String,
    /// How far in its last line begins.
    indent: usize,
    /// How headings were underlined so far, outermost first, and whether they had a line above as well.
    styles: Vec<(char, bool)>,
}

impl<'t> Page<'_, '_, 't> {
    /// Reads at least one line.
    fn step(&mut self) {
        let line = self.lines[self.at];
        let text = line.trim_start();
        let is_first = self.said.is_empty();
        if text.is_empty() {
            self.at += 1;
            self.flush();
        } else if is_first && self.heading() {
        } else if let Some(rest) = text.strip_prefix("..").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            self.flush();
            self.explicit(rest.trim_start(), indent(line));
        } else if is_first && text.starts_with(">>> ") {
            let end = self.lines[self.at..].iter().position(|line| line.trim().is_empty());
            let end = end.map_or(self.lines.len(), |end| self.at + end);
            self.outline.code(&self.lines[self.at..end].join("\n"));
            self.at = end;
        } else {
            self.at += 1;
            self.said(line);
        }
    }

    /// A line of a paragraph, of a list or of a table.
    fn said(&mut self, line: &str) {
        let text = line.trim_start();
        self.indent = indent(line);
        let is_frame = text.len() > 2 && text.chars().all(|char| matches!(char, '+' | '-' | '=' | ' '));
        if is_frame && (text.starts_with('+') || text.starts_with("==")) {
            return;
        }
        let is_row = text.starts_with("| ") || text.starts_with("+--");
        let bullet = ["- ", "* ", "+ ", "#. "].into_iter().find_map(|bullet| text.strip_prefix(bullet));
        if bullet.is_some() || is_row {
            self.flush();
        }
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        if is_row {
            self.said += &text.replace('|', " ");
        } else {
            self.said += bullet.unwrap_or(text);
        }
    }

    /// Ends the paragraph, and takes the literal block that it announces.
    fn flush(&mut self) {
        let said = std::mem::take(&mut self.said);
        let said = said.trim();
        let literal = said.strip_suffix("::");
        let bold = said.strip_prefix("**").and_then(|said| said.strip_suffix("**"));
        match bold.filter(|bold| !bold.is_empty() && !bold.contains(['\n', '*'])) {
            Some(bold) => self.outline.heading(BOLD, &plain(bold)),
            None => {
                let text = plain(literal.unwrap_or(said));
                // `text::` is shown as `text:`, `text ::` as `text`.
                let is_close = literal.is_some_and(|text| text.ends_with(|char: char| !char.is_whitespace()));
                let colon = if is_close { ":" } else { "" };
                self.outline.words(&(text + colon));
            }
        }
        if literal.is_some() {
            let block = self.block(self.indent);
            self.outline.code(&block);
        }
    }

    /// A title with a line of punctuation below it, or below and above; or such a line alone.
    fn heading(&mut self) -> bool {
        let line = |at: usize| self.lines.get(at).copied().unwrap_or_default();
        let (this, next, third) = (line(self.at), line(self.at + 1), line(self.at + 2));
        let fits = |text: &str, rule: &str| rule.len() >= 4 || rule.chars().count() >= text.trim().chars().count();
        let (text, style, lines) = match (rule(this), rule(next), rule(third)) {
            (Some(over), _, Some(under)) if over == under && !next.is_empty() && rule(next).is_none() => {
                (next, (over, true), 3)
            }
            (None, Some(under), _) if !this.starts_with(' ') && fits(this, next) => (this, (under, false), 2),
            // A line between two parts of the text.
            (Some(_), _, _) if this.len() >= 4 && next.is_empty() => {
                self.at += 1;
                return true;
            }
            _ => return false,
        };
        let level = self.styles.iter().position(|known| *known == style).unwrap_or_else(|| {
            self.styles.push(style);
            self.styles.len() - 1
        });
        let level = u8::try_from(level + 1).unwrap_or(BOLD).min(BOLD - 1);
        self.outline.heading(level, &plain(text.trim()));
        self.at += lines;
        true
    }

    /// What begins with two points: a directive, a footnote, a target, a comment.
    fn explicit(&mut self, rest: &str, indent: usize) {
        self.at += 1;
        // `|name|` stands before what it is replaced by.
        let rest =
            rest.strip_prefix('|').and_then(|rest| rest.split_once('|')).map_or(rest, |(_, rest)| rest.trim_start());
        if let Some((name, said)) = directive(rest) {
            let name = name.rsplit(':').next().unwrap_or(name);
            if LEFT_OUT.contains(&name) {
                self.block(indent);
                return;
            }
            if !CODE.contains(&name) {
                self.outline.words(&plain(said));
            }
            self.options(indent);
            if CODE.contains(&name) {
                let block = self.block(indent);
                self.outline.code(&block);
            }
            // The content of any other one is read on as text.
        } else if rest.starts_with('[') {
            self.said(rest);
        } else if !rest.is_empty() || self.lines.get(self.at).is_some_and(|next| !next.is_empty()) {
            self.block(indent);
        }
    }

    /// Skips the lines `:name: value` that may follow a directive.
    fn options(&mut self, over: usize) {
        while let Some(line) = self.lines.get(self.at) {
            let is_option = line.trim_start().strip_prefix(':').is_some_and(|rest| rest.contains(':'));
            if !is_option || indent(line) <= over {
                return;
            }
            self.at += 1;
        }
    }

    /// Takes the lines that are indented further, without what all of them are indented by.
    fn block(&mut self, over: usize) -> String {
        let rest = &self.lines[self.at..];
        let end = rest.iter().position(|line| !line.is_empty() && indent(line) <= over).unwrap_or(rest.len());
        let block: &[&'t str] = &rest[..end];
        self.at += end;
        let least = block.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min().unwrap_or_default();
        block.iter().map(|line| line.get(least..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }
}

/// The character of a line that consists of one kind of punctuation alone.
fn rule(line: &str) -> Option<char> {
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= 2 && line.chars().all(|char| char == first)).then_some(first)
}

/// The name of a directive, and what stands behind it in its line.
fn directive(text: &str) -> Option<(&str, &str)> {
    let (name, said) = text.split_once("::")?;
    let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_:.+".contains(char));
    (is_name && (said.is_empty() || said.starts_with(' '))).then(|| (name, said.trim()))
}

/// In bytes: what a line begins with is ASCII, or not counted.
fn indent(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}
