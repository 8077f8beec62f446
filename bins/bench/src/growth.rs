//! `growth`: the main figures at several sizes, and their growth with the number of results.

use crate::{
    cases, cluster,
    dataset::Opened,
    generate::generate,
    import,
    load::timed,
    number::float,
    options::Options,
    process,
    program::{self, Program},
    progress::step,
    shape::{Shape, Size},
    table::Table,
};

/// One measured figure at the sizes so far.
struct Figure {
    name: String,
    values: Vec<Option<f64>>,
}

/// Measures data sets of these sizes, made where they are not there.
pub(crate) fn growth(options: &Options, shape: &Shape, sizes: &[Size]) -> anyhow::Result<Vec<Table>> {
    let mut figures: Vec<Figure> = Vec::new();
    let mut results = Vec::new();
    for (place, size) in sizes.iter().enumerate() {
        step(&format!("size {}", size.name()));
        let own = Options {
            size: *size,
            ..options.clone()
        };
        let dir = own.dir();
        let data = generate(&dir, own.pg_bin.as_deref(), &shape.scaled(*size), false)?;
        results.push(float(data.summary().results));
        let opened = Opened::open(&dir, own.pg_bin.as_deref())?;
        for (name, value) in measured(&opened, &own)? {
            match figures.iter_mut().find(|figure| figure.name == name) {
                Some(figure) => {
                    figure.values.resize(place, None);
                    figure.values.push(Some(value));
                }
                None => {
                    let mut values = vec![None; place];
                    values.push(Some(value));
                    figures.push(Figure { name, values });
                }
            }
        }
    }
    let mut columns = vec!["Measured".to_owned()];
    columns.extend(sizes.iter().map(|size| size.name()));
    columns.push("exponent".to_owned());
    let headings: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("growth", "Growth", &headings);
    for figure in figures {
        let mut values = figure.values;
        values.resize(sizes.len(), None);
        let points: Vec<(f64, f64)> = results
            .iter()
            .zip(&values)
            .filter_map(|(results, value)| Some((*results, (*value)?)))
            .collect();
        let mut cells = vec![figure.name.as_str().into()];
        cells.extend(values.into_iter().map(Into::into));
        cells.push(exponent(&points).into());
        table.row(cells);
    }
    table.note(
        "A size has the root of that many tests, and of runs a day. The exponent is the slope of the line through the logarithms: \
         0 does not grow with the results, 0.5 grows with the tests of a run, 1 with all results.",
    );
    Ok(vec![table])
}

fn measured(opened: &Opened, options: &Options) -> anyhow::Result<Vec<(String, f64)>> {
    let binary = program::server(options.server.as_deref())?;
    let server = Program::server(&binary, &opened.running.url(), &options.server_log, &opened.dir)?;
    let targets = cases::targets(&server.client, &opened.data)?;
    let mut connection = opened.running.connection()?;
    let summary = opened.data.summary();
    let bytes = float(cluster::size(&mut connection)?);
    let mut figures = vec![
        ("results, millions".to_owned(), float(summary.results) / 1e6),
        (
            "results in the window, millions".to_owned(),
            float(summary.window) / 1e6,
        ),
        ("database, GB".to_owned(), bytes / 1e9),
        ("bytes a result".to_owned(), bytes / float(summary.results.max(1))),
        ("generating, s".to_owned(), opened.data.seconds),
    ];
    for timed in timed(opened, &server, &targets, options.time())? {
        let name = timed.case.name;
        figures.extend(timed.alone.ms(0.5).map(|ms| (format!("{name}, p50 ms"), ms)));
        if timed.case.cheap {
            figures.push((format!("{name}, req/s of 32"), timed.crowd.rate()));
        }
    }
    if let Some(memory) = process::memory(server.pid()) {
        figures.push(("server's peak, MB".to_owned(), memory.peak));
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
