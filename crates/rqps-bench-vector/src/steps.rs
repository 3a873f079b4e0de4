//! The steps of vector search in order.

use rqps_bench::spec::Counting;
use rqps_driver::workload::{Companions, SelectError, select};
use rqps_model::benchmark::{
    Group, OwnParameters, Phase, RateUnit, Step, StepBody, StepTurns, Workload,
};
use rqps_model::build::{Target, config_parts};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::script::StepParameters;
use rqps_model::units;
use rqps_model::vector::{
    Case, DataSource, Filter, Index, IsolationLevel, Present, Search, SearchPoint, Variant,
    VectorOperation, VectorParameters, VectorShape, VectorWork, of_clients,
};

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape_of(workload: &Workload) -> Option<&VectorShape> {
    OwnParameters::of(&workload.shape)
}

/// All steps on a DBMS of this dialect.
pub(crate) fn phases(dialect: Dialect, workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape_of(workload) else { return Vec::new() };
    let indexes = indexes(dialect, shape);
    let mut steps = Steps { workload, shape, phases: Vec::new() };
    let on_all = [Case::Sweep, Case::Target, Case::Filter, Case::Cold, Case::Payload];
    if shape.cases.iter().any(|case| on_all.contains(case)) {
        steps.push("load", Group::Load, VectorOperation::Load { spare: 0 });
        for (number, index) in indexes.iter().enumerate() {
            steps.push_with(
                &point(index, 1, 1).index_step(),
                Group::Load,
                VectorOperation::Build(*index),
                of_index(index),
            );
            steps.curves(index);
            // One index is enough for filters and restarts.
            if number == 0 {
                steps.filters();
                steps.cold(index);
                steps.payload(index);
            }
        }
    }
    if let Some(index) = indexes.first() {
        steps.mixed(index);
        steps.churn(index);
        steps.isolation(index);
        steps.capacity(index);
    }
    steps.phases
}

/// The counted runs of this benchmark: the choice of steps, and a small data set.
pub(super) const COUNTING: Counting = Counting {
    step: counted,
    settings: &["rows=5000", "queries=500", "seconds=1", "warmup_seconds=0"],
};

/// Rows left out of the table before the case `mixed`: those that it can insert in its warm-up and
/// window, and half as many in addition.
pub(super) fn spare(workload: &Workload, shape: &VectorShape) -> u64 {
    let seconds = workload.warmup_seconds + workload.write_seconds;
    // Recall is collected before, without inserts; connecting takes a moment.
    ((seconds + 2.0) * shape.insert_rate * 1.5).ceil() as u64
}

fn indexes(dialect: Dialect, shape: &VectorShape) -> Vec<Index> {
    let workers = shape.build_workers;
    match dialect {
        Dialect::Mysql => {
            shape.mariadb.iter().map(|&m| Index { m, ef_construction: None, workers: 0 }).collect()
        }
        _ => shape
            .pgvector
            .iter()
            .map(|build| Index {
                m: build.m,
                ef_construction: Some(build.ef_construction),
                workers,
            })
            .collect(),
    }
}

fn point(index: &Index, ef: u32, clients: u32) -> SearchPoint {
    SearchPoint { m: index.m, ef_construction: index.ef_construction, ef, clients }
}

/// Parameters of a step that is named after its index.
fn of_index(index: &Index) -> VectorParameters {
    let Index { m, ef_construction, .. } = *index;
    VectorParameters { m: Some(m), ef_construction, ..VectorParameters::default() }
}

struct Steps<'a> {
    workload: &'a Workload,
    shape: &'a VectorShape,
    phases: Vec<Phase>,
}

