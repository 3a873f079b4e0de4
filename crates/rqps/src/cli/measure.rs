//! The commands that measure: quickstart, compare, plan, run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cli::args::{
    Compare, Count, Folders, GuestOptions, Printed, Quickstart, RuleOptions, RunArgs,
};
use crate::cli::folders::{self, execution_options, perf, valgrind_for};
use crate::cli::forecast::{self, Machine};
use crate::cli::hosts::{self, Hosts};
use crate::cli::parts::{
    self, BlocksWord, IdleWord, InterleaveWord, OrderWord, PlacementWord, Sweep, Switch,
    WorkloadArgs,
};
use crate::cli::questions::{self, Consent, Origin};
use crate::cli::report::{self, Compared};
use crate::cli::terminal::{self, Display};
use crate::cli::{builds, bundle, campaigns, exit, gate, own_workload};
use rqps_analysis::pairing;
use rqps_dbms as dbms;
use rqps_host::affinity;
use rqps_lab::lab::{self, ExecutionOptions, error_text};
use rqps_lab::plan::{
    Auto, Blocks, CountingPass, Interleave, Plan, PlanDraft, ProfilingPass, cost, file, words,
};
use rqps_lab::{benchmarks, campaign};
use rqps_model::benchmark::{Idle, Placement};
use rqps_model::build::{BuildSource, Target};
use rqps_model::gate::Calibration;
use rqps_model::verdict::Rules;
use rqps_model::{bounded, units};
use rqps_results as results;
use rqps_results::bundle::Bundle;

/// The embedded default compared with a configuration that differs in one important setting.
const QUICKSTART_TARGETS: [&str; 2] = ["sqlite", "sqlite:small-cache"];

/// A few steps from all groups of sysbench, short enough for about a minute in total.
pub(super) const SHORT_STEPS: [&str; 6] = [
    "point-query", "random-points_range=100", "range-notcovered-si", "read-only_range=10",
    "update-index", "write-only",
];
/// Default number of blocks of a comparison.
const DEFAULT_BLOCKS: u32 = 4;

const QUICKSTART_SETTINGS: [&str; 5] =
    ["rows=100000", "read_seconds=1", "write_seconds=1", "warmup_seconds=0.2", "settle_scale=0"];

/// `rqps quickstart`.
pub(super) fn quickstart(words: &Quickstart) -> Result<u8> {
    let targets = QUICKSTART_TARGETS.map(str::to_owned).to_vec();
    let plan = plan_of(&targets, &quickstart_shape())?;
    let folders = Folders { out: words.out.clone(), ..Folders::default() };
    let (guest, rules) = (GuestOptions::default(), RuleOptions::default());
    // Its settings are the shipped ones.
    let place = (&folders, Hosts::default(), &Consent::default());
    carry_out(plan, place, &guest, words.printed, &rules)
}

fn quickstart_shape() -> WorkloadArgs {
    WorkloadArgs {
        bench: vec!["sysbench".to_owned()],
        preset: "quick".to_owned(),
        steps: SHORT_STEPS.map(str::to_owned).to_vec(),
        blocks: Some(BlocksWord::Number(3)),
        settings: QUICKSTART_SETTINGS.map(str::to_owned).to_vec(),
        seed: 1,
        ..WorkloadArgs::default()
    }
}

/// `rqps compare`.
pub(super) fn compare(words: &Compare) -> Result<u8> {
    if words.dry_run {
        return print_plan(words);
    }
    let check = &words.check;
    if check.check || check.host_like.is_some() {
        bail!("compare: --check and --host-like are of `rqps plan`, or go with --dry-run");
    }
    let mut parts = parts::of(&words.shape, &Sweep::of(&words.sweep)?)?;
    if let [_] = parts.as_slice() {
        return compare_part(words, &parts.remove(0).shape, &words.folders);
    }
    // A fault of any part is known before the first is measured.
    let plans = parts.iter().map(|part| compared(words, &part.shape, None));
    let plans = plans.collect::<Result<Vec<Plan>>>()?;
    let labels = plans.iter().flat_map(|plan| &plan.targets).map(|target| target.label.clone());
    let labels: BTreeSet<String> = labels.collect();
    let out = folders::results(words.folders.out.as_deref(), &Vec::from_iter(labels));
    parts::make_folder(&out, &parts)?;
    let mut code = exit::FINE;
    for part in &parts {
        info!("rqps: part {} of {}", part.name, parts.len());
        let folders = Folders { out: Some(out.join(&part.name)), ..words.folders.clone() };
        match compare_part(words, &part.shape, &folders)? {
            exit::INTERRUPTED => return Ok(exit::INTERRUPTED),
            of_part => code = code.max(of_part),
        }
    }
    report::of_new_parts(&out, &words.rules)?;
    Ok(code)
}

