//! Columns of text that fit a width.

use std::env;
use std::fmt::Write;

use rustix::termios::tcgetwinsize;

/// How a column gives way when a line is too long.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Cut {
    /// It does not.
    Never,
    /// Its cells are whole or, before any other column gives way, their first [`LEAST`] characters: ids.
    Short,
    /// Its cells lose their ends.
    End,
    /// Its cells lose their beginnings: of a path, the end says more.
    Beginning,
}

/// Lines of cells, the first of which are headings. A cell is one line of what may be printed.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    cuts: [Cut; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [(&str, Cut); N]) -> Self {
        Self { cuts: columns.map(|(_, cut)| cut), rows: vec![columns.map(|(heading, _)| heading.to_owned())] }
    }

    pub(super) fn push(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// The lines, each at most `width` characters long if there is a width. Ids give way first, then the widest of the other
    /// columns that do, down to [`LEAST`]; if that is not enough, lines lose their ends.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(length(cell));
            }
        }
        let is_too_long =
            |widths: &[usize; N]| width.is_some_and(|most| widths.iter().sum::<usize>() + N - 1 > most);
        if is_too_long(&widths) {
            let ids = widths.iter_mut().zip(self.cuts).filter(|(_, cut)| *cut == Cut::Short);
            ids.for_each(|(width, _)| *width = LEAST.min(*width));
        }
        while is_too_long(&widths) {
            let gives_way = |at: &usize| self.cuts[*at] != Cut::Never && widths[*at] > LEAST;
            let Some(widest) = (0..N).filter(gives_way).max_by_key(|&at| widths[at]) else { break };
            widths[widest] -= 1;
        }
        self.rows.iter().map(|row| self.line(row, &widths, width)).collect()
    }

    fn line(&self, row: &[String; N], widths: &[usize; N], most: Option<usize>) -> String {
        let mut line = String::new();
        for ((cell, &width), cut) in row.iter().zip(widths).zip(self.cuts) {
            let _ = write!(line, "{:<width$} ", fit(cell, width, cut));
        }
        if let Some((end, _)) = most.and_then(|most| line.char_indices().nth(most)) {
            line.truncate(end);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// How many columns there are to print in: what the environment says (environ(7)), else what the terminal on stdout does; none if
/// it is not one, for what reads us then can cut for itself.
pub(super) fn width() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(terminal).filter(|columns| *columns > 0)
}

fn fit(cell: &str, width: usize, cut: Cut) -> String {
    let excess = length(cell).saturating_sub(width);
    match cut {
        _ if excess == 0 => cell.to_owned(),
        Cut::Short => cell.chars().take(width).collect(),
        Cut::Beginning => std::iter::once('…').chain(cell.chars().skip(excess + 1)).collect(),
        Cut::End | Cut::Never => cell.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// How wide a text is, if every character is as wide as any other.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// How narrow a column gets that gives way: eight digits tell ids apart.
const LEAST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let whole = [
            "PID ID         PATH                 TITLE",
            "1   0123456789 /home/me/a/long/path -",
            "22  -          /                    mend the böat",
        ];
        assert_eq!(table().lines(None), whole);
        assert_eq!(table().lines(Some(49)), whole);
    }

    #[test]
    fn ids_give_way_first_and_then_the_widest_and_no_line_is_too_long() {
        let cut = |width| table().lines(Some(width));
        assert_eq!(cut(48)[1], "1   01234567 /home/me/a/long/path -");
        assert_eq!(
            cut(43),
            [
                "PID ID       PATH             TITLE",
                "1   01234567 …/me/a/long/path -",
                "22  -        /                mend the böat"
            ]
        );
        assert_eq!(
            cut(33),
            [
                "PID ID       PATH       TITLE",
                "1   01234567 …long/path -",
                "22  -        /          mend the…"
            ]
        );
        assert_eq!(cut(18), ["PID ID       PATH", "1   01234567 …ng/p", "22  -        /"]);
        for width in 1..60 {
            assert!(cut(width).iter().all(|line| length(line) <= width), "{width}");
        }
    }

    fn table() -> Table<4> {
        let mut table = Table::new([
            ("PID", Cut::Never),
            ("ID", Cut::Short),
            ("PATH", Cut::Beginning),
            ("TITLE", Cut::End),
        ]);
        table.push(["1", "0123456789", "/home/me/a/long/path", "-"].map(str::to_owned));
        table.push(["22", "-", "/", "mend the böat"].map(str::to_owned));
        table
    }
}
