//! Plain text: paragraphs with empty lines between them.

use super::outline::Outline;

pub(super) fn read(text: &str, outline: &mut Outline<'_>) {
    let mut start = 0;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            paragraph(&text[start..end], outline);
            start = end + line.len();
        }
        end += line.len();
    }
    paragraph(&text[start..], outline);
}

fn paragraph(text: &str, outline: &mut Outline<'_>) {
    // Indented: a table, code, a drawing.
    if text.lines().any(|line| line.starts_with("    ") || line.starts_with('\t')) {
        outline.code(text);
    } else {
        outline.words(text);
    }
}
