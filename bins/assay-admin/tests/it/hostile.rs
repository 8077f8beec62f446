//! Hostile reports, imported by the real program into a real database. A refused report stores nothing, an accepted one
//! is harmless, and both need little memory.

use assay_testkit::{World, started_by, stderr_text};
use std::{
    fs,
    io::{BufWriter, Write as _},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

/// The program's limit of address space in KiB: several copies of a file of 50 MB, and the threads.
const MEMORY_KIB: u64 = 2 << 20;

/// Imports a file within the limit.
fn import(world: &World, path: &str) -> Output {
    let program = world.cli.command(&["import", "--project", "web", path]);
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -v {MEMORY_KIB} && exec \"$0\" \"$@\""))
        .stdin(Stdio::null());
    started_by(limited, &program).output().unwrap()
}

/// Every row that an import could have stored.
fn rows(world: &World) -> i64 {
    world.count(
        "SELECT ((SELECT count(*) FROM run) + (SELECT count(*) FROM part) + (SELECT count(*) FROM result) \
         + (SELECT count(*) FROM attempt) + (SELECT count(*) FROM test) + (SELECT count(*) FROM signature) \
         + (SELECT count(*) FROM run_pack) + (SELECT count(*) FROM verdict))::text",
    )
}

#[test]
fn a_refused_report_is_named_with_its_place_and_stores_nothing() {
    let world = World::without_key();
    let deep = format!("<testsuites>\n{}", "<testsuite name='s'>".repeat(200_000));
    let deep_json = format!(
        "{{\"config\": {{}}, \"suites\":\n[{}",
        "{\"suites\":[".repeat(200_000)
    );
    for (name, bytes, expected) in [
        ("empty.xml", Vec::new(), &["the file is empty"][..]),
        ("deep.xml", deep.into_bytes(), &["64 levels (line 2)"]),
        ("deep.json", deep_json.into_bytes(), &["deep.json:2: "]),
        (
            "crossed.xml",
            b"<testsuite>\n<testcase name='a'>\n</testsuite>".to_vec(),
            &["crossed.xml:3: ", "expected </testcase>, found </testsuite>"],
        ),
        (
            "page.xml",
            b"<!-- a page -->\n<html><testsuites/></html>".to_vec(),
            &[
                "page.xml:2: ",
                "expected <testsuites> or <testsuite> as the root, found <html>",
            ],
        ),
        (
            "broken.json",
            b"{\"config\": {}, \"suites\": [\n{\"title\" oops}]}".to_vec(),
            &["broken.json:2: ", "expected `:`"],
        ),
        (
            "a-result.json",
            b"{\"uuid\": \"1\",\n\"name\": \"ad".to_vec(),
            &["a-result.json:2: ", "expected the rest of the JSON object"],
        ),
        (
            "cut.json",
            b"{\"config\": {}, \"suites\": [\n{\"title\": \"a.sp".to_vec(),
            &["cut.json:2: ", "before its first whole test"],
        ),
        ("cut.gz", vec![0x1f, 0x8b, 8, 0], &["the archive does not unpack"]),
        (
            "noise.json",
            b"\0\xff\xfe{}}{".repeat(1000),
            &["no known report format; expected "],
        ),
    ] {
        let path = world.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let format = if name == "page.xml" { "junit" } else { "auto" };
        let path = path.display().to_string();
        let output = if format == "auto" {
            import(&world, &path)
        } else {
            world
                .cli
                .run(&["import", "--project", "web", "--format", format, &path])
        };
        let stderr = stderr_text(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
        for part in expected.iter().chain(&[name, "nothing was stored"]) {
            assert!(stderr.contains(part), "{name}: {stderr}");
        }
        assert_eq!(rows(&world), 0, "{name}");
    }
}

#[test]
fn accepted_reports_of_hostile_content_are_stored_safely() {
    let world = World::without_key();
    // If the file were read, the name would contain its text.
    let secret = world.file("secret.txt", "the secret");
    let bomb: String = (1..10)
        .map(|level| {
            format!(
                "<!ENTITY a{level} \"{}\">\n",
                format!("&a{};", level - 1).repeat(10)
            )
        })
        .collect();
    let bomb = format!(
        "<!DOCTYPE x [<!ENTITY a0 \"ha\">\n{bomb}]>\n<testsuite><testcase name=\"bomb &a9;\"/></testsuite>"
    );
    let external = format!(
        "<!DOCTYPE x [<!ENTITY e SYSTEM \"file://{secret}\">]>\n<testsuite><testcase name=\"external &e;\"/></testsuite>"
    );
    let utf16: Vec<u8> = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?><testsuite><testcase name='sixteen é✓'/></testsuite>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let latin1 =
        b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><testsuite><testcase name='M\xfcller'/></testsuite>"
            .to_vec();
    let long = format!(
        "<testsuite><testcase name=\"long {}\"/></testsuite>",
        "x".repeat(50_000_000)
    );
    let twice =
        "<testsuite><testcase name='root 1'/></testsuite>\n<testsuite><testcase name='root 2'/></testsuite>";
    let forbidden = "<testsuite><testcase name='nul &#0; &#xFFFE; \0\u{7}end'/></testsuite>";
    let cut = "<testsuite>\n<testcase name='whole'/>\n<testcase name='half";
    let documents = "{\"config\":{},\"suites\":[{\"specs\":[{\"title\":\"document 1\",\"tests\":[{\"status\":\"expected\",\"results\":[{\"status\":\"passed\"}]}]}]}]}\n\
                     {\"config\":{},\"suites\":[{\"specs\":[{\"title\":\"document 2\",\"tests\":[{\"status\":\"expected\",\"results\":[{\"status\":\"passed\"}]}]}]}]}";
    for (name, bytes, stored) in [
        ("bomb.xml", bomb.into_bytes(), &["bomb &a9;"][..]),
        ("external.xml", external.into_bytes(), &["external &e;"]),
        ("utf16.xml", utf16, &["sixteen é✓"]),
        ("latin1.xml", latin1, &["Müller"]),
        ("twice.xml", twice.into(), &["root 1", "root 2"]),
        ("forbidden.xml", forbidden.into(), &["nul \u{fffd} \u{fffd} end"]),
        ("cut.xml", cut.into(), &["whole"]),
        ("documents.json", documents.into(), &["document 1", "document 2"]),
        ("long.xml", long.into_bytes(), &[]),
    ] {
        let path = world.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let output = import(&world, &path.display().to_string());
        assert!(output.status.success(), "{name}: {}", stderr_text(&output));
        for test in stored {
            let name = test.replace('\'', "''");
            let rows = world.count(&format!("SELECT count(*)::text FROM test WHERE name = '{name}'"));
            assert_eq!(rows, 1, "{test}");
        }
    }
    assert_eq!(
        world.count("SELECT count(*)::text FROM test WHERE name LIKE '%half%'"),
        0
    );
    assert_eq!(
        world.count("SELECT count(*)::text FROM test WHERE name LIKE '%secret%'"),
        0
    );
    assert_eq!(
        world.count("SELECT count(*)::text FROM test WHERE name LIKE 'long xxx%' AND length(name) < 2100"),
        1
    );
    assert_eq!(world.count("SELECT count(*)::text FROM run"), 9);
}

/// A Playwright report of about this size with one test per line and a broken last line, and the number of that line.
fn write_huge_report(path: &Path, bytes: usize) -> usize {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    writeln!(
        file,
        "{{\"config\":{{}},\"suites\":[{{\"title\":\"a.spec.ts\",\"specs\":["
    )
    .unwrap();
    let filling = "s".repeat(900);
    let (mut written, mut line) = (0, 1);
    while written < bytes {
        let spec = format!(
            "{{\"title\":\"adds {line}\",\"tests\":[{{\"projectName\":\"chromium\",\"status\":\"unexpected\",\"results\":[\
             {{\"status\":\"failed\",\"errors\":[{{\"message\":\"expected {line}\"}}],\"stdout\":[{{\"text\":\"{filling}\"}}]}}]}}]}},"
        );
        writeln!(file, "{spec}").unwrap();
        written += spec.len() + 1;
        line += 1;
    }
    writeln!(
        file,
        "{{\"title\":\"broken\",\"tests\":[{{\"status\" oops}}]}}]}}],\"errors\":[]}}"
    )
    .unwrap();
    file.flush().unwrap();
    line + 1
}

#[test]
fn a_huge_broken_report_is_refused_in_bounded_memory() {
    let world = World::without_key();
    // `ASSAY_HOSTILE_MB=500 cargo test -p assay-verdicts --test it hostile -- --nocapture` prints the peak memory.
    let setting = std::env::var_os("ASSAY_HOSTILE_MB");
    let megabytes: usize = setting
        .as_ref()
        .map_or(8, |size| size.to_str().unwrap().parse().unwrap());
    let path = world.folder.path().join("huge.json");
    let line = write_huge_report(&path, megabytes << 20);
    let mut child = world
        .cli
        .command(&["import", "--project", "web", &path.display().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The peak memory never falls, so its last reading is close to that at the end.
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = mark.and_then(|mark| mark.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
        peak_kib = kib.unwrap_or(0).max(peak_kib);
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains(&format!("huge.json:{line}: ")) && stderr.contains("expected `:`"),
        "{stderr}"
    );
    assert_eq!(rows(&world), 0);
    eprintln!("{megabytes} MB of JSON: at most {} MB of memory", peak_kib >> 10);
    // The file, the part that was read before the error, and the program.
    assert!(peak_kib >> 10 < 4 * megabytes + 200, "{peak_kib} KiB");
}