impl Steps<'_> {
    /// Adds a step that each DBMS has on an index of its own.
    fn push(&mut self, name: &str, group: Group, operation: VectorOperation) {
        self.push_with(name, group, operation, VectorParameters::default());
    }

    /// Adds a step with parameters that its work does not contain.
    fn push_with(
        &mut self,
        name: &str,
        group: Group,
        operation: VectorOperation,
        parameters: VectorParameters,
    ) {
        let (seconds, rate) = match &operation {
            VectorOperation::Load { .. } | VectorOperation::Build(_) => {
                (self.work_seconds(&operation), RateUnit::RowsInserted)
            }
            VectorOperation::Fill { .. } => (self.shape.capacity_seconds, RateUnit::RowsInserted),
            VectorOperation::Delete { .. } | VectorOperation::Clean => {
                (self.work_seconds(&operation), RateUnit::Queries)
            }
            VectorOperation::Mixed { .. } | VectorOperation::Isolate { .. } => {
                (self.workload.write_seconds, RateUnit::Queries)
            }
            VectorOperation::Search(_)
            | VectorOperation::Payload(_)
            | VectorOperation::Target { .. } => (self.workload.read_seconds, RateUnit::Queries),
        };
        let warmup = match operation {
            VectorOperation::Search(_)
            | VectorOperation::Payload(_)
            | VectorOperation::Target { .. }
            | VectorOperation::Mixed { .. } => self.workload.warmup_seconds,
            _ => 0.0,
        };
        let (makes, needs) = (operation.makes(), operation.needs());
        let detail = detail(&operation);
        let parameters = self.parameters(&operation, parameters);
        let work = VectorWork {
            data: self.shape.data.clone(),
            rows: self.workload.rows,
            k: self.shape.k,
            variant: self.shape.variant,
            operation,
        };
        let step = Step {
            seconds,
            warmup_seconds: warmup,
            detail,
            parameters,
            makes,
            needs,
            restart_before: work.is_cold(),
            turns: if work.is_warm_search() { StepTurns::Clients } else { StepTurns::None },
            ..Step::new(name, group, rate, work)
        };
        self.phases.push(Phase::Measure(Box::new(step)));
    }

    fn parameters(&self, operation: &VectorOperation, own: VectorParameters) -> StepParameters {
        let own = match operation.search() {
            Some(search) => VectorParameters {
                ef_search: Some(search.ef),
                clients: Some(search.clients),
                k: Some(self.shape.k),
                ..own
            },
            None => own,
        };
        // Options of an index have another meaning in another DBMS.
        StepParameters { of_one_dbms: own.m.is_some(), ..StepParameters::of(&own) }
    }

    /// Estimated seconds of work that ends by itself.
    fn work_seconds(&self, operation: &VectorOperation) -> f64 {
        let rows = self.workload.rows as f64;
        match operation {
            VectorOperation::Build(index) => {
                let width = index.ef_construction.unwrap_or(10 + index.m * 4);
                rows * f64::from(width + index.m) / 150_000.0
            }
            _ => rows / 10_000.0,
        }
    }

    fn search(&self, ef: u32, clients: u32) -> Search {
        Search {
            ef,
            clients,
            filter: Filter::None,
            rows: Present::All,
            iterative: self.shape.iterative,
            cold: false,
        }
    }

    fn clients(&self) -> Vec<u32> {
        let (mut clients, asked) = (self.shape.ramp.clone(), self.workload.clients);
        // `--clients` extends a preset's list; one client is the default.
        if clients.is_empty() || (asked > 1 && !clients.contains(&asked)) {
            clients.push(asked);
        }
        clients
    }

    fn has(&self, case: Case) -> bool {
        self.shape.cases.contains(&case)
    }

    /// A middle width of the list, for cases with a single one.
    fn middle_ef(&self) -> u32 {
        let ef = &self.shape.ef;
        ef.get(ef.len() / 2).copied().unwrap_or(40)
    }

    fn curves(&mut self, index: &Index) {
        if self.has(Case::Sweep) {
            for clients in self.clients() {
                for ef in self.shape.ef.clone() {
                    let name = point(index, ef, clients).step();
                    let operation = VectorOperation::Search(Box::new(self.search(ef, clients)));
                    let parameters = VectorParameters { on_curve: true, ..of_index(index) };
                    self.push_with(&name, Group::Point, operation, parameters);
                }
            }
        }
        if self.has(Case::Target) {
            for recall in self.shape.targets.clone() {
                let name = format!("target={recall}.{}", point(index, 1, 1).index());
                // The search begins at k.
                let search = Box::new(self.search(1, self.workload.clients));
                let operation = VectorOperation::Target { recall, search };
                self.push_with(&name, Group::Point, operation, of_index(index));
            }
        }
    }

    /// Named without the index, like all steps below on a single index: another DBMS has the same
    /// steps on its own index, and they pair.
    fn filters(&mut self) {
        if !self.has(Case::Filter) {
            return;
        }
        let mut filters: Vec<(String, Filter)> = self
            .shape
            .selectivity
            .iter()
            .map(|&percent| (format!("random={percent}"), Filter::Random { percent }))
            .collect();
        // The rows of a file have no known classes.
        if let DataSource::Fashion { .. } = self.shape.data {
            filters.push(("own-class".to_owned(), Filter::OwnClass));
            filters.push(("other-class".to_owned(), Filter::OtherClass));
        }
        for (word, filter) in filters {
            let ef = self.middle_ef();
            let name = format!("filter.{word}.ef={ef}");
            let search = Search { filter, ..self.search(ef, self.workload.clients) };
            self.push(&name, Group::Point, VectorOperation::Search(Box::new(search)));
        }
    }

    fn cold(&mut self, index: &Index) {
        if self.has(Case::Cold) {
            let ef = self.middle_ef();
            let name = format!("cold.{}.ef={ef}", point(index, 1, 1).index());
            let search = Search { cold: true, ..self.search(ef, self.workload.clients) };
            let operation = VectorOperation::Search(Box::new(search));
            self.push_with(&name, Group::Point, operation, of_index(index));
        }
    }

    fn payload(&mut self, index: &Index) {
        if self.has(Case::Payload) {
            for clients in self.clients() {
                let of = of_clients(clients);
                let operation =
                    VectorOperation::Payload(Box::new(self.search(self.middle_ef(), clients)));
                let name = format!("payload.{}{of}", point(index, 1, 1).index());
                self.push_with(&name, Group::Point, operation, of_index(index));
            }
        }
    }

    fn mixed(&mut self, index: &Index) {
        if !self.has(Case::Mixed) {
            return;
        }
        let spare = spare(self.workload, self.shape);
        let ef = self.middle_ef();
        self.push("mixed.load", Group::Load, VectorOperation::Load { spare });
        self.push("mixed.index", Group::Load, VectorOperation::Build(*index));
        let mut search = self.search(ef, self.workload.clients);
        search.rows = Present::AllBut { spare };
        let before = VectorOperation::Search(Box::new(search.clone()));
        self.push(&format!("mixed.before.ef={ef}"), Group::Point, before);
        let insert_rate = self.shape.insert_rate;
        let operation = VectorOperation::Mixed { insert_rate, search: Box::new(search) };
        self.push(&format!("mixed.inserts={insert_rate}.ef={ef}"), Group::Write, operation);
    }

    fn churn(&mut self, index: &Index) {
        if !self.has(Case::Churn) {
            return;
        }
        let ef = self.middle_ef();
        self.push("churn.load", Group::Load, VectorOperation::Load { spare: 0 });
        self.push("churn.index", Group::Load, VectorOperation::Build(*index));
        for percent in self.shape.deletes.clone() {
            let search = Search {
                rows: Present::Kept { deleted: percent },
                ..self.search(ef, self.workload.clients)
            };
            let ask = VectorOperation::Search(Box::new(search));
            let name = |what: &str| format!("churn.{what}={percent}.ef={ef}");
            let (deleted, cleaned) = (name("deleted"), name("cleaned"));
            self.push(
                &format!("churn.delete={percent}"),
                Group::Write,
                VectorOperation::Delete { percent },
            );
            self.push(&deleted, Group::Point, ask.clone());
            self.push(&format!("churn.clean={percent}"), Group::Write, VectorOperation::Clean);
            self.push(&cleaned, Group::Point, ask);
        }
    }

    fn isolation(&mut self, index: &Index) {
        if !self.has(Case::Isolation) {
            return;
        }
        let (words, ef) = (point(index, 1, 1).index(), self.middle_ef());
        self.push("isolation.load", Group::Load, VectorOperation::Load { spare: 0 });
        let (name, operation) =
            (format!("isolation.index.{words}"), VectorOperation::Build(*index));
        self.push_with(&name, Group::Load, operation, of_index(index));
        for level in IsolationLevel::ALL {
            let search = Box::new(self.search(ef, 1));
            let name = format!("isolation.{}.{words}.ef={ef}", level.name());
            let operation = VectorOperation::Isolate { level, search };
            self.push_with(&name, Group::Write, operation, of_index(index));
        }
    }

    fn capacity(&mut self, index: &Index) {
        if !self.has(Case::Capacity) {
            return;
        }
        let (words, ef) = (point(index, 1, 1).index(), self.middle_ef());
        for clients in self.clients() {
            let of = of_clients(clients);
            for commit_rows in self.shape.commit_rows.clone() {
                let fill = VectorOperation::Fill { index: *index, clients, commit_rows };
                let name = |what: &str| format!("capacity.{what}={commit_rows}.{words}{of}");
                self.push_with(&name("fill"), Group::Write, fill, of_index(index));
                let search = Search { rows: Present::Found, ..self.search(ef, clients) };
                let operation = VectorOperation::Search(Box::new(search));
                let filled = format!("{}.ef={ef}", name("filled"));
                self.push_with(&filled, Group::Point, operation, of_index(index));
            }
        }
    }
}

