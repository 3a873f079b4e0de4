//! A program of the user's in any language: `--bench client:redis_client.py`. It talks to whatever
//! it has a library for, and to rqps in lines of JSON (docs/clients.md).

pub mod driver;
mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::spec::{
    BenchmarkSpec, CliContext, Counting, DataSize, Interface, LENGTHS, OwnWords, UserCode,
    WorkloadFile, scaled,
};
use rqps_analysis::Extension;
use rqps_driver::part::DriverPart;
use rqps_driver::workload::{Settings, own_settings, seconds};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Pace, Phase, Placement, RateUnit, Step, StepTurns,
    Workload,
};
use rqps_model::client::{ClientDeclared, ClientShape, ClientStep, ClientWork};
use rqps_model::counted::StepCount;
use rqps_model::escape;
use rqps_model::sql_workload::PinnedFile;

/// The row of `--bench client:PROGRAM`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "client",
    workload: |name| {
        let (workload, set) =
            scaled(&LENGTHS, name, |_| BenchmarkParameters::Client(Box::default()))?;
        let rows = if name == "quick" { 10_000 } else { 1_000_000 };
        Ok((Workload { rows, ..workload }, set))
    },
    set: |workload, said| SETTINGS.set(workload, said),
    speaks: Interface::Client,
    check: |workload, _| check(workload),
    phases: |_, _, workload| phases(workload),
    one_client_host: |_| Some("rqps starts the program here only"),
    // rqps cannot place what serves it.
    placement: Some(|_| Placement::Os),
    load: Some(driver::request),
    file: Some(WorkloadFile {
        read: |_, _| Err("a program is named after `client:`".to_owned()),
        files,
        pin,
        folder: |_| None,
        writes,
        has_load: |_| true,
        loads_on_servers: loads,
    }),
    words: Some(OwnWords { take, visits: |_| true, brings: |_| true, writes }),
    counting: COUNTING,
    driver: DriverPart {
        benchmark: "client",
        step_loop: Some(driver::step_loop),
        own_load: Some(driver::own_load),
        script: Some(driver::script),
        ..DriverPart::NONE
    },
    extension: Extension { groups_by_facts: true, ..Extension::none("client") },
    size: data_size,
    brought,
    ..BenchmarkSpec::PLAIN
};

// Words and settings of a program, and its file.

/// Assumed bytes of the data, which only the program knows.
const UNKNOWN_BYTES: u64 = 1 << 30;

fn shape_of(workload: &mut Workload) -> Option<&mut ClientShape> {
    OwnParameters::of_mut(&mut workload.shape)
}

/// Adds the program and its options to the workload.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    let [name] = said.what else {
        return Err("it takes one program; make a comparison of each".to_owned());
    };
    if name.is_empty() {
        return Err("it needs a program, such as --bench client:./redis_client.py".to_owned());
    }
    let program = std::path::absolute(name).map_err(|error| format!("find {name}: {error}"))?;
    if !program.is_file() {
        return Err(format!("{} was not found; write its path", program.display()));
    }
    let mut options = BTreeMap::new();
    for word in said.options {
        let option = word.strip_prefix("--").and_then(|option| option.split_once('='));
        let Some((key, value)) = option.filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("its options look like --size=100, not `{word}`"));
        };
        options.insert(key.to_owned(), value.to_owned());
    }
    let told = (said.look)(&program, false)?;
    let declared = serde_json::from_str(&told).map_err(|error| {
        format!("read what {} declares: {}", program.display(), escape::fault(error))
    })?;
    check_declared(&declared)?;
    if let Some(shape) = shape_of(workload) {
        *shape = ClientShape { program, options, declared, ..ClientShape::default() };
    }
    Ok(())
}

/// The program; its pin, once there is one.
pub(super) fn files(workload: &Workload) -> BTreeMap<String, Option<PinnedFile>> {
    let Some(shape) = shape(workload) else { return BTreeMap::new() };
    let name = shape.program.display().to_string();
    let known = shape.files.get(&name).cloned();
    BTreeMap::from([(name, known)])
}

/// Stores the pin.
pub(super) fn pin(workload: &mut Workload, _: &Path, files: BTreeMap<String, PinnedFile>) {
    if let Some(shape) = shape_of(workload) {
        shape.files = files;
    }
}

/// The program, and its options.
pub(super) fn brought(workload: &Workload) -> Vec<UserCode> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let program = shape.program.display().to_string();
    let sha256 = shape.files.get(&program).map(|file| file.sha256.clone());
    let place = Some(PathBuf::from(&program));
    let program = UserCode { kind: "program", name: program, sha256, place };
    let option =
        |(key, value): (&String, &String)| UserCode::named("option", format!("--{key}={value}"));
    std::iter::once(program).chain(shape.options.iter().map(option)).collect()
}

/// The assumed size of the data.
pub(super) fn data_size(_: &Workload) -> DataSize {
    DataSize { data_bytes: UNKNOWN_BYTES as f64, cached_bytes: UNKNOWN_BYTES }
}

own_settings! { ClientShape:
    "timeout", |_, shape, value| shape.timeout_seconds = Some(seconds(value)?);
}

const SETTINGS: Settings<ClientShape> = Settings {
    benchmark: "client",
    own: OWN,
    common: &[("rows", "rows")],
    others: true,
    open: &[],
};

// The steps that a program declares, in its order.

/// Most steps of a program.
const STEPS_MOST: usize = 100;
/// Most bytes of a step's detail, which reports show.
const LONGEST_DETAIL: usize = 1000;
/// Most characters of a step's name, which is a file name.
const LONGEST_NAME: usize = 60;

/// The program, if the workload consists of one.
pub(super) fn shape(workload: &Workload) -> Option<&ClientShape> {
    OwnParameters::of(&workload.shape)
}

