//! Charts: one bar per run, or one bar per period.

use maud::{Markup, html};

/// A run in a chart of runs.
#[derive(Debug, Clone)]
pub struct RunBar {
    /// The tooltip of the bar.
    pub about: String,
    /// The page of the run, on this site or at the CI service.
    pub link: Option<String>,
    /// Tests with a failed final attempt.
    pub failed: u32,
    /// Tests that passed after a failed attempt.
    pub recovered: u32,
    /// Whether the run failed. A run without a failed test may fail, too.
    pub has_failed: bool,
}

const HEIGHT: f64 = 66.0;
const STEP: usize = 10;
/// The widest bar with its gap, in pixels, so that a chart of few bars keeps narrow ones.
const MAX_BAR_PIXELS: usize = 34;
/// The minimum number of slots, so that the labels of both ends fit below the chart.
const MIN_SLOTS: usize = 6;

/// The positions of the bars: the newest at the right end.
struct BarSlots {
    /// The number of slots.
    slots: usize,
    bars: usize,
}

impl BarSlots {
    fn of(bars: usize) -> Self {
        Self {
            slots: bars.max(MIN_SLOTS),
            bars,
        }
    }

    /// The left end of a bar's slot.
    const fn x(&self, index: usize) -> usize {
        (self.slots - self.bars + index) * STEP
    }

    const fn width(&self) -> usize {
        self.slots * STEP
    }

    const fn pixels(&self) -> usize {
        self.slots * MAX_BAR_PIXELS
    }
}

/// The chart with the labels of its first and last bar below it. Those of few bars are one label at the right end.
fn with_axis(chart: &Markup, slots: &BarSlots, [first, last]: [&str; 2]) -> Markup {
    html! {
        div.framed {
            (chart)
            p.axis {
                @if slots.bars < slots.slots && first != last {
                    span {} span { (first) " to " (last) }
                } @else {
                    span { (first) } span { (last) }
                }
            }
        }
    }
}

/// The runs, oldest first, with the numbers of failed and of recovered tests. `label` is the text alternative. `ends`
/// name the days of the first and the last run.
pub fn runs(bars: &[RunBar], label: &str, ends: [&str; 2]) -> Markup {
    let most = bars
        .iter()
        .map(|bar| bar.failed + bar.recovered)
        .max()
        .unwrap_or(0);
    let height = |tests: u32| {
        // The square root keeps one failing test visible beside an outage.
        if tests == 0 {
            0.0
        } else {
            ((f64::from(tests) / f64::from(most.max(1))).sqrt() * 60.0).max(5.0)
        }
    };
    let slots = BarSlots::of(bars.len());
    let chart = html! {
        svg.runs-chart viewBox={ "0 0 " (slots.width()) " 66" } preserveAspectRatio="none" height="66"
            width=(slots.pixels()) role="group" aria-label=(label) {
            @for (index, bar) in bars.iter().enumerate() {
                @let x = slots.x(index);
                @let failed = height(bar.failed);
                @let both = height(bar.failed + bar.recovered).max(failed);
                @let column = html! {
                    title { (bar.about) }
                    rect.hit x=(x) y="0" width=(STEP) height="66" {}
                    @if both > failed { (column(x, both, both - failed, "recovered")) }
                    @if failed > 0.0 { (column(x, failed, failed, "failed")) }
                    @if both == 0.0 { (column(x, 3.0, 3.0, if bar.has_failed { "failed" } else { "passed" })) }
                };
                @match &bar.link {
                    Some(link) => a href=(link) rel=[(!link.starts_with('/')).then_some("noopener noreferrer")] aria-label=(bar.about) { (column) },
                    None => g role="img" aria-label=(bar.about) { (column) },
                }
            }
        }
    };
    with_axis(&chart, &slots, ends)
}

fn column(x: usize, top: f64, tall: f64, class: &str) -> Markup {
    html! {
        rect.(class) x=(x + 1) y=(format!("{:.1}", HEIGHT - top)) width="8" height=(format!("{tall:.1}")) {}
    }
}

/// A bar of a period.
#[derive(Debug, Clone)]
pub struct PeriodBar {
    /// The tooltip of the bar.
    pub about: String,
    /// The figure.
    pub value: f64,
    /// The class of its colour.
    pub class: &'static str,
}

/// One bar per period, oldest first. `label` is the text alternative. `ends` name the first
/// and the last period.
pub fn periods(bars: &[PeriodBar], label: &str, ends: [&str; 2]) -> Markup {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let slots = BarSlots::of(bars.len());
    let chart = html! {
        svg.periods viewBox={ "0 0 " (slots.width()) " 40" } preserveAspectRatio="none" height="40" width=(slots.pixels()) role="img" aria-label=(label) {
            @for (index, bar) in bars.iter().enumerate() {
                @let x = slots.x(index);
                @let tall = if bar.value > 0.0 { (bar.value / most * 38.0).max(3.0) } else { 1.0 };
                g {
                    title { (bar.about) }
                    rect.hit x=(x) y="0" width=(STEP) height="40" {}
                    rect class=(if bar.value > 0.0 { bar.class } else { "none" }) x=(x + 1) y=(format!("{:.1}", 40.0 - tall)) width="8" height=(format!("{tall:.1}")) {}
                }
            }
        }
    };
    with_axis(&chart, &slots, ends)
}

/// A chart of periods inside a table row. All bars are one path, which keeps long lists small.
pub fn line_of_periods(values: &[u64], class: &str, label: &str) -> Markup {
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let width = values.len() * 4;
    let bars: String = (0..)
        .zip(values)
        .filter(|(_, value)| **value > 0)
        .map(|(index, value): (usize, _)| {
            format!("M{} 20v-{}", index * 4 + 2, (value * 20).div_ceil(most).max(3))
        })
        .collect();
    html! {
        svg.strip viewBox={ "0 0 " (width) " 20" } width=(width) height="20" role="img" aria-label=(label) {
            path.base d={ "M0 20h" (width) } {}
            @if !bars.is_empty() { path.(class) d=(bars) stroke-width="3" {} }
        }
    }
}

/// The share of each part of a whole as one flat bar. Each part has a class and a count.
pub fn shares(parts: &[(&str, u64)], label: &str) -> Markup {
    let all: u64 = parts.iter().map(|(_, count)| count).sum();
    let mut x = 0;
    let rectangles: Vec<(&str, u64, u64)> = parts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| {
            let start = x;
            // In thousandths. A part that is not zero is always visible.
            x += (count * 1_000 / all.max(1)).max(12);
            (*class, start, x - start)
        })
        .collect();
    html! {
        svg.shares viewBox={ "0 0 " (x.max(1)) " 8" } preserveAspectRatio="none" width="120" height="8" role="img" aria-label=(label) {
            title { (label) }
            @for (class, start, wide) in rectangles { rect.(class) x=(start) y="0" width=(wide) height="8" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_bars_stay_narrow_and_end_at_the_right() {
        let bar = PeriodBar {
            about: "run 1".to_owned(),
            value: 1.0,
            class: "passed",
        };
        let drawn = |bars: usize| periods(&vec![bar.clone(); bars], "Durations", ["a", "b"]).into_string();
        let two = drawn(2);
        assert!(
            two.contains("viewBox=\"0 0 60 40\"") && two.contains("width=\"204\""),
            "{two}"
        );
        assert!(
            two.contains("class=\"passed\" x=\"41\"") && two.contains("x=\"51\""),
            "{two}"
        );
        let many = drawn(30);
        assert!(
            many.contains("viewBox=\"0 0 300 40\"") && many.contains("width=\"1020\""),
            "{many}"
        );
    }
}
