//! The steps that a program declares, in its order.

use crate::spec::Counting;
use rqps_model::benchmark::{
    BenchmarkParameters, Group, Pace, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::client::{ClientDeclared, ClientShape, ClientStep, ClientWork};
use rqps_model::counted::StepCount;

/// Most steps of a program.
const STEPS_MOST: usize = 100;
/// Most bytes of a step's detail, which reports show.
const LONGEST_DETAIL: usize = 1000;
/// Most characters of a step's name, which is a file name.
const LONGEST_NAME: usize = 60;

/// The program, if the workload consists of one.
pub(super) fn shape(workload: &Workload) -> Option<&ClientShape> {
    match &workload.shape {
        BenchmarkParameters::Client(shape) => Some(shape),
        _ => None,
    }
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
pub(super) fn check_declared(declared: &ClientDeclared) -> Result<(), String> {
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