fn clients_of(clients: u32) -> String {
    units::counted(clients as usize, "client")
}

/// Facts that the name does not contain.
fn detail(operation: &VectorOperation) -> String {
    match operation {
        VectorOperation::Load { spare: 0 } => {
            "rows in a random order; the rate counts rows".to_owned()
        }
        VectorOperation::Load { spare } => format!("all rows but the last {spare}"),
        VectorOperation::Build(_) => "on the filled table; the rate counts rows".to_owned(),
        VectorOperation::Search(search) if search.cold => {
            "times of the first query and the first pass after a restart".to_owned()
        }
        VectorOperation::Search(search) => clients_of(search.clients),
        VectorOperation::Payload(search) => {
            format!("vectors in a statement that ignores them, {}", clients_of(search.clients))
        }
        VectorOperation::Target { recall, .. } => {
            format!("smallest ef_search with a recall of {recall}, by bisection")
        }
        VectorOperation::Mixed { insert_rate, .. } => {
            format!("another client inserts {insert_rate} rows per second")
        }
        VectorOperation::Delete { percent } => format!("delete {percent} % of the rows"),
        VectorOperation::Clean => "VACUUM, OPTIMIZE TABLE".to_owned(),
        VectorOperation::Isolate { .. } => {
            "insert, move, delete and roll back a row while two transactions query it".to_owned()
        }
        VectorOperation::Fill { clients, commit_rows, .. } => {
            let clients = clients_of(*clients);
            format!("into an indexed table, {clients}, {commit_rows} rows per transaction")
        }
    }
}

