//! Families of metrics as text: OpenMetrics 1.0, and Prometheus' older format 0.0.4 for whoever does not ask for it. Written here
//! because the client libraries write the present alone, and a finished run is told with time stamps.

use basics::Nanos;
use std::fmt::Write;

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; its samples' names end with `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by upper bound.
    Histogram,
    /// Whoever gave it its name left that open.
    Unknown,
}

/// Names and values, in a fixed order.
pub type Labels = Vec<(&'static str, String)>;

/// What a point says.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One figure.
    Number(f64),
    /// How many are at most so large: counts beside their bounds, those beyond the last one, and the sum of all.
    Histogram {
        /// Upper bounds.
        bounds: &'static [f64],
        /// For each bound how many lie between it and the one before, and last those beyond.
        counts: Vec<u64>,
        /// Of all values.
        sum: f64,
    },
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Which metric of the family.
    pub labels: Labels,
    /// The value.
    pub value: Value,
    /// Unix time; of a page that is read at once, none.
    pub at: Option<Nanos>,
}

/// Metrics of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Without `_total`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// A sentence.
    pub help: String,
    /// Its points.
    pub points: Vec<Point>,
}

impl Family {
    /// One without points; `_total` belongs to a counter's samples and is taken off its name.
    pub fn new(kind: Kind, name: &str, help: impl Into<String>) -> Self {
        let name = if kind == Kind::Counter { name.strip_suffix("_total").unwrap_or(name) } else { name };
        Family { name: name.to_owned(), kind, help: help.into(), points: Vec::new() }
    }

    /// With one more figure.
    #[must_use]
    pub fn with(mut self, labels: Labels, value: f64) -> Self {
        self.push(labels, Value::Number(value));
        self
    }

    /// All its points at this moment, Unix time.
    #[must_use]
    pub fn at(mut self, at: Nanos) -> Self {
        self.points.iter_mut().for_each(|point| point.at = Some(at));
        self
    }

    /// One more point.
    pub fn push(&mut self, labels: Labels, value: Value) {
        self.points.push(Point { labels, value, at: None });
    }
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text, 0.0.4.
    Plain,
}

impl Format {
    /// Of those that are accepted, by HTTP's header.
    pub fn accepted(header: &str) -> Self {
        if header.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Plain }
    }

    /// HTTP's name.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// All families in their order, those of one name joined; those without points are left out.
