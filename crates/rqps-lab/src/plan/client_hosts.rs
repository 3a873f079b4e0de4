//! Refuses plans that client hosts and a server host cannot execute.

use crate::benchmarks;
use crate::plan::definition::{Interleave, PlanDraft};
use rqps_model::benchmark::{BackgroundState, Phase, Placement, Step, Workload};
use rqps_model::build::BuildSource;
use rqps_model::dialect::Dialect;
use rqps_model::host::HostsOfClients;
use rqps_model::units::counted;

/// How many of a step's `clients` several client hosts share; `None` if the first one carries out
/// the step alone.
pub fn shared_clients(workload: &Workload, step: &Step, clients: u32) -> Option<u32> {
    match benchmarks::of(workload).shared_clients {
        Some(of) => of(step),
        None => Some(clients),
    }
}

/// Refuses a plan whose clients cannot run on the hosts that it names. The error is a sentence.
pub(super) fn check(plan: &PlanDraft) -> Result<(), String> {
    let Some(clients) = &plan.workload.client_hosts else { return Ok(()) };
    check_names(clients)?;
    if plan.interleave == Interleave::Turns {
        check_turns(plan, clients)?;
    }
    if plan.workload.placement != Placement::Os {
        return Err("place clients and servers on CPUs with clients on other hosts: use \
                    --placement os"
            .to_owned());
    }
    let option = match (&clients.server_host, clients.nodes) {
        (Some(_), _) => "--server-host",
        (None, Some(_)) => "--client-nodes",
        (None, None) => "--client-host",
    };
    for target in &plan.targets {
        let dialect = target.dbms.dialect();
        if dialect == Dialect::Sqlite || dialect == Dialect::KeyValue {
            return Err(format!(
                "run clients of {} on other hosts: it is a library in the process of its clients; \
                 leave out {option}, or measure whole blocks elsewhere with --on ssh:USER@HOST",
                target.label
            ));
        }
    }
    check_server(plan, clients)?;
    match clients.count() {
        0 if clients.server_host.is_some() => Ok(()),
        0 => Err("client_hosts names no host; leave it out, or name one in hosts".to_owned()),
        1 => Ok(()),
        hosts => check_shares(plan, hosts),
    }
}

/// Drivers pass turns on through the memory of their host, and reach no server of another one.
fn check_turns(plan: &PlanDraft, clients: &HostsOfClients) -> Result<(), String> {
    if clients.count() > 1 {
        return Err(format!(
            "take turns within steps with clients on {} hosts: drivers pass turns on through the \
             memory of one host; name one --client-host, or use --interleave step",
            clients.count()
        ));
    }
    if plan.workload.waiting == Some(BackgroundState::Stopped) {
        return Err("stop waiting servers with clients on other hosts: drivers reach no server \
                    there; use --set waiting=running, or --interleave step"
            .to_owned());
    }
    Ok(())
}

fn is_host(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && !name.contains(char::is_whitespace)
}

/// The host of the servers measures whole blocks, without their clients.
fn check_server(plan: &PlanDraft, clients: &HostsOfClients) -> Result<(), String> {
    let Some(server) = &clients.server_host else { return Ok(()) };
    if !is_host(server) {
        return Err(format!(
            "run servers on `{server}`: it is not a host; use --server-host USER@HOST"
        ));
    }
    if clients.hosts.contains(server) {
        return Err(format!(
            "run clients and servers on {server}: use --on ssh:{server} alone, which measures \
             whole blocks there"
        ));
    }
    let guest = plan.targets.iter().find(|target| matches!(target.source, BuildSource::Dsn(_)));
    match guest {
        None => Ok(()),
        Some(target) => Err(format!(
            "run {} on {server}: it is a server that runs already; leave out --server-host",
            target.label
        )),
    }
}

fn check_names(clients: &HostsOfClients) -> Result<(), String> {
    if clients.nodes.is_some() && (clients.server_host.is_some() || !clients.hosts.is_empty()) {
        return Err("run clients on nodes of Slurm and on other hosts: use --client-nodes, or \
                    --client-host and --server-host"
            .to_owned());
    }
    for (place, host) in clients.hosts.iter().enumerate() {
        if !is_host(host) {
            return Err(format!(
                "run clients on `{host}`: it is not a host; use --client-host USER@HOST"
            ));
        }
        if clients.hosts[..place].contains(host) {
            return Err(format!("run clients on {host} twice: name each client host once"));
        }
    }
    Ok(())
}

