//! The functions of the library.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use thiserror::Error;

use crate::library::{Library, LibraryError};

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
