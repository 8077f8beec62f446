use super::*;
use crate::{joins::Joins, observation::Bitmap};

fn at(date: &str) -> Timestamp {
    format!("{date}T12:00:00Z").parse().unwrap()
}

/// The tests of a project: `name` or `name@file`.
fn tests(names: &[&'static str]) -> Vec<(TestOrdinal, TestNameRef<'static>)> {
    let test = |name: &'static str| match name.split_once('@') {
        Some((name, file)) => TestNameRef {
            name,
            file_path: Some(file),
        },
        None => TestNameRef {
            name,
            file_path: None,
        },
    };
    (0..).zip(names.iter().map(|name| test(name))).collect()
}

/// What each test of a run counts as, by their names.
fn counted(text: &str, names: &[&'static str], date: &str, reported: &[&str]) -> Vec<String> {
    let renames = Renames::parse(text);
    assert_eq!(renames.problems(), [], "{text}");
    let joins = Joins::of(renames.joins(tests(names).into_iter()));
    let number =
        |name: &&str| TestOrdinal::try_from(names.iter().position(|other| other == name).unwrap()).unwrap();
    let reported: Vec<TestOrdinal> = reported.iter().map(number).collect();
    let set: Bitmap = reported.iter().copied().collect();
    let moves = joins.in_run(at(date), &set);
    let present = |test: &TestOrdinal| usize::try_from(*moves.get(test).unwrap_or(test)).unwrap();
    reported
        .iter()
        .map(|test| names[present(test)].to_owned())
        .collect()
}

#[test]
fn a_test_counts_under_its_new_name_before_and_after_the_date() {
    let text = "# moved\n2026-11-20 test pays -> pays by card\n";
    let names = ["pays", "pays by card", "ships"];
    for date in ["2026-11-01", "2026-11-20", "2026-11-27"] {
        assert_eq!(
            counted(text, &names, date, &["pays", "ships"]),
            ["pays by card", "ships"]
        );
        assert_eq!(counted(text, &names, date, &["pays by card"]), ["pays by card"]);
    }
}

#[test]
fn a_run_with_both_names_has_two_tests() {
    let text = "2026-11-20 test a -> b\n";
    assert_eq!(counted(text, &["a", "b"], "2026-11-19", &["a", "b"]), ["a", "b"]);
    let renames = Renames::parse(text);
    let both: HashSet<_> = tests(&["a@x", "b@x", "b@y"])
        .into_iter()
        .map(|(_, test)| test)
        .collect();
    let contradictions = renames.contradictions(&both);
    assert_eq!(contradictions.len(), 1);
    assert_eq!(
        contradictions[0].to_string(),
        r#"line 1 is ignored for this run, because it has both "a" in "x" and "b" in "x""#
    );
    let apart: HashSet<_> = tests(&["a@x", "b@y"]).into_iter().map(|(_, test)| test).collect();
    assert_eq!(renames.contradictions(&apart), []);
}

#[test]
fn chains_end_at_the_last_name_that_exists() {
    let text = "2026-11-10 test a -> b\n2026-11-20 test b -> c\n";
    assert_eq!(counted(text, &["a", "b", "c"], "2026-11-01", &["a"]), ["c"]);
    assert_eq!(counted(text, &["a", "b", "c"], "2026-11-11", &["b"]), ["c"]);
    // No report had the name between them, or none has the last one yet.
    assert_eq!(counted(text, &["a", "c"], "2026-11-01", &["a"]), ["c"]);
    assert_eq!(counted(text, &["a", "b"], "2026-11-01", &["a"]), ["b"]);
    assert_eq!(counted(text, &["a"], "2026-11-01", &["a"]), ["a"]);
    // The order of the lines of one date is that of the file: `b` became `c`, then `a` became `b`.
    let shift = "2026-11-20 test b -> c\n2026-11-20 test a -> b\n";
    assert_eq!(
        counted(shift, &["a", "b", "c"], "2026-11-01", &["a", "b"]),
        ["b", "c"]
    );
    assert_eq!(
        counted(shift, &["a", "b", "c"], "2026-11-21", &["b", "c"]),
        ["b", "c"]
    );
}

#[test]
fn an_exchange_counts_for_the_runs_before_its_date() {
    let text = "2026-11-20 test a -> b\n2026-11-20 test b -> a\n2026-11-25 test b -> c\n";
    // The third line renames what an earlier line renames.
    assert_eq!(Renames::parse(text).problems().len(), 1);
    let text = "2026-11-20 test a -> b\n2026-11-20 test b -> a\n";
    let names = ["a", "b"];
    assert_eq!(counted(text, &names, "2026-11-19", &["a", "b"]), ["b", "a"]);
    assert_eq!(counted(text, &names, "2026-11-19", &["a"]), ["b"]);
    assert_eq!(counted(text, &names, "2026-11-20", &["a", "b"]), ["a", "b"]);
    let three = "2026-11-20 test a -> b\n2026-11-20 test b -> c\n2026-11-20 test c -> a\n";
    let names = ["a", "b", "c"];
    assert_eq!(
        counted(three, &names, "2026-11-19", &["a", "b", "c"]),
        ["b", "c", "a"]
    );
    assert_eq!(
        counted(three, &names, "2026-11-21", &["a", "b", "c"]),
        ["a", "b", "c"]
    );
}

#[test]
fn files_and_folders_move_with_their_tests() {
    let text = "2026-11-10 file src/old/ -> src/new/\n2026-11-20 file src/new/pay.ts -> pay/card.ts\n\
                2026-11-21 test pays -> pays by card\n";
    let names = [
        "pays@src/old/pay.ts",
        "pays@src/new/pay.ts",
        "pays by card@pay/card.ts",
        "ships@src/old/ship.ts",
        "ships@src/new/ship.ts",
        "pays@src/older/pay.ts",
        "pays by card@src/older/pay.ts",
    ];
    for (reported, expected) in [
        (names[0], names[2]),
        (names[1], names[2]),
        (names[3], names[4]),
        // A test that has the old name in another file got the new name, too.
        (names[5], names[6]),
    ] {
        assert_eq!(counted(text, &names, "2026-11-01", &[reported]), [expected]);
    }
    // A folder within another one is written before it.
    let nested = "2026-11-10 file a/b/ -> y/\n2026-11-10 file a/ -> x/\n";
    let names = ["t@a/b/c.ts", "t@y/c.ts", "t@x/b/c.ts"];
    assert_eq!(
        counted(nested, &names[..2], "2026-11-01", &["t@a/b/c.ts"]),
        ["t@y/c.ts"]
    );
}

#[test]
fn lines_that_cannot_be_applied_are_named() {
    for (text, problem) in [
        ("a -> b", "line 1: \"a\" is no date such as 2026-11-27"),
        (
            "2026-11-31 test a -> b",
            "line 1: \"2026-11-31\" is no date such as 2026-11-27",
        ),
        (
            "2026-11-27 suite a -> b",
            "line 1: \"suite\" is neither test nor file",
        ),
        (
            "2026-11-27 test a",
            "line 1: expected a date, test or file, and OLD -> NEW",
        ),
        (
            "2026-11-27 test a -> ",
            "line 1: expected a date, test or file, and OLD -> NEW",
        ),
        ("2026-11-27 test a -> a", "line 1: both names are the same"),
        (
            "2026-11-27 test a -> b -> c",
            "line 1: \" -> \" occurs twice; put a name that has it in double quotes",
        ),
        (
            "2026-11-27 file src/ -> lib",
            "line 1: a folder ends with / on both sides",
        ),
        (
            "2026-11-20 test a -> b\n2026-11-27 test a -> c",
            "line 2: line 1 renames the same test; keep one of them",
        ),
        (
            "2026-11-20 test a -> c\n2026-11-27 test b -> c",
            "line 2: line 1 has the same new name; two tests cannot become one",
        ),
    ] {
        let renames = Renames::parse(text);
        let problems: Vec<String> = renames.problems().iter().map(ToString::to_string).collect();
        assert_eq!(problems, [problem], "{text}");
    }
    let cycle = Renames::parse("2026-11-20 test a -> b\n2026-11-21 test b -> a\n2026-11-21 test c -> d");
    assert_eq!((cycle.count(), cycle.problems().len()), (1, 2));
    assert!(
        cycle.problems()[0]
            .reason
            .starts_with("leads back to \"a\" by lines of other dates"),
        "{:?}",
        cycle.problems()
    );
    let many = "2026-11-20 test a -> b\n".repeat(MOST_LINES + 1);
    assert!(Renames::parse(&many).is_empty());
}

#[test]
fn a_name_in_double_quotes_may_have_an_arrow() {
    for name in ["a -> b", "\"quoted\"", " spaces ", "plain", r"back\slash -> x"] {
        let text = format!("2026-11-20 test {} -> {}", quoted(name), quoted("new -> name"));
        let renames = Renames::parse(&text);
        assert_eq!(renames.problems(), [], "{text}");
        assert_eq!(
            (
                renames.steps[0].line.old.as_str(),
                renames.steps[0].line.new.as_str()
            ),
            (name, "new -> name")
        );
    }
}
