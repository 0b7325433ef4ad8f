//! The main rows as a picture: how far each is past its target.

use std::fmt::Write;

use crate::table::{Row, Target, short};

/// An SVG with a bar for each row that has a ratio or figure, and a target.
pub(crate) fn svg(rows: &[Row]) -> String {
    let bars: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((row, past(row)?))).collect();
    let height = TOP + bars.len() as f64 * LINE + 24.0;
    let mut out = format!(
        concat!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" "##,
            r##"font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>"##,
            r##"<text x="8" y="18" font-size="14">How far each row is past its target (1 is at it; longer is better)"##,
            "</text>\n"
        ),
        w = WIDTH,
        h = height
    );
    for mark in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
        let (x, color) = (place(mark), if mark == 1.0 { "#000" } else { "#ddd" });
        let _ = writeln!(
            out,
            r##"<path d="M{x:.0} {TOP}V{:.0}" stroke="{color}"/><text x="{x:.0}" y="{:.0}" text-anchor="middle">{mark}</text>"##,
            height - 20.0,
            height - 6.0
        );
    }
    for (at, (row, past)) in bars.iter().enumerate() {
        let y = TOP + at as f64 * LINE;
        let color = if row.is_met() { "#4a90b8" } else { "#c8643c" };
        let _ = writeln!(
            out,
            r##"<text x="{:.0}" y="{:.0}" text-anchor="end">{}</text><rect x="{LEFT}" y="{:.0}" width="{:.0}" height="{:.0}" fill="{color}"/><text x="{:.0}" y="{:.0}">{}</text>"##,
            LEFT - 6.0,
            y + 11.0,
            row.what.replace('&', "&amp;").replace('<', "&lt;"),
            y + 2.0,
            place(*past) - LEFT,
            LINE - 4.0,
            place(*past) + 4.0,
            y + 11.0,
            figure(row)
        );
    }
    out + "</svg>\n"
}

/// How many times better than it has to be.
fn past(row: &Row) -> Option<f64> {
    let figure = row.ratio().unwrap_or(row.ours);
    match row.target {
        Target::Least(least) => Some(figure / least),
        Target::Most(most) if most > 0.0 => Some(most / figure),
        Target::Most(_) => None,
    }
}

fn figure(row: &Row) -> String {
    match &row.beside {
        Some((name, _)) => format!("{} of {name}", short(row.ratio().unwrap_or_default())),
        None => format!("{} {}", short(row.ours), row.unit),
    }
}

/// Where a number is on the axis, which is logarithmic.
fn place(number: f64) -> f64 {
    let (low, high) = (0.25_f64.log2(), 16_f64.log2());
    let part = (number.clamp(0.25, 16.0).log2() - low) / (high - low);
    LEFT + part * (WIDTH - LEFT - 130.0)
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 390.0;
const TOP: f64 = 28.0;
const LINE: f64 = 17.0;
