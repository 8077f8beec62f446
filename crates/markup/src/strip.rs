//! A strip: the outcomes of a test, one bar per run.

use assay_domain::outcomes::Outcome;
use maud::{Markup, html};

use crate::words;

/// The class of an outcome's bar.
pub const fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Skipped => "skipped",
        Outcome::Passed => "passed",
        Outcome::Recovered => "recovered",
        Outcome::MassFailure => "mass",
        Outcome::Failed => "failed",
    }
}

/// The letter that the script reads.
const fn letter(outcome: Outcome) -> char {
    match outcome {
        Outcome::Skipped => 's',
        Outcome::Passed => 'p',
        Outcome::Recovered => 'r',
        Outcome::MassFailure => 'm',
        Outcome::Failed => 'f',
    }
}

/// The height of an outcome's bar as a share of the strip, so that shapes differ as well as colours.
const fn tenths(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Skipped => 1,
        Outcome::Passed => 3,
        Outcome::Recovered => 6,
        Outcome::MassFailure | Outcome::Failed => 10,
    }
}

/// The outcomes of a run or of a test in it, in the order of a legend.
pub const RUN_OUTCOMES: [Outcome; 4] = [
    Outcome::Passed,
    Outcome::Recovered,
    Outcome::Failed,
    Outcome::Skipped,
];

/// The dimensions of a strip's bars in pixels.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The distance between two bars.
    pub step: usize,
    /// The height of the strip.
    pub height: usize,
}

impl Scale {
    /// A strip inside a table row.
    pub const LINE: Self = Self { step: 5, height: 20 };

    const fn bar(self) -> usize {
        if self.step > 5 {
            self.step - 2
        } else {
            self.step - 1
        }
    }
}

/// Draws a strip. A cell without an outcome is a run without a result of the test. `of` names the branch or variant.
///
/// The attribute `data-o` repeats the outcomes as letters. The script uses it to show the outcome under the pointer.
pub fn draw(cells: &[Option<Outcome>], scale: Scale, of: &str) -> Markup {
    let Scale { step, height } = scale;
    let (width, bar) = (cells.len() * step, scale.bar());
    let letters: String = cells.iter().map(|cell| cell.map_or('.', letter)).collect();
    html! {
        svg.strip width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img"
            aria-label={ (of) ": " (in_words(cells)) } data-o=(letters) {
            path.base d={ "M0 " (height) "h" (width) } {}
            @for outcome in Outcome::ALL {
                @let path = bars(cells, outcome, scale);
                @if !path.is_empty() { path.(class(outcome)) d=(path) stroke-width=(bar) {} }
            }
        }
    }
}

/// The bars of one outcome, as one path of vertical lines.
fn bars(cells: &[Option<Outcome>], outcome: Outcome, scale: Scale) -> String {
    let tall = (scale.height * tenths(outcome) / 10).max(2);
    let at = |place: usize| place * scale.step * 2 + scale.bar();
    let mut path = String::new();
    for (place, _) in cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| **cell == Some(outcome))
    {
        let twice = at(place);
        let half = if twice.is_multiple_of(2) { "" } else { ".5" };
        path += &format!("M{}{half} {}v-{tall}", twice / 2, scale.height);
    }
    path
}

/// The text alternative of a strip.
pub fn in_words(cells: &[Option<Outcome>]) -> String {
    let ran = cells.iter().flatten().count();
    let parts: Vec<String> = Outcome::ALL
        .into_iter()
        .filter_map(|outcome| {
            let count = cells.iter().filter(|cell| **cell == Some(outcome)).count();
            (count > 0).then(|| format!("{count} {}", outcome.words()))
        })
        .collect();
    format!("newest {}: {}", words::count(ran, "run"), parts.join(", "))
}

/// The legend of a strip or chart with these outcomes.
pub fn legend(outcomes: impl IntoIterator<Item = Outcome>) -> Markup {
    html! {
        ul.legend {
            @for outcome in outcomes {
                li {
                    svg.strip width="8" height="16" viewBox="0 0 8 16" aria-hidden="true" {
                        path.(class(outcome)) d=(bars(&[Some(outcome)], outcome, Scale { step: 8, height: 16 })) stroke-width="6" {}
                    }
                    (outcome.words())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_a_bar_for_each_outcome_and_a_text_alternative() {
        let cells = [
            Some(Outcome::Passed),
            None,
            Some(Outcome::Failed),
            Some(Outcome::Passed),
        ];
        let drawn = draw(&cells, Scale::LINE, "on main").into_string();
        assert!(
            drawn.contains("aria-label=\"on main: newest 3 runs: 2 passed, 1 failed\""),
            "{drawn}"
        );
        assert!(drawn.contains("data-o=\"p.fp\""), "{drawn}");
        assert!(
            drawn.contains("class=\"passed\" d=\"M2 20v-6M17 20v-6\""),
            "{drawn}"
        );
        assert!(drawn.contains("class=\"failed\" d=\"M12 20v-20\""), "{drawn}");
        assert!(!drawn.contains("style="), "{drawn}");
    }

    #[test]
    fn every_outcome_has_a_shape_of_its_own() {
        let shapes: Vec<_> = Outcome::ALL
            .into_iter()
            .filter(|outcome| *outcome != Outcome::MassFailure)
            .map(tenths)
            .collect();
        let mut distinct = shapes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), shapes.len());
    }
}
