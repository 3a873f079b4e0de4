//! Parameters of vector search: its scale beyond the common one, and the work of a step.

mod point;
mod shape;
mod work;

pub use point::{SearchPoint, VectorParameters, of_clients};
pub use shape::{Case, DataSource, Iterative, Neighbours, PgBuild, Variant, VectorShape};
pub use shape::{Distance, dot};
pub use work::{Filter, Index, IsolationLevel, Present, Search, VectorOperation, VectorWork};
