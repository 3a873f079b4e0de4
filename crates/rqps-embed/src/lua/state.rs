//! A state: runs what stands around a script, then its functions.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_void};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use super::bridge::Bridge;
use super::heap::{Heap, HeapLimit};
use super::host::ScriptHost;
use super::library::{LuaError, LuaJit, RawState};

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
        let said = self.text();
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
