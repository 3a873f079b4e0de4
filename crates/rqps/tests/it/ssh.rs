//! Blocks and clients by ssh to this machine: a server of the test's own, with keys that it makes,
//! on a port and with a configuration of its own.

use crate::support::{builds, program, skipped};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::elsewhere::{counts, json, runs};
use crate::support::program::text;
use crate::support::ssh_site::{Site, parent, steps};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

#[test]
fn blocks_by_ssh() {
    let Some(site) = Site::start("blocks_by_ssh") else { return };
    blocks_on_two_hosts_give_the_runs_of_local_blocks(&site);
    a_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
    a_host_without_room_on_its_disk_gives_its_blocks_away(&site);
    nothing_runs_on_without_its_coordinator(&site);
}

#[test]
fn clients_by_ssh() {
    let Some(site) = Site::start("clients_by_ssh") else { return };
    clients_of_two_hosts_count_what_those_of_one_do(&site);
    inserts_of_two_hosts_are_those_of_one(&site);
    a_client_host_that_goes_away_fails_its_step_alone(&site);
    no_client_runs_on_without_its_lab(&site);
    a_client_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
}

#[test]
fn turns_by_ssh() {
    let Some(site) = Site::start("turns_by_ssh") else { return };
    targets_take_turns_on_a_client_host(&site);
    a_driver_or_a_keeper_that_is_killed_fails_its_own_step(&site);
    no_turns_go_on_without_their_lab(&site);
}

/// Words of the insert benchmark on the fake DBMS, with three clients that query while they insert
/// and delete. Its steps take no time.
fn insert_words(site: &Site, out: &str) -> Vec<String> {
    let mut words: Vec<String> = ["compare", "fake@1", "b=fake@1:slow", "--bench", "insert"]
        .into_iter()
        .chain(["--clients", "3", "--blocks", "1", "--canaries", "off"])
        .map(str::to_owned)
        .collect();
    for setting in [
        "rows=5000",
        "i1_rows=3000",
        "i2_rows=1000",
        "query_steps=1000:range,2000:point",
        "query_seconds=2.5",
        "settle_scale=0",
    ] {
        words.extend(["--set", setting].map(str::to_owned));
    }
    words.extend(["--configs", &site.out("configs"), "--out", &site.out(out)].map(str::to_owned));
    words
}

/// Everything that the insert benchmark counts: rows and classes by role, second by second.
fn counts_of_inserts(site: &Site, out: &str) -> Vec<Json> {
    let steps = ["fake-1", "b"].map(|label| program::steps(&site.path(out), label)).concat();
    let fields = ["seconds", "events", "statements", "reads", "writes", "rows", "open"];
    let more = ["latency", "series", "buckets", "errors", "cut", "plans"];
    let of_step = |step: &Json| {
        let outcome = &step["outcome"];
        let mut all: Vec<Json> =
            fields.iter().chain(&more).map(|field| outcome[field].clone()).collect();
        let mut roles = outcome["roles"].clone();
        for role in roles.as_object_mut().expect("roles").values_mut() {
            // The CPU of the fake DBMS belongs to a process.
            role["busiest"] = Json::Null;
        }
        // Rates are sums of those of hosts, which rounds otherwise.
        let extra = outcome["extra"].as_object().into_iter().flatten();
        let rounded =
            extra.map(|(name, value)| format!("{name} {:.12e}", value.as_f64().expect("a number")));
        all.push(rounded.collect());
        all.extend([step["name"].clone(), step["per_second"].clone(), roles]);
        Json::Array(all)
    };
    steps.iter().map(of_step).collect()
}

/// The columns of roles, second by second, in each step of each run.
fn columns_of_inserts(site: &Site, out: &str) -> Vec<Vec<Vec<String>>> {
    let runs = ["fake-1", "b"].map(|label| program::runs(&site.path(out), label)).concat();
    let files = runs.iter().flat_map(|run| fs::read_dir(run.join("steps")).expect("steps"));
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    files.sort();
    let of_role = |name: &&str| {
        ["inserts", "deletes", "queries", "min_key"].iter().any(|role| name.starts_with(role))
    };
    let of_file = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("seconds");
        let head: Vec<&str> = text.lines().next().expect("a head").split(',').collect();
        let row = |line: &str| {
            let cells = head.iter().zip(line.split(','));
            cells.filter(|(name, _)| of_role(name)).map(|(_, cell)| cell.to_owned()).collect()
        };
        text.lines().map(row).collect::<Vec<Vec<String>>>()
    };
    files.iter().map(of_file).collect()
}

