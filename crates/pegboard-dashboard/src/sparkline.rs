//! Small charts as inline SVG. Without scripts and styles of their own, so the policy of the page allows them.

use maud::{Markup, html};

/// The size of the drawing; the page scales it.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;

/// A line of values, the oldest first, from zero to their maximum. `None` is a time about which nothing is known.
pub(crate) fn sparkline(label: &str, values: &[Option<f64>], slots: usize) -> Markup {
    let max = values.iter().flatten().copied().fold(0.0, f64::max);
    let points = points(values, slots, max);
    let lines = lines(&points);
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            line.axis x1="0" x2=(WIDTH) y1=(HEIGHT - 0.5) y2=(HEIGHT - 0.5) {}
            @for line in &lines {
                polygon.area points={ (line.first().map_or(0.0, |point| point.0)) "," (HEIGHT) " " (joined(line)) " " (line.last().map_or(0.0, |point| point.0)) "," (HEIGHT) } {}
                polyline.line points=(joined(line)) {}
            }
        }
    }
}

type Point = (f64, f64);

/// The places of the values: the newest is at the right edge.
fn points(values: &[Option<f64>], slots: usize, max: f64) -> Vec<Option<Point>> {
    #[expect(clippy::cast_precision_loss, reason = "there are a few hundred slots")]
    let step = WIDTH / (slots.max(2) - 1) as f64;
    let from = slots.saturating_sub(values.len());
    let place = |(at, value): (usize, &Option<f64>)| {
        #[expect(clippy::cast_precision_loss, reason = "there are a few hundred slots")]
        let x = (from + at) as f64 * step;
        value.map(|value| {
            let share = if max > 0.0 { value / max } else { 0.0 };
            (round(x), round(HEIGHT - 1.5 - share * (HEIGHT - 4.0)))
        })
    };
    values.iter().enumerate().map(place).collect()
}

/// The points without gaps between them.
fn lines(points: &[Option<Point>]) -> Vec<Vec<Point>> {
    let runs = points.split(Option::is_none);
    let runs = runs.map(|run| run.iter().flatten().copied().collect::<Vec<_>>());
    runs.filter(|run| !run.is_empty()).collect()
}

fn joined(line: &[Point]) -> String {
    let points: Vec<String> = line.iter().map(|(x, y)| format!("{x},{y}")).collect();
    match points.as_slice() {
        // A line of no length, which its round ends make a dot.
        [one] => format!("{one} {one}"),
        points => points.join(" "),
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The parts of a time, one after the other: the name of each part's class, and its share.
pub(crate) fn bar(label: &str, parts: &[(&'static str, f64)], total: f64) -> Markup {
    let mut at = 0.0;
    let mut placed = Vec::new();
    for (class, part) in parts {
        let width = if total > 0.0 { part / total * 100.0 } else { 0.0 };
        placed.push((*class, at, width));
        at += width;
    }
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track x="0" y="0" width="100" height="8" {}
            @for (class, x, width) in placed.into_iter().filter(|(_, _, width)| *width > 0.0) {
                rect class=(class) x=(format!("{x:.3}")) y="0" width=(format!("{:.3}", width.max(0.3).min(100.0 - x.min(99.7)))) height="8" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_stays_a_gap_and_the_newest_value_is_at_the_right() {
        let drawn = sparkline("calls", &[Some(1.0), None, Some(2.0), Some(0.0)], 4).into_string();
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(drawn.contains("240,38.5"), "{drawn}");
        assert!(drawn.contains("aria-label=\"calls\""));
    }

    #[test]
    fn nothing_is_a_line_without_points() {
        assert!(!sparkline("x", &[], 360).into_string().contains("polyline"));
    }
}
