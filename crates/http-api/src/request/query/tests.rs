use assay_domain::run::Outcome;

use super::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

fn check<T>(raw: &str, read: impl FnOnce(&Query<'_>) -> Result<T, Unanswerable>) -> Result<T, String> {
    check_on(Plan::Pro, raw, read)
}

fn check_on<T>(
    plan: Plan,
    raw: &str,
    read: impl FnOnce(&Query<'_>) -> Result<T, Unanswerable>,
) -> Result<T, String> {
    let pairs = Pairs::of(raw);
    read(&Query::new(&pairs, plan, NOW)).map_err(|error| {
        if let Unanswerable::BadParameter { name, .. } = error {
            return name.to_owned();
        }
        format!("{error:?}")
    })
}

#[test]
fn every_invalid_period_gives_one_error() {
    let days = |plan, raw| check_on(plan, raw, |query| Ok(query.period()?.days.count()));
    assert_eq!(days(Plan::Standard, ""), Ok(30));
    assert_eq!(days(Plan::Standard, "days=7"), Ok(7));
    assert_eq!(days(Plan::Pro, "days=90"), Ok(90));
    for bad in [
        "days=90",
        "days=",
        "days",
        "days=14",
        "days=x",
        "days=-7",
        "days=+7",
        "days=7.0",
        "days=07",
        "days=%FF",
        "days=%00",
        "days=7&days=7",
        "days=%",
        "days=99999999999999999999",
    ] {
        assert_eq!(
            days(Plan::Standard, bad),
            Err("BadPeriod(Standard)".to_owned()),
            "{bad}"
        );
    }
}

#[test]
fn text_is_counted_in_characters() {
    let text = |raw: &str| check(raw, |query| query.text("branch"));
    assert_eq!(text(""), Ok(None));
    assert_eq!(text("branch=a+b%2Bc"), Ok(Some("a b+c".to_owned())));
    assert_eq!(
        text(&format!("branch={}", "%C3%A9".repeat(200))),
        Ok(Some("é".repeat(200)))
    );
    let long = format!("branch={}", "é".repeat(201));
    for bad in [
        "branch=",
        "branch",
        &long,
        "branch=%00",
        "branch=%FF",
        "branch=a&branch=a",
        "branch=%4",
    ] {
        assert_eq!(text(bad), Err("branch".to_owned()), "{bad}");
    }
}

#[test]
fn a_sha_is_hexadecimal() {
    let sha = |raw: &str| check(raw, |query| query.sha());
    assert_eq!(sha("sha=ABCD"), Ok(Some("abcd".to_owned())));
    assert_eq!(sha(&format!("sha={}", "f".repeat(40))), Ok(Some("f".repeat(40))));
    let long = format!("sha={}", "f".repeat(41));
    for bad in [
        "sha=",
        "sha=abc",
        "sha=abcg",
        &long,
        "sha=%D9%A1%D9%A1%D9%A1%D9%A1",
    ] {
        assert_eq!(sha(bad), Err("sha".to_owned()), "{bad}");
    }
}

#[test]
fn words_and_numbers_are_parsed_strictly() {
    assert_eq!(
        check("status=passed", |q| q.word::<Outcome>("status")),
        Ok(Some(Outcome::Passed))
    );
    assert_eq!(
        check("status=Passed", |q| q.word::<Outcome>("status")),
        Err("status".to_owned())
    );
    assert_eq!(
        check("perPage=25", |query| query.per_page()),
        Ok(PerPage::TwentyFive)
    );
    assert_eq!(
        check("perPage=11", |query| query.per_page()),
        Err("perPage".to_owned())
    );
    assert_eq!(check("limit=200", |query| query.limit()), Ok(200));
    assert_eq!(check("limit=201", |query| query.limit()), Err("limit".to_owned()));
    // The name that other lists have is not ignored.
    assert_eq!(check("perPage=50", |query| query.limit()), Ok(50));
    assert_eq!(
        check("limit=25", |query| query.per_page()),
        Ok(PerPage::TwentyFive)
    );
    for query in ["perPage=100", "limit=10&perPage=10"] {
        assert_eq!(
            check(query, |query| query.limit()),
            Err("perPage".to_owned()),
            "{query}"
        );
    }
    assert_eq!(
        check("limit=200", |query| query.per_page()),
        Err("limit".to_owned())
    );
    assert_eq!(check("explain=true", |q| q.flag("explain")), Ok(true));
    assert_eq!(
        check("explain=1", |q| q.flag("explain")),
        Err("explain".to_owned())
    );
    assert_eq!(check("", |query| query.page()), Ok(1));
    assert_eq!(check("page=3", |query| query.page()), Ok(3));
    assert_eq!(
        check("page=99999999999999999999999", |query| query.page()),
        Ok(u64::MAX)
    );
    for bad in [
        "page=",
        "page=0",
        "page=00",
        "page=-1",
        "page=%2B1",
        "page=1.5",
        "page=x",
        "page=1&page=2",
    ] {
        assert_eq!(check(bad, |query| query.page()), Err("page".to_owned()), "{bad}");
    }
}

#[test]
fn a_direction_needs_a_cursor_and_a_foreign_cursor_is_refused() {
    let position = RunPosition {
        started_at: NOW,
        number: 7,
    };
    let cursor = cursor::encode(position);
    let read = |raw: &str| check(raw, |query| query.position());
    assert_eq!(read(""), Ok((None, Direction::Next)));
    assert_eq!(
        read(&format!("cursor={cursor}")),
        Ok((Some(position), Direction::Next))
    );
    assert_eq!(
        read(&format!("cursor={cursor}&direction=prev")),
        Ok((Some(position), Direction::Prev))
    );
    assert_eq!(read("direction=prev"), Err("direction".to_owned()));
    assert_eq!(read("direction=up"), Err("direction".to_owned()));
    for bad in [
        "cursor=",
        "cursor=abc",
        "cursor=a.b",
        &format!("cursor={}", "A".repeat(65)),
    ] {
        assert_eq!(read(bad), Err("cursor".to_owned()), "{bad}");
    }
}

#[test]
fn an_empty_file_selects_tests_without_a_file_and_an_absent_one_any_test() {
    let file = |raw: &str| check(raw, |query| query.file());
    assert_eq!(file(""), Ok(FileSelector::Any));
    assert_eq!(file("filePath="), Ok(FileSelector::Exactly(None)));
    assert_eq!(
        file("filePath=a%2Fb.ts"),
        Ok(FileSelector::Exactly(Some("a/b.ts".to_owned())))
    );
    assert_eq!(file("filePath=%00"), Err("filePath".to_owned()));
    assert_eq!(file("filePath=a&filePath=a"), Err("filePath".to_owned()));
}

#[test]
fn an_unknown_parameter_is_ignored_however_often() {
    assert_eq!(
        check("x=1&x=2&y=%FF&Days=1", |q| Ok(q.period()?.days.count())),
        Ok(30)
    );
}
