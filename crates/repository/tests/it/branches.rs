//! Branches that former versions stored under names too long for a filter.

use assay_domain::{run::RunQuery, store::Store};

use crate::fixture::*;

#[test]
fn a_long_branch_that_is_already_stored_can_be_filtered_by_after_migrating() {
    let world = World::new();
    let (long, other, short) = ("é".repeat(480), "b".repeat(201), "c".repeat(200));
    let runs = [(&long, "a"), (&long, "b"), (&other, "c"), (&short, "d")];
    for (hours, (branch, key)) in (1..).zip(runs) {
        world.import(&report(key).at(hours * HOUR).branch(branch).test("x", "f"));
    }
    // The name that an import stores today, with digits from sha256sum.
    let shortened = format!("{}~09e1eb332749348c", "é".repeat(183));
    world.import(&report("e").at(9 * HOUR).branch(&shortened).test("x", "f"));
    let before = world.history(14);

    world.database.execute(include_str!(
        "../../../../migrations/2026-11-23-000011_long_branches/up.sql"
    ));

    let branches = world.store.branches(&world.project).unwrap().names;
    let other_kept = format!("{}~19f51486875f748c", "b".repeat(183));
    assert_eq!(branches, [other_kept.clone(), short.clone(), shortened.clone()]);
    let total = |branch: &str| {
        let query = RunQuery {
            branch: Some(branch.to_owned()),
            ..run_query()
        };
        let page = world.store.runs(&world.project, &query).unwrap();
        page.runs.iter().map(|run| run.run_number).collect::<Vec<_>>()
    };
    assert_eq!(total(&shortened), [1, 2, 5]);
    assert_eq!((total(&other_kept), total(&short)), (vec![3], vec![4]));
    // Cached histories of servers are invalidated, and no further row needs a change.
    let after = world.history(14);
    assert_ne!(before, after);
    assert_eq!(after.runs.last().unwrap().run.branch, shared(&shortened));
    assert_eq!(world.rebuild(world.project.id).branches_changed, 0);
}
