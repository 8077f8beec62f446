//! A worker is lost, a part of the data moves, and many projects import at once.

use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Client, PATIENCE, execute, stderr_text};

use crate::{
    cluster::Cluster,
    everything,
    load::{Counts, Installation, ProjectOnWorker, paths, under_load},
};

#[test]
#[ignore = "needs a Citus cluster: see main.rs"]
fn a_killed_worker_fails_no_read_and_no_import_of_other_projects() {
    let cluster = Cluster::new();
    let installation = Installation::new(&cluster, 2);
    for project in &installation.projects {
        installation.import(project, "first", false).unwrap();
    }
    let lost = installation.projects[0].worker.clone();
    let (affected, others): (Vec<ProjectOnWorker>, Vec<ProjectOnWorker>) = installation
        .projects
        .iter()
        .cloned()
        .partition(|project| project.worker == lost);
    let before = answers(&installation, &affected[0]);

    let counts = Counts::default();
    let mut worker = under_load(&installation, &others, 2, &counts, || {
        thread::sleep(Duration::from_secs(3));
        let worker = cluster.kill(&lost);
        thread::sleep(Duration::from_secs(12));
        let cli = &installation.world.cli;
        let listed = cli.json(&["project", "list", "--org", "Shop"]);
        let stored: usize = cluster
            .text("SELECT count(*) FROM project_entry")
            .parse()
            .unwrap();
        assert_eq!(listed["projects"].as_array().map(Vec::len), Some(stored));
        let create_key = ["key", "create", "--org", "Shop", "--days", "30"];
        assert!(!cli.run(&create_key).status.success(), "keys are on every node");
        let refused = installation.import_with(&affected[0], "refused", true, &["--retry-for", "0"]);
        println!("an import into the lost worker: {}", refused.unwrap_err().trim());
        worker
    });
    let (reads, imports) = counts.all_succeeded();
    println!(
        "one of {} workers killed: 0 of {reads} reads and 0 of {imports} imports of other projects failed, \
         the slowest took {} ms",
        cluster.workers.len(),
        counts.slowest_ms.load(Ordering::Relaxed)
    );
    assert!(reads > 50 && imports > 5, "{reads} {imports}");
    let client = installation.server.client();
    let runs = format!("/projects/{}/runs", affected[0].id);
    assert!(installation.read(client, &runs).is_err(), "its worker is down");

    let begun = Instant::now();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| installation.import(&affected[1], "waited", true));
        worker.restart();
        let recovered = begun.elapsed();
        while installation.read(client, &runs).is_err() {
            assert!(
                begun.elapsed() < PATIENCE,
                "{:?}",
                installation.read(client, &runs)
            );
            thread::sleep(Duration::from_millis(100));
        }
        println!(
            "the worker recovered in {} ms; its projects were read {} ms later",
            recovered.as_millis(),
            (begun.elapsed() - recovered).as_millis()
        );
        waiting.join().unwrap().unwrap();
        println!(
            "the import that waited for it took {} ms",
            begun.elapsed().as_millis()
        );
    });
    assert_eq!(answers(&installation, &affected[0]), before);
    installation.import(&affected[0], "second", true).unwrap();
    installation.send(&affected[0], "third").unwrap();
}

fn answers(installation: &Installation, project: &ProjectOnWorker) -> Vec<(String, String)> {
    let all = everything::of(installation.server.client(), &installation.world.key, &project.id);
    all.into_iter().filter(|(path, _)| path != "/projects").collect()
}

#[test]
#[ignore = "needs a Citus cluster: see main.rs"]
fn a_moved_shard_fails_nothing() {
    let cluster = Cluster::new();
    let installation = Installation::new(&cluster, 1);
    for project in &installation.projects {
        installation.import(project, "first", false).unwrap();
    }
    let moved = installation.projects[0].clone();
    let from = &moved.worker;
    let to = cluster.workers.iter().find(|worker| *worker != from).unwrap();
    let counts = Counts::default();
    let took = under_load(&installation, &installation.projects, 2, &counts, || {
        thread::sleep(Duration::from_secs(2));
        let begun = Instant::now();
        execute(
            &cluster.url(),
            &format!(
                "SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('project', '{}'::uuid), \
                     '{}', {}, '{}', {}, shard_transfer_mode => 'force_logical')",
                moved.id, from.host, from.port, to.host, to.port
            ),
        );
        let took = begun.elapsed();
        thread::sleep(Duration::from_secs(2));
        took
    });
    let (reads, imports) = counts.all_succeeded();
    println!(
        "moved in {:.1} s: 0 of {reads} reads and 0 of {imports} imports failed, the slowest took {} ms",
        took.as_secs_f64(),
        counts.slowest_ms.load(Ordering::Relaxed)
    );
    assert!(reads > 50 && imports > 5, "{reads} {imports}");
    assert_eq!(cluster.worker_of(&moved.id), *to);
}

#[test]
#[ignore = "needs a Citus cluster: see main.rs"]
fn imports_into_many_projects_at_once_all_succeed() {
    let cluster = Cluster::new();
    let installation = Installation::new(&cluster, 10);
    for project in &installation.projects {
        installation.import(project, "first", false).unwrap();
    }
    let counts = Counts::default();
    // More readers with one key are refused by admission control.
    under_load(&installation, &installation.projects, 2, &counts, || {
        thread::sleep(Duration::from_secs(20));
    });
    let (reads, imports) = counts.all_succeeded();
    println!(
        "{imports} imports into {} projects beside {reads} reads",
        installation.projects.len()
    );
    assert!(imports > 40, "{imports}");
    // The rebuild reads the stored rows, so a cache of the server cannot hide a fault.
    let client = Client::new(format!("http://{}", installation.server.address()));
    for project in &installation.projects {
        for path in paths(project) {
            installation.read(&client, &path).unwrap();
        }
        let rebuilt = installation
            .world
            .cli
            .run(&["rebuild", "--project", &project.id, "--json"]);
        assert!(rebuilt.status.success(), "{}", stderr_text(&rebuilt));
    }
}
