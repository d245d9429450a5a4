//! Truth, found, error: the rows, the Markdown table, and what lies outside its bound.

/// A figure that a profile states, and what was found.
#[derive(Debug, Clone)]
pub struct Row {
    question: &'static str,
    /// With its unit.
    figure: &'static str,
    truth: f64,
    found: Option<f64>,
    /// What the error is a part of: the truth itself, or the device for a place on it.
    of: f64,
    bound_percent: f64,
}

/// What every figure is held to.
const USUAL: f64 = 10.0;

impl Row {
    /// A figure that must come out within 10 % of itself.
    pub fn new(question: &'static str, figure: &'static str, truth: f64, found: Option<f64>) -> Self {
        Row { question, figure, truth, found, of: truth, bound_percent: USUAL }
    }

    /// A place, as a part of the device: within 10 % of the device.
    pub fn place(question: &'static str, figure: &'static str, truth: f64, found: Option<f64>) -> Self {
        Row { of: 1.0, ..Self::new(question, figure, truth, found) }
    }

    /// A number that is found or is not.
    pub fn exact(question: &'static str, figure: &'static str, truth: f64, found: Option<f64>) -> Self {
        Row { bound_percent: 0.0, ..Self::new(question, figure, truth, found) }
    }

    /// Per cent; what was not found has no error.
    fn error(&self) -> Option<f64> {
        let off = self.found? - self.truth;
        Some(if off == 0.0 { 0.0 } else { 100.0 * off / self.of })
    }

    fn is_within(&self) -> bool {
        self.error().is_some_and(|error| error.abs() <= self.bound_percent)
    }
}

/// Three or four digits, as a person would write them.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        v if v < 10.0 => 3,
        v if v < 1000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// A Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut out =
        "| question | figure | truth | found | error | bound |\n| --- | --- | ---: | ---: | ---: | ---: |\n".to_owned();
    for row in rows {
        let error = row.error().map_or("not found".to_owned(), |error| format!("{error:+.1} %"));
        let found = row.found.map_or("–".to_owned(), number);
        let Row { question, figure, truth, bound_percent, .. } = row;
        out += &format!("| {question} | {figure} | {} | {found} | {error} | {bound_percent} % |\n", number(*truth));
    }
    out
}

/// One sentence for each figure that lies outside its bound.
pub fn complaints(rows: &[Row]) -> Vec<String> {
    let outside = rows.iter().filter(|row| !row.is_within());
    outside
        .map(|row| {
            let found = row.found.map_or("nothing".to_owned(), number);
            format!("{}, {}: found {found}, truth {}", row.question, row.figure, number(row.truth))
        })
        .collect()
}
