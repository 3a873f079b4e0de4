//! Scale and shape of a vector search.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
}