fn inserts_of_two_hosts_are_those_of_one(site: &Site) {
    let here = site.run(&insert_words(site, "inserts-here"));
    assert!(here.status.success(), "{}", text(&here.stderr));
    let mut words = insert_words(site, "inserts-there");
    let ssh = site.out("ssh_config");
    words.extend(["--client-host", "one", "--client-host", "two"].map(str::to_owned));
    words.extend(["--ssh-config".to_owned(), ssh]);
    let there = site.run(&words);
    assert!(there.status.success(), "{}", text(&there.stderr));
    let (here, there) =
        (counts_of_inserts(site, "inserts-here"), counts_of_inserts(site, "inserts-there"));
    assert_eq!(here.len(), 12);
    for (here, there) in here.iter().zip(&there) {
        assert_eq!(there, here);
    }
    let columns = |out: &str| columns_of_inserts(site, out);
    let (here, there) = (columns("inserts-here"), columns("inserts-there"));
    assert_eq!(there, here);
    let last = here.last().expect("a step");
    assert!(last.len() > 3 && last[0].len() == 10, "{last:?}");
}

/// Clients of the order mix count more than those of scripts do, and check the tables when the last
/// of all hosts has ended.
#[test]
fn orders_of_two_client_hosts_add_up() {
    let test = "orders_of_two_client_hosts_add_up";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let Some(site) = Site::start(test) else { return };
    let mut command =
        site.rqps(&["compare", "p=postgres@17.2.0", "--bench", "orders", "--clients", "3"]);
    command.current_dir(site.path("")).args(program::SHORT).args(["--set", "seconds=1"]);
    command.args(["--client-host", "one", "--client-host", "two"]);
    let output = command.arg("--ssh-config").arg(site.path("ssh_config")).output().expect("start");
    assert!(output.status.success(), "{}", program::said(&output));
    let step = program::steps(&site.path("out"), "p").remove(0);
    assert_eq!(step["status"], "complete", "{step}");
    let outcome = &step["outcome"];
    let number = |value: &Json| value.as_f64().expect("a number");
    let roles = outcome["roles"].as_object().expect("roles");
    let of_roles = |what: &str| roles.values().map(|role| number(&role[what])).sum::<f64>();
    assert_eq!(of_roles("operations"), number(&outcome["events"]), "{step}");
    assert_eq!(of_roles("workers"), 15.0, "{step}");
    let hosts = outcome["client_hosts"].as_array().expect("client hosts");
    let clients: Vec<&Json> = hosts.iter().map(|host| &host["clients"]).collect();
    assert_eq!(clients, [&2, &1], "{step}");
    assert!(hosts.iter().all(|host| number(&host["events"]) > 0.0), "{step}");
    let per_minute = 60.0 * number(&outcome["statements"]) / number(&outcome["seconds"]);
    assert!((number(&outcome["extra"]["nopm"]) / per_minute - 1.0).abs() < 1e-6, "{step}");
    // Clients and tables agree on the number of orders.
    assert_eq!(outcome["notes"].as_array().map(Vec::len), Some(0), "{step}");
    assert_eq!(site.at_work(), [""; 0]);
}

/// The first host loads, builds and checks the answers; then both search. A search of one client
/// has one host.
#[test]
fn searches_of_two_client_hosts_add_up() {
    let test = "searches_of_two_client_hosts_add_up";
    let build = "postgres@17+pgvector";
    if let Err(why) = builds::roots("", &[build]) {
        return skipped::note(test, &why);
    }
    let Some(site) = Site::start(test) else { return };
    let targets = ["p", "q"].map(|label| format!("{label}={build}"));
    let mut command = site.rqps(&["compare", &targets[0], &targets[1], "--bench", "vector"]);
    command.current_dir(site.path("")).args(program::SHORT);
    for setting in ["rows=500", "dims=8", "queries=20", "pgvector=8/32", "ef=10", "ramp=1,3"] {
        command.args(["--set", setting]);
    }
    command.args(["--set", "cases=sweep", "--client-host", "one", "--client-host", "two"]);
    let output = command.arg("--ssh-config").arg(site.path("ssh_config")).output().expect("start");
    assert!(output.status.success(), "{}", program::said(&output));
    for target in ["p", "q"] {
        let steps = program::steps(&site.path("out"), target);
        let shares: Vec<Vec<u64>> = steps
            .iter()
            .map(|step| {
                assert_eq!(step["status"], "complete", "{step}");
                let hosts = step["outcome"]["client_hosts"].as_array().expect("client hosts");
                hosts.iter().map(|host| host["clients"].as_u64().expect("a number")).collect()
            })
            .collect();
        assert_eq!(shares, [vec![1], vec![1], vec![1], vec![2, 1]]);
        let outcome = |place: usize| &steps[place]["outcome"];
        assert_eq!(outcome(3)["extra"]["recall"], outcome(2)["extra"]["recall"]);
        let events = |record: &Json| record["events"].as_u64().expect("events");
        let hosts = outcome(3)["client_hosts"].as_array().expect("client hosts");
        assert!(hosts.iter().all(|host| events(host) > 0), "{hosts:?}");
        assert_eq!(hosts.iter().map(events).sum::<u64>(), events(outcome(3)));
    }
    assert_eq!(site.at_work(), [""; 0]);
}

