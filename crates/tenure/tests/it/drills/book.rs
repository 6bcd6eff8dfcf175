use std::fmt::{Display, Write};
use std::path::Path;
use std::time::Instant;

/// The account of one drill.
pub(super) struct Book {
    slug: &'static str,
    title: &'static str,
    began: Instant,
    lines: String,
    answers: usize,
}

impl Book {
    pub(super) fn new(slug: &'static str, title: &'static str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a stop-watch for the account; it decides nothing")]
        let began = Instant::now();
        Self { slug, title, began, lines: String::new(), answers: 0 }
    }

    pub(super) fn tell(&mut self, what: impl Display) {
        let at = self.began.elapsed().as_secs_f64();
        writeln!(self.lines, "{at:6.2} s  {what}").unwrap();
    }

    pub(super) fn answer(&mut self, question: &str, answer: impl Display) {
        if self.answers == 0 {
            self.lines.push('\n');
        }
        self.answers += 1;
        writeln!(self.lines, "{question:<28}{answer}").unwrap();
    }

    /// Prints it, writes its page if that was asked for, and fails when the documents have no page of this drill.
    pub(super) fn close(self) {
        assert_eq!(self.answers, 4, "a drill answers four questions");
        let page = format!("# {}\n\n```text\n{}```\n", self.title, self.lines);
        println!("{page}");
        let name = format!("{}.md", self.slug);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if let Some(folder) = std::env::var_os("TENURE_DRILLS_BOOK") {
            std::fs::write(root.join(folder).join(&name), page).unwrap();
        }
        let kept = std::fs::read_to_string(root.join("docs/drills").join(&name)).unwrap_or_default();
        assert!(
            kept.starts_with(&format!("# {}\n", self.title)),
            "docs/drills/{name} is not of this drill: TENURE_DRILLS_BOOK=docs/drills cargo test -p tenure --test it drills"
        );
    }
}

impl Drop for Book {
    /// A drill that fails says how far it came.
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}\n\n{}", self.title, self.lines);
        }
    }
}
