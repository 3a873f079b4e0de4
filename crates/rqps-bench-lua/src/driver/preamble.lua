-- What a script for sysbench finds around itself: the table `sysbench`, the globals of its older
-- versions, and guards. Written from the documented behaviour of that interface; the statements,
-- the counting and the random numbers are in Rust.

local address, call_table = ...
local ffi, bit = require("ffi"), require("bit")
local debug, error, format, select, tostring, type = debug, error, string.format, select, tostring, type
local unpack, pairs, ipairs, tonumber, setmetatable = unpack, pairs, ipairs, tonumber, setmetatable

ffi.cdef [[
typedef enum {
  SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_EVENT = 3, SB_CNT_TRX = 3,
  SB_CNT_ERROR = 4, SB_CNT_RECONNECT = 5, SB_CNT_BYTES_READ = 6, SB_CNT_BYTES_WRITTEN = 7,
  SB_CNT_MAX = 8
} sb_counter_type;

typedef struct { const char *start; double length; } rqps_text;

typedef struct {
  double rows; double fields; double number; int32_t has_rows; int32_t cell_count;
  rqps_text state; rqps_text message; const rqps_text *cells;
} rqps_report;

typedef struct {
  int64_t whole; double decimal; char *text; uint32_t length; uint32_t room; uint8_t kind;
  uint8_t is_null;
} sql_param;

typedef struct { int32_t none; } sql_result;

typedef struct {
  int32_t (*connect)(void *);
  void (*disconnect)(void *, int32_t);
  int32_t (*reconnect)(void *, int32_t);
  int32_t (*query)(void *, int32_t, const char *, size_t);
  int32_t (*prepare)(void *, int32_t, const char *, size_t);
  sql_param *(*parameter)(void *, int32_t, uint32_t);
  int32_t (*bind)(void *, int32_t, sql_param **, size_t);
  int32_t (*execute)(void *, int32_t, int32_t);
  void (*close)(void *, int32_t);
  int32_t (*fetch)(void *, int32_t);
  int32_t (*bulk_begin)(void *, int32_t, const char *, size_t);
  int32_t (*bulk_row)(void *, int32_t, const char *, size_t);
  int32_t (*bulk_end)(void *, int32_t);
  uint64_t (*bits)(void *);
  double (*fraction)(void *);
  uint32_t (*draw)(void *, int32_t, uint32_t, uint32_t);
  uint32_t (*unique)(void *);
  void (*fill)(void *, const char *, size_t, char *);
  void (*print)(void *, const char *, size_t);
  void (*count)(void *, uint32_t, int64_t);
  void (*sleep)(void *, double);
} rqps_calls;
]]

local calls = ffi.cast("const rqps_calls *", call_table)
local report = ffi.cast("rqps_report *", address)
local bridge = ffi.cast("void *", address)
local draw, execute, fill, query = calls.draw, calls.execute, calls.fill, calls.query

-- Errors ------------------------------------------------------------------------------------------

-- The place in the script that led here: `FILE:LINE: `.
local function place()
  for level = 3, 60 do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    if info.what ~= "C" and info.source ~= "=rqps" then
      return format("%s:%d: ", info.short_src, info.currentline)
    end
  end
  return ""
end

local function fail(words)
  error(place() .. words, 0)
end

local function text_of(text)
  return ffi.string(text.start, text.length)
end