/// Two targets that take turns on the host `one`; windows of so many seconds.
fn in_turns(site: &Site, seconds: &str, out: &str) -> Vec<String> {
    let mut words = site.with_clients(&["one"], "waiting", 1, out);
    // The other target has a clock of its own, which waits for nobody.
    words.retain(|word| word != "fake@1");
    words.extend(["c=fake@1:waiting", "--interleave", "turns"].map(str::to_owned));
    for setting in ["read_seconds", "write_seconds"] {
        words.extend(["--set".to_owned(), format!("{setting}={seconds}")]);
    }
    words
}

fn targets_take_turns_on_a_client_host(site: &Site) {
    let output = site.run(&in_turns(site, "0.5", "turns"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = site.out("turns");
    let of = |label: &str| program::steps(Path::new(&out), label);
    let (b, c) = (of("b"), of("c"));
    assert!(b.len() >= 3 && b.len() == c.len(), "{} {}", b.len(), c.len());
    for (b, c) in b.iter().zip(&c) {
        for step in [b, c] {
            let outcome = &step["outcome"];
            assert_eq!(step["status"], "complete", "{step}");
            assert_eq!(outcome["turns"]["targets"], 2, "{step}");
            assert_eq!(outcome["turns"]["stopped"], false, "{step}");
            assert_eq!(outcome["client_hosts"][0]["host"], "one", "{step}");
            assert!(step["usage"]["missing"]["host"].as_str().is_some(), "{step}");
        }
        // A window ends after a whole round.
        let turns = |step: &Json| step["outcome"]["turns"]["turns"].as_u64();
        assert!(turns(b) >= Some(2) && turns(b) == turns(c), "{b} {c}");
    }
    let report = text(&output.stdout);
    let line = "one by TCP; drivers pass turns on there, and waiting servers run on";
    assert!(report.contains(line), "{report}");
    assert_eq!(site.at_work(), [""; 0]);
}

/// Drivers at work with their clients, and what keeps turns for them.
fn crews_and_keepers(site: &Site) -> (Vec<i32>, Vec<i32>) {
    let has_pool = |pid: &i32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        threads.is_ok_and(|threads| threads.count() > 4)
    };
    let drivers = site.processes().into_iter().filter(|(_, line)| line.contains(" driver"));
    drivers.map(|(pid, _)| pid).partition(has_pool)
}

/// A driver and the keeper of a step, once its two drivers are at work; another one than `before`.
fn next_in_turns(site: &Site, before: Option<i32>) -> (i32, i32) {
    let found = || match crews_and_keepers(site) {
        (pools, keepers) if pools.len() == 2 => match keepers.as_slice() {
            [keeper] if Some(*keeper) != before => Some((pools[0], *keeper)),
            _ => None,
        },
        _ => None,
    };
    site.wait_for("two drivers and a keeper", |_| found().is_some());
    found().expect("they live for seconds")
}

fn a_driver_or_a_keeper_that_is_killed_fails_its_own_step(site: &Site) {
    let mut command = site.rqps(&in_turns(site, "3", "turns-killed"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start rqps");
    let kill = |pid: i32| {
        // By then it is at work, which takes seconds.
        std::thread::sleep(Duration::from_millis(700));
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("kill");
    };
    let (driver, first) = next_in_turns(site, None);
    kill(driver);
    let (_, second) = next_in_turns(site, Some(first));
    kill(second);
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let out = site.out("turns-killed");
    let statuses = |place: usize| {
        let of = |label: &str| program::steps(Path::new(&out), label)[place]["status"].clone();
        ["b", "c"].map(of)
    };
    let failed =
        |status: &Json, why: &str| status["failed"].as_str().is_some_and(|text| text.contains(why));
    let killed = statuses(0);
    let is_ended =
        |status: &Json| failed(status, "the driver process on the client host one ended");
    assert_eq!(killed.iter().filter(|status| is_ended(status)).count(), 1, "{killed:?}");
    assert!(killed.iter().any(|status| status == "complete"), "{killed:?}");
    let lost = statuses(1);
    let is_lost = |status: &Json| failed(status, "keep turns on the client host");
    assert!(lost.iter().all(is_lost), "{lost:?}");
    assert!(statuses(2).iter().all(|status| status == "complete"), "{said}");
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn no_turns_go_on_without_their_lab(site: &Site) {
    let mut command = site.rqps(&in_turns(site, "60", "turns-gone"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("rqps");
    next_in_turns(site, None);
    child.kill().expect("kill");
    child.wait().expect("wait");
    // The page is memory of these processes.
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn clients_of_two_hosts_count_what_those_of_one_do(site: &Site) {
    let expected = site.counts_of_local_clients();
    let output = site.run(&site.with_clients(&["one", "two"], "slow", 2, "there"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let there = site.out("there");
    assert_eq!(counts(&there), expected);
    let steps = steps(&there);
    let step = steps.values().last().expect("a step");
    let hosts = step["outcome"]["client_hosts"].as_array().expect("client hosts").clone();
    let shares: Vec<(&Json, &Json)> =
        hosts.iter().map(|host| (&host["host"], &host["clients"])).collect();
    assert_eq!(shares, [(&"one".into(), &2.into()), (&"two".into(), &2.into())]);
    let events: u64 = hosts.iter().filter_map(|host| host["events"].as_u64()).sum();
    assert_eq!(Some(events), step["outcome"]["events"].as_u64());
    assert!(hosts.iter().all(|host| host["clock_bound_ms"].as_f64() > Some(0.0)), "{step}");
    assert!(hosts.iter().any(|host| host["start_ms"] == 0.0), "{step}");
    let report = text(&output.stdout);
    assert!(report.contains("one, two by TCP; whole steps alternate"), "{report}");
    let plan = fs::read_to_string(Path::new(&there).join("plan.toml")).expect("the plan");
    assert!(plan.contains("hosts = [\"one\", \"two\"]"), "{plan}");
    assert_eq!(site.at_work(), [""; 0]);
}

fn a_client_host_that_goes_away_fails_its_step_alone(site: &Site) {
    let mut words = site.with_clients(&["one", "two"], "waiting", 1, "cut");
    words.extend(["--steps", "delete", "--set", "read_seconds=3"].map(str::to_owned));
    words.extend(["--set", "write_seconds=3"].map(str::to_owned));
    // Only its steps take time.
    words.retain(|word| word != "fake@1");
    let mut command = site.rqps(&words);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start rqps");
    let first = site.next_driver("two", None);
    let kill = |pid: i32| {
        // By then its clients are at work, which takes seconds.
        std::thread::sleep(Duration::from_secs(1));
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("kill");
    };
    kill(first);
    let second = site.next_driver("two", Some(first));
    // Its shell, and what has started that.
    kill(parent(parent(second)));
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let statuses: Vec<Json> =
        steps(&site.out("cut")).values().map(|step| step["status"].clone()).collect();
    let [killed, cut, rest @ ..] = statuses.as_slice() else { panic!("{statuses:?}") };
    let failed = |status: &Json, why: &str| {
        let text = status["failed"].as_str().unwrap_or_default();
        assert!(text.contains(why), "{status}");
    };
    failed(killed, "the driver process on the client host two ended early");
    failed(cut, "the connection to the client host two was cut");
    assert!(!rest.is_empty() && rest.iter().all(|status| status == "complete"), "{statuses:?}");
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn no_client_runs_on_without_its_lab(site: &Site) {
    let mut words = site.with_clients(&["one", "two"], "waiting", 1, "gone");
    words.extend(["--set", "read_seconds=60"].map(str::to_owned));
    words.retain(|word| word != "fake@1");
    let mut command = site.rqps(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("rqps");
    site.wait_for("both drivers", |site| site.at_work().len() == 2);
    child.kill().expect("kill");
    child.wait().expect("wait");
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn a_client_host_that_cannot_be_used_is_told_before_anything_is_made(site: &Site) {
    let refused = |words: &[String], parts: &[&str]| {
        let output = site.run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!Path::new(&site.out("nowhere")).exists());
    };
    let on = |host: &str| site.with_clients(&[host], "slow", 1, "nowhere");
    refused(&on("stranger"), &["use the client host stranger", "hint: connect once by hand"]);
    refused(&on("riscv"), &["measure on riscv: it is riscv64, and this rqps is for"]);
    let mut elsewhere = on("one");
    elsewhere.extend(["--server-address", "192.0.2.1"].map(str::to_owned));
    refused(&elsewhere, &["use --server-address 192.0.2.1 on this host", "hint: "]);
    let folder = fs::read_dir(site.path("home/rqps/hosts")).expect("the far side").flatten();
    let programs: Vec<PathBuf> = folder.map(|entry| entry.path()).collect();
    assert_eq!(programs.len(), 1, "{programs:?}");
    fs::remove_file(&programs[0]).expect("remove");
    fs::write(&programs[0], "#!/bin/sh\necho rqps 0.0.1\n").expect("write");
    fs::set_permissions(&programs[0], fs::Permissions::from_mode(0o755)).expect("mode");
    refused(&on("one"), &["it is rqps 0.0.1, and this is rqps", "hint: remove that file"]);
}

fn blocks_on_two_hosts_give_the_runs_of_local_blocks(site: &Site) {
    let usual = site.run(&site.words("slow", 4, "usual"));
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let output = site.run(&site.elsewhere("one,two", "slow", 4, "fleet"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (usual, fleet) = (site.out("usual"), site.out("fleet"));
    assert_eq!(runs(&fleet), runs(&usual));
    let gate = json(&Path::new(&fleet).join("gate.json"));
    let blocks = gate["blocks"].as_array().expect("blocks");
    let nodes: BTreeSet<String> =
        blocks.iter().map(|block| block["session"]["node"].to_string()).collect();
    assert_eq!(nodes, ["\"one\"".to_owned(), "\"two\"".to_owned()].into());
    assert!(!Path::new(&fleet).join(".cells").exists(), "nothing but results stays");
    assert_eq!(site.left(), [""; 0], "nothing stays on the hosts");
    let report = text(&output.stdout);
    assert!(report.contains("host one") && report.contains("host two"), "{report}");
}

fn a_host_that_cannot_be_used_is_told_before_anything_is_made(site: &Site) {
    for (host, part) in [
        ("stranger", "hint: connect once by hand (`ssh stranger`) and check the key"),
        ("gone", "hint: try `ssh gone true`"),
    ] {
        let output = site.run(&site.elsewhere(host, "slow", 1, "nowhere"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("reach {host}: ")) && said.contains(part), "{said}");
        assert!(!Path::new(&site.out("nowhere")).exists());
    }
}

fn a_host_without_room_on_its_disk_gives_its_blocks_away(site: &Site) {
    let _disk = match site.add_small_host() {
        Ok(disk) => disk,
        Err(why) => return skipped::note("a_host_without_room_on_its_disk", &why),
    };
    let output = site.run(&site.elsewhere("small,two", "slow", 4, "full"));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let fault = "on small: failed to measure the block: keep data and snapshots in";
    assert!(said.contains(fault) && said.contains("or another disk with --work"), "{said}");
    assert_eq!(runs(&site.out("full")).len(), 8, "{said}");
    assert!(!said.contains("measured on small"), "{said}");
}

fn nothing_runs_on_without_its_coordinator(site: &Site) {
    let mut command = site.rqps(&site.elsewhere("one,two", "waiting", 3, "killed"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("start rqps");
    let blocks =
        |site: &Site| site.at_work().iter().filter(|line| line.contains(" block ")).count();
    site.wait_for("two blocks at work", |site| blocks(site) == 2);
    child.kill().expect("kill");
    child.wait().expect("wait");
    site.wait_for("the end of all that it started", |site| {
        site.at_work().is_empty() && site.left().iter().all(|path| !path.contains("/data/"))
    });
    let (out, ssh, work) = (site.out("killed"), site.out("ssh_config"), site.out("data"));
    let words = ["run", &out, "--resume", "--on", "ssh:one,two", "--ssh-config", &ssh];
    let configs = site.out("configs");
    let words = words.into_iter().chain(["--work", &work, "--configs", &configs]);
    let output = site.run(&words.collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(runs(&out).len(), 6);
    assert_eq!(site.left(), [""; 0], "nothing stays on the hosts");
}