pub fn write(families: Vec<Family>, format: Format) -> String {
    let mut joined: Vec<Family> = Vec::new();
    for family in families.into_iter().filter(|family| !family.points.is_empty()) {
        match joined.iter_mut().find(|known| known.name == family.name) {
            Some(known) => known.points.extend(family.points),
            None => joined.push(family),
        }
    }
    let mut out = String::new();
    joined.into_iter().for_each(|family| one(&mut out, family, format));
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn one(out: &mut String, mut family: Family, format: Format) {
    let kind = match (family.kind, format) {
        (Kind::Counter, _) => "counter",
        (Kind::Gauge, _) => "gauge",
        (Kind::Histogram, _) => "histogram",
        (Kind::Unknown, Format::OpenMetrics) => "unknown",
        (Kind::Unknown, Format::Plain) => "untyped",
    };
    let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
    let name = &family.name;
    // The older format calls a counter by its sample's name.
    let head = if format == Format::Plain { format!("{name}{suffix}") } else { name.clone() };
    // Writing to a String does not fail.
    let _ = writeln!(out, "# TYPE {head} {kind}");
    if format == Format::OpenMetrics && name.ends_with("_seconds") {
        let _ = writeln!(out, "# UNIT {name} seconds");
    }
    let _ = writeln!(out, "# HELP {head} {}", escaped(&family.help));
    // All points of a metric together, in the order of time.
    family.points.sort_by(|a, b| (&a.labels, a.at).cmp(&(&b.labels, b.at)));
    for Point { labels, value, at } in &family.points {
        let at = at.map_or_else(String::new, |at| match format {
            Format::OpenMetrics => format!(" {:.3}", at.secs()),
            Format::Plain => format!(" {}", at.0 / 1_000_000),
        });
        match value {
            Value::Number(number) => {
                let _ = writeln!(out, "{name}{suffix}{} {number}{at}", braced(labels, None));
            }
            Value::Histogram { bounds, counts, sum } => {
                let mut below = 0;
                for (index, count) in counts.iter().enumerate() {
                    below += count;
                    let bound = bounds.get(index).map_or("+Inf".to_owned(), |bound| format!("{bound:?}"));
                    let _ = writeln!(out, "{name}_bucket{} {below}{at}", braced(labels, Some(&bound)));
                }
                let labels = braced(labels, None);
                let _ = writeln!(out, "{name}_sum{labels} {sum}{at}\n{name}_count{labels} {below}{at}");
            }
        }
    }
}

fn braced(labels: &Labels, bound: Option<&str>) -> String {
    let all = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound.map(|bound| ("le", bound)));
    let all: Vec<String> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let mut histogram = Family::new(Kind::Histogram, "wait_seconds", "How long.");
        let counts = vec![3, 0, 2];
        histogram.push(vec![("of", "a\"b".to_owned())], Value::Histogram { bounds: &[0.001, 1.0], counts, sum: 2.5 });
        vec![
            Family::new(Kind::Counter, "done_total", "Things done.").with(vec![], 7.0),
            Family::new(Kind::Gauge, "empty", "Nothing."),
            histogram,
            Family::new(Kind::Unknown, "odd", "Whatever.").with(vec![], 0.5),
            Family::new(Kind::Counter, "done_total", "Things done.").with(vec![("by", "me".to_owned())], 1.0),
        ]
    }

    #[test]
    fn both_formats_tell_the_same() {
        let text = write(families(), Format::OpenMetrics);
        let expected = "# TYPE done counter\n# HELP done Things done.\ndone_total 7\ndone_total{by=\"me\"} 1\n\
            # TYPE wait_seconds histogram\n# UNIT wait_seconds seconds\n# HELP wait_seconds How long.\n\
            wait_seconds_bucket{of=\"a\\\"b\",le=\"0.001\"} 3\nwait_seconds_bucket{of=\"a\\\"b\",le=\"1.0\"} 3\n\
            wait_seconds_bucket{of=\"a\\\"b\",le=\"+Inf\"} 5\nwait_seconds_sum{of=\"a\\\"b\"} 2.5\n\
            wait_seconds_count{of=\"a\\\"b\"} 5\n# TYPE odd unknown\n# HELP odd Whatever.\nodd 0.5\n# EOF\n";
        assert_eq!(text, expected);
        let plain = write(families(), Format::Plain);
        assert!(plain.starts_with("# TYPE done_total counter\n# HELP done_total"), "{plain}");
        assert!(plain.contains("# TYPE odd untyped") && !plain.contains("UNIT") && !plain.contains("EOF"), "{plain}");
        let samples =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(samples(&plain), samples(&text));
    }

    #[test]
    fn with_time_stamps_each_metric_goes_in_the_order_of_time() {
        let mut family = Family::new(Kind::Gauge, "x", "X.");
        for (label, at) in [("b", 2), ("a", 3), ("b", 1), ("a", 1)] {
            let labels = vec![("of", label.to_owned())];
            family.points.push(Point { labels, value: Value::Number(1.0), at: Some(Nanos(at * 1_500_000_000)) });
        }
        let text = write(vec![family.clone()], Format::OpenMetrics);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('x')).collect();
        assert_eq!(lines, ["x{of=\"a\"} 1 1.500", "x{of=\"a\"} 1 4.500", "x{of=\"b\"} 1 1.500", "x{of=\"b\"} 1 3.000"]);
        assert!(write(vec![family], Format::Plain).contains("x{of=\"a\"} 1 1500\n"));
    }

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        assert_eq!(
            Format::accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.3"),
            Format::OpenMetrics
        );
        assert_eq!(Format::accepted("text/html,*/*;q=0.8"), Format::Plain);
        assert_eq!(Format::accepted(""), Format::Plain);
    }
}
