//! What distribution costs: the processor time of all databases for imports and reads, beside plain Postgres.

use std::fs;

use assay_testkit::{Client, Server, TestDatabase, World, junit, text, texts};

use crate::cluster::Cluster;

const TESTS: usize = 2_000;
const RUNS: usize = 40;
/// Reads of each route, after as many that are not counted.
const READS: usize = 400;

#[test]
#[ignore = "needs a Citus cluster that nothing else uses: see main.rs"]
fn the_price_of_distribution() {
    let (cluster, plain) = (Cluster::new(), TestDatabase::new());
    let [owner, web, ..] = cluster.urls();
    let plain = prices(plain.url(), plain.url(), &[plain.url().to_owned()]);
    let nodes = cluster.node_urls();
    println!("processor time, ms: one node; {} nodes; ratio", nodes.len());
    for ((what, one), (_, all)) in plain.iter().zip(prices(&owner, &web, &nodes)) {
        println!("{what:<12} {one:>7.2} {all:>7.2} {:>5.1}", all / one);
        assert!(all / one < 30.0, "{what}");
    }
}

/// The milliseconds for an import and for a read of each route.
fn prices(owner: &str, web: &str, nodes: &[String]) -> Vec<(&'static str, f64)> {
    let pid = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let postmasters: Vec<String> = nodes.iter().flat_map(|node| texts(node, pid)).flatten().collect();
    let per = |count: usize, work: &mut dyn FnMut(usize)| {
        let before = processor_ms(&postmasters);
        (0..count).for_each(work);
        (processor_ms(&postmasters) - before) / count as f64
    };
    let world = World::over((), owner);
    let mut projects = vec![world.project.clone()];
    for name in ["two", "three", "four"] {
        projects.push(text(
            &world.cli.json(&["project", "create", "--org", "Shop", name])["id"],
        ));
    }
    let import = per(RUNS, &mut |run| {
        let cases: Vec<_> = (0..TESTS)
            .map(|test| (format!("test {test}"), (test * 31 + run) % 199 > 0))
            .collect();
        let failure = |name: &str| (format!("{name} failed"), "at cart.test.ts:3:1".to_owned());
        let path = world.file("report.xml", &junit(&cases, "cart.test.ts", failure));
        let (project, key) = (&projects[run % projects.len()], format!("run {run}"));
        world.cli.json(&[
            "import",
            "--project",
            project,
            "--no-ci",
            "--branch",
            "main",
            "--run-key",
            &key,
            &path,
        ]);
    });
    let server = Server::start_with(web, &[("ASSAY_RATE_LIMIT", "0")]);
    let client = Client::new(format!("http://{}", server.address()));
    let ask = |project: &str, path: &str| {
        let answer = client.get(&format!("/api/v1/projects/{project}{path}"), Some(&world.key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer
    };
    let run = |project: &String| text(&ask(project, "/runs").json()["runs"][0]["id"]);
    let newest: Vec<String> = projects.iter().map(run).collect();
    let mut prices = vec![("import", import)];
    for (what, path) in [
        ("status", "/tests/cart%20%3E%20test%20{test}/status"),
        ("runs list", "/runs"),
        ("flaky list", "/flaky?explain=true"),
        ("run detail", "/runs/{run}"),
        ("history", "/tests/cart%20%3E%20test%20{test}"),
        ("errors", "/errors"),
    ] {
        let mut read = |number: usize| {
            let (project, test) = (number % projects.len(), number * 7 % TESTS);
            let path = path.replace("{test}", &test.to_string());
            ask(&projects[project], &path.replace("{run}", &newest[project]));
        };
        (0..READS).for_each(&mut read);
        prices.push((what, per(READS, &mut read)));
    }
    prices
}

/// The processor time of these postmasters and all of their processes, also of those that ended.
fn processor_ms(postmasters: &[String]) -> f64 {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc").unwrap() {
        let pid = entry.unwrap().file_name().into_string().unwrap();
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let times = if postmasters.contains(&pid) {
            11..15
        } else {
            11..13
        };
        if postmasters.contains(&pid) || postmasters.iter().any(|postmaster| postmaster == fields[1]) {
            ticks += fields[times]
                .iter()
                .map(|time| time.parse::<u64>().unwrap())
                .sum::<u64>();
        }
    }
    ticks as f64 * 1000.0 / rustix::param::clock_ticks_per_second() as f64
}
