//! A limit on the memory of a state, around the library's own allocator.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use super::library::{Allocate, Functions, RawState};

/// The memory that a state may take.
#[derive(Clone, Debug)]
pub struct HeapLimit {
    /// In bytes.
    pub bytes: usize,
    /// The way out for a script that needs more, as a line of a message; may be empty.
    pub hint: String,
}

/// The memory use of a state, and its limit.
pub(super) struct Heap {
    allocate: Allocate,
    data: *mut c_void,
    used: usize,
    limit: usize,
}

impl Heap {
    /// Limits the memory of a state. The box must outlive the state, or [`Heap::release`] it.
    pub(super) fn limit(functions: &Functions, state: *mut RawState, limit: usize) -> Box<Heap> {
        let mut data = ptr::null_mut();
        // SAFETY: the state is open; the library writes one pointer.
        let allocate = unsafe { (functions.lua_getallocf)(state, &raw mut data) };
        let mut heap = Box::new(Heap { allocate, data, used: 0, limit });
        // SAFETY: `limited` keeps to the contract of an allocator, and the box does not move.
        unsafe { (functions.lua_setallocf)(state, limited, (&raw mut *heap).cast()) };
        heap
    }

    /// Gives a state its own allocator back, which frees what it has as a whole when it closes.
    pub(super) fn release(&self, functions: &Functions, state: *mut RawState) {
        // SAFETY: both are what the state began with.
        unsafe { (functions.lua_setallocf)(state, self.allocate, self.data) };
    }
}

/// Like the library's own allocator, but NULL beyond the limit: the script then gets "not enough
/// memory".
unsafe extern "C" fn limited(
    heap: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: the state was given this box; the library uses a state on one thread at a time.
    let heap = unsafe { &mut *heap.cast::<Heap>() };
    // Memory from before the limit may be returned too.
    let used = heap.used.saturating_sub(old).saturating_add(new);
    if new > old && used > heap.limit {
        return ptr::null_mut();
    }
    // SAFETY: the arguments are the library's own.
    let given = unsafe { (heap.allocate)(heap.data, block, old, new) };
    if new == 0 || !given.is_null() {
        heap.used = used;
    }
    given
}
