//! A document without the marks of its format: headings, and what stands under them.

use super::Chunk;
use super::cut::{By, cut, weight};

/// The weight of a piece with its heading.
const ROOM: usize = 210;
/// How much of that the headings may take.
const HEADINGS: usize = 60;
/// Between two headings.
const BELOW: &str = " > ";

/// Takes a document part by part, and cuts it.
pub(super) struct Outline<'d> {
    document: &'d str,
    /// Those that are open, outermost first, with levels that rise.
    headings: Vec<Heading>,
    over: Over,
    /// What stands under the last of them and is not written yet.
    pieces: Vec<String>,
    load: usize,
    /// Headings that stood over no piece: their words would be lost.
    bare: String,
    chunks: Vec<Chunk>,
}

struct Heading {
    level: u8,
    text: String,
    weight: usize,
    /// All of it stands over some piece.
    is_shown: bool,
}

/// The headings over a piece.
#[derive(Default)]
struct Over {
    text: String,
    weight: usize,
    /// Which of them are in the text, whole.
    shown: Vec<usize>,
}

impl<'d> Outline<'d> {
    pub(super) fn new(document: &'d str) -> Self {
        let mut outline = Self {
            document,
            headings: Vec::new(),
            over: Over::default(),
            pieces: Vec::new(),
            load: 0,
            bare: String::new(),
            chunks: Vec::new(),
        };
        outline.over = outline.over();
        outline
    }

    /// A heading; level 0 is the document's title.
    pub(super) fn heading(&mut self, level: u8, text: &str) {
        let text = spaced(text);
        if !text.is_empty() {
            self.write();
            self.close(level);
            self.headings.push(Heading { level, weight: weight(&text), text, is_shown: false });
            self.over = self.over();
        }
    }

    /// A paragraph.
    pub(super) fn words(&mut self, text: &str) {
        self.add(&spaced(text), By::Sentences);
    }

    /// Code, or something else whose lines matter.
    pub(super) fn code(&mut self, text: &str) {
        self.add(text, By::Lines);
    }

    /// All pieces.
    pub(super) fn finish(mut self) -> Vec<Chunk> {
        self.write();
        self.close(0);
        self.write_bare();
        self.chunks
    }

    fn add(&mut self, text: &str, by: By) {
        let room = ROOM - self.over.weight;
        let mut pieces = Vec::new();
        cut(text, room, by, &mut pieces);
        for piece in pieces {
            let heavy = weight(piece);
            if self.load + heavy > room {
                self.write();
            }
            self.load += heavy;
            self.pieces.push(piece.to_owned());
        }
    }

    fn write(&mut self) {
        if !self.pieces.is_empty() {
            for shown in &self.over.shown {
                self.headings[*shown].is_shown = true;
            }
            let text = self.pieces.join("\n\n");
            self.push(self.over.text.clone(), text);
            (self.pieces, self.load) = (Vec::new(), 0);
        }
    }

    /// Ends the headings of this level and below.
    fn close(&mut self, level: u8) {
        while let Some(last) = self.headings.pop_if(|last| last.level >= level) {
            if !last.is_shown {
                self.bare += &last.text;
                self.bare.push('\n');
            }
        }
        // More than a piece of them would fill.
        if self.bare.len() > 16 * ROOM {
            self.write_bare();
        }
    }

    fn write_bare(&mut self) {
        let bare = std::mem::take(&mut self.bare);
        let name = named(self.document);
        let mut pieces = Vec::new();
        cut(&bare, ROOM - weight(name).min(HEADINGS), By::Lines, &mut pieces);
        for piece in pieces {
            self.push(name.to_owned(), piece.to_owned());
        }
    }

    fn push(&mut self, heading: String, text: String) {
        let number = u32::try_from(self.chunks.len()).unwrap_or(u32::MAX);
        self.chunks.push(Chunk { document: self.document.to_owned(), number, heading, text });
    }

    /// The innermost headings that have room, after the document's name when it has no title. The last one is shortened
    /// rather than left out.
    fn over(&self) -> Over {
        let mut over = Over::default();
        let mut parts: Vec<&str> = Vec::new();
        for (at, heading) in self.headings.iter().enumerate().rev() {
            if over.weight + heading.weight < HEADINGS {
                // `Guide` under `Guide - The Book` says nothing new.
                if heading.level == 0 && parts.last().is_some_and(|inner| heading.text.contains(inner)) {
                    over.weight -= parts.pop().map_or(0, |inner| weight(inner) + 1);
                }
                parts.push(&heading.text);
                over.weight += heading.weight + 1;
                over.shown.push(at);
            } else if parts.is_empty() {
                let mut short = Vec::new();
                cut(&heading.text, HEADINGS - 1, By::Words, &mut short);
                parts.extend(short.first());
                over.weight = HEADINGS;
            }
        }
        let name = named(self.document);
        let is_titled = self.headings.first().is_some_and(|first| first.level <= 1);
        if !is_titled && over.weight + weight(name) < HEADINGS && !name.is_empty() {
            over.weight += weight(name) + 1;
            parts.push(name);
        }
        parts.reverse();
        over.text = parts.join(BELOW);
        over
    }
}

/// A file's name without its ending says what it is about: `ec2/run-instances`. A row's key does not.
fn named(document: &str) -> &str {
    let name = document.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && crate::source::Format::of_ending(ending).is_some() => {
            &document[..document.len() - ending.len() - 1]
        }
        _ => "",
    }
}

/// With one space between the words.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !spaced.is_empty() {
            spaced.push(' ');
        }
        spaced += word;
    }
    spaced
}
