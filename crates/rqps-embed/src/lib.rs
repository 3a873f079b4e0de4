//! Databases that run inside this process, by their C interfaces: compiled in, or loaded from a
//! shared library. Everything `unsafe` of that is here, behind safe types.
//!
//! Only driver processes use it: a crash in a loaded library costs one step, and two versions of a
//! library never meet in one process that matters.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod library;
pub mod lua;
pub mod rocksdb;
pub mod sqlite;
