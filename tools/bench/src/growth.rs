//! `growth`: the main figures at several sizes, and their growth with the number of results.

use crate::{
    cases,
    cli::Options,
    dataset::OpenDataset,
    generate::generate,
    import,
    load::timed,
    number::float,
    program::{self, Program},
    shape::{Shape, Size},
    table::Table,
};

/// Measures data sets of these sizes. Missing ones are generated.
pub(crate) fn growth(options: &Options, shape: &Shape, sizes: &[Size]) -> anyhow::Result<Table> {
    let (mut measurements, mut results) = (Vec::new(), Vec::new());
    for size in sizes {
        eprintln!("assay-bench: size {}", size.name());
        let own = Options {
            size: *size,
            ..options.clone()
        };
        let dir = own.dir();
        let data = generate(&dir, own.pg_bin.as_deref(), &shape.scaled(*size))?;
        results.push(data.sum(|made| made.results));
        measurements.push(measured(&OpenDataset::open(&dir, own.pg_bin.as_deref())?, &own)?);
    }
    let names = sizes.iter().map(|size| size.name());
    let columns: Vec<String> = ["Measured".to_owned()]
        .into_iter()
        .chain(names)
        .chain(["exponent".to_owned()])
        .collect();
    let mut table = Table::new("Growth", &columns.iter().map(String::as_str).collect::<Vec<_>>());
    for (figure, _) in measurements.last().into_iter().flatten() {
        let value = |of: &Vec<(String, f64)>| {
            of.iter()
                .find(|(name, _)| name == figure)
                .map(|(_, value)| *value)
        };
        let mut values: Vec<Option<f64>> = measurements.iter().map(value).collect();
        let points = results.iter().zip(&values);
        let points: Vec<(f64, f64)> = points
            .filter_map(|(results, value)| Some((*results, (*value)?)))
            .collect();
        values.push(exponent(&points));
        table.row(figure, &values);
    }
    table.note(
        "A size multiplies the tests, and also the runs per day, by its square root. The exponent is the slope of the \
         line through the logarithms: 0 does not grow with the results, 0.5 grows with the tests of a run, 1 with all results.",
    );
    Ok(table)
}

fn measured(opened: &OpenDataset, options: &Options) -> anyhow::Result<Vec<(String, f64)>> {
    let binary = program::server(options.server.as_deref())?;
    let server = Program::server(&binary, opened)?;
    let cases = cases::cases(&server.client, &opened.data)?;
    let mut figures = vec![(
        "results, millions".to_owned(),
        opened.data.sum(|made| made.results) / 1e6,
    )];
    for timed in timed(&server, &cases, options.time())? {
        let name = timed.case.name;
        figures.extend(timed.alone.ms(0.5).map(|ms| (format!("{name}, p50 ms"), ms)));
    }
    drop(server);
    let times = if options.seconds < 1.0 { 1 } else { 9 };
    figures.push(("import of a run, s".to_owned(), import::seconds(opened, times)?));
    Ok(figures)
}

/// The slope of the least-squares line through the logarithms.
fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    let count = float(logs.len());
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (logs.len() > 1 && spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_is_a_slope() {
        let square = [(1.0, 3.0), (2.0, 12.0), (4.0, 48.0)];
        assert!((exponent(&square).unwrap() - 2.0).abs() < 1e-9);
        let flat = [(1.0, 3.0), (16.0, 3.0)];
        assert!(exponent(&flat).unwrap().abs() < 1e-9);
        assert_eq!(exponent(&[(1.0, 1.0)]), None);
    }
}
