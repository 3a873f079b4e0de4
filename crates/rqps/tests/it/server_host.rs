//! Servers on another host than rqps (`--server-host`), by ssh to this machine; and what is left
//! when one of the processes is killed.

use crate::support::program;
use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use crate::support::elsewhere::{counts, runs};
use crate::support::program::text;
use crate::support::ssh_site::{Site, children, is_alive, parent, steps};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

#[test]
fn servers_by_ssh() {
    let Some(site) = Site::start("servers_by_ssh") else { return };
    wherever_clients_run_they_count_the_same(&site);
    wherever_clients_run_targets_take_turns(&site);
    blocks_end_when_all_steps_are_decided(&site);
    a_driver_that_is_killed_fails_its_step_alone(&site);
    a_server_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
}

#[test]
fn servers_by_ssh_are_cleared_up() {
    let Some(site) = Site::start("servers_by_ssh_are_cleared_up") else { return };
    a_killed_block_is_cleared_up_and_measured_again(&site);
    a_cut_connection_ends_both_sides(&site);
    nothing_runs_on_without_the_rqps_that_began_it(&site);
}

fn wherever_clients_run_they_count_the_same(site: &Site) {
    let expected = site.counts_of_local_clients();
    let name = text(&fs::read("/proc/sys/kernel/hostname").expect("the name of this host"));
    let name = name.trim();
    let clients_here = format!("{name} (the host of rqps) by TCP");
    for (clients, out, line, hosts) in [
        (&[][..], "served", clients_here.as_str(), vec![(name, 4)]),
        (&["two"][..], "served-two", "two by TCP", vec![("two", 4)]),
    ] {
        let output = site.run(&site.with_server(("one", clients), "slow", 2, out));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let out = site.out(out);
        assert_eq!(counts(&out), expected);
        let all = steps(&out);
        let step = all.values().last().expect("a step");
        let found = step["outcome"]["client_hosts"].as_array().expect("client hosts").clone();
        let shares: Vec<(&str, u64)> = found
            .iter()
            .filter_map(|host| Some((host["host"].as_str()?, host["clients"].as_u64()?)))
            .collect();
        assert_eq!(shares, hosts);
        assert!(found.iter().all(|host| host["clock_bound_ms"].as_f64() > Some(0.0)), "{step}");
        let report = text(&output.stdout);
        assert!(report.contains("server host") && report.contains(line), "{report}");
        let plan = fs::read_to_string(Path::new(&out).join("plan.toml")).expect("the plan");
        assert!(plan.contains("server_host = \"one\""), "{plan}");
        assert!(!Path::new(&out).join(".cells").exists(), "nothing but results stays");
        nothing_is_left(site);
    }
}

fn wherever_clients_run_targets_take_turns(site: &Site) {
    for (clients, out) in [(&[][..], "turns-here"), (&["two"][..], "turns-two")] {
        let mut words = site.with_server(("one", clients), "waiting", 1, out);
        // The other target has a clock of its own, which waits for nobody.
        words.retain(|word| word != "fake@1");
        words.extend(["c=fake@1:waiting", "--interleave", "turns"].map(str::to_owned));
        let output = site.run(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        for label in ["b", "c"] {
            let steps = program::steps(Path::new(&site.out(out)), label);
            assert!(steps.len() >= 3, "{}", steps.len());
            let turns = |step: &Json| step["outcome"]["turns"]["targets"] == 2;
            assert!(steps.iter().all(turns), "{steps:?}");
        }
        nothing_is_left(site);
    }
}

fn blocks_end_when_all_steps_are_decided(site: &Site) {
    let auto = |words: Vec<String>| {
        let fixed = words.iter().position(|word| word == "--blocks").expect("blocks");
        let (before, rest) = words.split_at(fixed);
        let more = ["--blocks", "auto", "--min-blocks", "2", "--max-blocks", "4"];
        [before, &more.map(str::to_owned), &rest[2..]].concat()
    };
    let mut here = site.words("slow", 1, "auto-here");
    here.extend(["--clients", "4"].map(str::to_owned));
    let usual = site.run(&auto(here));
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let output = site.run(&auto(site.with_server(("one", &[]), "slow", 1, "auto")));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let decided = |said: &str| {
        let lines = said.lines().filter(|line| line.contains("after block "));
        lines.map(|line| line.split("; about ").next().unwrap_or(line).to_owned()).next_back()
    };
    assert!(decided(&said).is_some_and(|line| line.contains("steps decided")), "{said}");
    assert_eq!(decided(&said), decided(&text(&usual.stderr)));
    assert_eq!(counts(&site.out("auto")), counts(&site.out("auto-here")));
    nothing_is_left(site);
}

/// Words of one target whose steps take seconds.
fn lasting(site: &Site, clients: &[&str], seconds: u32, out: &str) -> Vec<String> {
    let mut words = site.with_server(("one", clients), "waiting", 1, out);
    words.extend(
        ["read_seconds", "write_seconds"]
            .iter()
            .flat_map(|setting| ["--set".to_owned(), format!("{setting}={seconds}")]),
    );
    // Only the steps of the other one take time.
    words.retain(|word| word != "fake@1");
    words
}

/// Starts it, and waits until its block and a driver here are at work. Returns it with the
/// processes of both.
fn at_work(site: &Site, words: &[String]) -> (Child, i32, i32) {
    let mut command = site.rqps(words);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start rqps");
    let own = Pid::from_child(&child).as_raw_nonzero().get();
    let block = |site: &Site| {
        site.processes().into_iter().find(|(_, line)| line.contains(" block ")).map(|(pid, _)| pid)
    };
    let driver = || children(own).into_iter().find(|(_, line)| line.ends_with(" driver "));
    site.wait_for("a block and a driver", |site| block(site).is_some() && driver().is_some());
    // By then its clients are at work, which takes seconds.
    std::thread::sleep(Duration::from_secs(1));
    (child, block(site).expect("a block"), driver().expect("a driver").0)
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("kill");
}

fn nothing_is_left(site: &Site) {
    assert_eq!(site.at_work(), [""; 0]);
    assert_eq!(site.left(), [""; 0]);
    assert!(!site.path("data/rqps-blocks-0").exists());
}

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    (output, said)
}