/// Measures one workload of a comparison.
fn compare_part(words: &Compare, shape: &WorkloadArgs, folders: &Folders) -> Result<u8> {
    let plan = compared(words, shape, None)?;
    let consent = questions::own(&plan, folders)?;
    let on = words.hosts.place(folders)?;
    let place = (folders, words.hosts.hosts(on.as_ref()), &consent);
    carry_out(plan, place, &words.guest, words.printed, &words.rules)
}

/// The plan of `rqps compare` and `rqps plan`, for a host with so many CPUs if it is not this one.
pub(super) fn compared(words: &Compare, shape: &WorkloadArgs, cpus: Option<usize>) -> Result<Plan> {
    let targets = builds::targets(&words.targets)?;
    if targets.is_empty() {
        bail!("compare: name a TARGET or more, such as `rqps compare sqlite sqlite:small-cache`");
    }
    let (mut plan, file) = drafted_for(&targets, shape, &Sweep::of(&words.sweep)?, cpus)?;
    own_workload::allow_shell(&mut plan, words.guest.allow_shell)?;
    if shape.loads.is_none() {
        plan.loads = plan.usual_loads();
    }
    plan.gate = gate::said(&words.rules);
    campaigns::set(&mut plan, words)?;
    if words.count {
        plan.count = Some(CountingPass { simulate: words.simulate, ..COUNTING_PASS });
    }
    if words.profile {
        plan.profile = Some(PROFILING_PASS);
    }
    built(plan, file)
}

/// The pass of `compare --profile`. An odd rate does not keep step with timers.
const PROFILING_PASS: ProfilingPass = ProfilingPass { blocks: 9, hertz: 997 };

/// The pass of `compare --count`.
pub(super) const COUNTING_PASS: CountingPass =
    CountingPass { statements: 1000, repeats: 3, simulate: false };

/// `rqps count`.
pub(super) fn count(words: &Count) -> Result<u8> {
    let own = own_workload::benchmark(&words.bench)?
        .spec
        .counting
        .settings
        .iter()
        .map(|setting| (*setting).to_owned());
    let shape = WorkloadArgs {
        bench: words.bench.clone(),
        order: words.order,
        steps: words.steps.clone(),
        blocks: Some(BlocksWord::Number(words.repeats)),
        canaries: Switch::Off,
        settings: own.chain(words.settings.iter().cloned()).collect(),
        interleave: Some(InterleaveWord::Run),
        placement: Some(PlacementWord::Os),
        seed: words.seed,
        options: words.options.clone(),
        ..quickstart_shape()
    };
    let (mut plan, file) = drafted(&builds::targets(&words.targets)?, &shape)?;
    plan.workload.counted_statements = Some(words.statements);
    plan.workload.simulated_caches = words.simulate;
    let plan = built(plan.with_counted_loads(), file)?;
    let (guest, rules) = (GuestOptions::default(), RuleOptions::default());
    let consent = questions::own(&plan, &words.folders)?;
    let place = (&words.folders, Hosts::default(), &consent);
    carry_out(plan, place, &guest, words.printed, &rules)
}

/// `rqps plan`.
pub(super) fn print_plan(words: &Compare) -> Result<u8> {
    let check = &words.check;
    let machine = (check.check || check.host_like.is_some())
        .then(|| Machine::of(check, &words.folders))
        .transpose()?;
    let parts = parts::of(&words.shape, &Sweep::of(&words.sweep)?)?;
    let mut code = exit::FINE;
    for part in &parts {
        if parts.len() > 1 {
            out!("# part {}", part.name);
        }
        let plan = compared(words, &part.shape, machine.as_ref().map(|it| it.cores))?;
        code = code.max(print_one_plan(&plan, words, machine.as_ref())?);
    }
    Ok(code)
}

