//! What vector search asks for: its scale beyond the common one, and the work of a step.

mod point;
mod shape;
mod work;

pub use point::{SearchPoint, VectorParameters, of_clients};
pub use shape::{Case, DataSource, Distance, Iterative, Neighbours, PgBuild, Variant, VectorShape};
pub use work::{Filter, Index, IsolationLevel, Present, Search, VectorOperation, VectorWork};
