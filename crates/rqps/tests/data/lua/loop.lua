-- Runs a loop of its own instead of event(), and functions around the step.

local ffi = require("ffi")
ffi.cdef [[
  bool sb_more_events(int thread_id);
  void sb_event_start(int thread_id);
  void sb_event_stop(int thread_id);
]]

function init(thread)
  if thread ~= nil then error("an argument of init") end
  is_begun = true
end

function done()
  print("done after init: " .. tostring(is_begun))
end

function thread_run(thread)
  if is_begun then error("a global of init() in the state of a client") end
  local con = sysbench.sql.driver():connect()
  local events = 0
  while ffi.C.sb_more_events(thread) do
    ffi.C.sb_event_start(thread)
    con:query("SELECT " .. events)
    if pcall(con.query, con, "SELECT nothing FROM nowhere") then error("no error") end
    events = events + 1
    ffi.C.sb_event_stop(thread)
  end
  print("the loop ended after " .. events)
end
