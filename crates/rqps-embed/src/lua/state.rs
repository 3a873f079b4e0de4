//! A state: runs what stands around a script, then its functions.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use thiserror::Error;

use crate::library::{Library, LibraryError};
use crate::lua::ScriptHost;
use crate::lua::bridge::{Bridge, Heap, HeapLimit};

/// Types of values by lua.h.
const NIL: c_int = 0;
const BOOLEAN: c_int = 1;
const STRING: c_int = 4;

/// The library's own words for the end of memory. It tells no place.
const NO_MEMORY: &str = "not enough memory";

/// Places on the stack of the state: the handler of errors, what takes commands, the event.
const HANDLER: c_int = 1;
const COMMANDS: c_int = 2;
const EVENT: c_int = 3;

/// A state with what it reaches. A script may run for long within a call.
pub struct LuaState<H: ScriptHost> {
    jit: Arc<LuaJit>,
    raw: *mut RawState,
    heap: NonNull<Heap>,
    limit: HeapLimit,
    bridge: NonNull<Bridge<H>>,
    /// A state belongs to one thread.
    _local: Rc<()>,
}

/// The end of a call of the script's event.
#[derive(Debug, PartialEq, Eq)]
pub enum EventEnd {
    /// It returned nothing, or false.
    Done,
    /// It returned something: the script wants no more events.
    Stopped,
    /// An error after which the event begins again.
    Restart,
    /// Any other error, with its place.
    Failed(String),
}

impl<H: ScriptHost> LuaState<H> {
    /// Opens a state and runs `preamble` in it, which is what a script needs around itself. It gets
    /// the bridge and its functions as light user data, and returns two functions: a handler of
    /// errors, and one that takes commands: a name and a text.
    ///
    /// # Errors
    /// No memory, or the preamble fails.
    pub fn open(
        jit: &Arc<LuaJit>,
        preamble: &str,
        host: H,
        limit: HeapLimit,
    ) -> Result<LuaState<H>, LuaError> {
        // SAFETY: no arguments.
        let raw = unsafe { (jit.functions.luaL_newstate)() };
        if raw.is_null() {
            return Err(LuaError::NoState);
        }
        let heap = Heap::limit(&jit.functions, raw, limit.bytes);
        let bridge = Bridge::of(host);
        let jit = Arc::clone(jit);
        let mut state = LuaState { jit, raw, heap, limit, bridge, _local: Rc::new(()) };
        // SAFETY: the state is open and has room for a few values.
        unsafe { (state.jit.functions.luaL_openlibs)(raw) };
        state.begin(preamble).map_err(LuaError::Script)?;
        Ok(state)
    }

    /// The functions that the script can call.
    pub fn host(&mut self) -> &mut H {
        // SAFETY: it lives as long as the state, and no function of it runs meanwhile.
        unsafe { &mut (*self.bridge.as_ptr()).host }
    }

    /// Gives a command. The text that comes back is empty if it is nil.
    ///
    /// # Errors
    /// The script fails. The text is its message, with file and line.
    pub fn command(&mut self, name: &str, text: &str) -> Result<String, String> {
        let functions = &self.jit.functions;
        // SAFETY: the preamble left its functions at these places, and every call below leaves the
        // stack as it was.
        unsafe { (functions.lua_pushvalue)(self.raw, COMMANDS) };
        self.push(name);
        self.push(text);
        let ended = self.call(2, 1);
        let said = self.text();
        self.pop();
        ended.map(|()| said)
    }

    /// Takes the function that the command `event` returns for [`LuaState::event`].
    ///
    /// # Errors
    /// The error of the script.
    pub fn keep_event(&mut self) -> Result<(), String> {
        // SAFETY: as in `command`; the result stays where the event belongs.
        unsafe { (self.jit.functions.lua_pushvalue)(self.raw, COMMANDS) };
        self.push("event");
        self.push("");
        let ended = self.call(2, 1);
        if ended.is_err() {
            self.pop();
        }
        ended
    }

    /// Calls the script's event once.
    #[inline]
    pub fn event(&mut self) -> EventEnd {
        let functions = &self.jit.functions;
        // SAFETY: `keep_event` left the function there. Errors of Lua end in lua_pcall.
        let end = unsafe {
            (functions.lua_pushvalue)(self.raw, EVENT);
            (functions.lua_pcall)(self.raw, 0, 1, HANDLER)
        };
        // SAFETY: the call left one value.
        let kind = unsafe { (functions.lua_type)(self.raw, -1) };
        let ended = match (end, kind) {
            (0, NIL) => EventEnd::Done,
            (0, BOOLEAN) => {
                if self.is_true() {
                    EventEnd::Stopped
                } else {
                    EventEnd::Done
                }
            }
            (0, _) => EventEnd::Stopped,
            // The handler returns true for an error that begins the event again.
            (_, BOOLEAN) => EventEnd::Restart,
            _ => EventEnd::Failed(self.fault()),
        };
        self.pop();
        ended
    }

    fn is_true(&self) -> bool {
        // SAFETY: there is a value on top.
        unsafe { (self.jit.functions.lua_toboolean)(self.raw, -1) != 0 }
    }