fn a_driver_that_is_killed_fails_its_step_alone(site: &Site) {
    let (child, _, driver) = at_work(site, &lasting(site, &[], 3, "driver-killed"));
    kill(driver);
    let (output, said) = ended(child);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let statuses: Vec<Json> =
        steps(&site.out("driver-killed")).values().map(|step| step["status"].clone()).collect();
    let [killed, rest @ ..] = statuses.as_slice() else { panic!("{statuses:?}") };
    let why = killed["failed"].as_str().unwrap_or_default();
    assert!(why.contains("ended early (signal: 9"), "{killed}");
    assert!(!rest.is_empty() && rest.iter().all(|status| status == "complete"), "{statuses:?}");
    nothing_is_left(site);
}

fn a_killed_block_is_cleared_up_and_measured_again(site: &Site) {
    let (child, block, driver) = at_work(site, &lasting(site, &[], 3, "block-killed"));
    let first: Vec<String> = site.left();
    assert!(first.iter().any(|path| path.contains("/data/")), "{first:?}");
    kill(block);
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("block 1: on one: rqps ended with exit status: 137"), "{said}");
    assert!(!is_alive(driver));
    assert_eq!(runs(&site.out("block-killed")).len(), 1);
    nothing_is_left(site);
}

fn a_cut_connection_ends_both_sides(site: &Site) {
    let (child, block, driver) = at_work(site, &lasting(site, &[], 3, "cut"));
    // Its shell, and what has started that.
    kill(parent(parent(block)));
    let (output, said) = ended(child);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("block 1: on one: the connection was cut"), "{said}");
    assert!(!is_alive(driver) && !is_alive(block));
    assert_eq!(runs(&site.out("cut")).len(), 1);
    nothing_is_left(site);
}

fn nothing_runs_on_without_the_rqps_that_began_it(site: &Site) {
    let (mut child, _, driver) = at_work(site, &lasting(site, &[], 60, "gone"));
    child.kill().expect("kill");
    child.wait().expect("wait");
    let is_clear = |site: &Site| site.at_work().is_empty() && site.left().is_empty();
    site.wait_for("the end of all that it began", |site| is_clear(site) && !is_alive(driver));
    let mut command = site.rqps(&lasting(site, &["two"], 60, "gone-too"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("rqps");
    let second = site.next_driver("two", None);
    child.kill().expect("kill");
    child.wait().expect("wait");
    site.wait_for("the end of all that it began", |site| is_clear(site) && !is_alive(second));
}

fn a_server_host_that_cannot_be_used_is_told_before_anything_is_made(site: &Site) {
    let refused = |words: &[String], parts: &[&str]| {
        let output = site.run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!Path::new(&site.out("nowhere")).exists());
    };
    let on = |server: &str, more: &[&str]| {
        let mut words = site.with_server((server, &[]), "slow", 1, "nowhere");
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    };
    refused(
        &on("stranger", &[]),
        &["use the server host stranger: reach stranger", "hint: connect once by hand"],
    );
    refused(
        &on("one", &["--client-host", "stranger"]),
        &["use the client host stranger: reach stranger", "hint: connect once by hand"],
    );
    refused(
        &on("one", &["--server-address", "192.0.2.1"]),
        &["have servers listen at 192.0.2.1 on one: ", "hint: --server-address ADDRESS"],
    );
    refused(&on("one", &["--on", "ssh:two"]), &["hint: leave out --on, or the server host"]);
    nothing_is_left(site);
}
