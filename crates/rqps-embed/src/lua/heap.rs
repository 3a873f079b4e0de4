//! A limit on the memory of a state, around the library's own allocator.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

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
    /// Limits the memory of a state until [`Heap::release`].
    pub(super) fn limit(
        functions: &Functions,
        state: *mut RawState,
        limit: usize,
    ) -> NonNull<Heap> {
        let mut data = ptr::null_mut();
        // SAFETY: a live state; the call writes to `data`.
        let allocate = unsafe { (functions.lua_getallocf)(state, &raw mut data) };
        let heap = NonNull::from(Box::leak(Box::new(Heap { allocate, data, used: 0, limit })));
        // SAFETY: a live state; the heap lives until `release`, and only `limited` uses it.
        unsafe { (functions.lua_setallocf)(state, limited, heap.as_ptr().cast()) };
        heap
    }

    /// Gives a state its own allocator back, which frees what it has as a whole when it closes.
    ///
    /// # Safety
    /// `limit` has made this heap for this state, and it was not released yet.
    pub(super) unsafe fn release(heap: NonNull<Heap>, functions: &Functions, state: *mut RawState) {
        // SAFETY: `limit` made it as a box, and the state does not use it after this.
        unsafe {
            let heap = Box::from_raw(heap.as_ptr());
            (functions.lua_setallocf)(state, heap.allocate, heap.data);
        }
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
    // SAFETY: the state was given this heap; the library uses a state on one thread at a time.
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