/// Several hosts share the clients of each step.
fn check_shares(plan: &PlanDraft, hosts: usize) -> Result<(), String> {
    let fewest = plan.workload.counts().iter().min().copied().unwrap_or(0);
    let share = |clients: u32| format!("share {}", counted(clients as usize, "client"));
    let benchmark = benchmarks::of(&plan.workload);
    if (fewest as usize) < hosts && benchmark.shared_clients.is_none() {
        return Err(format!(
            "{} among {hosts} client hosts: each needs one or more; use more --clients",
            share(fewest)
        ));
    }
    let Some(target) = plan.targets.first() else { return Ok(()) };
    // If a glob matches no step, `phases` reports it elsewhere.
    let Ok(phases) = plan.phases(target) else { return Ok(()) };
    if let Some(of) = benchmark.shared_clients {
        let shared = |phase: &Phase| match phase {
            Phase::Measure(step) => of(step),
            Phase::Settle | Phase::Restore => None,
        };
        let most = phases.iter().filter_map(shared).max().unwrap_or(0);
        if (most as usize) < hosts {
            return Err(format!(
                "{} of the largest step among {hosts} client hosts: no step has one for each; use \
                 more --clients, or name fewer hosts",
                share(most)
            ));
        }
    }
    let own_clients = |phase: &Phase| match phase {
        Phase::Measure(step) => Some((step.parameters.clients?, step.name.clone())),
        Phase::Settle | Phase::Restore => None,
    };
    let own = phases.iter().filter_map(own_clients).min();
    if let Some((clients, step)) = own.filter(|(clients, _)| (*clients as usize) < hosts) {
        return Err(format!(
            "{} of the step {step} among {hosts} client hosts: each needs one or more; give the \
             step more `clients`, or name fewer hosts",
            share(clients)
        ));
    }
    match (benchmark.one_client_host)(&plan.workload) {
        None => Ok(()),
        Some(why) => Err(format!(
            "share the clients of the benchmark {} among {hosts} hosts: {why}; name one \
             --client-host",
            benchmark.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::blocks::{Auto, Blocks};
    use crate::plan::file;

    /// A plan for two targets with clients on these hosts; `workload` is more of its table.
    fn plan(
        dbms: &str,
        interleave: &str,
        hosts: &str,
        workload: &str,
    ) -> Result<PlanDraft, String> {
        let text = format!(
            "targets = [\"a={dbms}\", \"b={dbms}\"]\nbenchmark = \"sysbench\"\n\
             order = \"abbreviated\"\nsteps = [\"point-query\"]\nblocks = 2\n\
             interleave = \"{interleave}\"\nseed = \"1\"\n[workload]\ntables = 1\nrows = 1000\n\
             clients = 2\nread_seconds = 1.0\nwrite_seconds = 1.0\nwarmup_seconds = 0.1\n\
             settle_scale = 0.0\npace = \"closed\"\nidle = \"os\"\n{workload}\n\
             [workload.client_hosts]\nhosts = {hosts}\n"
        );
        file::parse(&text).map(|plan| plan.draft()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_client_hosts_cannot_do_is_refused() {
        let os = "placement = \"os\"";
        plan("postgres@17.2", "turns", "[\"h\"]", os).unwrap();
        let made = plan("postgres@17.2", "step", "[\"u@h1\", \"h2\"]", os).unwrap();
        let hosts = &made.workload.client_hosts.as_ref().unwrap().hosts;
        assert_eq!(hosts, &["u@h1", "h2"]);
        assert_eq!(file::draft(&file::print(&made).unwrap()).unwrap(), made);
        for (dbms, interleave, hosts, workload, part) in [
            ("postgres@17.2", "turns", "[\"h1\", \"h2\"]", os, "name one --client-host, or use"),
            (
                "postgres@17.2",
                "turns",
                "[\"h\"]",
                "placement = \"os\"\nwaiting = \"stopped\"",
                "use --set waiting=running",
            ),
            ("postgres@17.2", "step", "[\"h\"]", "placement = \"together\"", "--placement os"),
            ("sqlite", "step", "[\"h\"]", os, "it is a library"),
            ("postgres@17.2", "step", "[]", os, "names no host"),
            ("postgres@17.2", "step", "[]\nnodes = 3", os, "2 clients among 3"),
            ("postgres@17.2", "turns", "[]\nnodes = 2", os, "clients on 2 hosts"),
            ("postgres@17.2", "step", "[\"h\"]\nnodes = 1", os, "use --client-nodes, or"),
            ("postgres@17.2", "step", "[\"-h\"]", os, "`-h`: it is not a host"),
            ("postgres@17.2", "step", "[\"h\", \"h\"]", os, "on h twice"),
            ("postgres@17.2", "step", "[\"1\", \"2\", \"3\"]", os, "2 clients among 3"),
        ] {
            let fault = plan(dbms, interleave, hosts, workload).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn what_a_server_host_cannot_do_is_refused() {
        let os = "placement = \"os\"";
        let on = |hosts: &str| format!("{hosts}\nserver_host = \"s\"");
        for hosts in ["[]", "[\"h1\", \"h2\"]"] {
            let made = plan("postgres@17.2", "step", &on(hosts), os).unwrap();
            let roles = made.workload.client_hosts.as_ref().unwrap();
            assert_eq!(roles.server_host.as_deref(), Some("s"));
            assert_eq!(file::draft(&file::print(&made).unwrap()).unwrap(), made);
        }
        for hosts in ["[]", "[\"h1\"]"] {
            plan("postgres@17.2", "turns", &on(hosts), os).unwrap();
        }
        let dsn = "postgres://u@192.0.2.1/d";
        for (dbms, interleave, hosts, part) in [
            ("postgres@17.2", "turns", on("[\"h1\", \"h2\"]"), "name one --client-host"),
            ("sqlite", "step", on("[]"), "leave out --server-host"),
            (dsn, "step", on("[]"), "on s: it is a server that runs already"),
            ("postgres@17.2", "step", on("[\"s\"]"), "--on ssh:s alone"),
            ("postgres@17.2", "step", on("[\"h\", \"h\"]"), "on h twice"),
            ("postgres@17.2", "step", "[]\nserver_host = \"-s\"".to_owned(), "not a host"),
        ] {
            let fault = plan(dbms, interleave, &hosts, os).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
        let mut made = plan("postgres@17.2", "step", &on("[]"), os).unwrap();
        made.blocks = Blocks::Auto(Auto::default());
        check(&made).unwrap();
    }

    #[test]
    fn a_step_of_few_clients_is_not_shared_by_more_hosts() {
        let mut made = plan("postgres@17.2", "step", "[\"h1\", \"h2\"]", "placement = \"os\"");
        let made = made.as_mut().unwrap();
        let text = "[[step]]\nname = \"look\"\nclients = 1\n[[step.event]]\n\
                    [[step.event.statement]]\nsql = \"SELECT 1\"\n";
        let own = benchmarks::named("sql").unwrap();
        (own.file.as_ref().unwrap().read)(&mut made.workload, text).unwrap();
        made.steps.clear();
        let fault = check(made).unwrap_err();
        let expected = "share 1 client of the step look among 2 client hosts";
        assert!(fault.starts_with(expected), "{fault}");
        made.workload.client_hosts.as_mut().unwrap().hosts.pop();
        check(made).unwrap();
    }

    #[test]
    fn hosts_share_the_searches_that_have_clients_enough() {
        let hosts = "[\"h1\", \"h2\"]";
        let mut made = plan("postgres@17+pgvector", "step", hosts, "placement = \"os\"").unwrap();
        let (mut workload, _) = benchmarks::workload("vector", "quick").unwrap();
        workload.placement = Placement::Os;
        workload.client_hosts = made.workload.client_hosts.take();
        made.workload = workload;
        made.steps.clear();
        benchmarks::set(&mut made.workload, "ramp=1").unwrap();
        let fault = check(&made).unwrap_err();
        assert!(fault.starts_with("share 1 client of the largest step among 2"), "{fault}");
        benchmarks::set(&mut made.workload, "ramp=1,4").unwrap();
        check(&made).unwrap();
    }

    #[test]
    fn whole_steps_alternate_by_default() {
        let mut made = plan("postgres@17.2", "step", "[\"h\"]", "placement = \"os\"").unwrap();
        let default =
            |made: &PlanDraft| Interleave::default_of(&made.targets, &made.workload, false);
        assert_eq!(default(&made), Interleave::Step);
        made.workload.client_hosts = None;
        assert_eq!(default(&made), Interleave::Turns);
    }
}
