//! What was measured, and the table of it.

use std::{collections::BTreeMap, time::Duration};

/// Figures by the id of their row.
pub type Figures = BTreeMap<&'static str, f64>;

/// A row of the table.
struct Row {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// At most this much is wanted of us.
    target: Option<f64>,
}

const fn row(id: &'static str, title: &'static str, unit: &'static str, target: Option<f64>) -> Row {
    Row { id, title, unit, target }
}

const ROWS: &[Row] = &[
    row("accept10", "definition of 10 resources: create → Ready, p50", "ms", Some(350.0)),
    row("accept50", "definition of 50 resources: create → Ready, p50", "ms", Some(450.0)),
    row("single", "one instance of 5 children: create → Ready, p50", "ms", Some(50.0)),
    row("single-max", "… the slowest", "ms", None),
    row("chain", "one instance, chain of 5: create → Ready, p50", "ms", None),
    row("burst100", "100 instances at once: all Ready after", "s", Some(3.0)),
    row("burst100-p50", "… p50", "s", None),
    row("requests", "requests to create an instance of 5 children", "", Some(9.0)),
    row("burst100-cpu", "processor time for an instance", "ms", None),
    row("burst400-p95", "400 instances more: Ready, p95", "s", Some(8.0)),
    row("burst400", "… all Ready after", "s", None),
    row("noop", "requests in a pass with nothing to do", "", Some(0.0)),
    row("rss", "resident memory with 500 instances", "MiB", Some(40.0)),
    row("peak", "… the most it ever was", "MiB", None),
    row("delete", "500 instances deleted at once: all gone after", "s", Some(8.0)),
    row("waiting", "300 waiting instances: requests a second", "", Some(5.0)),
    row("healthy", "… a healthy instance beside them: create → ACTIVE, p50", "ms", Some(100.0)),
    row("load", "load average of the machine meanwhile", "", None),
];

/// The table in Markdown; peers without figures have a dash.
pub fn table(all: &BTreeMap<&'static str, Figures>) -> Vec<String> {
    let mut lines = vec![
        "| measurement | kro | plinth | kro / plinth | target | |".to_owned(),
        "| --- | ---: | ---: | ---: | ---: | --- |".to_owned(),
    ];
    for row in ROWS {
        let value = |peer: &str| all.get(peer).and_then(|figures| figures.get(row.id)).copied();
        let (kro, ours) = (value("kro"), value("plinth"));
        let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{}{unit}", round(value)));
        let ratio = match (kro, ours) {
            (Some(kro), Some(ours)) if ours > 0.0 && row.id != "load" => round(kro / ours),
            _ => "–".to_owned(),
        };
        let target = row.target.map_or_else(|| "–".to_owned(), |target| format!("≤ {}{unit}", round(target)));
        let met = match (row.target, ours) {
            (Some(target), Some(ours)) => {
                if ours <= target {
                    "met"
                } else {
                    "missed"
                }
            }
            _ => "",
        };
        lines.push(format!("| {} | {} | {} | {ratio} | {target} | {met} |", row.title, shown(kro), shown(ours)));
    }
    lines
}

fn round(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// The value that `part` of the sorted values are not above; 0 of none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index into a list")]
pub(super) fn quantile(times: &[Duration], part: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    let index = (part * times.len() as f64).ceil() as usize;
    times.get(index.saturating_sub(1)).copied().unwrap_or_default()
}

/// Milliseconds with their fraction.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let times: Vec<Duration> = (1..=20).rev().map(Duration::from_secs).collect();
        assert_eq!(quantile(&times, 0.5), Duration::from_secs(10));
        assert_eq!(quantile(&times, 0.95), Duration::from_secs(19));
        assert_eq!(quantile(&times, 1.0), Duration::from_secs(20));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn a_row_says_whether_its_target_is_met() {
        let all = BTreeMap::from([
            ("kro", Figures::from([("single", 83.0)])),
            ("plinth", Figures::from([("single", 41.5), ("noop", 1.0)])),
        ]);
        let lines = table(&all).join("\n");
        assert!(lines.contains("| 83 ms | 41.5 ms | 2 | ≤ 50 ms | met |"), "{lines}");
        assert!(lines.contains("| – | 1 | – | ≤ 0 | missed |"), "{lines}");
    }
}