/// Adds the config of a target to its steps: `postgres@17+pgvector:halfvec` keeps half precision in
/// its index, and so does a config whose name begins with the word and a hyphen.
pub(super) fn for_target(phases: &mut [Phase], target: &Target) {
    let Some(variant) = Variant::of_config(config_parts(&target.config).0) else { return };
    for phase in phases {
        if let Phase::Measure(step) = phase
            && let StepBody::Vector(work) = &mut step.work
        {
            work.variant = variant;
        }
    }
}

/// The work of a step's clients.
pub(super) fn work_of(phase: &Phase) -> Option<&VectorWork> {
    phase.step()?.own()
}

/// The clients of a search, which several hosts share; `None` for steps of one process.
pub(super) fn shared_clients(step: &Step) -> Option<u32> {
    match &step.own::<VectorWork>()?.operation {
        VectorOperation::Search(search)
        | VectorOperation::Payload(search)
        | VectorOperation::Target { search, .. } => Some(search.clients),
        _ => None,
    }
}

/// Keeps the steps that `globs` select, with the loads, builds and deletes that they need.
///
/// # Errors
///
/// A glob matches no step.
pub(super) fn choose(phases: Vec<Phase>, globs: &[String]) -> Result<Vec<Phase>, SelectError> {
    let chosen = select(phases.clone(), globs, &Companions::NONE)?;
    let name = |phase: &Phase| phase.step().map_or(String::new(), |step| step.name.clone());
    let mut wanted: Vec<String> = chosen.iter().map(name).collect();
    // Backwards: a step needs the build before it, a build the load before it, and queries after
    // deletes the deletes.
    let (mut build, mut load, mut deletes, mut fill) = (false, false, false, false);
    for phase in phases.iter().rev() {
        let step = name(phase);
        let is_wanted = wanted.contains(&step);
        let Some(work) = work_of(phase) else { continue };
        let needed = match &work.operation {
            VectorOperation::Load { .. } => std::mem::take(&mut load),
            VectorOperation::Fill { .. } => std::mem::take(&mut fill),
            VectorOperation::Build(_) => std::mem::take(&mut build),
            VectorOperation::Delete { .. } | VectorOperation::Clean => deletes,
            _ => false,
        };
        if is_wanted || needed {
            match &work.operation {
                VectorOperation::Load { .. } | VectorOperation::Fill { .. } => {
                    (build, load, deletes, fill) = (false, false, false, false);
                }
                VectorOperation::Build(_) => (build, load, deletes) = (false, true, false),
                // It needs only the steps that filled the table.
                VectorOperation::Search(search) if search.rows == Present::Found => fill = true,
                VectorOperation::Search(search) => {
                    (build, load) = (true, true);
                    deletes |= matches!(search.rows, Present::Kept { .. });
                }
                VectorOperation::Delete { .. } | VectorOperation::Clean => {
                    (build, load, deletes) = (true, true, true);
                }
                _ => (build, load) = (true, true),
            }
            wanted.push(step);
        }
    }
    Ok(phases.into_iter().filter(|phase| wanted.contains(&name(phase))).collect())
}

