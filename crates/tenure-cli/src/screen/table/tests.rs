use super::*;

const COLUMNS: [Column; 3] = [Column::flexible("NAME"), Column::text("STATE"), Column::number("EPOCH")];

fn row(name: &str, epoch: &str) -> Vec<String> {
    vec![name.to_owned(), mark(Tint::Good, "held"), epoch.to_owned()]
}

/// The text without its colours, which count nothing.
fn plain(drawn: &str) -> String {
    anstream::adapter::strip_str(drawn).to_string()
}

#[test]
fn columns_stand_below_each_other_whatever_their_tint() {
    let mut table = Table::new(80, &COLUMNS);
    table.row(row("a", "1"));
    table.row(row("中文", "12"));
    let drawn = table.draw();
    assert!(drawn.contains("\u{1b}[32mheld\u{1b}[0m"), "{drawn:?}");
    assert!(!drawn.contains(|c| BEGINS.contains(&c) || c == ENDS), "{drawn:?}");
    assert_eq!(plain(&drawn), "NAME  STATE  EPOCH\na     held       1\n中文  held      12\n");
}

#[test]
fn a_long_name_goes_on_below_and_loses_nothing() {
    let mut table = Table::new(30, &COLUMNS);
    let name = "tenant/with/a/very/long/name/indeed";
    table.row(row(name, "1"));
    let drawn = plain(&table.draw());
    assert!(drawn.lines().all(|line| line.chars().count() <= 30), "{drawn}");
    let written: String = drawn.lines().skip(1).map(|line| line.split("  ").next().unwrap().trim()).collect();
    assert_eq!(written, name);
}

#[test]
fn a_later_piece_keeps_the_widths_and_has_no_titles() {
    let mut table = Table::new(80, &COLUMNS);
    table.row(row("a-long-one", "1"));
    let first = plain(&table.draw());
    table.row(row("b", "2"));
    let second = plain(&table.draw());
    assert_eq!(first.lines().last().unwrap().find("held"), second.find("held"));
    assert_eq!(second.lines().count(), 1);
    assert_eq!(table.draw(), "");
}
