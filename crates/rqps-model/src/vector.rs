//! Parameters of vector search: its scale beyond the common one, and the work of a step.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::benchmark::Prerequisite;
use crate::script::StepParameters;

// Scale and shape of a vector search.

/// Scale and shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorShape {
    /// The source of the vectors.
    pub data: DataSource,
    /// Neighbours asked for.
    pub k: u32,
    /// The kinds of steps.
    pub cases: Vec<Case>,
    /// Indexes of pgvector.
    pub pgvector: Vec<PgBuild>,
    /// Indexes of MariaDB, each by its M.
    pub mariadb: Vec<u32>,
    /// Widths of the search: hnsw.ef_search, mhnsw_ef_search.
    pub ef: Vec<u32>,
    /// Numbers of clients that each point is measured with; empty for the workload's clients alone.
    pub ramp: Vec<u32>,
    /// Recall that the case `target` is to reach.
    pub targets: Vec<f64>,
    /// Shares of rows that pass the filters of the case `filter`, per cent.
    pub selectivity: Vec<f64>,
    /// Shares of rows that the case `churn` deletes, per cent.
    pub deletes: Vec<f64>,
    /// Rows per second that the case `mixed` inserts.
    pub insert_rate: f64,
    /// The content of pgvector's index, unless a target's config decides it.
    pub variant: Variant,
    /// hnsw.iterative_scan of pgvector.
    pub iterative: Iterative,
    /// Workers of pgvector beside the leader that build an index together.
    pub build_workers: u32,
    /// Rows of a transaction of the case `capacity`.
    #[serde(default)]
    pub commit_rows: Vec<u32>,
    /// After so many seconds the case `capacity` ends, if nothing has ended it before.
    #[serde(default)]
    pub capacity_seconds: f64,
}

/// The source of vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum DataSource {
    /// The fashion-like generator.
    Fashion {
        /// Its dimensions.
        dims: u32,
        /// Queries.
        queries: u32,
        /// True for integers 0..=255, false for the same before rounding.
        rounded: bool,
        /// Its seed.
        seed: u64,
    },
    /// Files of the user.
    Files {
        /// HDF5 as ann-benchmarks writes it, or the rows as fvecs, bvecs or npy.
        rows: PathBuf,
        /// The queries, where `rows` is no HDF5.
        queries: Option<PathBuf>,
        /// Rows taken, from the first on; 0 for all.
        limit_rows: u64,
        /// Queries taken, from the first on; 0 for all.
        limit_queries: u32,
        /// The distance; `None` for that in the HDF5 file.
        distance: Option<Distance>,
        /// Neighbours of the queries, which are checked and never relied on.
        #[serde(default, skip_serializing_if = "Neighbours::are_of_file")]
        neighbours: Neighbours,
    },
}

/// The source of the user's neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Neighbours {
    /// From the file of the rows, where it has some.
    #[default]
    OfFile,
    /// There are none, whatever the file says.
    Ignored,
    /// Row numbers as ivecs, nearest first.
    File(PathBuf),
}

impl Neighbours {
    fn are_of_file(&self) -> bool {
        *self == Neighbours::OfFile
    }
}

/// A kind of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Case {
    /// Every index with every ef: the curves.
    Sweep,
    /// For every index the smallest ef that reaches a recall.
    Target,
    /// Queries while rows are inserted.
    Mixed,
    /// Queries after deletes, before and after VACUUM or OPTIMIZE.
    Churn,
    /// Queries with a filter.
    Filter,
    /// The first queries after a restart.
    Cold,
    /// Visibility of other transactions through the index, at each isolation level.
    Isolation,
    /// Rows put into an indexed table until it takes no more or the time is over.
    Capacity,
    /// Queries that carry a vector and do nothing with it: what is the client's and the way's.
    Payload,
}

impl Case {
    /// All, in the order in which they are carried out.
    pub const ALL: [Case; 9] = [
        Case::Sweep,
        Case::Target,
        Case::Filter,
        Case::Cold,
        Case::Payload,
        Case::Mixed,
        Case::Churn,
        Case::Isolation,
        Case::Capacity,
    ];

    /// The word in settings and names of steps.
    pub fn name(self) -> &'static str {
        match self {
            Case::Sweep => "sweep",
            Case::Target => "target",
            Case::Mixed => "mixed",
            Case::Churn => "churn",
            Case::Filter => "filter",
            Case::Cold => "cold",
            Case::Isolation => "isolation",
            Case::Capacity => "capacity",
            Case::Payload => "payload",
        }
    }
}

