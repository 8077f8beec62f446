//! The parts that all pages share, as markup: strips, charts, rows, words and the style.
//!
//! No part uses a `style` attribute or an inline script, so that a page's content security policy can forbid both.

pub mod cause;
pub mod chart;
pub mod figures;
pub mod name;
pub mod reading;
pub mod repository;
pub mod strip;
pub mod words;

use maud::{Markup, html};

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// The logo of the product: a scale's beam between a full and a half bar.
pub fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 20 20" aria-hidden="true" {
            rect x="1" y="3" width="4" height="14" rx="1" {}
            rect x="8" y="10" width="4" height="7" rx="1" {}
            rect x="15" y="6" width="4" height="11" rx="1" {}
        }
    }
}

/// One figure of a summary.
pub fn tile(class: &str, figure: &str, label: &str, hint: &str) -> Markup {
    html! {
        // A count of zero has no warning colour.
        div class={ "tile " (class) @if figure == "0" { " zero" } } { (tile_texts(figure, label, hint)) }
    }
}

/// One figure of a summary, with a link to the list of the counted items.
pub fn tile_link(class: &str, figure: &str, label: &str, hint: &str, link: &str) -> Markup {
    html! {
        a class={ "tile " (class) } href=(link) { (tile_texts(figure, label, hint)) }
    }
}

fn tile_texts(figure: &str, label: &str, hint: &str) -> Markup {
    html! {
        span.figure { (figure) }
        span.label { (label) }
        span.hint { (hint) }
    }
}
