//! The table: what was measured, what stood beside it, and whether that is enough.

use std::fmt::Write;

/// What a figure has to be.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Target {
    /// At least.
    Least(f64),
    /// At most.
    Most(f64),
}

impl Target {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::Least(least) => figure >= least,
            Self::Most(most) => figure <= most,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Least(least) => format!(">= {}", short(least)),
            Self::Most(most) => format!("<= {}", short(most)),
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// What it came to.
    pub(crate) ours: f64,
    /// In which unit; also of what stands beside it.
    pub(crate) unit: &'static str,
    /// What stands beside it, and what that came to.
    pub(crate) beside: Option<(String, f64)>,
    /// What the ratio has to be; without a ratio, the figure.
    pub(crate) target: Target,
    /// What else there is to say.
    pub(crate) note: String,
}

impl Row {
    /// A figure that stands alone.
    pub(crate) fn alone(what: impl Into<String>, ours: f64, unit: &'static str, target: Target) -> Self {
        Self { what: what.into(), ours, unit, beside: None, target, note: String::new() }
    }

    /// A figure and its yardstick.
    pub(crate) fn beside(
        what: impl Into<String>,
        (ours, unit): (f64, &'static str),
        (name, theirs): (&str, f64),
        target: Target,
    ) -> Self {
        let beside = Some((name.to_owned(), theirs));
        Self { what: what.into(), ours, unit, beside, target, note: String::new() }
    }

    /// The same with a note.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Ours by theirs.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.beside.as_ref().map(|(_, theirs)| self.ours / theirs)
    }

    /// Whether the target is reached.
    pub(crate) fn is_met(&self) -> bool {
        self.target.is_met(self.ratio().unwrap_or(self.ours))
    }

    fn columns(&self) -> [String; 6] {
        let met = if self.is_met() { "yes" } else { "NO" };
        let beside = self.beside.as_ref().map(|(name, theirs)| format!("{name}: {}", short(*theirs)));
        [
            format!("{} {}", short(self.ours), self.unit),
            beside.unwrap_or_default(),
            self.ratio().map(short).unwrap_or_default(),
            self.target.shown(),
            met.to_owned(),
            self.note.clone(),
        ]
    }

    fn json(&self) -> String {
        let number = |figure: Option<f64>| {
            let figure = figure.filter(|figure| figure.is_finite());
            figure.map_or_else(|| "null".into(), |figure| figure.to_string())
        };
        let (name, theirs) = self.beside.clone().map_or((String::new(), None), |(n, f)| (n, Some(f)));
        format!(
            r#"{{"what":"{}","ours":{},"unit":"{}","yardstick":"{name}","theirs":{},"ratio":{},"target":"{}","met":{},"note":"{}"}}"#,
            self.what,
            self.ours,
            self.unit,
            number(theirs),
            number(self.ratio()),
            self.target.shown(),
            self.is_met(),
            self.note
        )
    }
}

/// All rows, as they come.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    /// Adds a row, and prints it.
    pub(crate) fn add(&mut self, row: Row) {
        if self.0.is_empty() {
            print_line("what", &["ours", "beside", "ratio", "target", "met", ""].map(str::to_owned));
        }
        print_line(&row.what, &row.columns());
        self.0.push(row);
    }

    /// Says that something was not measured, and why.
    pub(crate) fn skip(&self, what: &str, why: &str) {
        println!("{what:<64} not measured: {why}");
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.0
    }

    /// All of it as a list of objects.
    pub(crate) fn json(&self) -> String {
        let rows: Vec<String> = self.0.iter().map(Row::json).collect();
        format!("[\n{}\n]\n", rows.join(",\n"))
    }
}

fn print_line(what: &str, [ours, beside, ratio, target, met, note]: &[String; 6]) {
    let mut line = String::new();
    let _ = write!(line, "{what:<64} {ours:>16} {beside:>30} {ratio:>8} {target:>9} {met:>3}  {note}");
    println!("{}", line.trim_end());
}

/// A figure with three digits that count.
pub(crate) fn short(figure: f64) -> String {
    let magnitude = figure.abs();
    let digits = if magnitude >= 100.0 || figure == 0.0 {
        0
    } else if magnitude >= 10.0 {
        1
    } else if magnitude >= 1.0 {
        2
    } else if magnitude >= 0.1 {
        3
    } else if magnitude >= 0.01 {
        4
    } else {
        6
    };
    let text = format!("{figure:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
