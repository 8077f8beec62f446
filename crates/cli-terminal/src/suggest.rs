//! Suggestions for mistyped names.

/// Minimum similarity of a suggested name, from 0 (different) to 1 (equal).
const ALIKE: f64 = 0.75;

/// The name most similar to `text`, if one is similar enough. The comparison ignores case.
pub fn closest<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    names
        .into_iter()
        .map(|name| (likeness(&text, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// The larger of two similarity measures. One tolerates a missing letter near the start, the other swapped words.
fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b).max(strsim::normalized_damerau_levenshtein(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_the_nearest_name_and_other_names_find_none() {
        let names = ["shop", "storefront", "Example Shop", "backend"];
        for (slip, meant) in [
            ("shp", "shop"),
            ("Shop", "shop"),
            ("sohp", "shop"),
            ("store-front", "storefront"),
            ("example-shop", "Example Shop"),
            ("bakcend", "backend"),
        ] {
            assert_eq!(closest(slip, names), Some(meant), "{slip}");
        }
        for other in ["", "x", "payments", "019aa3f4-5b1c-7def-8a3b-0123456789ab"] {
            assert_eq!(closest(other, names), None, "{other}");
        }
    }
}