/// Refuses a workload that cannot run.
pub(super) fn check(workload: &Workload) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    if !matches!(workload.pace, Pace::Closed) {
        return Err("run a program at an open rate: it begins its events itself; leave out --rate"
            .to_owned());
    }
    if workload.client_hosts.is_some() {
        return Err("run a program on other hosts: rqps starts it here only; leave out \
                    --client-host"
            .to_owned());
    }
    // A bare name would be looked up in PATH, not where the file is that was asked about.
    if !shape.program.is_absolute() {
        let program = rqps_host::command_output::shown(&shape.program.display().to_string());
        return Err(format!("run the program {program}: a plan has its path from the root"));
    }
    let time = shape.timeout_seconds.unwrap_or(ClientShape::TIMEOUT);
    if !(0.1..=86_400.0).contains(&time) {
        return Err(format!("give a program {time} s for an answer: 0.1 to 86400 are possible"));
    }
    check_declared(&shape.declared)
}

/// Refuses declarations that cannot be steps.
fn check_declared(declared: &ClientDeclared) -> Result<(), String> {
    let steps = &declared.steps;
    if steps.is_empty() || steps.len() > STEPS_MOST {
        let many = steps.len();
        return Err(format!("the program declares {many} steps; 1 to {STEPS_MOST} are possible"));
    }
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._=-".contains(c);
    for (index, ClientStep { name, group, detail }) in steps.iter().enumerate() {
        let shown = rqps_host::command_output::shown(name);
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.starts_with('.')
            || !name.chars().all(is_safe)
        {
            return Err(format!(
                "the program names a step `{shown}`; a name has up to {LONGEST_NAME} letters, \
                 digits and . _ = -"
            ));
        }
        if steps[..index].iter().any(|other| other.name == *name) {
            return Err(format!("the program declares the step `{shown}` twice"));
        }
        if detail.len() > LONGEST_DETAIL {
            return Err(format!(
                "the detail of the step `{shown}` is longer than {LONGEST_DETAIL} bytes"
            ));
        }
        if *group == Group::Load {
            return Err(format!(
                "the step `{shown}` has the group load; use point, range or write, and load data \
                 when rqps says `load`"
            ));
        }
    }
    Ok(())
}

/// The names of the steps that may write.
pub(super) fn writes(workload: &Workload) -> Vec<String> {
    let steps = shape(workload).into_iter().flat_map(|shape| &shape.declared.steps);
    steps.filter(|step| !step.only_reads()).map(|step| step.name.clone()).collect()
}

/// True if the program loads data.
pub(super) fn loads(workload: &Workload) -> bool {
    shape(workload).is_some_and(|shape| shape.declared.load)
}

/// A program counts its events itself.
pub(super) const COUNTING: Counting = Counting {
    step: |_, _, _| {
        StepCount::LeftOut("its events run in a program of yours, not under valgrind".to_owned())
    },
    ..Counting::SCRIPTS
};

/// All phases after the load.
pub(super) fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let step = |step: &ClientStep| Phase::Measure(Box::new(measured(workload, shape, step)));
    shape.declared.steps.iter().map(step).collect()
}

fn measured(workload: &Workload, shape: &ClientShape, step: &ClientStep) -> Step {
    let only_reads = step.only_reads();
    let seconds = if only_reads { workload.read_seconds } else { workload.write_seconds };
    let file = shape.program.file_name().unwrap_or_default().to_string_lossy();
    let options = shape.options.iter().map(|(name, value)| format!(" --{name}={value}"));
    let options: String = options.collect();
    let detail = match step.detail.as_str() {
        "" => format!("{file}{options}"),
        detail => format!("{detail}; {file}{options}"),
    };
    Step {
        seconds,
        warmup_seconds: workload.warmup_seconds,
        detail,
        turns: StepTurns::Clients,
        only_reads,
        ..Step::new(&step.name, step.group, RateUnit::Operations, work(shape, step))
    }
}

fn work(shape: &ClientShape, step: &ClientStep) -> ClientWork {
    ClientWork { step: step.name.clone(), only_reads: step.only_reads(), ..load_work(shape) }
}

/// The work of a load.
pub(super) fn load_work(shape: &ClientShape) -> ClientWork {
    ClientWork {
        program: shape.program.clone(),
        options: shape.options.clone(),
        timeout_seconds: shape.timeout_seconds.unwrap_or(ClientShape::TIMEOUT),
        step: String::new(),
        only_reads: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_its_program_and_times_as_they_are_used() {
        let check = |program: &str, timeout_seconds: Option<f64>, words: &str| {
            let step = ClientStep { name: "get".into(), group: Group::Point, detail: "".into() };
            let declared = ClientDeclared { steps: vec![step], load: false };
            let program = program.into();
            let shape = ClientShape { program, timeout_seconds, declared, ..Default::default() };
            let shape = BenchmarkParameters::Client(Box::new(shape));
            let said = super::check(&Workload { shape, ..Workload::default() });
            assert_eq!(said.is_ok(), words.is_empty(), "{said:?}");
            assert!(said.err().unwrap_or_default().contains(words), "{words}");
        };
        check("/bin/env", Some(60.0), "");
        let detail = "d".repeat(1001);
        let step = ClientStep { name: "get".into(), group: Group::Point, detail };
        let said = check_declared(&ClientDeclared { steps: vec![step], load: false });
        assert!(said.unwrap_err().contains("longer than 1000 bytes"));
        check("env", None, "run the program env: a plan has its path from the root");
        check("./env", None, "path from the root");
        for time in [-1.0, 0.0, 1e300, f64::NAN] {
            check("/bin/env", Some(time), "0.1 to 86400 are possible");
        }
    }
}
