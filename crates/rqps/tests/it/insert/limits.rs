//! Steps that cannot do their work in time end at their limit.

use std::collections::BTreeSet;

use crate::insert::*;
use rqps_model::insert::InsertWork;

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

// The writers of a client on the real clock, over a table whose keys have gaps.

/// The table is a queue: whatever the gaps, as many rows leave as come, and the intervals count
/// them all. Rates and the lead of a side are tested on a simulated clock, beside the schedule.
#[test]
fn as_many_rows_leave_as_come_on_a_table_with_gaps() {
    let _turn = turn();
    let workload = workload(&[
        "rows=12000", "i1_rows=4000", "i2_rows=100", "query_seconds=4", "query_steps=1000:range",
    ]);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    let steps = steps(Dialect::Sqlite, &workload);
    let mut said = Vec::new();
    for step in &steps {
        if step.name == "l.i1" {
            // Every third key is gone, and a stretch of more than any delete takes.
            let sqlite = Arc::new(Sqlite::compiled_in());
            let mut connection = SqliteConnection::open(&sqlite, &database.path(), 1000).unwrap();
            let sql = "DELETE FROM pi1 WHERE transactionid % 3 = 0 OR transactionid < 900";
            connection.simple(sql).unwrap();
        }
        let before = if said.is_empty() { 0 } else { database.number("SELECT count(*) FROM pi1") };
        let outcome = run(&job(Dialect::Sqlite, database.endpoint(), &workload, step));
        let (inserted, deleted) =
            (rows_of(&outcome.outcome, "inserts"), rows_of(&outcome.outcome, "deletes"));
        let live = database.number("SELECT count(*) FROM pi1");
        assert_eq!(live, before + inserted - deleted, "{}", step.name);
        if !["l.i0", "l.x"].contains(&step.name.as_str()) {
            assert_eq!(inserted, deleted, "{}", step.name);
            assert!(outcome.outcome.notes.iter().all(|note| !note.contains("too few rows")));
        }
        said.push(outcome);
    }
    let queries = said.last().unwrap();
    assert_eq!(rows_of(&queries.outcome, "inserts"), 4000);
    let sum = |role: &str| queries.intervals.iter().map(|it| it.extra[role]).sum::<f64>();
    assert_eq!((sum("inserts"), sum("deletes")), (4000.0, 4000.0), "intervals lose nothing");
}

// CPUs of the workers of a step, and of the server's side of their connections.

/// CPUs that a thread or process may use, as the kernel writes them: `1`, `0-1`.
fn cpus(status: &Path) -> Option<String> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

fn one_cpu_only() -> bool {
    std::thread::available_parallelism().unwrap().get() < 2
}

/// The CPUs of all threads of this process whose name begins so.
fn of_threads(name: &str) -> BTreeSet<String> {
    let threads = entries(Path::new("/proc/self/task"));
    let named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.starts_with(name))
    };
    threads.into_iter().filter(named).filter_map(|path| cpus(&path.join("status"))).collect()
}

#[test]
fn each_worker_has_its_cpu() {
    let _turn = turn();
    if one_cpu_only() {
        return skipped::note("each_worker_has_its_cpu", "needs two CPUs");
    }
    let workload = workload(&["rows=3000", "query_seconds=2", "query_steps=100:range"]);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    let steps = steps(Dialect::Sqlite, &workload);
    for step in &steps[..4] {
        run(&job(Dialect::Sqlite, database.endpoint(), &workload, step));
    }
    let mut job = job(Dialect::Sqlite, database.endpoint(), &workload, &steps[4]);
    let RequestBody::Step(task) = &mut job.task else { panic!("{:?}", job.task) };
    task.placement = Placement::Together;
    let measured = std::thread::spawn(move || run(&job));
    let mut seen = BTreeSet::new();
    while !measured.is_finished() {
        // Threads are named after their worker: the inserter, the deleter, the query worker.
        for role in ["the inserter", "the deleter", "the query work"] {
            for cpus in of_threads(role) {
                seen.insert((role, cpus));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let said = measured.join().unwrap();
    assert!(
        said.outcome.notes.iter().all(|note| !note.contains("pinned")),
        "{:?}",
        said.outcome.notes
    );
    let single = |(_, cpus): &&(&str, String)| cpus.parse::<u32>().is_ok();
    let pinned: BTreeSet<&(&str, String)> = seen.iter().filter(single).collect();
    assert_eq!(pinned.len(), 3, "{seen:?}");
    let cpus: BTreeSet<&String> = pinned.iter().map(|(_, cpus)| cpus).collect();
    assert!(cpus.len() > 1, "one after the other on all CPUs: {seen:?}");
}

/// Each backend of Postgres runs on the CPU of the worker that it serves, each thread of MySQL too.
#[test]
fn the_servers_side_of_each_worker_is_placed() {
    let _turn = turn();
    let test = "the_servers_side_of_each_worker_is_placed";
    let targets = ["postgres@17.2.0", "mysql@8.0.33"];
    if one_cpu_only() {
        return skipped::note(test, "needs two CPUs");
    }
    if let Err(why) = builds::roots("", &targets) {
        return skipped::note(test, &why);
    }
    let scene = Scene::new();
    let mut command = small(&scene, &targets, &["query_steps=100:range"]);
    command.args(["--placement", "together"]);
    let mut running = scene.start(command);
    let mut pinned = BTreeSet::new();
    let ended = running.until(|_| {
        for process in scene.processes() {
            let backend = process.words.starts_with("postgres: ");
            let server = process.words.contains("mysqld");
            for path in entries(Path::new(&format!("/proc/{}/task", process.pid))) {
                let cpus = cpus(&path.join("status")).filter(|cpus| cpus.parse::<u32>().is_ok());
                if let Some(cpus) = cpus.filter(|_| backend || server) {
                    pinned.insert(format!("{} {cpus}", if server { "mysql" } else { "postgres" }));
                }
            }
        }
        scene.runs().len() == 2 && scene.runs().iter().all(|(_, run)| run["status"] == "complete")
    });
    assert!(ended.is_none_or(|status| status.success()), "{}", running.said());
    for dbms in ["mysql", "postgres"] {
        assert!(pinned.iter().any(|of| of.starts_with(dbms)), "{dbms}: {pinned:?}");
    }
    for step in scene.steps() {
        let record: Json = serde_json::from_slice(&fs::read(&step).unwrap()).unwrap();
        let notes = record["outcome"]["notes"].to_string();
        assert!(!notes.contains("pinned"), "{}: {notes}", step.display());
    }
}
