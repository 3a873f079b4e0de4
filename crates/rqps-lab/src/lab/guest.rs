//! Targets on servers that rqps does not run: who rqps is there, and a look at all of them before
//! anything is made.

use std::path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::benchmarks::{self, lua};
use crate::lab::execution::ExecutionOptions;
use crate::lab::progress::Progress;
use crate::plan::{Interleave, Plan, StepFile};
use rqps_dbms as dbms;
use rqps_dbms::{DbmsError, External, Guest, Interrupt, VisitorLoad};
use rqps_driver::load_changes::{self, LoadChanges};
use rqps_driver::request::RequestBody;
use rqps_host::child::{self, ChildTask};
use rqps_host::{clock, confinement, host};
use rqps_model::benchmark::{Phase, Step};
use rqps_model::build::{BuildSource, Target};
use rqps_model::endpoint::Address;
use rqps_model::lua::LuaWork;
use rqps_model::units::short_hash;
use rqps_text::reading;
use rqps_wire::dsn::Dsn;
use rqps_wire::password::{self, Known};

/// The control plane of a target that is given by a DSN; `None` for others.
///
/// # Errors
/// The DSN cannot be used, or its password cannot be had.
pub(super) fn control(options: &ExecutionOptions, target: &Target) -> Result<Option<External>> {
    let BuildSource::Dsn(dsn) = &target.source else { return Ok(None) };
    let (dsn, _) = login(options, target, dsn)?;
    let interrupt = Interrupt(Arc::clone(&options.stop));
    let guest = guest(options, target)?;
    Ok(Some(dbms::external(dsn.dialect(), dsn.address, dsn.login, guest, interrupt)?))
}

/// A result folder always has the same tag, so that a resumed plan finds its own tables.
fn guest(options: &ExecutionOptions, target: &Target) -> Result<Guest> {
    let ExecutionOptions { plan, out, keep, replace, .. } = options;
    let results = path::absolute(out).context("find the result folder")?;
    let (plan_hash, host) = (plan.hash().to_owned(), host::name());
    let results = results.display().to_string();
    let who = [host.as_str(), &results, &plan_hash, &target.label].join("\n");
    Ok(Guest {
        tag: short_hash(who.as_bytes()),
        plan: plan_hash,
        results,
        host,
        label: target.label.clone(),
        time: clock::now_rfc3339(),
        names: plan.names_made(target),
        keep: *keep,
        replace: replace.clone(),
    })
}

/// Looks on every server where tables would go, and says it.
///
/// # Errors
/// A server cannot be reached or does not let rqps in, something is in the way of the tables of a
/// target, or tables of the user's statements are not there; nothing is touched then on any server.
pub(super) fn survey(options: &ExecutionOptions, progress: &mut Progress<'_>) -> Result<()> {
    let plan = &options.plan;
    check_replace(options)?;
    let (mut surveyed, mut encrypted) = (Vec::new(), Vec::new());
    for target in &plan.targets {
        let label = &target.label;
        if let Some(RequestBody::LoadFiles(load)) = plan.load_request(target) {
            let checked = load_changes::check_files(&load, target.dbms.dialect());
            checked.map_err(anyhow::Error::msg)?;
        }
        let Some(mut external) = control(options, target)? else { continue };
        if let BuildSource::Dsn(dsn) = &target.source {
            for note in login(options, target, dsn)?.1 {
                progress.note(&format!("{label}: {note}"));
            }
        }
        progress.doing(label, "look for a place for tables", None);
        let words = match visitor_load(plan, target)? {
            Some(load) => external.survey_load(&load),
            None => external.survey(),
        };
        match words {
            Ok(words) => {
                let looked = external.look_at(&statements(options, target));
                looked.with_context(|| format!("measure {label}"))?;
                progress.note(&format!("{label}: {words}"));
                encrypted.extend(external.is_encrypted().map(|is| (label.clone(), is)));
            }
            Err(error) => return Err(error).with_context(|| format!("measure {label}")),
        }
        match plan.interleave {
            // Both are there at the same time, so they must not want the same place.
            Interleave::Step | Interleave::Turns => surveyed.push(external),
            Interleave::Run => external.end_survey(),
        }
    }
    surveyed.iter_mut().for_each(External::end_survey);
    if let Some(note) = unequal(&encrypted) {
        progress.note(&note);
    }
    Ok(())
}

