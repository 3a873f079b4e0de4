//! Parameters of vector search: its scale beyond the common one, and the work of a step.

mod distance;
mod point;
mod shape;
mod work;

pub use distance::{Distance, dot};
pub use point::{SearchPoint, VectorParameters, of_clients};
pub use shape::{Case, DataSource, Iterative, Neighbours, PgBuild, Variant, VectorShape};
pub use work::{Filter, Index, IsolationLevel, Present, Search, VectorOperation, VectorWork};
