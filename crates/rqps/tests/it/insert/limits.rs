//! Steps that cannot do their work in time end at their limit.

use rqps_model::insert::InsertWork;

use super::*;

fn is_cut(outcome: &Outcome, part: &str) {
    let why = outcome.cut.as_deref().unwrap_or("not cut");
    assert!(why.contains("time limit") && why.contains(part), "{why}");
}

/// A rate that no server keeps: the step ends at its limit and keeps what it counted until then.
#[test]
fn a_query_step_ends_at_its_limit() {
    let _turn = turn();
    let settings = ["rows=3000", "query_seconds=1", "query_steps=5000000:range", "step_limit=1.5"];
    let workload = workload(&settings);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    for step in steps(Dialect::Sqlite, &workload) {
        let mut job = job(Dialect::Sqlite, database.endpoint(), &workload, &step);
        let said = run(&job);
        if step.name == "l.i2" {
            // The same for a step that loads: it ends although rows are left.
            let mut work: InsertWork = step.own().cloned().unwrap();
            work.writes.rows = 1_000_000_000;
            work.limit_seconds = Some(0.5);
            let RequestBody::Step(task) = &mut job.task else { panic!("{:?}", job.task) };
            task.work = work.into();
            let said = run(&job);
            is_cut(&said.outcome, "of 1000000000 rows inserted");
            assert!(!said.intervals.is_empty() && said.outcome.statements > 0);
        } else if step.name.starts_with('l') {
            assert_eq!(said.outcome.cut, None);
        } else {
            is_cut(&said.outcome, "of 5000000 rows inserted");
            let seen: f64 = said.intervals.iter().map(|interval| interval.extra["inserts"]).sum();
            assert_eq!(seen as u64, rows_of(&said.outcome, "inserts"), "finished seconds are kept");
            assert!(said.outcome.roles["inserts"].cpu.user_us > 0.0, "workers say their last word");
        }
    }
}

/// All steps on a server that takes so many seconds for a statement.
fn on_slow_fake(seconds: u32) -> Vec<Json> {
    let scene = Scene::new();
    let configs = scene.path("configs/fake");
    fs::create_dir_all(&configs).unwrap();
    fs::write(configs.join("slow.conf"), format!("mean_us = {seconds}000000\n")).unwrap();
    let settings = ["query_steps=100:range,500:range", "step_limit=1.5"];
    let mut command = small(&scene, &["a=fake@1:slow"], &[]);
    settings.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    command.output().unwrap();
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    scene.steps().iter().map(read).collect()
}

/// The 20 statements of l.i0 would take ten minutes.
#[test]
fn steps_that_rest_on_a_load_beyond_its_limit_are_not_measured() {
    let _turn = turn();
    let steps = on_slow_fake(30);
    assert_eq!(steps.len(), 6, "{steps:?}");
    let why = steps[0]["status"]["failed"].as_str().unwrap();
    assert!(why.contains("time limit"), "{why}");
    assert!(steps[0]["outcome"]["statements"].as_u64().unwrap() > 0, "what it counted is kept");
    assert!(steps[0]["per_second"].as_array().unwrap().len() >= 90, "second by second");
    for step in &steps[1..] {
        let why = step["status"]["failed"].as_str().unwrap();
        assert!(why.contains("because l.i0 failed"), "{why}");
    }
}

#[test]
fn the_next_step_follows_a_query_step_at_its_limit() {
    let _turn = turn();
    let steps = on_slow_fake(3);
    let status: Vec<&Json> = steps.iter().map(|step| &step["status"]).collect();
    assert!(status.iter().all(|status| **status == "complete"), "{status:?}");
    for step in &steps {
        let is_query = step["name"].as_str().unwrap().starts_with('q');
        assert_eq!(step["outcome"]["cut"].is_string(), is_query, "{}", step["name"]);
    }
}