/// The user's statements, where their tables have to be there before the first block: the plan
/// loads none of its files, and no statement makes one.
fn statements(options: &ExecutionOptions, target: &Target) -> Vec<String> {
    let plan = &options.plan;
    if matches!(plan.load_request(target), Some(RequestBody::LoadFiles(_))) {
        return Vec::new();
    }
    let phases = plan.phases(target).unwrap_or_default();
    let steps = phases.iter().filter_map(|phase| match phase {
        Phase::Measure(step) => Some(step),
        _ => None,
    });
    let of_step = |step: &Step| match step.own::<LuaWork>() {
        // A command before the step may make tables, and an ignored error may be a missing one.
        Some(work) if work.commands.is_empty() && work.ignored_errors.is_empty() => {
            let mut rqps = child::command(options.program.clone(), ChildTask::Work);
            rqps.env_clear().envs(confinement::environment(options.variable));
            lua::driver::first_statements_of(rqps, work, target.dbms.dialect())
        }
        _ => benchmarks::statements(step),
    };
    let all: Vec<String> = steps.flat_map(|step| of_step(step)).collect();
    let keeps_names = |sql: &String| reading::keeps_names(target.dbms.dialect(), sql);
    if all.iter().all(keeps_names) { all } else { Vec::new() }
}

/// The load of the user's own tables on the server of a target; `None` if there is none.
fn visitor_load(plan: &Plan, target: &Target) -> Result<Option<VisitorLoad>> {
    let Some(RequestBody::LoadFiles(load)) = plan.load_request(target) else { return Ok(None) };
    let dialect = target.dbms.dialect();
    let LoadChanges { relations, place } =
        load_changes::of_load(&load, dialect).map_err(anyhow::Error::msg)?;
    let kept = load_changes::undropped(&load, dialect, &relations);
    let words = load_changes::words(&load, dialect, &relations);
    Ok(Some(VisitorLoad { words: format!("rqps {words} before each block"), kept, place }))
}

/// If clients run on other hosts, checks that they can use the DSNs unchanged. Returns the files of
/// certificates and keys that they need.
///
/// # Errors
/// An address means only this host, or a DSN cannot be used.
pub(super) fn check_far(options: &ExecutionOptions) -> Result<Vec<StepFile>> {
    let mut files = Vec::new();
    if options.plan.workload.client_hosts.is_none() {
        return Ok(files);
    }
    for target in &options.plan.targets {
        let BuildSource::Dsn(dsn) = &target.source else { continue };
        let (dsn, _) = login(options, target, dsn)?;
        let tls = match &dsn.address {
            Address::Tcp { host, tls, .. } if !dbms::is_loopback(host) => tls,
            near => bail!(
                "measure {} with clients on other hosts: they do not reach {near}, which is on \
                 this host\nhint: write the address by which they reach the server into the DSN",
                target.label
            ),
        };
        let identity = tls.identity.iter().flat_map(|own| [&own.certificate, &own.key]);
        let paths = tls.roots.iter().chain(identity);
        files.extend(paths.map(|path| StepFile { path: path.clone(), sha256: None }));
    }
    Ok(files)
}

/// A warning if only some targets are measured over TLS: each difference between them contains the
/// cost of encryption.
fn unequal(encrypted: &[(String, bool)]) -> Option<String> {
    let with = encrypted.iter().find(|(_, is)| *is)?;
    let without = encrypted.iter().find(|(_, is)| !*is)?;
    Some(format!(
        "{} is measured over TLS and {} is not, so differences include the cost of TLS; set \
         sslmode=disable or require for both",
        with.0, without.0
    ))
}