/// An index of pgvector, written `16/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PgBuild {
    /// Links of a node above the lowest layer.
    pub m: u32,
    /// Width of the search while building.
    pub ef_construction: u32,
}

impl fmt::Display for PgBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.m, self.ef_construction)
    }
}

impl From<PgBuild> for String {
    fn from(build: PgBuild) -> String {
        build.to_string()
    }
}

impl TryFrom<String> for PgBuild {
    type Error = String;

    /// The limits are those of pgvector: m from 2 to 100, ef_construction from 4 to 1000 and at
    /// least 2 m.
    fn try_from(text: String) -> Result<PgBuild, String> {
        let parse = || {
            let (m, ef) = text.split_once('/')?;
            Some(PgBuild { m: m.trim().parse().ok()?, ef_construction: ef.trim().parse().ok()? })
        };
        let Some(build) = parse() else {
            return Err(format!(
                "`{text}` is not a pgvector index: write m/ef_construction, such as 16/64"
            ));
        };
        let PgBuild { m, ef_construction } = build;
        if !(2..=100).contains(&m) || !(4..=1000).contains(&ef_construction) {
            return Err(format!(
                "pgvector cannot build {build}: m must be from 2 to 100, ef_construction from 4 to \
                 1000"
            ));
        }
        if ef_construction < 2 * m {
            return Err(format!(
                "pgvector cannot build {build}: ef_construction must be at least 2 m, here {}",
                2 * m
            ));
        }
        Ok(build)
    }
}

/// The form of a vector in pgvector's index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Variant {
    /// Single precision.
    #[default]
    Vector,
    /// Half precision; the column stays `vector`.
    Halfvec,
    /// Half precision; the ef nearest by it are ranked again by true distance.
    HalfvecRerank,
    /// Half precision in the column, too.
    HalfvecColumn,
    /// One bit per dimension; the ef nearest by bits are ranked again by true distance.
    Bit,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 5] = [
        Variant::Vector,
        Variant::Halfvec,
        Variant::HalfvecRerank,
        Variant::HalfvecColumn,
        Variant::Bit,
    ];

    /// The word in settings and names of configs.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Vector => "vector",
            Variant::Halfvec => "halfvec",
            Variant::HalfvecRerank => "halfvec-rerank",
            Variant::HalfvecColumn => "halfvec-column",
            Variant::Bit => "bit",
        }
    }

    /// By its word.
    pub fn from_name(name: &str) -> Option<Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// The variant in the name of a config: the name is the word, or begins with the word and a
    /// hyphen; the longest word counts.
    pub fn of_config(name: &str) -> Option<Variant> {
        let begins = |variant: &Variant| {
            name.strip_prefix(variant.name())
                .is_some_and(|rest| matches!(rest.get(..1), None | Some("-")))
        };
        Variant::ALL.into_iter().filter(begins).max_by_key(|variant| variant.name().len())
    }
}

/// hnsw.iterative_scan: whether a scan goes on when filters leave too few rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Iterative {
    /// pgvector's default.
    #[default]
    Off,
    /// In the order of distance.
    StrictOrder,
    /// Nearly so.
    RelaxedOrder,
}

impl Iterative {
    /// The value of the setting.
    pub fn name(self) -> &'static str {
        match self {
            Iterative::Off => "off",
            Iterative::StrictOrder => "strict_order",
            Iterative::RelaxedOrder => "relaxed_order",
        }
    }
}

/// The distance between two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// Square root of the sum of squared differences.
    Euclidean,
    /// 1 − a·b / (|a| |b|), the `angular` of ann-benchmarks.
    Cosine,
}

impl Distance {
    /// The distance of two vectors, in double precision.
    pub fn between(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            Distance::Euclidean => {
                let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
                a.iter().zip(b).map(square).sum::<f64>().sqrt()
            }
            Distance::Cosine => 1.0 - dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        }
    }
}

/// The inner product of two vectors, in double precision.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

// Parameters of a step, points of a curve, and the steps that are named after them.

/// Parameters of a step; `None` for those that it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorParameters {
    /// True for a point of a curve of recall and rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_curve: bool,
    /// Links of a node of the index that the step is named after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<u32>,
    /// Width of the search while building that index, where the DBMS has such an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_construction: Option<u32>,
    /// Width of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_search: Option<u32>,
    /// Clients that query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Neighbours that a query asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