fn print_one_plan(plan: &Plan, words: &Compare, machine: Option<&Machine>) -> Result<u8> {
    let configs = questions::own(plan, &words.folders)?.configs;
    let Some(first) = plan.targets.first() else { bail!("plan: no target") };
    let phases = plan.phases(first)?;
    let cost = cost::estimate(plan, &phases);
    terminal::data(&file::print(plan)?);
    out!("# {}", forecast::time(plan, &cost)?);
    for line in forecast::lines(plan, &cost, &words.folders)? {
        out!("# {line}");
    }
    for line in hosts::preview(plan, &words.hosts, &words.folders)? {
        out!("# {line}");
    }
    out!(
        "# plan {}; a step about {}, a run about {}",
        plan.hash(),
        units::duration(seconds(cost.step_seconds)),
        units::duration(seconds(cost.run_seconds))
    );
    let lacks: Vec<String> =
        plan.targets.iter().filter_map(|it| forecast::lacks_config(it, &configs)).collect();
    for lack in &lacks {
        info!("rqps: {lack}");
    }
    let Some(machine) = machine else {
        for doubt in
            plan.targets.iter().filter_map(|target| forecast::doubt(target, &words.folders))
        {
            info!("rqps: {doubt}");
        }
        return Ok(exit::FINE);
    };
    let (lines, missing) = machine.judge(plan, &words.folders)?;
    for line in lines {
        out!("# {line}");
    }
    Ok(if missing + lacks.len() == 0 { exit::FINE } else { exit::USAGE })
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// `rqps run`.
pub(super) fn run(mut words: RunArgs) -> Result<u8> {
    if words.plan.is_none() {
        let newest = folders::or_newest(&[])?.remove(0);
        let is_folder = words.resume || words.status;
        words.plan = Some(if is_folder { newest } else { newest.join("plan.toml") });
    }
    let words = &words;
    if words.status {
        return hosts::status(words.plan());
    }
    if words.plan().is_file() && Bundle::is_meant(words.plan())? {
        let (plan, folders, consent) = bundle::begin(words)?;
        let on = words.hosts.place(&folders)?;
        let place = (&folders, words.hosts.hosts(on.as_ref()), &consent);
        return carry_out(plan, place, &words.guest, words.printed, &words.rules);
    }
    let path = match (words.resume || words.blocks.is_some(), words.plan().is_dir()) {
        (true, true) => words.plan().join("plan.toml"),
        (false, true) => {
            bail!(
                "run {}: it is a folder\nhint: name a plan file, or add --resume to resume this \
                 folder",
                words.plan().display()
            )
        }
        _ => words.plan().to_owned(),
    };
    if words.resume && words.plan().is_dir() && matches!(path.try_exists(), Ok(false)) {
        bail!(
            "resume {}: it holds no plan.toml\nhint: name the result folder that the interrupted \
             command printed",
            words.plan().display()
        );
    }
    if matches!(path.try_exists(), Ok(false)) {
        let plan = path.display();
        bail!("find the plan {plan}: no such file; `rqps plan TARGET TARGET > {plan}` makes one");
    }
    let text = bounded::text(&path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read the plan {}", path.display()))?;
    let used = || format!("use the plan {}", path.display());
    let plan = file::draft(&text).with_context(used)?;
    let mut draft = own_workload::of_plan(plan, &path).with_context(used)?.draft();
    words.sittings.take(&mut draft);
    if let Some(blocks) = words.blocks {
        draft.blocks = Blocks::Fixed(blocks);
        // Several loads stand for one of each block.
        draft.loads = if draft.loads > 1 { blocks } else { 1 };
    }
    let plan = Plan::build(draft).with_context(used)?;
    let mut folders = words.folders.clone();
    let mut brings_configs = false;
    if words.resume && words.plan().is_dir() {
        folders.out = Some(words.plan().to_owned());
        if let Some(configs) = bundle::configs_in(words.plan()) {
            // A repetition brings its configurations.
            folders.configs = Some(configs);
            brings_configs = true;
        }
    }
    if words.resume && folders.out.is_none() {
        bail!("resume: no result folder; name it as PLAN or with --out");
    }
    let allow = words.allow.as_deref();
    let origin = Origin { file: &path, allow, bundle: None, brings_configs };
    let consent = questions::ask(&plan, &origin, &folders)?;
    let on = words.hosts.place(&folders)?;
    let place = (&folders, words.hosts.hosts(on.as_ref()), &consent);
    carry_out(plan, place, &words.guest, words.printed, &words.rules)
}

/// Makes the plan from the command line.
pub(super) fn plan_of(targets: &[String], shape: &WorkloadArgs) -> Result<Plan> {
    let (plan, file) = drafted(targets, shape)?;
    built(plan, file)
}

/// What words ask for, and the workload file that they name.
pub(super) fn drafted(
    targets: &[String],
    shape: &WorkloadArgs,
) -> Result<(PlanDraft, Option<PathBuf>)> {
    drafted_for(targets, shape, &Sweep::default(), None)
}

fn drafted_for(
    targets: &[String],
    shape: &WorkloadArgs,
    sweep: &Sweep,
    cpus: Option<usize>,
) -> Result<(PlanDraft, Option<PathBuf>)> {
    let cpus = cpus.unwrap_or_else(|| affinity::allowed_cpus().len());
    let said = own_workload::benchmark(&shape.bench)?;
    let spec = said.spec;
    let (mut workload, order) = (spec.workload)(&shape.preset).map_err(anyhow::Error::msg)?;
    own_workload::take(&said, &shape.options, &mut workload)?;
    let (of_targets, of_workload) = parts::divide(&shape.settings)?;
    for setting in of_workload {
        benchmarks::set(&mut workload, setting)?;
    }
    if let Some(size) = &shape.memory_limit {
        benchmarks::set(&mut workload, &format!("memory_limit={size}"))?;
    }
    if let Some(clients) = &shape.clients {
        benchmarks::set(&mut workload, &format!("clients={clients}"))?;
    }
    if let Some(rate) = shape.rate {
        benchmarks::set(&mut workload, &format!("rate={rate}"))?;
    }
    workload.client_hosts = hosts::of_roles(shape)?;
    let is_set = |wanted: &str| {
        let key = |setting: &String| setting.split('=').next().map(str::trim) == Some(wanted);
        shape.settings.iter().any(key)
    };
    workload.idle = match shape.idle {
        Some(IdleWord::Awake) => Idle::Awake,
        Some(IdleWord::Os) => Idle::Os,
        None if is_set("idle") => workload.idle,
        None => Idle::Os,
    };
    workload.placement = match shape.placement {
        Some(PlacementWord::Together) => Placement::Together,
        Some(PlacementWord::Apart) => Placement::Apart,
        Some(PlacementWord::Os) => Placement::Os,
        None if is_set("placement") => workload.placement,
        None if workload.client_hosts.is_some() => Placement::Os,
        None => match spec.placement {
            Some(placement) => placement(&workload),
            None if workload.clients as usize <= cpus => Placement::Together,
            None => Placement::Os,
        },
    };
    benchmarks::finish(&mut workload);
    let preset = (spec.preset)(&shape.preset);
    let mut all = sweep.targets(configured(targets, preset.config)?)?;
    parts::put(&mut all, &of_targets)?;
    let usual = || Interleave::default_of(&all, &workload, preset.is_published);
    let interleave = shape.interleave.map_or_else(usual, InterleaveWord::interleave);
    let mut plan = PlanDraft {
        targets: all,
        order: shape.order.map_or(order, OrderWord::steps),
        steps: shape.steps.clone(),
        workload,
        blocks: blocks(shape)?,
        sittings: None,
        loads: shape.loads.unwrap_or(1),
        interleave,
        seed: shape.seed,
        canaries: shape.canaries == Switch::On,
        gate: None,
        count: None,
        profile: None,
    };
    shape.sittings.take(&mut plan);
    Ok((plan, said.file))
}

/// Checks what words ask for; `file` is the workload file that they name.
fn built(plan: PlanDraft, file: Option<PathBuf>) -> Result<Plan> {
    Plan::build(plan).with_context(|| match &file {
        Some(path) => format!("use the workload file {}", path.display()),
        None => "make a plan from these arguments".to_owned(),
    })
}

/// The targets. A target without a configuration gets that of the preset.
fn configured(said: &[String], config: Option<&str>) -> Result<Vec<Target>> {
    let mut targets = builds::pinned(words::targets(said)?);
    let Some(config) = config else { return Ok(targets) };
    for (target, word) in targets.iter_mut().zip(said) {
        let ours = !matches!(target.source, BuildSource::Dsn(_));
        let is_free = ours && target.config == "default" && !word.ends_with(":default");
        if is_free && dbms::config::shipped(target.dbms).contains(&config) {
            config.clone_into(&mut target.config);
        }
    }
    Ok(targets)
}

/// The number of blocks. Limits apply only without a fixed number.
fn blocks(shape: &WorkloadArgs) -> Result<Blocks> {
    let limited = shape.min_blocks.is_some() || shape.max_blocks.is_some();
    match shape.blocks.unwrap_or(BlocksWord::Number(DEFAULT_BLOCKS)) {
        BlocksWord::Number(_) if limited || shape.budget.is_some() => bail!(
            "measure a fixed number of blocks: --min-blocks, --max-blocks and --budget need \
             --blocks auto"
        ),
        BlocksWord::Number(blocks) => Ok(Blocks::Fixed(blocks)),
        BlocksWord::Auto => {
            let default = Auto::default();
            let min = shape.min_blocks.unwrap_or(default.min.min(shape.max_blocks.unwrap_or(4)));
            Ok(Blocks::Auto(Auto {
                min,
                max: shape.max_blocks.unwrap_or(default.max.max(min)),
                budget_seconds: shape.budget.map(|budget| budget.as_secs_f64()),
            }))
        }
    }
}

fn carry_out(
    plan: Plan,
    (folders, hosts, consent): (&Folders, Hosts<'_>, &Consent),
    guest: &GuestOptions,
    printed: Printed,
    rules: &RuleOptions,
) -> Result<u8> {
    // This plan's counting and profiling passes use no client hosts.
    hosts::check_ssh_config(&plan, hosts)?;
    let server = hosts::of_servers(&plan, folders, hosts)?;
    hosts::check_nodes(&plan, hosts)?;
    let hosts = Hosts { on: server.as_ref().or(hosts.on), ..hosts };
    // Checks early whether the report is possible, not after hours of measuring.
    gate::with_options(&plan.gate.clone().unwrap_or_default(), rules)?;
    let (calibrations, faults) = results::read_calibrations(&folders::calibrations());
    for fault in faults {
        info!("rqps: {}", error_text(&fault.into()));
    }
    if plan.count.is_some() {
        // Fails now, not after the blocks.
        valgrind_for(&plan)?;
    }
    if plan.profile.is_some() {
        perf()?;
    }
    let passes = forecast::passes(&plan)?;
    let all: f64 = passes.iter().map(|pass| pass.seconds).sum();
    let place = (folders, hosts, consent);
    let (mut summary, out) = measure_on(plan, place, guest, calibrations, all)?;
    let mut later = all;
    for pass in passes {
        later -= pass.seconds;
        if summary.interrupted {
            break;
        }
        let folders = Folders { out: Some(out.join(pass.folder)), ..folders.clone() };
        let place = (&folders, hosts, consent);
        let (of_pass, _) = measure_on(pass.plan, place, guest, Vec::new(), later)?;
        summary.faults.extend(of_pass.faults);
        summary.interrupted = of_pass.interrupted;
    }
    finish(&summary, &out, printed, rules)
}

/// Adds what the sittings of a result folder differ by to the ledger of this host. Nothing that was
/// measured is lost if that fails.
fn keep_scatter(out: &Path) {
    let folders = [out.to_owned()];
    let kept = Compared::read(&folders, None, Rules::default()).and_then(|compared| {
        let lines = pairing::measured(&compared.comparison);
        results::keep_in_ledger(&folders::ledger(), &lines).map_err(Into::into)
    });
    if let Err(error) = kept {
        info!("rqps: what these sittings differ by is not kept: {}", error_text(&error));
    }
}

/// Executes a plan with progress on stderr, on this host or on others.
pub(super) fn measure_on(
    plan: Plan,
    (folders, hosts, consent): (&Folders, Hosts<'_>, &Consent),
    guest: &GuestOptions,
    calibrations: Vec<Calibration>,
    later_seconds: f64,
) -> Result<(lab::ExecutionSummary, PathBuf)> {
    own_workload::check_files(&plan)?;
    own_workload::ask(&plan, guest)?;
    let passwords = questions::of_plan(&plan)?;
    let labels: Vec<_> = plan.targets.iter().map(|target| target.label.clone()).collect();
    let out = folders::results(folders.out.as_deref(), &labels);
    let has_sittings = plan.sittings.is_some();
    let options = ExecutionOptions {
        cache: folders::cache(folders.cache.cache.as_deref()),
        configs: consent.configs.clone(),
        accepted: consent.accepted.clone(),
        calibrations,
        ledger: results::read_ledger(&folders::ledger())?,
        work: folders.work.clone(),
        ignores_space: folders.yes_disk,
        wait: folders.wait,
        debug_folders: folders::debug(&folders.debug)?,
        ssh_config: hosts.ssh_config.map(Path::to_owned),
        keep: guest.keep,
        passwords,
        replace: guest.replace.clone(),
        ..execution_options(plan, out.clone())?
    };
    let mut display = Display::before(later_seconds);
    let summary = campaign::run_plan(&options, hosts.on, &mut |event| display.show(event));
    drop(display);
    // Names the folder only if it exists: an early error creates none.
    let summary = summary.with_context(|| {
        if out.is_dir() {
            format!("carry out the plan ({})", out.display())
        } else {
            "carry out the plan".to_owned()
        }
    })?;
    if has_sittings && !summary.interrupted {
        keep_scatter(&out);
    }
    Ok((summary, out))
}

/// Prints the failures and the result folder, then the report.
fn finish(
    summary: &lab::ExecutionSummary,
    out: &Path,
    printed: Printed,
    rules: &RuleOptions,
) -> Result<u8> {
    for fault in &summary.faults {
        error!("rqps: failed: {fault}");
    }
    if summary.interrupted {
        info!(
            "rqps: stopped; finished runs are in {}\nhint: resume with `rqps run --resume {}`",
            out.display(),
            folders::resume_words(out)
        );
        return Ok(exit::INTERRUPTED);
    }
    if summary.faults.is_empty() {
        report::of_new_results(out, printed, rules)?;
        return Ok(exit::FINE);
    }
    // If everything failed, there is no report, and the errors are already printed.
    if let Err(error) = report::of_new_results(out, printed, rules) {
        error!("rqps: no report on {}: {}", out.display(), error_text(&error));
    }
    Ok(exit::RUN_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::effect::Effect;

    #[test]
    fn settings_of_a_plan_of_others_are_shown() {
        let words = ["a=postgres@17.2.0:default,archive_command=x".to_owned()];
        let plan = plan_of(&words, &quickstart_shape()).unwrap();
        let list = Effect::of(&plan, None, None).list();
        assert!(list.contains("archive_command = x of a"), "{list}");
    }

    #[test]
    fn a_preset_whose_data_the_page_cache_holds_has_buffered_targets() {
        let words = ["mysql@8.0.33", "b=mysql@5.6.14:default", "postgres@17.2.0", "sqlite"];
        let words = words.map(str::to_owned);
        let configs = |preset: &str| {
            let shape = WorkloadArgs { preset: preset.to_owned(), ..quickstart_shape() };
            let plan = plan_of(&words, &shape).unwrap();
            plan.targets.iter().map(|target| target.config.clone()).collect::<Vec<_>>()
        };
        assert_eq!(configs("c2s60-4g"), ["buffered", "default", "buffered", "default"]);
        assert_eq!(configs("c2s60"), ["default"; 4]);
    }
}