/// Address and login of a target, and notes about its password.
fn login(options: &ExecutionOptions, target: &Target, dsn: &str) -> Result<(Dsn, Vec<String>)> {
    let label = &target.label;
    let Known { dsn: mut read, is_visible, mut notes, .. } =
        password::known(dsn, &options.variable).with_context(|| format!("log in to {label}"))?;
    if read.login.password.is_empty()
        && let Some(typed) = options.passwords.of(dsn)
    {
        typed.clone_into(&mut read.login.password);
    }
    let dsn = read;
    let client = dsn.dialect().spec().server.as_ref().map(|server| server.client);
    if let Some(client) = client.filter(|_| is_visible) {
        notes.push(format!(
            "the DSN contains its password, which `ps` shows to other users of this host; leave \
             it out and set {}",
            client.variable()
        ));
    }
    Ok((dsn, notes))
}

/// Before the first block: removes what killed runs of this plan left on the server of a target,
/// and drops what the user gave up. False if the target is no such server. One that does not answer
/// is left to its runs, which say so.
///
/// # Errors
/// Something is in the way of the tables.
pub(super) fn clear_the_way(
    options: &ExecutionOptions,
    target: &Target,
    progress: &mut Progress<'_>,
) -> Result<bool> {
    let Some(mut external) = control(options, target)? else { return Ok(false) };
    match external.clear_the_way() {
        Ok(notes) => {
            notes.iter().for_each(|note| progress.note(&format!("{}: {note}", target.label)));
        }
        Err(error @ DbmsError::Refused(_)) => return Err(error.into()),
        Err(_) => {}
    }
    Ok(true)
}

/// At the end of the plan: removes rqps's tables from the servers, except with `--keep`.
///
/// # Errors
/// A DSN cannot be used. What stays on a server is a note.
pub(super) fn clean_up(options: &ExecutionOptions, progress: &mut Progress<'_>) -> Result<()> {
    for target in &options.plan.targets {
        let Some(mut external) = control(options, target)? else { continue };
        // Its runs have reported that the server does not answer.
        if let Err(error @ DbmsError::Refused(_)) = external.clean_up() {
            progress.note(&format!("{}: {error}", target.label));
        }
    }
    Ok(())
}

