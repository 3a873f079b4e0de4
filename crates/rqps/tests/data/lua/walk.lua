-- Walks through the interface of scripts and checks what it finds: any surprise raises an error.

require("walk_module")

sysbench.cmdline.options = {
  flag = { "A switch", true },
  size = { "A number", 10 },
  many = { "A list", {} },
  word = { "A text", "none" },
}

local function same(found, wanted, what)
  if found ~= wanted then
    error(what .. ": " .. tostring(found) .. " instead of " .. tostring(wanted))
  end
end

local tried = false

function thread_init(thread)
  same(thread, sysbench.tid, "argument of thread_init")
  same(thread_id, sysbench.tid, "thread_id")
  same(walk_module_says, "hello", "the module")
  same(sysbench.cmdline.command, "run", "the command")
  same(sysbench.opt.flag, false, "a switch")
  same(sysbench.opt.size, 3, "a number")
  same(#sysbench.opt.many, 2, "a list")
  same(sysbench.opt.many[2], "b", "an item of a list")
  same(sysbench.opt.word, "none", "a default")
  same(sysbench.opt.threads, 1, "the option threads")
  same(type(sysbench.opt.rand_seed), "number", "the option rand_seed")

  drv = sysbench.sql.driver()
  same(drv:name(), sysbench.opt.db_driver, "the driver")
  con = drv:connect()
  same(tostring(con), "<sql_connection>", "a connection as text")
  same(tostring(drv), "<sql_driver>", "a driver as text")

  local nothing = con:query("DROP TABLE IF EXISTS walk")
  same(nothing == nil, true, "a result without rows")
  same(tostring(nothing), "<sql_result>", "a result without rows as text")
  if not nothing then error("a result without rows is true") end
  same(nothing.nrows, 0, "rows of a result without rows")

  con:query("CREATE TABLE walk (id INTEGER NOT NULL PRIMARY KEY, t VARCHAR(40), d DOUBLE PRECISION)")
  con:bulk_insert_init("INSERT INTO walk VALUES")
  for id = 1, 20 do
    con:bulk_insert_next(string.format("(%d, 'row %d', %d.5)", id, id, id))
  end
  con:bulk_insert_done()

  local t = sysbench.sql.type
  insert = con:prepare("INSERT INTO walk (id, t, d) VALUES (?, ?, ?)")
  values = { insert:bind_create(t.INT), insert:bind_create(t.VARCHAR, 8), insert:bind_create(t.DOUBLE) }
  insert:bind_param(unpack(values))
  same(tostring(insert), "<sql_statement>", "a statement as text")
  same(tostring(values[1]), "<sql_param>", "a parameter as text")
  same(insert:bind_param(), nil, "bind_param without parameters")
  same(pcall(insert.bind_create, insert, t.DATE), false, "a type that nobody binds")
  select_one = con:prepare("SELECT t, d FROM walk WHERE id = ?")
  one = select_one:bind_create(t.BIGINT)
  select_one:bind_param(one)
end

-- An error that the script calls ignorable begins the event again.
function sysbench.hooks.sql_error_ignorable(about)
  same(about.connection, con, "the connection of an error")
  same(type(about.sql_errno), "number", "the number of an error")
  same(#about.sql_state, 5, "the state of an error")
  return true
end

function sysbench.hooks.before_restart_event(about)
  same(about.query, "SELECT nothing FROM nowhere", "the statement of an error")
  tried = true
end

function event(thread)
  same(thread, sysbench.tid, "argument of event")
  if not tried then con:query("SELECT nothing FROM nowhere") end
  tried = false

  local rs = con:query("SELECT id, t FROM walk WHERE id <= 3 ORDER BY id")
  same(rs.nrows, 3, "rows")
  same(rs.nfields, 2, "columns")
  local id, text = unpack(rs:fetch_row(), 1, rs.nfields)
  same(id, "1", "a number of a row")
  same(text, "row 1", "a text of a row")
  same(id + 1, 2, "a number as text in arithmetic")
  rs:fetch_row()
  same(rs:fetch_row()[2], "row 3", "the third row")
  same(rs:fetch_row(), nil, "after the last row")
  rs:free()

  same((con:query_row("SELECT id FROM walk WHERE id = -1")), nil, "a row that is not there")
  local count, null = con:query_row("SELECT count(*), max(NULL) FROM walk WHERE id <= 20")
  same(tonumber(count), 20, "count")
  same(null, nil, "NULL")

  values[1]:set(1000)
  values[2]:set("longer than eight")
  values[3]:set(0.25)
  con:query("DELETE FROM walk WHERE id >= 1000")
  insert:execute()
  text, null = con:query_row("SELECT t, d FROM walk WHERE id = 1000")
  same(text, "longer t", "a text that was cut")
  same(tonumber(null), 0.25, "a fraction")
  values[1]:set(1001.9)
  values[2]:set(nil)
  insert:execute()
  text = con:query_row("SELECT t FROM walk WHERE id = 1001")
  same(text, nil, "a parameter that is NULL")
  values[1]:set(1002)
  values[2]:set_rand_str("##-@@-x")
  insert:execute()
  text = con:query_row("SELECT t FROM walk WHERE id = 1002")
  if not text:match("^%d%d%-%l%l%-x$") then error("set_rand_str gave " .. text) end
  one:set(7)
  local found = select_one:execute()
  same(found.nrows, 1, "rows of a prepared statement")
  same(found.nfields, 2, "columns of a prepared statement")
  local said, half = unpack(found:fetch_row(), 1, 2)
  same(said, "row 7", "a text of a prepared statement")
  same(tonumber(half), 7.5, "a fraction of a prepared statement")
  same(found:fetch_row(), nil, "after the only row")

  for _ = 1, 20 do
    local drawn = sysbench.rand.uniform(5, 9)
    if drawn < 5 or drawn > 9 then error("uniform gave " .. drawn) end
    for _, name in ipairs { "default", "gaussian", "pareto", "special", "zipfian" } do
      local other = sysbench.rand[name](1, 100)
      if other < 1 or other > 100 then error(name .. " gave " .. other) end
    end
    local length = #sysbench.rand.varstring(2, 6)
    if length < 2 or length > 6 then error("varstring is " .. length .. " long") end
    if sysbench.rand.uniform_double() >= 1 then error("uniform_double gave 1") end
  end
  if sysbench.rand.unique() == sysbench.rand.unique() then error("unique repeats") end
  if sb_rand_uniq(1, 10) > 10 then error("sb_rand_uniq") end

  local ffi = require("ffi")
  same(pcall(function() return ffi.C.db_query end), false, "a function of sysbench's C code")
  same(pcall(function() return ffi.C.sb_histogram_new end), false, "the same of a histogram")
  local before = ffi.C.sb_counter_val(sysbench.tid, ffi.C.SB_CNT_ERROR)
  ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
  same(ffi.C.sb_counter_val(sysbench.tid, ffi.C.SB_CNT_ERROR), before + 1, "a counter")
  same(ffi.C.sb_more_events(sysbench.tid), true, "more events")
  local drawn = ffi.C.sb_rand_uniform(5, 9)
  if drawn < 5 or drawn > 9 then error("sb_rand_uniform gave " .. drawn) end
  local text_of = ffi.new("char[8]")
  local length = ffi.C.sb_rand_varstr(text_of, 2, 6)
  if length < 2 or length > 6 then error("sb_rand_varstr gave " .. length) end
  ffi.C.sb_rand_str("#@", text_of)
  if not ffi.string(text_of, 2):match("^%d%l$") then error("sb_rand_str") end
  same(bit.bor(1, 4), 5, "bit")
end

function thread_done()
  insert:close()
  con:query("DROP TABLE walk")
  con:disconnect()
  same(pcall(con.query, con, "SELECT 1"), false, "a statement after the end")
end