-- Texts of the program itself go through Rust: standard output belongs to the protocol.
local function write(...)
  for index = 1, select("#", ...) do
    local text = tostring((select(index, ...)))
    calls.print(bridge, text, #text)
  end
end

function print(...)
  local parts = {}
  for index = 1, select("#", ...) do
    parts[index] = tostring((select(index, ...)))
  end
  write(table.concat(parts, "\t") .. "\n")
end

io.write = function(...)
  write(...)
  return io.stdout
end
io.stdout = setmetatable({}, {
  __index = {
    write = function(self, ...)
      write(...)
      return self
    end,
    flush = function() return true end,
    close = function() return true end,
    setvbuf = function() return true end,
  },
})

-- Programs that a script runs cost time and change things that nobody measures.
local run_command, open_pipe = os.execute, io.popen
local is_shell_allowed = false
local function need_shell(name)
  if is_shell_allowed then return end
  fail(format("the script runs a program by `%s`, whose time and effects would pass for the "
    .. "database's; --allow-shell allows it", name))
end
os.execute = function(words)
  if words == nil then return is_shell_allowed and 1 or 0 end
  -- To wait needs no program.
  local seconds = tostring(words):match("^%s*sleep%s+(%d+%.?%d*)%s*$")
  if seconds then
    calls.sleep(bridge, tonumber(seconds))
    return 0
  end
  need_shell("os.execute")
  -- What it prints must not reach the protocol either.
  return run_command("exec 1>&2\n" .. words)
end
io.popen = function(...)
  need_shell("io.popen")
  return open_pipe(...)
end
-- The working folder is one of the driver's. Files of relative names are also in the folder of the
-- script, and in the one where rqps was started.
local folders = {}

local function each_place(path)
  if type(path) ~= "string" or path:sub(1, 1) == "/" then return { path } end
  local places = { path }
  for _, folder in ipairs(folders) do places[#places + 1] = folder .. "/" .. path end
  return places
end

local plain_open, plain_loadfile, plain_lines = io.open, loadfile, io.lines
local function readable(path)
  for _, place_of in ipairs(each_place(path)) do
    local file = plain_open(place_of, "rb")
    if file then
      file:close()
      return place_of
    end
  end
  return path
end
io.open = function(path, mode)
  if mode == nil or tostring(mode):find("^r[b]?$") then path = readable(path) end
  return plain_open(path, mode)
end
io.lines = function(path, ...)
  if path == nil then return plain_lines() end
  return plain_lines(readable(path), ...)
end
loadfile = function(path, ...)
  if path == nil then return plain_loadfile() end
  return plain_loadfile(readable(path), ...)
end
dofile = function(path)
  local chunk, wrong = loadfile(path)
  if not chunk then error(wrong, 0) end
  return chunk()
end
os.exit = function()
  fail("the script calls os.exit(), which would end the measuring process")
end

-- The table `sysbench` ----------------------------------------------------------------------------

sysbench = {
  version = "1.0.20",
  version_string = "sysbench 1.0.20",
  tid = 0,
  opt = {},
  error = { NONE = 0, RESTART_EVENT = 1 },
  hooks = {},
  cmdline = {
    ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5,
    ARG_LIST = 6, ARG_FILE = 7,
    PARALLEL_COMMAND = true,
    argv = { [0] = "sysbench" },
  },
}
local sysbench, cmdline, hooks = sysbench, sysbench.cmdline, sysbench.hooks

local RESTART_EVENT = 1
local is_globals = false

-- Random numbers ----------------------------------------------------------------------------------

local used_default = false
local rand = {}
sysbench.rand = rand

function rand.default(from, to)
  used_default = true
  return draw(bridge, 0, from, to)
end
function rand.uniform(from, to) return draw(bridge, 1, from, to) end
function rand.gaussian(from, to) return draw(bridge, 2, from, to) end
function rand.pareto(from, to) return draw(bridge, 3, from, to) end
function rand.zipfian(from, to) return draw(bridge, 4, from, to) end
function rand.special(from, to) return draw(bridge, 5, from, to) end
function rand.uniform_uint64() return calls.bits(bridge) end
function rand.uniform_double() return calls.fraction(bridge) end
function rand.unique() return calls.unique(bridge) end

local room = 256
local buffer = ffi.new("char[?]", room)

local function with_room(length)
  if length > room then
    room = length * 2
    buffer = ffi.new("char[?]", room)
  end
  return buffer
end

function rand.string(template)
  local length = #template
  local output = with_room(length)
  fill(bridge, template, length, output)
  return ffi.string(output, length)
end

function rand.varstring(shortest, longest)
  if longest < shortest then fail("the longest text is shorter than the shortest") end
  local length = draw(bridge, 1, shortest, longest)
  local output = with_room(length)
  for index = 0, length - 1 do
    output[index] = draw(bridge, 1, 48, 122)
  end
  return ffi.string(output, length)
end

-- SQL ---------------------------------------------------------------------------------------------

local sql_type = {
  NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7,
  DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
local WHOLE, DECIMAL, TEXT = 1, 2, 3
local KINDS = {
  [1] = WHOLE, [2] = WHOLE, [3] = WHOLE, [4] = WHOLE, [5] = DECIMAL, [6] = DECIMAL, [11] = TEXT,
  [12] = TEXT,
}
sysbench.sql = { type = sql_type, error = { NONE = 0, IGNORABLE = 1, FATAL = 2 } }
local driver_name = "mysql"

-- Without a result set there is a null pointer: equal to nil, and yet true.
local NO_RESULT = ffi.cast("sql_result *", nil)
ffi.metatype("sql_result", {
  __index = function(_, key)
    if key == "nrows" or key == "nfields" then return 0 end
    return function() return nil end
  end,
  __tostring = function() return "<sql_result>" end,
})

local result_class = { __tostring = function() return "<sql_result>" end }
result_class.__index = result_class

function result_class:fetch_row()
  if calls.fetch(bridge, self.connection.handle) == 0 then return nil end
  local row = {}
  for index = 1, report.cell_count do
    local cell = report.cells[index - 1]
    if cell.start ~= nil then row[index] = ffi.string(cell.start, cell.length) end
  end
  return row
end

function result_class:free() end

-- A loop of the script's own, `thread_run`, if it has one: see "Commands of rqps".
local own_loop, is_over = nil, false
local count_own_error

-- Raises the error of the last statement.
local function raise(connection, said, status)
  local number, state, message =
    report.number, text_of(report.state), text_of(report.message)
  connection.error = status
  connection.sql_errno, connection.sql_state, connection.sql_errmsg = number, state, message
  local about = {
    connection = connection, query = said, sql_errno = number, sql_state = state,
    sql_errmsg = message,
  }
  local ignorable = hooks.sql_error_ignorable
  if status == 1 or (ignorable and ignorable(about)) then
    about.errcode = RESTART_EVENT
    -- Such a loop deals with errors itself.
    if own_loop then count_own_error() end
    error(about, 0)
  end
  if state == "" then
    fail("SQL API error: " .. message)
  end
  fail(format("SQL error, errno = %d, state = '%s': %s", number, state, message))
end

-- Rows of prepared statements are counted and thrown away, unless the script reads rows at all.
local keeps_rows = 0

-- One open result per connection: a later one takes its place.
local function answer(result)
  if report.has_rows == 0 then return NO_RESULT end
  result.nrows, result.nfields = report.rows, report.fields
  return result
end

ffi.metatype("sql_param", {
  __index = {
    set = function(self, value)
      if value == nil then
        self.is_null = 1
        return
      end
      self.is_null = 0
      if self.kind == WHOLE then
        self.whole = value
      elseif self.kind == DECIMAL then
        self.decimal = value
      else
        if type(value) ~= "string" then value = tostring(value) end
        local length = #value
        if length > self.room then length = self.room end
        ffi.copy(self.text, value, length)
        self.length = length
      end
    end,
    set_rand_str = function(self, template)
      if self.kind ~= TEXT then fail("set_rand_str() is for CHAR and VARCHAR") end
      local length = #template
      if length > self.room then
        template, length = template:sub(1, self.room), self.room
      end
      fill(bridge, template, length, self.text)
      self.length = length
      self.is_null = 0
    end,
  },
  __tostring = function() return "<sql_param>" end,
})

local statement_class = { __tostring = function() return "<sql_statement>" end }
statement_class.__index = statement_class

function statement_class:bind_create(kind, longest)
  local place_of = KINDS[kind]
  if not place_of then fail("Unsupported argument type: " .. tostring(kind)) end
  if place_of == TEXT and not longest then
    fail("bind_create() of CHAR and VARCHAR needs the longest length")
  end
  return calls.parameter(bridge, place_of, place_of == TEXT and longest or 0)
end

function statement_class:bind_param(...)
  local count = select("#", ...)
  if count == 0 then return nil end
  local all = ffi.new("sql_param *[?]", count)
  for index = 1, count do
    all[index - 1] = select(index, ...)
  end
  local status = calls.bind(bridge, self.handle, all, count)
  if status ~= 0 then return raise(self.connection, "<prepared statement>", status) end
end

function statement_class:execute()
  local status = execute(bridge, self.handle, keeps_rows)
  if status == 0 then return answer(self.connection.result) end
  return raise(self.connection, "<prepared statement>", status)
end

function statement_class:next_result() return nil end

function statement_class:close()
  calls.close(bridge, self.handle)
end

local connection_class = { __tostring = function() return "<sql_connection>" end }
connection_class.__index = connection_class

function connection_class:query(said)
  local status = query(bridge, self.handle, said, #said)
  if status == 0 then return answer(self.result) end
  return raise(self, said, status)
end

function connection_class:query_row(said)
  local result = self:query(said)
  if result == nil then return nil end
  local row = result:fetch_row()
  if row == nil then return nil end
  return unpack(row, 1, result.nfields)
end

function connection_class:prepare(said)
  local handle = calls.prepare(bridge, self.handle, said, #said)
  if handle < 0 then return raise(self, said, 2) end
  return setmetatable({ connection = self, handle = handle }, statement_class)
end

function connection_class:bulk_insert_init(prefix)
  if calls.bulk_begin(bridge, self.handle, prefix, #prefix) == 0 then
    fail("bulk_insert_init() failed")
  end
end

function connection_class:bulk_insert_next(row)
  local status = calls.bulk_row(bridge, self.handle, row, #row)
  if status ~= 0 then return raise(self, "INSERT", status) end
end

function connection_class:bulk_insert_done()
  local status = calls.bulk_end(bridge, self.handle)
  if status ~= 0 then return raise(self, "INSERT", status) end
end

function connection_class:disconnect()
  calls.disconnect(bridge, self.handle)
end

function connection_class:reconnect()
  local status = calls.reconnect(bridge, self.handle)
  if status ~= 0 then return raise(self, "reconnect", status) end
  return 0
end

function connection_class:check_error(_, said)
  if self.error ~= 0 then return raise(self, said, self.error) end
end

function connection_class:check_reconnect() return false end
function connection_class:more_results() return false end
function connection_class:next_result() return nil end

local driver_class = { __tostring = function() return "<sql_driver>" end }
driver_class.__index = driver_class

function driver_class:name() return driver_name end

function driver_class:connect()
  local handle = calls.connect(bridge)
  if handle < 0 then fail("connection creation failed: " .. text_of(report.message)) end
  local connection = setmetatable({
    handle = handle, driver = self, error = 0, sql_errno = 0, sql_state = "", sql_errmsg = "",
  }, connection_class)
  connection.result = setmetatable({ connection = connection, nrows = 0, nfields = 0 }, result_class)
  return connection
end

function sysbench.sql.driver(name)
  if name and name ~= driver_name then
    fail(format("invalid database driver name: '%s'; the target is %s", name, driver_name))
  end
  return setmetatable({}, driver_class)
end

-- Names of sysbench's C code ----------------------------------------------------------------------

local real_c, real_load = ffi.C, ffi.load
local rights = "full"

local counted = {}

local function add_to_counter(_, counter, by)
  local number = tonumber(counter)
  by = tonumber(by or 1)
  counted[number] = (counted[number] or 0) + by
  calls.count(bridge, number, by)
end

function count_own_error() add_to_counter(sysbench.tid, 4) end

local symbols = {
  sb_counter_inc = add_to_counter,
  sb_counter_add = add_to_counter,
  -- What the script itself has counted in this state.
  sb_counter_val = function(_, counter) return counted[tonumber(counter)] or 0 end,
  -- An event of the script's own loop ends where it says so: there the client waits for the next.
  sb_event_start = function() end,
  sb_event_stop = function()
    if own_loop and coroutine.running() == own_loop then coroutine.yield() end
  end,
  sb_more_events = function() return not is_over end,
  sb_rand_default = rand.default,
  sb_rand_uniform = rand.uniform,
  sb_rand_gaussian = rand.gaussian,
  sb_rand_pareto = rand.pareto,
  sb_rand_zipfian = rand.zipfian,
  sb_rand_special = rand.special,
  sb_rand_unique = rand.unique,
  sb_rand_uniform_uint64 = rand.uniform_uint64,
  sb_rand_uniform_double = rand.uniform_double,
  sb_rand_str = function(template, output)
    template = ffi.string(template)
    fill(bridge, template, #template, output)
  end,
  sb_rand_varstr = function(output, shortest, longest)
    local text = rand.varstring(shortest, longest)
    ffi.copy(output, text, #text)
    return #text
  end,
}
-- C functions that run programs.
local PROGRAMS = {
  system = true, popen = true, fork = true, vfork = true, posix_spawn = true, posix_spawnp = true,
  execl = true, execlp = true, execle = true, execv = true, execvp = true, execve = true,
}
local CONSTANTS = {
  SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_EVENT = 3, SB_CNT_TRX = 3,
  SB_CNT_ERROR = 4, SB_CNT_RECONNECT = 5, SB_CNT_BYTES_READ = 6, SB_CNT_BYTES_WRITTEN = 7,
  SB_CNT_MAX = 8,
}

ffi.C = setmetatable({}, {
  __index = function(_, name)
    local own = symbols[name] or CONSTANTS[name]
    if own then return own end
    if name:find("^db_") or name:find("^sb_") then
      fail(format("the script calls `%s` of sysbench's C code, which rqps does not have", name))
    end
    if PROGRAMS[name] then need_shell("ffi.C." .. name) end
    if rights == "none" then fail("`ffi.C." .. name .. "` is not allowed with rights=none") end
    return real_c[name]
  end,
  __newindex = function(_, name, value) real_c[name] = value end,
})

-- Accidents, not attacks: a script that wants to can undo this.
local function lock_up()
  rights = "none"
  local function forbid(table_name, name)
    _G[table_name][name] = function()
      fail(format("`%s.%s` is not allowed with rights=none", table_name, name))
    end
  end
  for _, name in ipairs { "execute", "remove", "rename", "exit", "tmpname" } do forbid("os", name) end
  forbid("io", "popen")
  forbid("package", "loadlib")
  local open = io.open
  io.open = function(path, mode)
    if mode and mode:find("[wa+]") then
      fail("`io.open` for writing is not allowed with rights=none")
    end
    return open(path, mode)
  end
  ffi.load = function() fail("`ffi.load` is not allowed with rights=none") end
  package.loaders[3], package.loaders[4] = nil, nil
end

-- Statistics of the script's own ------------------------------------------------------------------

-- What all ready-made reports tell: seconds, threads, then rates and a latency in ms.
local function told(stat)
  local seconds = stat.time_interval > 0 and stat.time_interval or 1
  local function rate(count) return count / seconds end
  return stat.time_total, stat.threads_running, rate(stat.events),
    rate(stat.reads + stat.writes + stat.other), rate(stat.reads), rate(stat.writes),
    rate(stat.other), stat.latency_pct * 1000, rate(stat.errors), rate(stat.reconnects)
end
function sysbench.report_default(stat)
  local time, threads, tps, qps, reads, writes, others, latency, errors, reconnects = told(stat)
  print(format(
    "[ %.0fs ] thds: %d tps: %.2f qps: %.2f (r/w/o: %.2f/%.2f/%.2f) lat (ms,95%%): %.2f "
      .. "err/s: %.2f reconn/s: %.2f",
    time, threads, tps, qps, reads, writes, others, latency, errors, reconnects))
end
function sysbench.report_csv(stat)
  print(format("%.0f,%d,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f", told(stat)))
end
function sysbench.report_json(stat)
  local time, threads, tps, qps, reads, writes, others, latency, errors, reconnects = told(stat)
  print(format(
    '{"time": %.0f, "threads": %d, "tps": %.2f, "qps": {"total": %.2f, "reads": %.2f, '
      .. '"writes": %.2f, "other": %.2f}, "latency": %.2f, "errors": %.2f, "reconnects": %.2f}',
    time, threads, tps, qps, reads, writes, others, latency, errors, reconnects))
end

local histogram_class = { __tostring = function() return "<sysbench_histogram>" end }
histogram_class.__index = histogram_class
sysbench.histogram = {
  new = function(size, least, most)
    local self = { size = size, least = least, counts = {} }
    self.scale = (size - 1) / (math.log(most) - math.log(least))
    return setmetatable(self, histogram_class)
  end,
}
function histogram_class:update(value)
  local place_of = math.floor((math.log(math.max(value, self.least)) - math.log(self.least))
    * self.scale + 0.5)
  place_of = math.min(place_of, self.size - 1)
  self.counts[place_of] = (self.counts[place_of] or 0) + 1
end
function histogram_class:print()
  local largest = 0
  for _, count in pairs(self.counts) do largest = math.max(largest, count) end
  print("       value  ------------- distribution ------------- count")
  for place_of = 0, self.size - 1 do
    local count = self.counts[place_of]
    if count then
      local value = math.exp(place_of / self.scale + math.log(self.least))
      local stars = string.rep("*", math.floor(count / largest * 40 + 0.5))
      print(format("%12.3f |%-40s %d", value, stars, count))
    end
  end
end

-- Globals of older versions -----------------------------------------------------------------------

_G.ffi, _G.bit, _G.jit = ffi, bit, require("jit")
-- Version 0.5 took numbers that are texts, as its options are.
local function of_numbers(draw)
  return function(from, to) return draw(tonumber(from), tonumber(to)) end
end
sb_rand, sb_rand_uniform = of_numbers(rand.default), of_numbers(rand.uniform)
sb_rand_gaussian, sb_rand_special = of_numbers(rand.gaussian), of_numbers(rand.special)
sb_rand_str = rand.string
function sb_rnd() return tonumber(rand.uniform_uint64() % 4294967296ULL) end
function sb_rand_uniq(from, to)
  return from + rand.unique() % (to - from + 1)
end
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2
mysql_table_engine, myisam_max_rows = "innodb", 1000000

local old_connection
local function old()
  old_connection = old_connection or sysbench.sql.driver():connect()
  return old_connection
end
function db_connect() return old() end
function db_disconnect()
  if old_connection then old_connection:disconnect() end
  old_connection = nil
end
function db_query(said) return old():query(said) end
function db_bulk_insert_init(prefix) return old():bulk_insert_init(prefix) end
function db_bulk_insert_next(row) return old():bulk_insert_next(row) end
function db_bulk_insert_done() return old():bulk_insert_done() end
function db_prepare(said) return old():prepare(said) end
function db_bind_param(statement, given)
  local all = {}
  for index, value in ipairs(given) do
    local is_text = type(value) == "string"
    all[index] = statement:bind_create(is_text and sql_type.VARCHAR or sql_type.BIGINT, 4096)
  end
  statement.given, statement.all = given, all
  return statement:bind_param(unpack(all))
end
function db_bind_result() end
function db_execute(statement)
  for index, parameter in ipairs(statement.all or {}) do
    parameter:set(statement.given[index])
  end
  return statement:execute()
end
function db_store_results() end
function db_free_results() end
function db_close(statement) return statement:close() end

-- Commands of rqps --------------------------------------------------------------------------------

local UNIT, RECORD = "\31", "\30"
local restarting
local commands = {}

local function fields_of(text)
  local fields = {}
  for field in (text .. UNIT):gmatch("([^\31]*)\31") do fields[#fields + 1] = field end
  return fields
end

local function value_of(kind, text)
  if kind == "bool" then return text == "on" end
  if kind == "number" then return tonumber(text) end
  if kind == "list" then
    local list = {}
    for item in text:gmatch("[^,]+") do list[#list + 1] = item end
    return list
  end
  if kind == "file" then return nil end
  return text
end

-- `NAME KIND VALUE`.
function commands.option(text)
  local name, kind, value = unpack(fields_of(text))
  sysbench.opt[name] = value_of(kind, value)
  if is_globals then _G[name] = sysbench.opt[name] end
end

-- `tid`, `threads`, `command`, `driver`, `rights`, `path`, `globals`, and their values.
function commands.fact(text)
  local name, value = unpack(fields_of(text))
  if name == "tid" then
    sysbench.tid = tonumber(value)
    thread_id = sysbench.tid
  elseif name == "command" then
    cmdline.command = value
    cmdline.argv[2] = value
  elseif name == "driver" then
    driver_name = value
  elseif name == "path" then
    package.path = value .. ";" .. package.path
  elseif name == "folders" then
    local fields = fields_of(text)
    folders = { fields[2], fields[3] }
  elseif name == "globals" then
    is_globals = true
    -- Scripts of version 0.5 find all options so, and some under older names.
    for option, given in pairs(sysbench.opt) do
      if rawget(_G, option) == nil then _G[option] = given end
    end
    num_threads, max_time, max_requests = threads, sysbench.opt.time, sysbench.opt.events
    mysql_table_engine = sysbench.opt.mysql_table_engine or mysql_table_engine
  elseif name == "shell" then
    is_shell_allowed = true
  elseif name == "rights" and value == "none" then
    lock_up()
  end
end

-- The script and the modules that it has required.
local function files_of(path)
  local files = { path }
  for name in pairs(package.loaded) do
    local found = package.searchpath and package.searchpath(name, package.path)
    if found then files[#files + 1] = found end
  end
  return files
end

local function mentions(path, word)
  local file = io.open(path, "rb")
  if not file then return false end
  local text = file:read("*a")
  file:close()
  return text:find(word, 1, true) ~= nil
end

-- Loads the script and runs it to its end.
function commands.script(path)
  local file, reason = io.open(path, "rb")
  if not file then error("read the script: " .. reason, 0) end
  local first = file:read(1)
  file:close()
  if first == "\27" then
    error(path .. ": script is compiled Lua; rqps needs the source", 0)
  end
  local chunk, wrong = loadfile(path)
  if not chunk then error(wrong, 0) end
  cmdline.script_path, cmdline.argv[1], test = path, path, path
  chunk()
  for _, read in ipairs(files_of(path)) do
    if mentions(read, "fetch_row") then keeps_rows = 1 end
  end
end

local KIND_OF_ARG = {
  [0] = "string", "bool", "number", "number", "number", "string", "list", "file",
}
local KIND_OF_TYPE = { boolean = "bool", string = "string", number = "number", table = "list" }

local function default_text(value)
  if value == nil then return "" end
  if type(value) == "boolean" then return value and "on" or "off" end
  if type(value) == "number" then return format("%.17g", value) end
  if type(value) == "table" then return table.concat(value, ",") end
  return tostring(value)
end

local function describe_options(records)
  local options = cmdline.options
  if options == nil then return end
  if type(options) ~= "table" then error("wrong table structure in sysbench.cmdline.options", 0) end
  for name, about in pairs(options) do
    if type(about) ~= "table" or type(name) ~= "string" then
      error("wrong table structure in sysbench.cmdline.options", 0)
    end
    local kind = KIND_OF_ARG[about[3]] or KIND_OF_TYPE[type(about[2])] or "string"
    if about[3] == cmdline.ARG_SIZE then kind = "size" end
    records[#records + 1] = table.concat({
      "option", name, kind, default_text(about[2]), tostring(about[1] or ""),
    }, UNIT)
  end
  records[#records + 1] = "options"
end

local KNOWN = { "event", "prepare", "cleanup", "thread_init", "thread_done", "thread_run", "init", "done" }

-- What the script declares: options, commands, functions, modules.
function commands.describe()
  local records = {}
  describe_options(records)
  for name, about in pairs(cmdline.commands or {}) do
    local parallel = type(about) == "table" and about[2] == cmdline.PARALLEL_COMMAND
    records[#records + 1] =
      table.concat({ "command", name, parallel and "parallel" or "single" }, UNIT)
  end
  for _, name in ipairs(KNOWN) do
    if type(_G[name]) == "function" then
      records[#records + 1] = table.concat({ "function", name }, UNIT)
    end
  end
  for name in pairs(package.loaded) do
    local found = package.searchpath and package.searchpath(name, package.path)
    if found then records[#records + 1] = table.concat({ "module", name, found }, UNIT) end
  end
  return table.concat(records, RECORD)
end

local function own_command(name)
  local about = cmdline.commands and cmdline.commands[name]
  if type(about) == "table" then return about[1] end
  return about or _G[name]
end

function cmdline.command_defined(name) return own_command(name) ~= nil end
function cmdline.command_parallel(name)
  local about = cmdline.commands and cmdline.commands[name]
  return type(about) == "table" and about[2] == cmdline.PARALLEL_COMMAND
end
function cmdline.call_command(name)
  local act = own_command(name)
  if type(act) ~= "function" then return false end
  if act() == false then return false end
  return true
end
function cmdline.read_cmdline_options() return true end
function cmdline.print_test_options() end

-- Runs a command of the script.
function commands.run(name)
  local act = own_command(name)
  if type(act) ~= "function" then
    error(format("the script has no command `%s`", name), 0)
  end
  if act() == false then error(format("the command `%s` failed", name), 0) end
end

-- Calls the script's own help, if it has one.
function commands.help()
  local act = own_command("help")
  if type(act) == "function" then act() end
end

-- Calls a function of a client, if the script has that one.
function commands.call(name)
  local act = _G[name]
  if type(act) == "function" then act(sysbench.tid) end
end

-- The same for a function that belongs to no client.
function commands.call_once(name)
  local act = _G[name]
  if type(act) == "function" then act() end
end

-- Lets the loop of the script's own run to the end of an event. True if it has ended.
local function resume_loop()
  local fine, said = coroutine.resume(own_loop, sysbench.tid)
  if not fine then
    if type(said) == "table" and said.sql_errmsg then
      said = "thread_run() let an error pass: " .. said.sql_errmsg
    end
    error(said, 0)
  end
  return coroutine.status(own_loop) == "dead"
end

-- A loop of the script's own hears that there are no more events, and may put away what it has.
-- True as text if the script has drawn by the distribution that nobody named.
function commands.finish()
  is_over = true
  if own_loop and coroutine.status(own_loop) == "suspended" then resume_loop() end
  commands.call("thread_done")
  return used_default and "yes" or nil
end

function commands.event()
  if type(_G.thread_run) == "function" then
    own_loop = coroutine.create(_G.thread_run)
    return resume_loop
  end
  local event, tid = _G.event, sysbench.tid
  if type(event) ~= "function" then
    error("cannot find the event() function in " .. tostring(cmdline.script_path), 0)
  end
  return function() return event(tid) end
end

-- What the last error was about, for an event that begins again.
function commands.restart()
  local about = restarting
  restarting = nil
  if hooks.before_restart_event then hooks.before_restart_event(about) end
end

-- True as text if the script has reports of its own.
function commands.hooks()
  return (hooks.report_intermediate or hooks.report_cumulative) and "yes" or nil
end

-- `KIND NAME VALUE …`: calls the script's own report of that kind.
function commands.report(text)
  local fields = fields_of(text)
  local hook = hooks["report_" .. fields[1]]
  if type(hook) ~= "function" then return end
  local stat = {}
  for index = 2, #fields, 2 do stat[fields[index]] = tonumber(fields[index + 1]) end
  hook(stat)
end

local function take(name, text) return commands[name](text) end

local function handle(said)
  if type(said) == "table" and said.errcode == RESTART_EVENT then
    restarting = said
    return true
  end
  if type(said) == "string" then return said end
  return place() .. "the script raised an error: " .. tostring(said)
end

return handle, take