    fn begin(&mut self, preamble: &str) -> Result<(), String> {
        let functions = &self.jit.functions;
        let name = CString::from(c"=rqps");
        let bridge = self.bridge.as_ptr();
        // SAFETY: buffer and name live through the call; the bridge is boxed, and lives as long as
        // the state.
        let end = unsafe {
            let text = preamble.as_ptr().cast();
            match (functions.luaL_loadbuffer)(self.raw, text, preamble.len(), name.as_ptr()) {
                0 => {
                    let calls: *const c_void = Bridge::<H>::calls();
                    (functions.lua_pushlightuserdata)(self.raw, bridge.cast());
                    (functions.lua_pushlightuserdata)(self.raw, calls.cast_mut());
                    (functions.lua_pcall)(self.raw, 2, 2, 0)
                }
                refused => refused,
            }
        };
        if end == 0 {
            return Ok(());
        }
        let said = self.text();
        self.pop();
        Err(said)
    }

    fn push(&mut self, text: &str) {
        // SAFETY: the library copies the text.
        unsafe {
            (self.jit.functions.lua_pushlstring)(self.raw, text.as_ptr().cast(), text.len());
        }
    }

    /// Calls what lies below its arguments. An error stays on top, too.
    fn call(&mut self, arguments: c_int, results: c_int) -> Result<(), String> {
        // SAFETY: function and arguments were just put there, and the handler is at its place.
        let end = unsafe { (self.jit.functions.lua_pcall)(self.raw, arguments, results, HANDLER) };
        if end == 0 { Ok(()) } else { Err(self.fault()) }
    }

    /// The error on top as text, with the limit that it may be about.
    fn fault(&self) -> String {
        // A line that the script begins could pass for one of rqps.
        let said = self.text().replace('\n', " ");
        if said.ends_with(NO_MEMORY) {
            let HeapLimit { bytes, hint } = &self.limit;
            format!("{said}: a state of a script may take {} MiB{hint}", bytes >> 20)
        } else {
            said
        }
    }

    /// The value on top as text; empty if it is none.
    fn text(&self) -> String {
        let functions = &self.jit.functions;
        let (mut text, mut length) = (ptr::null(), 0);
        // SAFETY: there is a value on top, and a string stays where it is while it is there.
        unsafe {
            if (functions.lua_type)(self.raw, -1) == STRING {
                text = (functions.lua_tolstring)(self.raw, -1, &raw mut length);
            }
        }
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the library told the length.
        let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[inline]
    fn pop(&mut self) {
        // SAFETY: there is a value on top.
        unsafe { (self.jit.functions.lua_settop)(self.raw, -2) };
    }
}

impl<H: ScriptHost> Drop for LuaState<H> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the state after this, and nothing but the state used the bridge.
        unsafe {
            Heap::release(self.heap, &self.jit.functions, self.raw);
            (self.jit.functions.lua_close)(self.raw);
            drop(Box::from_raw(self.bridge.as_ptr()));
        }
    }
}

// The functions of the library.

/// Names under which systems have it, the most exact first.
const NAMES: [&str; 3] = ["libluajit-5.1.so.2", "libluajit-5.1.so", "libluajit.so"];

/// A state as the library knows it.
#[repr(C)]
pub(super) struct RawState {
    _opaque: [u8; 0],
}

/// The allocator of the library: user data, block, old size, new size.
pub(super) type Allocate =
    unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize) -> *mut c_void;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are used, by their names in lua.h.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, LibraryError> {
                Ok(Functions { $(
                    // SAFETY: the type is that of lua.h 5.1, which LuaJIT keeps to. `LuaJit` keeps
                    // the library.
                    $name: unsafe { library.function(stringify!($name))? },
                )* })
            }
        }
    };
}

functions! {
    luaL_newstate: fn() -> *mut RawState;
    luaL_openlibs: fn(*mut RawState);
    luaL_loadbuffer: fn(*mut RawState, *const c_char, usize, *const c_char) -> c_int;
    lua_close: fn(*mut RawState);
    lua_pcall: fn(*mut RawState, c_int, c_int, c_int) -> c_int;
    lua_settop: fn(*mut RawState, c_int);
    lua_pushvalue: fn(*mut RawState, c_int);
    lua_type: fn(*mut RawState, c_int) -> c_int;
    lua_toboolean: fn(*mut RawState, c_int) -> c_int;
    lua_tolstring: fn(*mut RawState, c_int, *mut usize) -> *const c_char;
    lua_pushlightuserdata: fn(*mut RawState, *mut c_void);
    lua_pushlstring: fn(*mut RawState, *const c_char, usize);
    lua_getallocf: fn(*mut RawState, *mut *mut c_void) -> Allocate;
    lua_setallocf: fn(*mut RawState, Allocate, *mut c_void);
}

/// LuaJIT, ready to open states.
pub struct LuaJit {
    pub(super) functions: Functions,
    /// Keeps the functions mapped.
    _library: Library,
}

/// The reason why there is no LuaJIT or no state.
#[derive(Debug, Error)]
pub enum LuaError {
    /// The system has no such library.
    #[error(
        "find LuaJIT, which runs Lua scripts: {0}\nhint: install it: libluajit-5.1-2 on Debian and \
         Ubuntu, luajit elsewhere"
    )]
    Missing(String),
    /// A library of that name is none.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// No memory for a state.
    #[error("open a state of LuaJIT: no memory")]
    NoState,
    /// The script, or what stands around it, failed.
    #[error("{0}")]
    Script(String),
}

impl LuaJit {
    /// Loads the library of the system.
    ///
    /// # Errors
    /// There is none.
    pub fn load() -> Result<LuaJit, LuaError> {
        let mut last = String::new();
        for name in NAMES {
            match Library::load(Path::new(name)) {
                Ok(library) => {
                    let functions = Functions::of(&library)?;
                    return Ok(LuaJit { functions, _library: library });
                }
                Err(LibraryError::Load { reason, .. }) if last.is_empty() => last = reason,
                Err(_) => {}
            }
        }
        Err(LuaError::Missing(last))
    }
}
