//! C functions that scripts call, around a host in safe Rust.
//!
//! Lua reaches them by `ffi`, so that calls stay within compiled traces. None of them unwinds or
//! raises an error of Lua: each returns a code, and the report beside it has the words.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::slice;

use crate::lua::state::{Allocate, Functions, RawState};
use crate::lua::{Binding, RandomDraw, Report, RowCells, ScriptHost, StatementEnd};

/// A parameter of a statement, which Lua writes to.
#[repr(C)]
struct Parameter {
    whole: i64,
    decimal: f64,
    text: *mut u8,
    length: u32,
    room: u32,
    kind: u8,
    is_null: u8,
}

/// Kinds of parameters, as the preamble has them.
const WHOLE: u8 = 1;
const DECIMAL: u8 = 2;

/// A host with what Lua reads directly. The report comes first: Lua knows nothing of the rest.
#[repr(C)]
pub(super) struct Bridge<H> {
    report: Report,
    pub(super) host: H,
    cells: RowCells,
    /// Owned; by address, since Lua writes to them.
    parameters: Vec<*mut Parameter>,
    /// By statement.
    bound: Vec<Vec<*mut Parameter>>,
}

/// The functions as the preamble declares them, in this order.
#[repr(C)]
struct Calls<H: ScriptHost> {
    connect: extern "C" fn(*mut Bridge<H>) -> i32,
    disconnect: extern "C" fn(*mut Bridge<H>, i32),
    reconnect: extern "C" fn(*mut Bridge<H>, i32) -> i32,
    query: extern "C" fn(*mut Bridge<H>, i32, *const u8, usize) -> i32,
    prepare: extern "C" fn(*mut Bridge<H>, i32, *const u8, usize) -> i32,
    parameter: extern "C" fn(*mut Bridge<H>, i32, u32) -> *mut c_void,
    bind: extern "C" fn(*mut Bridge<H>, i32, *const *mut c_void, usize) -> i32,
    execute: extern "C" fn(*mut Bridge<H>, i32, i32) -> i32,
    close: extern "C" fn(*mut Bridge<H>, i32),
    fetch: extern "C" fn(*mut Bridge<H>, i32) -> i32,
    bulk_begin: extern "C" fn(*mut Bridge<H>, i32, *const u8, usize) -> i32,
    bulk_row: extern "C" fn(*mut Bridge<H>, i32, *const u8, usize) -> i32,
    bulk_end: extern "C" fn(*mut Bridge<H>, i32) -> i32,
    bits: extern "C" fn(*mut Bridge<H>) -> u64,
    fraction: extern "C" fn(*mut Bridge<H>) -> f64,
    draw: extern "C" fn(*mut Bridge<H>, i32, u32, u32) -> u32,
    unique: extern "C" fn(*mut Bridge<H>) -> u32,
    fill: extern "C" fn(*mut Bridge<H>, *const u8, usize, *mut u8),
    print: extern "C" fn(*mut Bridge<H>, *const u8, usize),
    count: extern "C" fn(*mut Bridge<H>, u32, i64),
    sleep: extern "C" fn(*mut Bridge<H>, f64),
}

impl<H: ScriptHost> Bridge<H> {
    const CALLS: Calls<H> = Calls {
        connect,
        disconnect,
        reconnect,
        query,
        prepare,
        parameter,
        bind,
        execute,
        close,
        fetch,
        bulk_begin,
        bulk_row,
        bulk_end,
        bits,
        fraction,
        draw,
        unique,
        fill,
        print,
        count,
        sleep,
    };

    pub(super) fn of(host: H) -> NonNull<Bridge<H>> {
        let cells = RowCells(Vec::new());
        let (parameters, bound) = (Vec::new(), Vec::new());
        let bridge = Bridge { report: Report::new(), host, cells, parameters, bound };
        NonNull::from(Box::leak(Box::new(bridge)))
    }

    pub(super) fn calls() -> *const c_void {
        let calls: &'static Calls<H> = &Self::CALLS;
        std::ptr::from_ref(calls).cast()
    }
}

impl<H> Drop for Bridge<H> {
    fn drop(&mut self) {
        for parameter in self.parameters.drain(..) {
            // SAFETY: both were made by `parameter` below, and the state is closed.
            unsafe {
                let parameter = Box::from_raw(parameter);
                let room = parameter.room as usize;
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(parameter.text, room)));
            }
        }
    }
}

