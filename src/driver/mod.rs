//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else.

pub mod protocol;
