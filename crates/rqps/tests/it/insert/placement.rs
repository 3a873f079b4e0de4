//! CPUs of the workers of a step, and of the server's side of their connections.

use super::*;
use std::collections::BTreeSet;

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