const fn code(answer: StatementEnd) -> i32 {
    match answer {
        StatementEnd::Done => 0,
        StatementEnd::Restart => 1,
        StatementEnd::Failed => 2,
    }
}

/// Calls the host. A panic becomes a failure: it must not reach the library.
#[inline]
fn guarded<H: ScriptHost, R>(
    bridge: *mut Bridge<H>,
    fallback: R,
    act: impl FnOnce(&mut Bridge<H>) -> R,
) -> R {
    // SAFETY: Lua passes on the address that it was given, on the thread of the state; while Lua
    // runs nothing else uses the bridge.
    let bridge = unsafe { &mut *bridge };
    match catch_unwind(AssertUnwindSafe(|| act(bridge))) {
        Ok(result) => result,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
            let said = said.unwrap_or_default();
            bridge.report.failed(0, "", format!("rqps panicked: {said}"));
            fallback
        }
    }
}

/// The bytes of a string of Lua.
fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the preamble passes a string with its length, and Lua keeps it through the call.
    unsafe { slice::from_raw_parts(start, length) }
}

fn place(found: Option<u32>) -> i32 {
    found.and_then(|number| i32::try_from(number).ok()).unwrap_or(-1)
}

/// The values that Lua wrote into the parameters of a statement.
fn values<'a>(bound: &'a [*mut Parameter]) -> impl ExactSizeIterator<Item = Binding<'a>> {
    bound.iter().map(|parameter| {
        // SAFETY: parameters live as long as the bridge; Lua does not write during a call.
        let Some(parameter) = (unsafe { parameter.as_ref() }) else { return Binding::Null };
        match parameter.kind {
            _ if parameter.is_null != 0 => Binding::Null,
            WHOLE => Binding::Whole(parameter.whole),
            DECIMAL => Binding::Decimal(parameter.decimal),
            _ => {
                let length = parameter.length.min(parameter.room) as usize;
                Binding::Text(bytes(parameter.text, length))
            }
        }
    })
}

extern "C" fn connect<H: ScriptHost>(bridge: *mut Bridge<H>) -> i32 {
    guarded(bridge, -1, |bridge| place(bridge.host.connect(&mut bridge.report)))
}

extern "C" fn disconnect<H: ScriptHost>(bridge: *mut Bridge<H>, connection: i32) {
    guarded(bridge, (), |bridge| bridge.host.disconnect(connection as u32));
}

extern "C" fn reconnect<H: ScriptHost>(bridge: *mut Bridge<H>, connection: i32) -> i32 {
    guarded(bridge, 2, |bridge| code(bridge.host.reconnect(connection as u32, &mut bridge.report)))
}

extern "C" fn query<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    connection: i32,
    sql: *const u8,
    length: usize,
) -> i32 {
    guarded(bridge, 2, |bridge| {
        code(bridge.host.query(connection as u32, bytes(sql, length), &mut bridge.report))
    })
}

extern "C" fn prepare<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    connection: i32,
    sql: *const u8,
    length: usize,
) -> i32 {
    guarded(bridge, -1, |bridge| {
        let sql = bytes(sql, length);
        place(bridge.host.prepare(connection as u32, sql, &mut bridge.report))
    })
}

extern "C" fn parameter<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    kind: i32,
    room: u32,
) -> *mut c_void {
    guarded(bridge, std::ptr::null_mut(), |bridge| {
        let text = Box::into_raw(vec![0u8; room as usize].into_boxed_slice());
        let parameter = Box::into_raw(Box::new(Parameter {
            whole: 0,
            decimal: 0.0,
            text: text.cast(),
            length: 0,
            room,
            kind: kind as u8,
            is_null: 0,
        }));
        bridge.parameters.push(parameter);
        parameter.cast()
    })
}

extern "C" fn bind<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    statement: i32,
    parameters: *const *mut c_void,
    count: usize,
) -> i32 {
    guarded(bridge, 2, |bridge| {
        let parameters = match parameters.is_null() {
            true => &[],
            // SAFETY: the preamble passes an array of so many addresses that `parameter` gave.
            false => unsafe { slice::from_raw_parts(parameters, count) },
        };
        let statement = statement as usize;
        if bridge.bound.len() <= statement {
            bridge.bound.resize_with(statement + 1, Vec::new);
        }
        bridge.bound[statement] = parameters.iter().map(|parameter| parameter.cast()).collect();
        let values = values(&bridge.bound[statement]);
        code(bridge.host.bind(statement as u32, values, &mut bridge.report))
    })
}

