//! Names and statements that reach a server which somebody else runs.
