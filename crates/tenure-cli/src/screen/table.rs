//! Tables that fit the width and may be written piece by piece.

use super::Tint;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};

/// A table. Columns keep their widths from one piece to the next as long as the content allows.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    total: usize,
}

/// A column's title and form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As wide as its content.
    Text,
    /// The same, and to the right.
    Number,
    /// Narrower when there is no room; the content goes on below.
    Flexible,
}

impl Column {
    /// As wide as its content.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, form: Form::Text }
    }

    /// As wide as its content, which stands to the right.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, form: Form::Number }
    }

    /// Gives way when there is no room; its content goes on in the next line then.
    pub(crate) const fn flexible(title: &'static str) -> Self {
        Self { title, form: Form::Flexible }
    }
}

/// Between two columns.
const GAP: usize = 2;
/// A column that gives way keeps so much.
const FLEXIBLE_MIN: usize = 8;

impl Table {
    /// An empty table of this total width.
    pub(crate) fn new(width: usize, columns: &[Column]) -> Self {
        let titles = columns.iter().map(|column| mark(Tint::Strong, column.title)).collect();
        Self { columns: columns.to_vec(), rows: vec![titles], widths: vec![0; columns.len()], total: width }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Draws what waits.
    pub(crate) fn draw(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        for row in self.rows.drain(..) {
            grid.add_row(row);
        }
        let needed: Vec<_> = grid.column_max_content_widths().into_iter().map(usize::from).collect();
        self.fit(&needed);
        let last = self.columns.len().saturating_sub(1);
        let layout = self.columns.iter().zip(&self.widths).enumerate();
        for ((at, (column, width)), form) in layout.zip(grid.column_iter_mut()) {
            let gap = if at == last { 0 } else { GAP };
            form.set_padding((0, u16::try_from(gap).unwrap_or(0)));
            form.set_constraint(ColumnConstraint::Absolute(Width::Fixed(
                u16::try_from(width + gap).unwrap_or(u16::MAX),
            )));
            if column.form == Form::Number {
                form.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut drawn = String::new();
        for line in grid.lines() {
            drawn += unmarked(line.trim_end()).as_str();
            drawn.push('\n');
        }
        drawn
    }

    /// Widens columns for new content; those that give way share the room that the others leave.
    fn fit(&mut self, needed: &[usize]) {
        for ((width, needed), column) in self.widths.iter_mut().zip(needed).zip(&self.columns) {
            if column.form != Form::Flexible {
                *width = (*width).max(*needed);
            }
        }
        let is_flexible = |at: &usize| self.columns.get(*at).is_some_and(|column| column.form == Form::Flexible);
        let mut open: Vec<usize> = (0..self.columns.len()).filter(is_flexible).collect();
        let rigid: usize =
            (0..self.columns.len()).filter(|at| !is_flexible(at)).filter_map(|at| self.widths.get(at)).sum();
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let mut room = self.total.saturating_sub(rigid + gaps);
        // Who needs least comes first, so that what it leaves goes to the others.
        open.sort_by_key(|at| needed.get(*at).copied().unwrap_or(0));
        for (n, at) in open.iter().enumerate() {
            let share = (room / (open.len() - n)).max(FLEXIBLE_MIN);
            if let (Some(width), Some(needed)) = (self.widths.get_mut(*at), needed.get(*at)) {
                *width = (*width).max(*needed).min(share);
                room = room.saturating_sub(*width);
            }
        }
    }
}

/// Stand in a cell where a tint begins and ends: no terminal shows them, no name holds them after
/// [`clean`](super::clean), and they count nothing towards a width. A tinted cell belongs into a column that does not
/// give way.
const BEGINS: [char; 5] = ['\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}'];
const ENDS: char = '\u{206f}';

/// A tinted text for a cell.
pub(crate) fn mark(tint: Tint, text: &str) -> String {
    let begin = Tint::ALL.iter().zip(BEGINS).find(|(of, _)| **of == tint).map(|(_, begin)| begin);
    begin.map_or_else(|| text.to_owned(), |begin| format!("{begin}{text}{ENDS}"))
}

fn unmarked(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut open = None;
    for c in line.chars() {
        if let Some((tint, _)) = Tint::ALL.iter().zip(BEGINS).find(|(_, begin)| *begin == c) {
            let style = tint.style();
            plain += &style.render().to_string();
            open = Some(style);
        } else if c == ENDS {
            plain += &open.take().map(|style| style.render_reset().to_string()).unwrap_or_default();
        } else {
            plain.push(c);
        }
    }
    plain + &open.map(|style| style.render_reset().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