/// A point of a curve: an index and how it is asked. The step that measures it is named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SearchPoint {
    /// Links of a node.
    pub m: u32,
    /// Width of the search while building, where the DBMS has such an option.
    pub ef_construction: Option<u32>,
    /// Width of the search.
    pub ef: u32,
    /// Clients.
    pub clients: u32,
}

/// The end of a step's name that tells its clients; one is not told.
pub fn of_clients(clients: u32) -> String {
    if clients == 1 { String::new() } else { format!(".clients={clients}") }
}

impl SearchPoint {
    /// The step: `search.m=16.ec=64.ef=20`, with `.clients=4` for more than one.
    pub fn step(&self) -> String {
        format!("search.{}.ef={}{}", self.index(), self.ef, of_clients(self.clients))
    }

    /// The point that a step measures; `None` for other steps.
    pub fn of(step: &StepParameters) -> Option<SearchPoint> {
        let own: VectorParameters = step.read()?;
        let VectorParameters { m: Some(m), ef_search: Some(ef), .. } = own else { return None };
        let (ef_construction, clients) = (own.ef_construction, own.clients.unwrap_or(1));
        (own.on_curve && m > 0 && ef > 0).then_some(SearchPoint { m, ef_construction, ef, clients })
    }

    /// The index in names of steps: `m=16.ec=64`.
    pub fn index(&self) -> String {
        match self.ef_construction {
            Some(ef_construction) => format!("m={}.ec={ef_construction}", self.m),
            None => format!("m={}", self.m),
        }
    }

    /// The step that builds its index: `index.m=16.ec=64`.
    pub fn index_step(&self) -> String {
        format!("index.{}", self.index())
    }

    /// Parameters in the published form: `m=16, ef_construction=64, ef_search=20`.
    pub fn parameters(&self) -> String {
        match self.ef_construction {
            Some(width) => {
                format!("m={}, ef_construction={width}, ef_search={}", self.m, self.ef)
            }
            None => format!("m={}, ef_search={}", self.m, self.ef),
        }
    }
}

// The work of a step of a vector search.

/// The work of a step's clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorWork {
    /// The vectors.
    pub data: DataSource,
    /// Rows of a generated set.
    pub rows: u64,
    /// Neighbours asked for.
    pub k: u32,
    /// The form of a vector in pgvector's index.
    pub variant: Variant,
    /// The operation.
    #[serde(rename = "act")]
    pub operation: VectorOperation,
}

impl VectorWork {
    /// True for what is measured on a server that was just started.
    pub fn is_cold(&self) -> bool {
        matches!(&self.operation, VectorOperation::Search(search) if search.cold)
    }

    /// True if clients ask one query after the other, of what is in caches as far as it fits.
    pub fn is_warm_search(&self) -> bool {
        matches!(&self.operation, VectorOperation::Search(_) | VectorOperation::Payload(_))
            && !self.is_cold()
    }
}

/// The operation of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorOperation {
    /// Create the table and fill it, in a random order.
    Load {
        /// Rows left out, which are inserted later.
        spare: u64,
    },
    /// Build the index; another one is dropped first.
    Build(Index),
    /// Ask.
    Search(Box<Search>),
    /// Send the queries' vectors with a statement that does nothing with them.
    Payload(Box<Search>),
    /// Find the smallest ef with this recall, then ask with it.
    Target {
        /// The recall, 0 to 1.
        recall: f64,
        /// All else; its ef is where the search begins.
        search: Box<Search>,
    },
    /// Ask, while another client inserts the rows that were spared.
    Mixed {
        /// Rows per second.
        insert_rate: f64,
        /// The queries.
        search: Box<Search>,
    },
    /// Delete rows.
    Delete {
        /// Share of all rows that are gone afterwards, per cent.
        percent: f64,
    },
    /// VACUUM, OPTIMIZE.
    Clean,
    /// Let two transactions change and ask, and hold what they see against what they may.
    Isolate {
        /// The level of both.
        level: IsolationLevel,
        /// The queries.
        search: Box<Search>,
    },
    /// Make an empty table with the index, and insert until it takes no more, the set is in, or
    /// the time is over.
    Fill {
        /// The index.
        index: Index,
        /// Clients that insert.
        clients: u32,
        /// Rows of a transaction.
        commit_rows: u32,
    },
}

/// Levels of isolation, as SQL names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl IsolationLevel {
    /// From the weakest to the strictest.
    pub const ALL: [IsolationLevel; 4] = [
        IsolationLevel::ReadUncommitted,
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ];

    /// The words of SQL in names of steps: with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read-uncommitted",
            IsolationLevel::ReadCommitted => "read-committed",
            IsolationLevel::RepeatableRead => "repeatable-read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    /// True if a whole transaction sees the data committed when it began to read.
    pub fn keeps_snapshot(self) -> bool {
        matches!(self, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
    }
}