extern "C" fn execute<H: ScriptHost>(bridge: *mut Bridge<H>, statement: i32, keep: i32) -> i32 {
    guarded(bridge, 2, |bridge| {
        let bound = bridge.bound.get(statement as usize).map_or(&[][..], |bound| bound);
        let (values, keep) = (values(bound), keep != 0);
        code(bridge.host.execute(statement as u32, values, keep, &mut bridge.report))
    })
}

extern "C" fn close<H: ScriptHost>(bridge: *mut Bridge<H>, statement: i32) {
    guarded(bridge, (), |bridge| bridge.host.close(statement as u32));
}

extern "C" fn fetch<H: ScriptHost>(bridge: *mut Bridge<H>, connection: i32) -> i32 {
    guarded(bridge, 0, |bridge| {
        bridge.cells.0.clear();
        let found = bridge.host.fetch(connection as u32, &mut bridge.cells);
        bridge.report.cells = bridge.cells.0.as_ptr();
        bridge.report.cell_count = bridge.cells.0.len() as i32;
        i32::from(found)
    })
}

extern "C" fn bulk_begin<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    connection: i32,
    prefix: *const u8,
    length: usize,
) -> i32 {
    guarded(bridge, 0, |bridge| {
        i32::from(bridge.host.bulk_begin(connection as u32, bytes(prefix, length)))
    })
}

extern "C" fn bulk_row<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    connection: i32,
    row: *const u8,
    length: usize,
) -> i32 {
    guarded(bridge, 2, |bridge| {
        code(bridge.host.bulk_row(connection as u32, bytes(row, length), &mut bridge.report))
    })
}

extern "C" fn bulk_end<H: ScriptHost>(bridge: *mut Bridge<H>, connection: i32) -> i32 {
    guarded(bridge, 2, |bridge| code(bridge.host.bulk_end(connection as u32, &mut bridge.report)))
}

extern "C" fn bits<H: ScriptHost>(bridge: *mut Bridge<H>) -> u64 {
    guarded(bridge, 0, |bridge| bridge.host.bits())
}

extern "C" fn fraction<H: ScriptHost>(bridge: *mut Bridge<H>) -> f64 {
    guarded(bridge, 0.0, |bridge| bridge.host.fraction())
}

extern "C" fn draw<H: ScriptHost>(bridge: *mut Bridge<H>, draw: i32, from: u32, to: u32) -> u32 {
    guarded(bridge, from, |bridge| {
        let draw = RandomDraw::ALL.get(draw as usize).copied().unwrap_or(RandomDraw::Default);
        bridge.host.draw(draw, from, to)
    })
}

extern "C" fn unique<H: ScriptHost>(bridge: *mut Bridge<H>) -> u32 {
    guarded(bridge, 0, |bridge| bridge.host.unique())
}

extern "C" fn fill<H: ScriptHost>(
    bridge: *mut Bridge<H>,
    template: *const u8,
    length: usize,
    output: *mut u8,
) {
    guarded(bridge, (), |bridge| {
        if !output.is_null() {
            // SAFETY: the preamble passes room for as many bytes as the template has.
            let output = unsafe { slice::from_raw_parts_mut(output, length) };
            bridge.host.fill(bytes(template, length), output);
        }
    });
}

extern "C" fn print<H: ScriptHost>(bridge: *mut Bridge<H>, text: *const u8, length: usize) {
    guarded(bridge, (), |bridge| bridge.host.print(bytes(text, length)));
}

extern "C" fn count<H: ScriptHost>(bridge: *mut Bridge<H>, counter: u32, add: i64) {
    guarded(bridge, (), |bridge| bridge.host.count(counter, add));
}

extern "C" fn sleep<H: ScriptHost>(bridge: *mut Bridge<H>, seconds: f64) {
    guarded(bridge, (), |bridge| bridge.host.sleep(seconds));
}

// A limit on the memory of a state, around the library's own allocator.

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