// Chooses the searches that a counted run counts.

/// `--statements` per counted search, because a search costs as much as many statements.
const STATEMENTS_PER_SEARCH: u64 = 5;

/// The number of counted searches of a step with one client; the reason why other steps are not
/// counted.
pub(super) fn counted(step: &Step, _: &Workload, statements: u64) -> StepCount {
    let left_out = |why: &str| StepCount::LeftOut(why.to_owned());
    let Some(work) = step.own::<VectorWork>() else { return left_out("its work is not known") };
    match &work.operation {
        VectorOperation::Search(search) | VectorOperation::Payload(search) => {
            if search.clients > 1 {
                left_out("it has several clients, and threads under valgrind run one at a time")
            } else if search.cold {
                left_out("it measures how long the first query waits for data")
            } else {
                StepCount::Events((statements / STATEMENTS_PER_SEARCH).max(1))
            }
        }
        VectorOperation::Load { .. }
        | VectorOperation::Build(_)
        | VectorOperation::Delete { .. }
        | VectorOperation::Clean => {
            StepCount::CarriedOut("it makes what the steps after it search".to_owned())
        }
        VectorOperation::Target { .. } => left_out("it tries widths until the recall is reached"),
        VectorOperation::Mixed { .. } => {
            left_out("the inserts beside its queries keep to a clock, which valgrind slows down")
        }
        VectorOperation::Isolate { .. } => left_out("it tests what transactions see"),
        VectorOperation::Fill { .. } => left_out("it inserts until a time is over"),
    }
}