impl VectorOperation {
    /// The prerequisite that it makes for later steps.
    pub fn makes(&self) -> Option<Prerequisite> {
        match self {
            // Filling makes table and index anew.
            VectorOperation::Load { .. } | VectorOperation::Fill { .. } => {
                Some(Prerequisite::Table)
            }
            VectorOperation::Build(_) => Some(Prerequisite::Index),
            _ => None,
        }
    }

    /// The queries, if it asks any with a width that is known before.
    pub fn search(&self) -> Option<&Search> {
        match self {
            VectorOperation::Search(search)
            | VectorOperation::Payload(search)
            | VectorOperation::Mixed { search, .. }
            | VectorOperation::Isolate { search, .. } => Some(search),
            _ => None,
        }
    }

    /// The prerequisite that it needs.
    pub fn needs(&self) -> Option<Prerequisite> {
        match self {
            VectorOperation::Load { .. } | VectorOperation::Fill { .. } => None,
            VectorOperation::Build(_) | VectorOperation::Delete { .. } | VectorOperation::Clean => {
                Some(Prerequisite::Table)
            }
            VectorOperation::Search(_)
            | VectorOperation::Payload(_)
            | VectorOperation::Target { .. }
            | VectorOperation::Mixed { .. }
            | VectorOperation::Isolate { .. } => Some(Prerequisite::Index),
        }
    }
}

/// An index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Index {
    /// Links of a node.
    pub m: u32,
    /// Width of the search while building; `None` where the DBMS has no such option.
    pub ef_construction: Option<u32>,
    /// Workers beside the leader, where the DBMS builds in parallel.
    pub workers: u32,
}

/// Queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Width of the search.
    pub ef: u32,
    /// Clients.
    pub clients: u32,
    /// The filter of rows.
    pub filter: Filter,
    /// The rows in the table.
    pub rows: Present,
    /// hnsw.iterative_scan.
    pub iterative: Iterative,
    /// True if the first query and the first pass over all queries are measured on their own, after
    /// a restart.
    pub cold: bool,
}

/// A filter of the rows that a query may return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// All.
    None,
    /// A share of the rows, chosen without regard to where they lie.
    Random {
        /// The share, per cent.
        percent: f64,
    },
    /// The rows of the query's own class: about a tenth.
    OwnClass,
    /// The rows of a class that the query is not of.
    OtherClass,
}

/// The rows in the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Present {
    /// All rows.
    All,
    /// All but the last.
    AllBut {
        /// This number of rows.
        spare: u64,
    },
    /// The rows that were not deleted.
    Kept {
        /// Share that was deleted, per cent.
        deleted: f64,
    },
    /// The rows that a query of the table finds.
    Found,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgvector_cannot_build_is_refused() {
        let check = |text: &str, words: &str| {
            let error = PgBuild::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        check("16", "m/ef_construction");
        check("1/64", "m must be from 2 to 100");
        check("16/2000", "from 4 to 1000");
        check("64/96", "at least 2 m, here 128");
        let build = PgBuild::try_from("16/32".to_owned()).unwrap();
        assert_eq!((build.m, build.ef_construction), (16, 32));
    }

    #[test]
    fn a_point_is_found_by_the_parameters_of_its_step() {
        let own = VectorParameters {
            on_curve: true,
            m: Some(16),
            ef_construction: Some(64),
            ef_search: Some(20),
            ..VectorParameters::default()
        };
        let of = |own: &VectorParameters| SearchPoint::of(&StepParameters::of(own));
        let point = SearchPoint { m: 16, ef_construction: Some(64), ef: 20, clients: 1 };
        assert_eq!(of(&own), Some(point));
        assert_eq!(point.step(), "search.m=16.ec=64.ef=20");
        let (ef_construction, clients) = (None, 8);
        let point = SearchPoint { ef_construction, clients, ..point };
        let own = VectorParameters { ef_construction, clients: Some(clients), ..own };
        assert_eq!(of(&own), Some(point));
        assert_eq!(point.step(), "search.m=16.ef=20.clients=8");
        assert_eq!(of(&VectorParameters { on_curve: false, ..own }), None);
        assert_eq!(of(&VectorParameters { ef_search: None, ..own }), None);
        assert_eq!(SearchPoint::of(&StepParameters::default()), None);
    }
}
