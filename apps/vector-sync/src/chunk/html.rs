//! HTML, as browsers take it apart, without the tree that they make of it: what is nested how deep costs nothing.

use super::outline::Outline;
use html5gum::{DefaultEmitter, HtmlString, Token, Tokenizer};
use std::borrow::Cow;

pub(super) fn read(text: &str, outline: &mut Outline<'_>) {
    let mut emitter = DefaultEmitter::default();
    // Or the text of a script would be taken for the document's.
    emitter.naively_switch_states(true);
    let mut page = Page { outline, said: String::new(), place: Place::Words, left_out: None };
    for token in Tokenizer::new_with_emitter(text, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.start(&tag.name, tag.self_closing, || {
                tag.attributes.get(b"alt".as_slice()).map(|alt| readable(alt).into_owned())
            }),
            Token::EndTag(tag) => page.end(&tag.name),
            Token::String(text) if page.left_out.is_none() => page.said += &readable(&text),
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.flush(Place::Words);
}

struct Page<'o, 'd> {
    outline: &'o mut Outline<'d>,
    /// Since the last block began or ended.
    said: String,
    place: Place,
    /// What is being left out, and how often it is open.
    left_out: Option<(Vec<u8>, usize)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Words,
    Code,
    Heading(u8),
}

impl Page<'_, '_> {
    fn start(&mut self, name: &[u8], is_closed: bool, alt: impl FnOnce() -> Option<String>) {
        if let Some((what, open)) = &mut self.left_out {
            // A navigation that nobody ended is over where the text begins.
            let is_over = what == b"nav" && matches!(name, b"main" | b"article" | b"h1");
            if !is_over {
                *open += usize::from(what == name);
                return;
            }
            self.left_out = None;
        }
        match name {
            b"script" | b"style" | b"template" | b"noscript" | b"iframe" | b"nav" => {
                self.left_out = Some((name.to_owned(), 1));
            }
            b"svg" if !is_closed => self.left_out = Some((name.to_owned(), 1)),
            b"title" => self.flush(Place::Heading(0)),
            b"pre" | b"textarea" => self.flush(Place::Code),
            b"br" => self.said.push('\n'),
            b"img" => self.said.extend(alt().map(|alt| format!(" {alt} "))),
            b"td" | b"th" => self.said.push(' '),
            [b'h', level @ b'1'..=b'6'] => self.flush(Place::Heading(level - b'0')),
            // Within headings and code, boxes mean little.
            b"div" | b"a" | b"p" if self.place != Place::Words && self.place != Place::Heading(0) => {
                self.said.push(' ')
            }
            _ if is_block(name) => self.flush(Place::Words),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some((what, open)) = &mut self.left_out {
            *open -= usize::from(what == name);
            if *open == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            b"title" | b"pre" | b"textarea" | [b'h', b'1'..=b'6'] => self.flush(Place::Words),
            b"p" | b"div" if self.place == Place::Code => self.said.push('\n'),
            _ if is_block(name) => self.flush(Place::Words),
            _ => {}
        }
    }

    /// What was said is over; what comes now is something else.
    fn flush(&mut self, next: Place) {
        match self.place {
            Place::Words => self.outline.words(&self.said),
            Place::Code => self.outline.code(&self.said),
            Place::Heading(level) => self.outline.heading(level, &self.said),
        }
        self.said.clear();
        self.place = next;
    }
}

/// In UTF-8 whatever was written: the document is, and what is made of `&#…;` is too.
fn readable(text: &HtmlString) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Whether its text stands apart from what is around it.
fn is_block(name: &[u8]) -> bool {
    #[rustfmt::skip]
    const BLOCKS: &[&[u8]] = &[
        b"address", b"article", b"aside", b"blockquote", b"body", b"caption", b"dd", b"details", b"dialog", b"div", b"dl",
        b"dt", b"fieldset", b"figcaption", b"figure", b"footer", b"form", b"head", b"header", b"hr", b"html", b"legend",
        b"li", b"main", b"menu", b"ol", b"option", b"p", b"search", b"section", b"select", b"summary", b"table", b"tbody",
        b"tfoot", b"thead", b"tr", b"ul",
    ];
    BLOCKS.contains(&name)
}