/// Only names that the benchmark makes can be in its way.
fn check_replace(options: &ExecutionOptions) -> Result<()> {
    let ExecutionOptions { plan, replace, .. } = options;
    let external = |target: &&Target| matches!(target.source, BuildSource::Dsn(_));
    let names: Vec<String> =
        plan.targets.iter().filter(external).flat_map(|target| plan.names_made(target)).collect();
    match replace.iter().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) if names.is_empty() => {
            bail!("replace the table {name}: no target of this plan is a running server (a DSN)")
        }
        Some(name) => bail!(
            "replace the table {name}: this plan makes no table of that name\nhint: \
             --replace-tables takes table names that rqps reported as conflicts, such as {}",
            names[0]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::benchmarks;
    use crate::plan::{Blocks, PlanDraft, words};
    use rqps_bench::sysbench;
    use rqps_model::benchmark::Placement;
    use rqps_model::host::HostsOfClients;
    use rqps_wire::password::TypedPasswords;

    fn options(out: &str, replace: &[&str]) -> ExecutionOptions {
        let targets = ["a=postgres://u@h/app", "b=postgres://u@h/app"].map(str::to_owned);
        let draft = PlanDraft {
            targets: words::targets(&targets).expect("words"),
            order: benchmarks::StepSet::Abbreviated,
            steps: Vec::new(),
            workload: sysbench::workload("quick").unwrap().0,
            blocks: Blocks::Fixed(1),
            sittings: None,
            loads: 1,
            interleave: Interleave::Step,
            seed: 1,
            canaries: false,
            gate: None,
            count: None,
            profile: None,
        };
        ExecutionOptions {
            plan: Plan::build(draft).expect("a plan"),
            out: PathBuf::from(out),
            cache: PathBuf::new(),
            configs: dbms::UserConfigs::default(),
            accepted: Default::default(),
            calibrations: Vec::new(),
            ledger: Vec::new(),
            ignores_space: false,
            work: None,
            program: PathBuf::new(),
            valgrind: None,
            perf: None,
            debug_folders: Vec::new(),
            host_lock: crate::lab::HostLock::default(),
            wait: Default::default(),
            mark_key: rqps_host::lock::MarkKey::open(None).unwrap(),
            ssh_config: None,
            client_line: None,
            keep: false,
            variable: |_| None,
            passwords: TypedPasswords::default(),
            replace: replace.iter().map(|name| (*name).to_owned()).collect(),
            shared_loads: Default::default(),
            stop: Arc::default(),
        }
    }

    /// Changes the plan.
    fn change(options: &mut ExecutionOptions, change: impl FnOnce(&mut PlanDraft)) {
        let mut draft = options.plan.draft();
        change(&mut draft);
        options.plan = Plan::build(draft).expect("a plan");
    }

    #[test]
    fn a_tag_is_of_one_result_folder_and_one_target() {
        let tag = |options: &ExecutionOptions, target: usize| {
            guest(options, &options.plan.targets[target]).expect("a guest").tag
        };
        let first = options("/results/one", &[]);
        assert_eq!(tag(&first, 0), tag(&options("/results/one", &[]), 0));
        assert_eq!(tag(&first, 0).len(), 12);
        assert_ne!(tag(&first, 0), tag(&first, 1));
        assert_ne!(tag(&first, 0), tag(&options("/results/two", &[]), 0));
        let mut other = options("/results/one", &[]);
        change(&mut other, |plan| plan.seed = 2);
        assert_ne!(tag(&first, 0), tag(&other, 0));
    }

    #[test]
    fn an_address_of_this_host_is_none_for_client_hosts() {
        let check = |dsn: &str| {
            let mut options = options("/results", &[]);
            let targets = words::targets(&[format!("a={dsn}")]).expect("words");
            change(&mut options, |plan| plan.targets = targets);
            assert_eq!(check_far(&options).expect("clients are here"), []);
            let hosts = HostsOfClients { hosts: vec!["h".to_owned()], ..HostsOfClients::default() };
            change(&mut options, |plan| {
                plan.workload.placement = Placement::Os;
                plan.workload.client_hosts = Some(hosts);
            });
            check_far(&options).map_err(|error| error.to_string())
        };
        for near in ["u@localhost/d", "u@127.0.0.1/d", "u@[::1]/d", "u@/d?host=/tmp"] {
            let error = check(&format!("postgres://{near}")).expect_err(near);
            assert!(error.contains("they do not reach"), "{error}");
        }
        let tls = "sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k";
        let files = check(&format!("postgres://u@db/d?{tls}")).expect("an address");
        let paths: Vec<_> = files.iter().map(|file| file.path.to_str()).collect();
        assert_eq!(paths, [Some("/ca"), Some("/c"), Some("/k")]);
    }

    #[test]
    fn only_tables_of_the_benchmark_can_be_replaced() {
        check_replace(&options("/results", &["sbtest1"])).expect("a table of the plan");
        let error = check_replace(&options("/results", &["orders"])).expect_err("another one");
        assert!(error.to_string().contains("such as sbtest1"), "{error}");
        let mut own = options("/results", &["sbtest1"]);
        let targets = words::targets(&["sqlite".to_owned()]).expect("words");
        change(&mut own, |plan| plan.targets = targets);
        let error = check_replace(&own).expect_err("no server of somebody else's");
        assert!(error.to_string().contains("running server"), "{error}");
    }
}
